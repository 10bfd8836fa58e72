"""Writing results as a page."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from caplens.data.replacing import ensure_apart
from caplens.errors import InputError
from caplens.results.base import Result


def write_report(
    results: "Result | str | PathLike[str] | Mapping[str, Result | str | PathLike[str]]",
    output: str | PathLike[str] = "report.html",
    *,
    captions: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
    references: str | PathLike[str] | None = None,
    images: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
    title: str = "caplens report",
    moments: Sequence[str] = (),
    page_lang: str = "en",
) -> Path:
    """Write one HTML file about results.

    Parameters
    ----------
    results
        A result, a JSON file of one, or several of these by the name that the page gives them.
    output
        The HTML file.
    captions, references, images, data
        Where captions (a file, or one per system), references, images and a benchmark's files are, if not where the results
        say; they are needed to show captions.
    title
        Of the page.
    moments
        Ids of captions of videos, each of whose words is shown beside every frame, by the model that scored them.
    page_lang
        The language of the page itself: en, de, es, zh or ar.

    Returns
    -------
    Path
        `output`.

    Raises
    ------
    InputError
        If a file is not a result, or the page cannot be written.

    Examples
    --------
    >>> result = caplens.score("captions.jsonl", ["cider"])  # doctest: +SKIP
    >>> caplens.write_report(result, "report.html", captions="captions.jsonl")  # doctest: +SKIP
    """
    from caplens.report.documents import Document, InputPaths, read_documents
    from caplens.report.page import write_page

    named = results if isinstance(results, Mapping) else {"": results}
    files = [Path(path) for path in ([captions] if isinstance(captions, str | PathLike) else captions or [])]
    rest = [None if path is None else Path(path) for path in (references, images, data)]
    absent = next((path for path in (*files, *rest) if path is not None and not path.exists()), None)
    if absent is not None:
        raise InputError(f"{absent}: there is no such file or folder. Check the path.")
    ensure_apart(Path(output), *files, rest[0])
    documents: list[Document] = []
    for name, result in named.items():
        if isinstance(result, str | PathLike):
            ensure_apart(Path(output), Path(result))
            documents += read_documents(Path(result), name)
        elif isinstance(result, Result):
            documents += Document.of(name or "Results", result)
        else:
            raise InputError(f"a report is made of results and of files of theirs, not of {type(result).__name__}.")
    write_page(documents, Path(output), InputPaths(files, *rest), title, moments, page_lang)
    return Path(output)
