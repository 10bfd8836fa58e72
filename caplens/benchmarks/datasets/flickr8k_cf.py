"""Flickr8k-CF: 47,830 pairs of a photo and a caption, each judged right or wrong by three or more workers (Hodosh et al. 2013).

The human value is the share of workers who said yes. If one of a photo's own captions is judged for that photo, it is not used as
a reference in any row of the photo.
"""

from pathlib import Path

import numpy as np

from caplens.benchmarks.base import Published, count_warning
from caplens.benchmarks.datasets.flickr8k import WHERE, FlickrRatings, caption_of, read_captions, references_of, translated
from caplens.benchmarks.rating import RatedSamples
from caplens.data.records import find_file, read_fields
from caplens.data.sample import Sample
from caplens.errors import InputError


class Flickr8kCF(FlickrRatings):
    name = "flickr8k-cf"
    summary = "yes/no judgements of 47,830 pairs of photo and caption"
    protocols = {
        "mean": "the share of workers who said yes (what papers report)",
        "expanded": "each worker's yes (1) or no (0) is a data point",
        "median": "1 if more said yes than no, 0 if fewer did, else 0.5",
    }
    marker = "CrowdFlowerAnnotations.txt"
    coefficients = ("tau-b", "tau-c", "spearman", "pearson")
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 1; CLIP scores there are with ViT-B/32",
            "mean",
            {
                "tau-b": {"bleu1": 17.9, "bleu4": 16.9, "rouge-l": 19.9, "meteor": 22.2, "cider": 24.6, "spice": 24.4}
                | {"clipscore": 34.4, "refclipscore": 36.4, "pacs": 36.0, "refpacs": 37.6, "mid": 37.3},
                "tau-c": {"bleu1": 9.3, "bleu4": 8.7, "rouge-l": 10.3, "meteor": 11.5, "cider": 12.7, "spice": 12.0}
                | {"clipscore": 17.7, "refclipscore": 18.8, "pacs": 18.6, "refpacs": 19.5},
            },
        ),
        Published(
            "multilingual CLIPScore, table 2",
            "mean",
            {"spearman": {"bleu1": 22.3, "bleu4": 21.0, "cider": 29.3, "clipscore": 42.4, "refclipscore": 44.7}},
        ),
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> RatedSamples:
        captions = read_captions(data)
        path = find_file(data, ["CrowdFlowerAnnotations.txt"], "the workers' judgements file", WHERE)
        rows = read_fields(path, 5)
        judged_captions: dict[str, set[str]] = {}
        for place, (photo, caption_id, *_) in rows:
            judged_captions.setdefault(photo, set()).add(caption_of(caption_id, captions, place))
        samples, human = [], []
        for place, (photo, caption_id, share, yes, no) in rows:
            caption = caption_of(caption_id, captions, place)
            references = tuple(text for text in references_of(photo, captions, place) if text not in judged_captions[photo])
            if not (_is_share(share) and yes.isdecimal() and no.isdecimal()):
                raise InputError(f"{place}: {[share, yes, no]} are not a share and two counts of votes.")
            values = _data_points(protocol, float(share), int(yes), int(no))
            for point, value in enumerate(values):
                samples.append(
                    Sample(
                        f"{photo} {caption_id} {point}", caption, references, image=photo, lang="en", meta={"caption": caption_id}
                    )
                )
                human.append(value)
        english = RatedSamples(samples, np.array(human), warnings=count_warning(len(rows), 47830, "rows of workers' judgements"))
        return english if lang == "en" else translated(english, captions, data, lang)


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _data_points(protocol: str, share: float, yes: int, no: int) -> list[float]:
    match protocol:
        case "expanded":
            return [1.0] * yes + [0.0] * no
        case "median":
            return [float(np.sign(yes - no) + 1) / 2]
    return [share]
