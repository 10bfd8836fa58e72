"""Groups of options that several commands share."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from caplens.cli.command import option_group
from caplens.cli.output import Format, choose_format, info, warn
from caplens.data.columns import parsed_columns
from caplens.data.languages import base_language
from caplens.data.reading import SampleFile
from caplens.embed.engine import Overlong
from caplens.embed.executors import ExecutorName
from caplens.errors import InputError
from caplens.metrics.external import ExternalScores
from caplens.metrics.options import ScoringKeywords, ScoringOptions
from caplens.metrics.prompts import Prompt
from caplens.metrics.registry import MetricChoice, needs_encoder

_PANEL = "Scores that look at the image"
_LANGUAGE = re.compile(r"([\w-]*)=")
_LARGEST_BATCH = 65_536
_ABOUT_MINI = (
    "caplens: scoring with caplens-mini, a small model for everyday photos and 12 languages, for research only. For scores to"
    " publish name a large model, e.g. --model openclip:hf-hub:laion/CLIP-ViT-H-14-frozen-xlm-roberta-large-laion5B-s13B-b90k"
    " ('caplens list models')."
)

ReferencesOption = Annotated[Path | None, typer.Option("--references", "-r", help="A file with the references, joined by id.")]
Lang = Annotated[str | None, typer.Option(help="The language of captions that name none (BCP-47: en, zh, sw, …).")]
TokenizerOption = Annotated[str | None, typer.Option(help="The tokenizer for all captions. \\[default: by language]")]
DfOption = Annotated[
    Path | None, typer.Option("--df", help="Take CIDEr's document frequencies from this file of references or of 'count-df'.")
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(help="A file of 'calibrate', which says what scores mean. \\[default: for caplens-mini, the one inside]"),
]
ScoresOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="Scores of your own metric: JSONL with id and score, and lang and system where ids repeat; named after"
        " the file, may be given several times."
    ),
]
AllowFormulas = Annotated[
    bool,
    typer.Option(
        "--allow-formulas", help="In CSV, TSV and Excel, put no apostrophe before text that a spreadsheet would run as a formula."
    ),
]
PageLang = Annotated[str, typer.Option(help="The language of the page itself, and of reasons in tables: en, de, es, zh or ar.")]
Resamples = Annotated[int, typer.Option(min=0, max=1_000_000, help="Resamples for intervals and tests; 0 for none.")]
SomeResamples = Annotated[int, typer.Option(min=1, max=1_000_000, help="Resamples for intervals and tests.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="The seed of everything random.")]
Perturbations = Annotated[
    list[str] | None,
    typer.Option(
        "--perturbation",
        help="repetition, removal, masking, jumble, substitution, or all; may be given several times. \\[default: all]",
    ),
]
PerturbationProtocol = Annotated[
    str,
    typer.Option("--protocol", help="paper: as PR-MCS, where captions may come out unchanged; gentle: every caption changes."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Correction = Annotated[str, typer.Option(help="For asking several questions at once: holm, bonferroni or bh.")]


def _model_option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


def listed(values: list[str] | None) -> list[str] | None:
    """`-m cider -m bleu4,rouge-l` -> three names; None if the option was not given."""
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if not names:
        raise InputError("an option that takes names was given an empty one; name something, or leave the option off.")
    return names


def with_external(names: list[str] | None, paths: list[Path] | None) -> list[MetricChoice] | None:
    """The metrics named, and those whose scores are in files; None if there are neither."""
    return [*(names or []), *(ExternalScores.read(path) for path in paths or [])] or None


@option_group
@dataclass(frozen=True)
class OutputOptions:
    """Where and how a result is written."""

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file; compare and bench print their tables too.")
    ] = None
    format: Annotated[Format | None, typer.Option("--format", "-f", help="\\[default: by the output's suffix, else a table]")] = (
        None
    )
    allow_formulas: AllowFormulas = False

    def checked(self, *inputs: Path | None) -> Format:
        """The format; fails before any work if the output cannot be written, or is one of the inputs."""
        return choose_format(self.output, self.format, *inputs)


@option_group
@dataclass(frozen=True)
class ColumnOptions:
    """Which columns of a table are which."""

    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns of a table that are called otherwise: caption=ALT,image=File. \\[default: by their names]"),
    ] = None

    @property
    def joined(self) -> str | None:
        """What was given, as one text; None if nothing was."""
        return ",".join(self.columns or []) or None

    def samples(self, path: Path) -> SampleFile:
        """The captions of a file."""
        return SampleFile(path, columns=parsed_columns(self.columns or []), mark_repeats=True)


@option_group
@dataclass(frozen=True)
class FormatOptions:
    """How a result is printed."""

    format: Annotated[Format | None, typer.Option("--format", "-f", help="\\[default: a table]")] = None

    def checked(self) -> Format:
        return choose_format(None, self.format)


@option_group
@dataclass(frozen=True)
class MetricOptions:
    """Which metrics, and how captions are split into tokens."""

    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="A metric, or package.module:Class; may be given several times, or as a list with commas."
        ),
    ] = None
    tokenizer: TokenizerOption = None
    df: DfOption = None
    mid: Annotated[Path | None, typer.Option("--mid", help="The file of 'mid fit'. \\[default: fit MID on the references]")] = (
        None
    )
    qe_model: Annotated[str | None, typer.Option(help="The folder of the model of cometkiwi, xcomet-qe or metricx24-qe.")] = None
    shrinkage: Annotated[
        str | None, typer.Option(help="What is added to the variances of MID, or ledoit-wolf. \\[default: 0]")
    ] = None


@option_group
@dataclass(frozen=True)
class ModelOptions:
    """What encodes images and texts, how it runs, and where vectors are kept."""

    model: Annotated[
        list[str] | None,
        _model_option(
            help="The model that encodes images and texts: hf:openai/clip-vit-base-patch32, … ('caplens list models')."
            " \\[default: caplens-mini]"
        ),
    ] = None
    images: Annotated[Path | None, _model_option(help="The folder that the names of images and videos are relative to.")] = None
    prompt: Annotated[
        list[str] | None,
        _model_option(
            help="The text before captions: TEXT for all, LANG=TEXT for each language, or none. \\[default: the metric's]"
        ),
    ] = None
    weight: Annotated[float | None, _model_option(help="CLIPScore's w. \\[default: the metric's or the model's]")] = None
    cider_share: Annotated[
        float | None, _model_option(help="The share of CIDEr in clip+cider and refclip+cider. \\[default: 0.5]")
    ] = None
    frames: Annotated[
        int | None, _model_option(help="Frames of a video that are looked at. \\[default: 10]", min=1, max=4096)
    ] = None
    fps: Annotated[float | None, _model_option(help="Instead, so many frames for each second.")] = None
    idf: Annotated[
        str | None,
        _model_option(help="For EMScore, a file of captions that says how rare words are, or none. \\[default: the references]"),
    ] = None
    overlong: Annotated[
        Overlong | None,
        _model_option(help="Texts longer than the model takes: truncate, or split into sentences and average."),
    ] = None
    device: Annotated[str | None, _model_option(help="auto, cpu, cuda, cuda:1, mps.")] = None
    dtype: Annotated[str | None, _model_option(help="The model's number format: fp32, bf16, fp16.")] = None
    batch_size: Annotated[
        int | None, _model_option(help="Images or texts at a time. \\[default: by device]", min=1, max=_LARGEST_BATCH)
    ] = None
    workers: Annotated[
        int | None, _model_option(help="Threads or processes that decode images. \\[default: all processors]", min=1, max=256)
    ] = None
    engine: Annotated[
        ExecutorName | None,
        _model_option(help="What encodes images and texts: this machine, or the nodes of a Ray cluster. \\[default: local]"),
    ] = None
    ray_address: Annotated[
        str | None, _model_option(help="Of the cluster: auto, or HOST:PORT. \\[default: processes of this machine]")
    ] = None
    store: Annotated[Path | None, _model_option(help="The folder that vectors are kept in. \\[default: the user's cache]")] = None
    no_store: Annotated[bool, _model_option("--no-store", help="Keep no vectors after the run.")] = False
    offline: Annotated[bool, _model_option("--offline", help="Download nothing.")] = False
    trust_remote_code: Annotated[bool, _model_option("--trust-remote-code", help="Run code that comes with the model.")] = False

    def scoring(self, metrics: MetricOptions, lang: str | None = None, names: list[str] | None = None) -> ScoringOptions:
        """What the user gave, and nothing else: defaults are those of `ScoringOptions`. `names` are the metrics, if any."""
        if len(self.model or []) > 1:
            raise InputError("this command takes one model at a time; only 'caplens bench' and 'caplens agreement' take several.")
        self.announce(names or listed(metrics.metric))
        return ScoringOptions.of(**self.keywords(metrics, lang))

    def keywords(self, metrics: MetricOptions, lang: str | None = None) -> ScoringKeywords:
        """The options that were given, as keywords of the API. Several models are not among them."""
        if self.no_store and self.store is not None:
            raise InputError("--store names a folder for vectors and --no-store keeps none; choose one.")
        values = {
            "lang": lang,
            "df": metrics.df,
            "tokenizer": metrics.tokenizer,
            "mid": metrics.mid,
            "shrinkage": metrics.shrinkage,
            "qe_model": metrics.qe_model,
            "model": self.model[0] if self.model and len(self.model) == 1 else None,
            "prompt": _parsed_prompt(self.prompt),
            "weight": self.weight,
            "cider_share": self.cider_share,
            "frames": self.frames,
            "fps": self.fps,
            "idf": self.idf,
            "overlong": self.overlong,
            "device": self.device,
            "dtype": self.dtype,
            "batch_size": self.batch_size,
            "workers": self.workers,
            "executor": self.engine,
            "ray_address": self.ray_address,
            "store": self.store,
            "keep_store": False if self.no_store else None,
            "offline": self.offline or None,
            "trust_remote_code": self.trust_remote_code or None,
        }
        return cast(ScoringKeywords, {name: value for name, value in values.items() if value is not None})

    @property
    def models(self) -> list[str] | None:
        """Several models, where several were given."""
        unique = list(dict.fromkeys(self.model or []))
        return unique if len(unique) > 1 else None

    def announce(self, metrics: list[str] | None) -> None:
        """Say what the scores are computed with, or that images are not needed."""
        used = any(map(needs_encoder, metrics)) if metrics else self.images is not None
        if self.model is None and used:
            info(_ABOUT_MINI)
        if self.images is not None and not used and not self.model:
            warn(["--images is for scores that look at the image; none of these metrics does, and it is not used."])


def _parsed_prompt(values: list[str] | None) -> Prompt | None:
    """`--prompt "A photo of "`, or `--prompt "en=A photo of " --prompt "de=Ein Foto von "`."""
    if not values:
        return None
    matches = [_LANGUAGE.match(text) for text in values]
    if not any(matches):
        if len(values) > 1:
            raise InputError("give one prompt for all captions, or LANG=TEXT for each language.")
        return "" if values[0].lower() == "none" else values[0]
    prompts: dict[str, str] = {}
    for match, text in zip(matches, values, strict=True):
        if match is None:
            raise InputError("give each prompt its language (LANG=TEXT), or one prompt for all captions.")
        lang = base_language(match[1])
        if lang in prompts:
            raise InputError(f"two prompts are given for {lang!r}.")
        prompts[lang] = text[match.end() :]
    return prompts
