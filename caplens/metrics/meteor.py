"""METEOR 1.5 (Denkowski and Lavie 2014) through its Java program, as the COCO caption evaluation runs it.

Its corpus score is made from counts summed over all captions, which is not the mean of the captions' scores.
"""

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from threading import Thread

import numpy as np

from caplens.arrays import Floats
from caplens.errors import CaplensError
from caplens.metrics.java import JavaMetric
from caplens.progress import track

_SEPARATOR = " ||| "


class Meteor(JavaMetric):
    name = "meteor"
    version = "1.5"
    corpus_is_mean = False

    def score_texts(self, candidates: Sequence[str], references: Sequence[list[str]]) -> tuple[float, Floats]:
        """The program answers a SCORE line with a line of counts, and an EVAL line with a score for each counts, then for all."""
        command = [self.java, "-Xmx2G", "-jar", str(self.folder / "meteor-1.5.jar"), "-", "-", "-stdio", "-l", "en", "-norm"]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True, encoding="utf-8"
            )
            try:
                questions = (_line("SCORE", *texts, text) for text, texts in zip(candidates, references, strict=True))
                counts = list(track(_dialogue(process, questions, len(candidates)), "meteor", len(candidates)))
                *values, corpus = map(float, _dialogue(process, [_line("EVAL", *counts)], len(candidates) + 1))
            except (OSError, EOFError, ValueError) as error:
                complaints.seek(0)
                reason = " ".join(complaints.read().split())[:300] or error
                raise CaplensError(
                    f"METEOR's Java program stopped ({reason}). It needs 2 GB of memory, and cannot take captions of"
                    " thousands of words."
                ) from None
            finally:
                process.kill()
                process.wait()
        return corpus, np.array(values)


def _line(command: str, *parts: str) -> str:
    return _SEPARATOR.join([command, *(part.replace("|||", " ") for part in parts)]) + "\n"


def _dialogue(process: "subprocess.Popen[str]", questions: Iterable[str], answers: int) -> Iterator[str]:
    """Ask from a thread of its own, because the program answers while it is still being asked."""
    assert process.stdin is not None
    assert process.stdout is not None
    asking = Thread(target=_ask, args=(process, questions), daemon=True)
    asking.start()
    for _ in range(answers):
        answer = process.stdout.readline()
        if not answer:
            raise EOFError("it gave no answer")
        yield answer.strip()
    asking.join()


def _ask(process: "subprocess.Popen[str]", questions: Iterable[str]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.writelines(questions)
        process.stdin.flush()
    except (OSError, ValueError):
        # Whoever reads the answers finds none, and says so.
        process.kill()
