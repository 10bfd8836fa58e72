"""Flickr8k-Expert: 5,822 pairs of a photo and a caption, each rated 1 to 4 by three experts (Hodosh et al. 2013).

A pair whose caption is one of the photo's own references is left out, and each of the three ratings is a data point of its
own. CIDEr's document frequencies are counted over those 16,992 data points, repeats included.
"""

from pathlib import Path
from statistics import mean, median

import numpy as np

from caplens.bench.base import Benchmark, Judgements, Published
from caplens.bench.files import find_file, read_fields
from caplens.bench.flickr8k import IMAGE_FOLDERS, WHERE, caption_of, count_warning, read_captions, references_of, translated
from caplens.data.sample import Sample
from caplens.errors import InputError


class Flickr8kExpert(Benchmark):
    name = "flickr8k-expert"
    summary = "16,992 expert ratings (1 to 4) of 5,664 pairs of photo and caption"
    protocols = {
        "expanded": "each of the three ratings is a data point (what papers report)",
        "mean": "the mean of the three ratings",
        "median": "the median of the three ratings",
    }
    image_folders = IMAGE_FOLDERS
    coefficients = ("tau-c", "tau-b")
    published = Published(
        "Sarto et al. 2023 (PAC-S), table 1; CLIP scores there are with ViT-B/32",
        "expanded",
        {
            "tau-c": {"bleu1": 32.3, "bleu4": 30.8, "rouge-l": 32.3, "meteor": 41.8, "cider": 43.9, "spice": 44.9}
            | {"clipscore": 51.2, "refclipscore": 53.0, "pacs": 54.3, "refpacs": 55.9},
            "tau-b": {"bleu1": 32.2, "bleu4": 30.6, "rouge-l": 32.1, "meteor": 41.5, "cider": 43.6, "spice": 51.7}
            | {"clipscore": 51.1, "refclipscore": 52.6, "pacs": 53.9, "refpacs": 55.5},
        },
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> Judgements:
        captions = read_captions(data)
        path = find_file(data, ["ExpertAnnotations.txt"], "the file of expert ratings", WHERE)
        rows = read_fields(path, 5)
        samples, human = [], []
        for place, (photo, caption_id, *ratings) in rows:
            caption, references = caption_of(caption_id, captions, place), references_of(photo, captions, place)
            if caption in references:
                continue
            try:
                values = [float(rating) for rating in ratings]
            except ValueError:
                values = [float("nan")]
            if not np.isfinite(values).all():
                raise InputError(f"{place}: the ratings {ratings} are not numbers.")
            points = {"expanded": values, "mean": [mean(values)], "median": [median(values)]}[protocol]
            for point, value in enumerate(points):
                samples.append(Sample(f"{photo} {caption_id} {point}", caption, references, image=photo, lang="en"))
                human.append(value)
        if lang != "en":
            return translated(samples, human, captions, data, lang)
        return Judgements(samples, np.array(human), count_warning(len(rows), 5822, "rows of expert ratings"))
