"""What somebody put into `caplens app`: photos and a sheet in a folder of their own, what is wrong with them, and corrections."""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from caplens.calibration.check import check_captions
from caplens.calibration.suggestions import with_suggestions
from caplens.captioners import Captioner, SearchOptions, open_captioner
from caplens.captioners.mini import DEFAULT as CAPTIONER
from caplens.data.formats import spreadsheet
from caplens.data.image_folder import SUFFIXES
from caplens.data.inputs import read_captions
from caplens.data.reading import SampleFile
from caplens.data.sample import Sample
from caplens.data.temporary import new_scratch_folder
from caplens.errors import CaplensError, InputError, reason
from caplens.human.corrected_sheet import FORMATS, SheetChange, write_corrected
from caplens.metrics.clipscore import ClipScore
from caplens.metrics.options import ScoringOptions
from caplens.progress import Advance, shown_by
from caplens.results.base import ROW_WRITERS, ResultRow
from caplens.results.check import CheckedCaption, CheckResult, Verdict, column_names, with_columns
from caplens.terminal import visible
from caplens.translation.store import HypothesisStore

SHEETS = (".xlsx", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt")
_EXAMPLE_PHOTOS = ("astronaut.jpg", "camera.jpg", "cat.jpg", "officer.jpg", "rocket.jpg")
_BEAMS = 3
_LONGEST_NAME = 200
_LONGEST_CAPTION = 10_000


class NoteTexts:
    """What an exported sheet says of its captions, in the language of the page."""

    def __init__(self, titles: Sequence[str], verdicts: Mapping[Verdict, str], say: Callable[[str], str]) -> None:
        self.titles, self._verdicts, self._say = titles, verdicts, say

    def notes(self, before: CheckedCaption, after: CheckedCaption) -> list[str]:
        """The verdict, the reasons, and the old caption if there is a new one."""
        reasons = "; ".join(self._say(fault.reason) for fault in after.faults)
        return [self._verdicts[after.verdict], reasons, before.caption if after.caption != before.caption else ""]


class Workspace:
    """The files, the result and the corrections of one person; gone when `close` is called."""

    def __init__(self) -> None:
        self.folder = new_scratch_folder()
        self.photos = self.folder / "photos"
        self.photos.mkdir()
        self.sheet: Path | None = None
        self.sheet_name = ""
        self.checks = 0
        """How many checks were begun; a page may still show the captions of an earlier one."""
        self._origins: dict[Path, str] = {}
        """File -> the name it was put in by."""
        self.result: CheckResult | None = None
        self.error = ""
        self.progress: tuple[str, float] = ("", 0.0)
        self._captions: list[CheckedCaption] = []
        self._langs: list[str | None] = []
        """The language that the sheet names for each of its captions; others were guessed."""
        self._corrections: dict[int, CheckedCaption] = {}
        self._running: threading.Thread | None = None
        self._options = ScoringOptions.of(None, keep_store=False)
        self._captioner: Captioner | None = None

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, name: str, content: bytes) -> None:
        """Keep a file: a photo below the folder of photos, or the sheet."""
        place = PurePosixPath(name.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or not place.name or len(name) > _LONGEST_NAME or "\0" in name:
            raise InputError(f"{name[:_LONGEST_NAME]!r} is not the name of a file inside of a folder.")
        suffix = place.suffix.lower()
        if suffix in SUFFIXES:
            # Without the folder that was chosen: names in the sheet are relative to it.
            inside = Path(*(place.parts[1:] or place.parts))
            target = self.photos / inside
        elif suffix in SHEETS and len(place.parts) == 1:
            target = self.folder / f"sheet{suffix}"
            self._forget_result()
            self.sheet, self.sheet_name = target, place.stem
        else:
            return
        if self._origins.setdefault(target, name) != name:
            raise InputError(f"{name} and {self._origins[target]} would be one photo. Choose the folder that holds both.")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except (OSError, ValueError) as error:
            raise InputError(f"{visible(name)}: the file cannot be kept ({reason(error)}).") from None

    def clear(self) -> None:
        """Forget what was put in, before other files come."""
        self._forget_result()
        for path in (self.photos, *self.folder.glob("sheet.*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.photos.mkdir()
        self.sheet, self._origins = None, {}

    def _forget_result(self) -> None:
        """What was found belongs to the sheet that was there until now."""
        if self.is_running:
            raise InputError("the captions are being checked. Wait for the end.")
        self.result, self.error, self._captions, self._corrections = None, "", [], {}
        self.checks += 1

    def take_example(self) -> None:
        """The example of the package, with some captions spoiled."""
        self.clear()
        examples = files("caplens").joinpath("examples")
        for name in _EXAMPLE_PHOTOS:
            self.add(f"photos/{name}", examples.joinpath(name).read_bytes())
        good = examples.joinpath("good.jsonl").read_text(encoding="utf-8").splitlines()
        bad = examples.joinpath("bad.jsonl").read_text(encoding="utf-8").splitlines()
        lines = [bad[row] if row % 9 == 4 else line for row, line in enumerate(good)]
        self.add("example.jsonl", "\n".join(lines).encode())

    def start(self) -> None:
        """Check the captions, in the background."""
        if self.is_running:
            return
        if self.sheet is None:
            raise InputError("there is no sheet with captions yet.")
        self._forget_result()
        self._running = threading.Thread(target=self._check, args=(self.sheet,), daemon=True)
        self._running.start()

    def _check(self, sheet: Path) -> None:
        try:
            with shown_by(self._display):
                samples = list(read_captions(SampleFile(sheet, mark_repeats=True), images=self._folder()))
                result = self._checked(samples)
            self._langs = [sample.lang for sample in samples]
            self._captions = list(result)
            self.result = result
        except CaplensError as error:
            # The folder is ours, and says nothing to the reader.
            self.error = str(error).replace(f"{self.folder}/", "")

    def _checked(self, samples: list[Sample]) -> CheckResult:
        result = check_captions(samples, ClipScore.from_options(self._options), folder=self._folder())
        if self._captioner is None:
            self._captioner = open_captioner(CAPTIONER, SearchOptions(_BEAMS))
        return with_suggestions(result, self._captioner, HypothesisStore(self.folder))

    def _folder(self) -> Path | None:
        """The photos, if there are any."""
        return self.photos if any(path.is_file() for path in self.photos.rglob("*")) else None

    @contextmanager
    def _display(self, description: str, total: float | None) -> Iterator[Advance]:
        self.progress = (description, 0.0)
        yield lambda count, done: setattr(self, "progress", (description, done / total if total else 0.0))

    @property
    def is_running(self) -> bool:
        return self._running is not None and self._running.is_alive()

    def captions(self) -> list[CheckedCaption]:
        """All captions, worst first as they were found, with their corrections."""
        return [self._corrections.get(row, caption) for row, caption in enumerate(self._captions)]

    def correct(self, row: int, text: str, check: int) -> CheckedCaption:
        """Keep another caption in place of one of a check, and say what is wrong with that."""
        self._ensure_known(row, check)
        if len(text) > _LONGEST_CAPTION:
            raise InputError(f"a caption has at most {_LONGEST_CAPTION:,} characters.")
        before = self._captions[row]
        # Word and PowerPoint copy a line break as a control character, which a sheet of Excel cannot hold.
        sample = Sample(
            before.id, spreadsheet.storable(text, " "), image=before.path, lang=self._langs[before.row], system=before.system
        )
        (checked,) = self._checked([sample])
        self._corrections[row] = checked
        return checked

    def image(self, row: int, check: int) -> str | None:
        """The file of a caption's image, if it is one of those that were put in."""
        self.ensure_current(check)
        path = self._captions[row].path if 0 <= row < len(self._captions) else None
        inside = path is not None and Path(path).resolve().is_relative_to(self.photos.resolve())
        return path if inside else None

    def ensure_current(self, check: int) -> None:
        """Raise an error if the page shows captions of an earlier check."""
        if self.is_running or check != self.checks:
            raise InputError("other captions were checked since. Load the page again.")

    def _ensure_known(self, row: int, check: int) -> None:
        self.ensure_current(check)
        if not 0 <= row < len(self._captions):
            raise InputError("there is no such caption.")

    def accept(self, row: int, check: int) -> CheckedCaption:
        """Take a caption for right, whatever was found."""
        self._ensure_known(row, check)
        self._corrections[row] = replace(self.captions()[row], faults=())
        return self._corrections[row]

    def counts(self) -> dict[Verdict, int]:
        """Verdict -> how many captions have it now."""
        return CheckResult(self.captions()).counts()

    @property
    def changed(self) -> int:
        """How many captions are other ones now."""
        return sum(after.caption != before.caption for before, after in zip(self._captions, self.captions(), strict=True))

    def rows(self, texts: NoteTexts) -> Iterator[ResultRow]:
        """All captions in the order of the sheet, each with the old one and what is still wrong."""
        with_system = any(caption.system for caption in self._captions)
        columns = column_names(self._captions)
        for before, after in self._pairs():
            row: dict[str, Any] = {
                "id": after.id, "image": before.image, "lang": after.lang,
                **({"system": after.system} if with_system else {}), "caption": after.caption,
                **dict(zip(texts.titles, texts.notes(before, after), strict=True)),
            }  # fmt: skip
            yield with_columns(row, before.columns, columns)

    def _pairs(self) -> list[tuple[CheckedCaption, CheckedCaption]]:
        """Each caption as it was and as it is, in the order of the sheet."""
        return sorted(zip(self._captions, self.captions(), strict=True), key=lambda pair: pair[0].row)

    def export(self, suffix: str, texts: NoteTexts, check: int) -> bytes:
        """The sheet that was put in, corrected, where it has the format that is asked for; else a table of its captions."""
        self.ensure_current(check)
        if self.result is None:
            raise InputError("no captions were checked yet.")
        target = self.folder / f"corrected{suffix}"
        if (
            self.sheet is None
            or FORMATS.get(self.sheet.suffix.lower()) != suffix
            or not self._is_corrected(self.sheet, target, texts)
        ):
            ROW_WRITERS[suffix](self.rows(texts), target)
        return target.read_bytes()

    def _is_corrected(self, sheet: Path, target: Path, texts: NoteTexts) -> bool:
        """Write the corrected sheet, if each caption is in a cell of its own."""
        try:
            write_corrected(sheet, target, self._changes(sheet, texts), texts.titles)
        except InputError:
            return False
        return True

    def _changes(self, sheet: Path, texts: NoteTexts) -> dict[int, list[SheetChange]]:
        changes: dict[int, list[SheetChange]] = {}
        places = (place.number or 0 for place, _ in SampleFile(sheet).placed())
        for number, (before, after) in zip(places, self._pairs(), strict=True):
            changes.setdefault(number, []).append(SheetChange(before.caption, after.caption, texts.notes(before, after)))
        return changes
