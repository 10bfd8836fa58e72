"""VICR (Validated Image Caption Ratings): 15,646 captions, each rated 1 to 5 by several people (Narins et al. 2024)."""

from caplens.benchmarks.base import Published
from caplens.benchmarks.datasets.rated_table import RatedTable

_SOURCE = "multilingual CLIPScore, table 2; CLIP scores there are with ViT-B/32"


class Vicr(RatedTable):
    name = "vicr"
    summary = "ratings (1 to 5) of 3,161 captions, the test part"
    folder, marker = "vicr", "vicr_test."
    files = ("vicr_test.csv", "vicr_test.json", "vicr_test.jsonl")
    where = "It comes from the authors of VICR (NeurIPS 2023, data sets and benchmarks); save its test part under this name."
    published_rows = 3161
    published = (
        Published(
            _SOURCE,
            "mean",
            {
                "tau-b": {
                    "bleu1": 57.9,
                    "bleu4": 54.8,
                    "cider": 63.1,
                    "clipscore": 60.7,
                    "refclipscore": 66.3,
                    "clip+cider": 66.8,
                },
                "tau-c": {
                    "bleu1": 63.7,
                    "bleu4": 60.4,
                    "cider": 69.8,
                    "clipscore": 67.1,
                    "refclipscore": 73.3,
                    "clip+cider": 73.8,
                },
                "spearman": {"bleu1": 74.0, "bleu4": 70.5, "cider": 79.3, "clipscore": 76.9, "refclipscore": 82.2}
                | {"clip+cider": 82.6},
            },
        ),
    )
