"""Flickr8k-Expert: 5,822 pairs of a photo and a caption, each rated 1 to 4 by three experts (Hodosh et al. 2013).

Pairs whose caption is one of the photo's own references are left out, and each of the three ratings is a separate data point.
CIDEr's document frequencies are counted over these 16,992 data points, repeats included.
"""

from pathlib import Path

import numpy as np

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.datasets.flickr8k import WHERE, FlickrRatings, caption_of, read_captions, references_of, translated
from caplens.benchmarks.rating import AGGREGATIONS, RatedSamples, aggregate
from caplens.data.records import find_file, read_fields
from caplens.data.sample import Sample
from caplens.errors import InputError


class Flickr8kExpert(FlickrRatings):
    name = "flickr8k-expert"
    summary = "16,992 expert ratings (1 to 4) of 5,664 pairs of photo and caption"
    protocols = AGGREGATIONS
    marker = "ExpertAnnotations.txt"
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 1; CLIP scores there are with ViT-B/32",
            "expanded",
            {
                "tau-c": {"bleu1": 32.3, "bleu4": 30.8, "rouge-l": 32.3, "meteor": 41.8, "cider": 43.9, "spice": 44.9}
                | {"clipscore": 51.2, "refclipscore": 53.0, "pacs": 54.3, "refpacs": 55.9, "mid": 54.9},
                "tau-b": {"bleu1": 32.2, "bleu4": 30.6, "rouge-l": 32.1, "meteor": 41.5, "cider": 43.6, "spice": 51.7}
                | {"clipscore": 51.1, "refclipscore": 52.6, "pacs": 53.9, "refpacs": 55.5},
            },
        ),
        Published(
            "multilingual CLIPScore, table 2",
            "expanded",
            {"spearman": {"bleu1": 40.4, "bleu4": 38.7, "cider": 54.3, "clipscore": 63.1, "refclipscore": 63.7}},
        ),
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        captions = read_captions(data)
        path = find_file(data, ["ExpertAnnotations.txt"], "the expert ratings file", WHERE)
        rows = read_fields(path, 5)
        samples, human, raters = [], [], []
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
            if not all(1 <= value <= 4 for value in values):
                raise InputError(f"{place}: the ratings {ratings} are not from 1 to 4; this is not the file of expert ratings.")
            raters.append(values)
            for point, value in enumerate(aggregate(values, protocol)):
                samples.append(
                    Sample(
                        f"{photo} {caption_id} {point}", caption, references, image=photo, lang="en", meta={"caption": caption_id}
                    )
                )
                human.append(value)
        warnings = count_warning(len(rows), 5822, "rows of expert ratings")
        # A row of another length is not the file of three experts, and has no raters.
        table = np.array(raters) if len({len(values) for values in raters}) == 1 else None
        english = RatedSamples(samples, np.array(human), raters=table, warnings=warnings)
        return english if lang == "en" else translated(english, captions, data, lang)
