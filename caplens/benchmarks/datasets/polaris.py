"""Polaris: captions of ten systems and of people, rated by 550 workers (Wada et al. 2024)."""

from caplens.benchmarks.datasets.rated_table import RatedTable


class Polaris(RatedTable):
    name = "polaris"
    summary = "ratings of captions by ten systems and by people, the test part"
    folder, marker = "polaris", "polaris_test.csv"
    files = ("polaris_test.csv",)
    where = "It is in the data set yuwd/Polaris of the Hugging Face hub."
