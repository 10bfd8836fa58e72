"""The long run, by hand: `PYTHONPATH=tests python -m fuzz.run --count 200000`. It prints how many inputs each target got.

What it finds is written to `findings/`; a small version of it belongs into the corpus.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from fuzz.mutation import mutated
from fuzz.targets import arguments, commands, data_sets, draw, lay_out, readers, run_once

SECONDS = 10


def fuzz(
    count: int, seed: int, share_of_commands: float, folder: Path, findings: Path | None = None
) -> tuple[Counter, list[str]]:
    """Run `count` mutated inputs; returns how many each target got, and what failed."""
    rng = random.Random(seed)
    kinds = {True: commands() + arguments(), False: readers() + data_sets()}
    counts: Counter = Counter()
    failures: list[str] = []
    lay_out(folder)
    signal.signal(signal.SIGALRM, _hang)
    for number in range(count):
        target = rng.choice(kinds[rng.random() < share_of_commands])
        name = draw(target, rng)
        content = mutated(target.files[name], rng)
        counts[target.name] += 1
        signal.alarm(SECONDS)
        try:
            run_once(target, content, name, folder)
        except BaseException as error:
            signal.alarm(0)
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "caplens" in frame.filename]
            where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
            text = f"{target.name}, {name}: {type(error).__name__} at {where}: {str(error)[:200]}"
            failures.append(text)
            print(text, file=sys.stderr, flush=True)
            if findings is not None:
                findings.mkdir(exist_ok=True)
                (findings / f"{seed}-{number}-{target.name.replace(' ', '-')}-{name}").write_bytes(content)
            if isinstance(error, KeyboardInterrupt):
                break
        finally:
            signal.alarm(0)
    return counts, failures


class Hang(BaseException):
    """An input that took too long."""


def _hang(*_: object) -> None:
    raise Hang(f"more than {SECONDS} seconds")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", type=float, default=0.1, help="Share of inputs that go to whole commands.")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts, failures = fuzz(asked.count, asked.seed, asked.commands, Path(folder), asked.findings)
    for name, number in counts.most_common():
        print(f"{number:>9,}  {name}")
    print(f"{sum(counts.values()):>9,}  inputs in {time.monotonic() - began:.0f} s, {len(failures)} findings")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
