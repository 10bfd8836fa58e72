"""CapEval1k: 1,000 captions of four systems, rated by people (Lee et al. 2021), and its versions in five languages (PR-MCS)."""

from pathlib import Path

from caplens.benchmarks.base import Published
from caplens.benchmarks.datasets.rated_table import RatedTable


class CapEval1k(RatedTable):
    name = "capeval1k"
    summary = "ratings of 1,000 captions by four systems"
    folder, marker = "capeval1k", "capeval1k."
    files = ("capeval1k.json", "capeval1k.jsonl", "capeval1k.csv")
    where = (
        "It comes with UMIC (Lee et al. 2021) as a pickle, which caplens never opens; docs/benchmarks.md says how to convert it."
    )
    published_rows = 1000


class MultilingualCapEval1k(RatedTable):
    name = "m-capeval1k"
    summary = "CapEval1k with captions rewritten in English, German, Spanish, French and Japanese and the same ratings"
    folder, marker = "m-capeval1k", "m-capeval1k."
    files = ("m-capeval1k.{lang}.json", "m-capeval1k.{lang}.jsonl", "m-capeval1k.{lang}.csv")
    where = "It was announced by Kim et al. (PR-MCS); it has one file per language."
    published_rows = 1000
    published = tuple(
        Published(
            "Kim et al. (PR-MCS), table 1: MCS with their own text encoder, CLIPScore with ViT-B/32",
            "mean",
            {"tau-c": {"mcs": value} | ({"clipscore": 27.0} if lang == "en" else {})},
            lang,
        )
        for lang, value in {"en": 26.8, "de": 26.5, "es": 25.3, "fr": 23.6, "ja": 25.2}.items()
    )

    def languages(self, data: Path) -> list[str]:
        return sorted({path.name.split(".")[1] for path in data.glob("m-capeval1k.*.*")})
