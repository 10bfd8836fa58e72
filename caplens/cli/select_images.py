"""`caplens select-images`: images for many languages, taken where each is spoken."""

from pathlib import Path
from typing import Annotated

import typer

from caplens import api
from caplens.cli.command import Outcome, command
from caplens.cli.options import ColumnOptions, Seed
from caplens.cli.output import info, warn
from caplens.data.columns import parsed_columns
from caplens.data.reading import SampleFile
from caplens.data.replacing import ensure_apart, ensure_writable

EXAMPLES = """
caplens select-images candidates.csv chosen.jsonl --per-language 100
caplens select-images photos chosen.csv --per-language 20 --langs de,hi,sw
caplens select-images photos chosen.json --per-language 20 && caplens report chosen.json -o map.html
"""


def select_images(
    columns: ColumnOptions,
    candidates: Annotated[
        Path, typer.Argument(help="A table with id, image, latitude and longitude, or a folder of photos with GPS in their EXIF.")
    ],
    output: Annotated[
        Path, typer.Argument(help="The file to write: .jsonl, .csv, .tsv, .xlsx or .parquet; or .json for 'report'.")
    ],
    per_language: Annotated[int, typer.Option(min=1, help="Images for each language.")] = 100,
    langs: Annotated[str | None, typer.Option(help="Languages, with commas. \\[default: the 36 of Crossmodal-3600]")] = None,
    regions: Annotated[
        Path | None, typer.Option(help="Where languages are spoken, in TSV: lang, level, name, south, west, north, east.")
    ] = None,
    seed: Seed = 0,
) -> Outcome:
    """Choose images for each language from where it is spoken, none twice, as Crossmodal-3600 did.

    Languages with the fewest images choose first; where an area has too few, images of a country where the language is spoken
    are taken, then of a continent, then of anywhere. The level of each image is written beside it, and 'report' draws a map. The
    regions of the package are coarse boxes. The exit status is 3 where the place of some images is not known.
    """
    ensure_writable(output)
    ensure_apart(output, candidates, regions)
    codes = [code.strip() for code in langs.split(",") if code.strip()] if langs else None
    samples = SampleFile(candidates, columns=parsed_columns(columns.columns or []), caption_required=False)
    result = api.select_images(samples, per_language, codes, regions=regions, seed=seed)
    result.save(output)
    for lang, by_level in result.counts().items():
        info(f"{lang}: {', '.join(f'{count} {level}' for level, count in by_level.items())}")
    warn(result.warnings)
    info(f"written to {output}")
    levels = {lang: dict(by_level) for lang, by_level in result.counts().items()}
    return Outcome({"written": str(output), "levels": levels, "unknown": len(result.unknown)}, 3 if result.unknown else 0)


def register(app: typer.Typer) -> None:
    command(app, "select-images", examples=EXAMPLES)(select_images)
