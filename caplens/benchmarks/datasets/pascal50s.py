"""Pascal-50S: pairs of two correct human captions (HC), two human captions of which one is about another image (HI), a human and
a machine caption (HM), and two machine captions (MM)."""

from caplens.benchmarks.base import Published
from caplens.benchmarks.datasets.consensus_50s import Consensus50S

_MEASURES = ("HC", "HI", "HM", "MM", "mean")
_TABLE = {
    "length": (51.7, 52.3, 63.6, 49.6, 54.3),
    "bleu1": (64.6, 95.2, 91.2, 60.7, 77.9),
    "bleu4": (60.3, 93.1, 85.7, 57.0, 74.0),
    "rouge-l": (63.9, 95.0, 92.3, 60.9, 78.0),
    "meteor": (66.0, 97.7, 94.0, 66.6, 81.1),
    "cider": (66.5, 97.9, 90.7, 65.2, 80.1),
    "clipscore": (55.9, 99.3, 96.5, 72.0, 80.9),
    "pacs": (60.6, 99.3, 96.9, 72.9, 82.4),
    "refclipscore": (64.9, 99.5, 95.5, 73.3, 83.3),
    "refpacs": (67.7, 99.6, 96.0, 75.6, 84.7),
    "mid": (67.0, 99.7, 97.4, 76.8, 85.2),
}


class Pascal50S(Consensus50S):
    name = "pascal-50s"
    summary = "4 x 1,000 pairs of captions, each judged by 48 people"
    averaged = True
    folder = "pascal50s"
    pairs_file, votes_file, one_draw_file = "pair_pascal.mat", "consensus_pascal.mat", "pascal_50s.json"
    sentences_file, sentences_variable, sentences_first = "pascal50S.mat", "train_sent_final", False
    categories = {1: "HC", 2: "HI", 3: "HM", 4: "MM"}
    published_pairs = 4000
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 4; CLIP scores there are with ViT-B/32",
            "majority",
            {measure: {metric: row[column] for metric, row in _TABLE.items()} for column, measure in enumerate(_MEASURES)},
        ),
    )
