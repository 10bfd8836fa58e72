"""Abstract-50S: 400 pairs of captions of clip-art scenes, half of which have one caption of another scene."""

from caplens.benchmarks.base import Published
from caplens.benchmarks.datasets.consensus_50s import Consensus50S


class Abstract50S(Consensus50S):
    name = "abstract-50s"
    summary = "400 pairs of captions of clip art, each judged by 48 people"
    averaged = True
    folder = "abstract50s"
    pairs_file, votes_file, one_draw_file = "pair_abstract.mat", "consensus_abstract.mat", "abstract_50s.json"
    sentences_file, sentences_variable, sentences_first = "abstract50S.mat", "abs_sent", True
    categories = {1: "HC", 2: "HI"}
    published_pairs = 400
    published = (
        Published(
            "Sarto et al. 2023 (PAC-S), table 5; CLIP scores there are with ViT-B/32",
            "majority",
            {"mean": {"clipscore": 68.2, "pacs": 69.7, "refclipscore": 75.8, "refpacs": 76.9}},
        ),
    )
