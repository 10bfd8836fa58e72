"""`caplens study`: ask people how good captions are, which are better, or for captions of their own."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from caplens import api
from caplens.cli.command import Outcome, command
from caplens.cli.compare import system_files
from caplens.cli.options import (
    AllowFormulas,
    FormatOptions,
    Lang,
    MetricOptions,
    ModelOptions,
    OutputOptions,
    ReferencesOption,
    Resamples,
    Seed,
    listed,
)
from caplens.cli.output import info, warn, write_result, write_tables
from caplens.data import samples_by_system, with_images
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.human.serving import PageServer
from caplens.human.settings import StudySettings, StudyTask
from caplens.results.table import LEVEL, Cell, Table
from caplens.stats import RESAMPLES
from caplens.terminal import visible

_LOCAL = ("127.0.0.1", "localhost", "::1")
Database = Annotated[str, typer.Argument(help="The study: the file that 'study create' wrote, or the URL of a database.")]
Address = Annotated[str, typer.Option(help="The address of the server.")]
EXAMPLES_CREATE = """
caplens study create captions.jsonl --images photos -o study.db
caplens study create ours=large.json base=base.json --images photos --task sidebyside -o study.db
caplens study create photos.jsonl --images photos --task write --langs de,hi -o study.db
caplens study create captions.jsonl --images photos --settings study.toml -o postgresql://localhost/study
"""
EXAMPLES_SERVE = """
caplens study serve study.db
caplens study serve study.db --host 0.0.0.0 --public https://ratings.example.org
"""
EXAMPLES_INVITE = """
caplens study invite study.db Ada Grace --langs en,de --address https://ratings.example.org
"""
EXAMPLES_OWNER = """
caplens study owner study.db
"""
EXAMPLES_STATUS = """
caplens study status study.db
"""
EXAMPLES_SET = """
caplens study set study.db open
caplens study set study.db paused
"""
EXAMPLES_EXPORT = """
caplens study export study.db -o rated.jsonl
caplens agreement rated.jsonl -m clipscore,cider --images photos
caplens study export study.db --events -o events.jsonl
"""
EXAMPLES_ANALYZE = """
caplens study analyze study.db
caplens study analyze sides.db --metric cider,clipscore --images photos ours=large.json base=base.json -r references.json
"""
EXAMPLES_PLAN = """
caplens study plan pilot.db --system ours --baseline base --images 100,200,400 --raters 3,5
"""
EXAMPLES_FORGET = """
caplens study forget study.db Ada
"""


def create(
    captions: Annotated[list[str], typer.Argument(help="A file of captions, or NAME=FILE for each of several systems.")],
    output: Annotated[str, typer.Option("--output", "-o", help="The study to make: a file, or the URL of PostgreSQL.")],
    images: Annotated[Path | None, typer.Option(help="The folder of the images.")] = None,
    task: Annotated[StudyTask | None, typer.Option(help="rate, sidebyside or write. \\[default: rate]")] = None,
    settings: Annotated[Path | None, typer.Option(help="A TOML file: scale, criteria, guidelines, replication, ….")] = None,
    title: Annotated[str | None, typer.Option(help="Shown to raters.")] = None,
    replication: Annotated[int | None, typer.Option(help="How many people judge each item. \\[default: 3]")] = None,
    langs: Annotated[str | None, typer.Option(help="For write: the languages of captions, with commas between them.")] = None,
    baseline: Annotated[str | None, typer.Option(help="For sidebyside: compare each system with this one only.")] = None,
    lang: Lang = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**31 - 1, help="The seed of the order of items.")] = None,
) -> Outcome:
    """Make a study: people rate captions, say which of two is better, or write their own.

    Prints the link of the owner, who invites raters, watches, pauses and takes the answers away. Rows with a column 'gold' check
    attention: the right point of the scale, or 1, 0, -1 side by side.
    """
    content = StudySettings() if settings is None else StudySettings.read(settings)
    chosen = {"task": task, "title": title, "replication": replication, "seed": seed}
    content = StudySettings.from_dict(content.to_dict() | {name: value for name, value in chosen.items() if value is not None})
    names, files = system_files(captions)
    systems: dict[str, Iterable[Sample]] = (
        samples_by_system(files, names)
        if content.task is StudyTask.sidebyside
        else {str(name or path.stem): SampleFile(path, mark_repeats=True) for name, path in zip(names, files, strict=True)}
    )
    if images is not None:
        systems = {name: list(with_images(samples, images)) for name, samples in systems.items()}
    made = api.create_study(output, content, systems, langs=_codes(langs), lang=lang, baseline=baseline)
    warn(made.warnings)
    link = f"/owner/join/{made.owner_token}"
    info(f"{made.items:,} items about {made.images:,} images; the study is {made.state}. Serve it: caplens study serve {output}")
    info(f"The owner's link, which is not shown again, is the address of the server and {link}")
    about = {"study": output, "items": made.items, "images": made.images, "owner": link}
    return Outcome({**about, "left_out": made.left_out}, 3 if made.left_out else 0)


def _codes(text: str | None) -> list[str]:
    return [code.strip() for code in (text or "").split(",") if code.strip()]


def serve(
    study: Database,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any that is free.")] = 8000,
    public: Annotated[
        str | None, typer.Option(help="The https:// address by which raters reach a proxy with TLS in front of this server.")
    ] = None,
) -> None:
    """Serve the pages of a study until Ctrl-C.

    Listens on this machine only, unless --host names another address. Everybody else's raters need TLS: put a proxy such as
    Caddy or nginx in front, and name its address with --public, so that cookies never travel without.
    """
    if public is not None and not _is_https(public):
        raise InputError(f"{public}: raters from elsewhere need https. Put a proxy with TLS before the server, and name it.")
    if host not in _LOCAL and public is None:
        raise InputError(
            f"--host {host} lets other machines in, without TLS. Put a proxy with TLS before the server and name its address with"
            " --public https://…"
        )
    server = PageServer(api.study_server(study, secure=public is not None), host, port)
    info(f"serving {visible(study)} at {public or server.address}; Ctrl-C stops, and nothing that was saved is lost.")
    server.run()


def _is_https(address: str) -> bool:
    try:
        return urlsplit(address).scheme == "https"
    except ValueError:
        return False


def invite(
    study: Database,
    names: Annotated[list[str], typer.Argument(help="Names of raters, as they are to appear in the answers.")],
    langs: Annotated[str | None, typer.Option(help="Languages they judge, with commas between them. \\[default: all]")] = None,
    address: Address = "http://127.0.0.1:8000",
) -> Outcome:
    """Invite raters: each gets a link of their own, which is shown once."""
    tokens = api.open_study(study).invite(names, _codes(langs))
    links = {name: f"{address.rstrip('/')}/join/{token}" for name, token in tokens.items()}
    for name, link in links.items():
        info(f"{name}: {link}")
    return Outcome({"links": links}, 0)


def owner(study: Database, address: Address = "http://127.0.0.1:8000") -> dict[str, Any]:
    """Make a new link for the owner; the old one no longer counts."""
    link = f"{address.rstrip('/')}/owner/join/{api.open_study(study).replace_owner_token()}"
    info(link)
    return {"owner": link}


def set_state(
    study: Database,
    state: Annotated[str, typer.Argument(help="pilot, open, paused or closed.")],
) -> dict[str, Any]:
    """Open, pause or close a study; while it is served, too."""
    api.open_study(study).set_state(state)
    info(f"the study is {state}")
    return {"state": state}


def status(study: Database, form: FormatOptions) -> None:
    """Say how far a study is: by language and rater, with agreement and attention."""
    board = api.study_status(study)
    info(f"{board.task}, {board.state}: {board.answers:,} of {board.wanted:,} answers{board.cost and f'; {board.cost}'}")
    rows = {table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows] for table in board.tables}
    about = {"task": board.task, "state": board.state, "answers": board.answers, "wanted": board.wanted}
    write_tables(board.tables, None, form.checked(), lambda: {**about, **rows})


def export(
    study: Database,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file: .jsonl, .csv, .tsv, .xlsx or .parquet.")],
    events: Annotated[bool, typer.Option("--events", help="All that happened, one row each, instead of the answers.")] = False,
    allow_formulas: AllowFormulas = False,
) -> dict[str, Any]:
    """Write the answers: captions with ratings, which 'agreement' and 'train mclipscore' read; judgements; or captions."""
    count = api.export_study(study, output, events=events, allow_formulas=allow_formulas)
    info(f"{count:,} rows written to {output}")
    return {"written": str(output), "rows": count}


def analyze(
    metrics: MetricOptions,
    models: ModelOptions,
    output: OutputOptions,
    study: Database,
    captions: Annotated[list[str] | None, typer.Argument(help="With --metric: NAME=FILE for each system of the study.")] = None,
    references: ReferencesOption = None,
    criterion: Annotated[str | None, typer.Option(help="Which of several. \\[default: the first]")] = None,
    lang: Lang = None,
    resamples: Resamples = RESAMPLES,
    seed: Seed = 0,
) -> None:
    """What people said, by language: quality, wins and losses, strengths, agreement, and how well a metric predicts them.

    With --metric, differences of the metric are compared with wins minus losses of people over pairs of systems and languages.
    """
    form = output.checked(references)
    names = listed(metrics.metric)
    if bool(names) != bool(captions):
        raise InputError("--metric needs the captions of the systems, NAME=FILE for each, and these need --metric.")
    systems = None
    if captions:
        given, files = system_files(captions)
        systems = samples_by_system(files, given)
    result = api.analyze_study(
        study, names, systems, references=references, images=models.images, criterion=criterion, resamples=max(1, resamples),
        seed=seed, options=models.scoring(metrics, lang) if names else None,
    )  # fmt: skip
    write_result(result, output.output, form, {}, show=True)


def plan(
    study: Database,
    form: FormatOptions,
    system: Annotated[str, typer.Option(help="The system.")],
    baseline: Annotated[str, typer.Option(help="The one it is compared with.")],
    images: Annotated[str, typer.Option(help="Numbers of images.")] = "100,200,400,800",
    raters: Annotated[str, typer.Option(help="Numbers of raters of each image.")] = "3",
    simulations: Annotated[int, typer.Option(min=10, max=100_000, help="Studies drawn from the pilot.")] = 1000,
    seed: Seed = 0,
) -> None:
    """How many images and raters show a difference, by studies drawn from the answers to a pilot."""
    sizes = [(_size(count), _size(people)) for people in raters.split(",") for count in images.split(",")]
    powers = api.plan_study(study, system, baseline, sizes, simulations=simulations, seed=seed)
    rows: list[list[Cell]] = [
        [power.images, power.raters, power.power, f"[{power.low:.3f}, {power.high:.3f}]"] for power in powers
    ]
    note = f"The share of studies in which the sign test of {system} against {baseline} has p < 0.05, with its 95% interval."
    table = Table(["images", "raters", "power", LEVEL], rows, notes=[note])
    write_tables([table], None, form.checked(), lambda: {"plan": [power._asdict() for power in powers]})


def _size(text: str) -> int:
    if not (text.strip().isdecimal() and text.isascii() and 0 < len(text.strip()) < 7):
        raise InputError(f"{text!r}: write whole numbers with commas between them, such as 100,200.")
    return int(text)


def forget(study: Database, name: Annotated[str, typer.Argument(help="The rater.")]) -> dict[str, Any]:
    """Delete all that a rater did, and who they are; their items go to others."""
    api.forget_rater(study, name)
    info(f"all that {name} did is deleted")
    return {"forgotten": name}


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help="Ask people how good captions are.")
    for function, name, examples in (
        (create, "create", EXAMPLES_CREATE), (serve, "serve", EXAMPLES_SERVE), (invite, "invite", EXAMPLES_INVITE),
        (owner, "owner", EXAMPLES_OWNER), (set_state, "set", EXAMPLES_SET),
        (status, "status", EXAMPLES_STATUS), (export, "export", EXAMPLES_EXPORT),
        (analyze, "analyze", EXAMPLES_ANALYZE), (plan, "plan", EXAMPLES_PLAN), (forget, "forget", EXAMPLES_FORGET),
    ):  # fmt: skip
        command(group, name, examples=examples)(function)
    app.add_typer(group, name="study")
