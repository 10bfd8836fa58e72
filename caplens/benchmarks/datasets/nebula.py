"""Nebula: rated captions of 32,978 images by modern captioners (Matsuda et al. 2024)."""

from caplens.benchmarks.datasets.rated_table import RatedTable


class Nebula(RatedTable):
    name = "nebula"
    summary = "ratings of captions by modern captioners, the test part"
    folder, marker = "nebula", "nebula_test."
    files = ("nebula_test.csv", "nebula_test.jsonl")
    where = "It is in the data set Ka2ukiMatsuda/Nebula of the Hugging Face hub; save its test part under this name."
