"""`caplens translate`: captions, references and benchmarks in other languages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from caplens.api.translating import suffixes
from caplens.api.translating import translate as translate_captions
from caplens.benchmarks.evaluate import load_checked
from caplens.benchmarks.registry import get_benchmark
from caplens.benchmarks.translations import translation_target
from caplens.cli.command import Outcome, command
from caplens.cli.options import AllowFormulas, MetricOptions, ModelOptions, listed
from caplens.cli.output import info, warn
from caplens.data import Sample, SampleFile, write_samples
from caplens.data.replacing import ensure_apart, ensure_writable
from caplens.data.writing import SUFFIXES
from caplens.errors import InputError
from caplens.text.identification import load_language_model
from caplens.translation import TranslationReport, load_translator
from caplens.translation.base import check_pair

EXAMPLES = """
caplens translate captions.jsonl german.jsonl --to de --translator hf:facebook/m2m100_418M
caplens translate captions.jsonl out.jsonl --to de,fr,zh --translator hf:facebook/m2m100_1.2B --beams 100 --nbest 25 --qe mini-qe
caplens translate captions.jsonl german.jsonl --to de --translator file:translations.jsonl --nbest 25 --qe mini-qe,mbr
caplens translate --benchmark vicr --data vicr --to de,fr --translator ct2:facebook/m2m100_1.2B --nbest 25 --qe mini-qe
"""


def translate(
    models: ModelOptions,
    translator: Annotated[
        str, typer.Option(help="hf:ORG/NAME, ct2:ORG/NAME, endpoint:URL,model=NAME, or file:PATH of ready translations.")
    ],
    to: Annotated[list[str], typer.Option(help="Languages to translate into (de,fr,zh).")],
    captions: Annotated[Path | None, typer.Argument(help="Any file of captions or references.")] = None,
    target: Annotated[
        Path | None, typer.Argument(help="The file to write; for several languages, each has its code before the suffix.")
    ] = None,
    source: Annotated[str, typer.Option("--from", help="The language of the captions.")] = "en",
    benchmark: Annotated[str | None, typer.Option(help="Instead of a file, a benchmark whose files are in --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The folder of the benchmark, where NAME.LANG.jsonl is written.")] = None,
    protocol: Annotated[str | None, typer.Option(help="The protocol of the benchmark. \\[default: as papers do]")] = None,
    beams: Annotated[int, typer.Option(min=1, max=1000, help="Beams of the search.")] = 5,
    nbest: Annotated[int, typer.Option(min=1, max=1000, help="Translations of each text to choose from.")] = 1,
    qe: Annotated[
        list[str] | None,
        typer.Option(help="What chooses: mini-qe, use-qe, cometkiwi, clipscore with --images, mbr. \\[default: the first]"),
    ] = None,
    qe_model: Annotated[str | None, typer.Option(help="The folder of the model of cometkiwi, xcomet-qe or metricx24-qe.")] = None,
    language_check: Annotated[
        bool, typer.Option("--language-check/--no-language-check", help="Drop translations in another language.")
    ] = True,
    langid: Annotated[
        Path | None, typer.Option(help="A file of fastText that identifies languages. \\[default: py3langid]")
    ] = None,
    allow_formulas: AllowFormulas = False,
) -> Outcome:
    """Translate captions and references, and keep the best of several translations.

    Of --nbest translations, those in another language are dropped, and the best by --qe is kept; each row says which it was and
    with what estimates. Translations are kept by content: nothing is translated twice, and a stopped command goes on.
    """
    langs = list(dict.fromkeys(tag.lower() for tag in listed(to) or []))
    samples, output = _inputs(captions, target, benchmark, data, protocol, langs)
    files = (
        suffixes(langs, output)
        if benchmark is None
        else {lang: translation_target(get_benchmark(benchmark), output, lang) for lang in langs}
    )
    for file in files.values():
        if file.suffix.lower() not in SUFFIXES:
            raise InputError(f"{file}: the suffix names no format of captions; there are: {', '.join(SUFFIXES)}.")
        ensure_writable(file)
        ensure_apart(file, captions)
    names = listed(qe)
    options = models.scoring(MetricOptions(qe_model=qe_model), names=names or ["length"])
    opened = load_translator(translator, max(beams, nbest), options.load_options())
    for lang in langs:
        # All of them before the first is translated.
        opened.check_languages(*check_pair(source, lang))
    written: dict[str, Any] = {}
    failed = 0
    for lang, file in files.items():
        translated, report = translate_captions(
            samples,
            lang,
            opened,
            source=source,
            nbest=nbest,
            beams=beams,
            qe=names,
            images=models.images,
            check_language=language_check,
            language_model=load_language_model(langid) if langid is not None else None,
            options=options,
        )
        count = write_samples(translated, file, allow_formulas=allow_formulas)
        info(f"{count:,} samples in {lang} written to {file}; {_described(report)}")
        warn([f"{number:,} texts were not translated: {why}." for why, number in report.failed.items()])
        failed += sum(report.failed.values())
        written[lang] = {"written": str(file), "samples": count, "texts": report.texts, "changed": report.changed}
        written[lang] |= {"wrong_language": report.wrong_language, "first_in_wrong_language": report.first_in_wrong_language}
    return Outcome({"languages": written, "failed": failed}, 3 if failed else 0)


def _inputs(
    captions: Path | None,
    target: Path | None,
    benchmark: str | None,
    data: Path | None,
    protocol: str | None,
    langs: Sequence[str],
) -> tuple[list[Sample] | SampleFile, Path]:
    """The samples to translate, and the file or folder to write."""
    if benchmark is None:
        if protocol is not None:
            raise InputError("--protocol is of a benchmark; name it with --benchmark.")
        if captions is None or target is None:
            raise InputError("give a file of captions and the file to write, or a benchmark with --benchmark and --data.")
        return SampleFile(captions, caption_required=False), target
    if captions is not None or data is None:
        raise InputError("a benchmark is translated in its own folder: give --data, and no files.")
    chosen = get_benchmark(benchmark)
    home = chosen.home(data)
    own = sorted(set(langs) & set(chosen.languages(home)))
    if own:
        raise InputError(f"{benchmark} has its own captions in {', '.join(own)}, which count; leave these languages out of --to.")
    return load_checked(chosen, home, protocol or next(iter(chosen.protocols)), "en").samples, home


def _described(report: TranslationReport) -> str:
    """What became of the texts, in one line."""
    return (
        f"{report.translated:,} of {report.texts:,} texts translated, {report.changed:,} not by the first translation,"
        f" {report.wrong_language:,} kept in another language (of first translations, {report.first_in_wrong_language:,})"
    )


def register(app: typer.Typer) -> None:
    command(app, examples=EXAMPLES)(translate)
