"""A million pairs over 100,000 images through Ray, beside the local engine: `python benchmarks/partitions_speed.py`.

The model is the stand-in of `million_pairs.py`, which costs nothing, so that everything else is measured. It prints the time of
each way and the peak memory of each process, and the ratio of both times.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import million_pairs

import caplens
from caplens.metrics.options import ScoringOptions

MODEL = "stand-in:any"


def load(name: object, options: object) -> million_pairs.StandIn:
    """The entry point by which every process opens the model."""
    return million_pairs.StandIn()


def announce(folder: Path) -> None:
    """What an installed package with such an entry point has."""
    about = folder / "stand_in-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[caplens.backbones]\nstand-in = partitions_speed:load\n", encoding="utf-8")


def score(folder: Path, way: str) -> None:
    executor = "ray" if way == "ray" else "local"
    options = ScoringOptions(model=MODEL, executor=executor, batch_size=256, keep_store=False)
    captions, photos = folder / "captions.jsonl", folder / "photos"
    if way == "engine":
        count = len(caplens.score(captions, ["clipscore"], images=photos, options=options, resamples=0).ids)
    else:
        count = caplens.score_partitions(
            captions, folder / way, ["clipscore"], images=photos, options=options, resamples=0
        ).captions
    assert count


class PeakMemory(threading.Thread):
    """The peak resident memory of every process whose command has one of some words."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self.words, self.peaks, self.ended = words, dict[str, int](), False

    def run(self) -> None:
        while not self.ended:
            for process in Path("/proc").iterdir():
                if process.name.isdecimal():
                    self._look(process)
            time.sleep(0.5)

    def _look(self, process: Path) -> None:
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            lines = (process / "status").read_text().splitlines()
        except OSError:
            return
        word = next((word for word in self.words if word in command), None)
        peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
        if word is not None:
            self.peaks[word] = max(self.peaks.get(word, 0), peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--score", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.score:
        score(Path(options.score[0]), options.score[1])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        million_pairs.write(folder, options.pairs, options.images)
        announce(folder)
        paths = [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        times = {}
        for way in ("engine", "partitions", "ray"):
            memory = PeakMemory(("--score", "ray::_in_folder", "ray::_Owner"))
            memory.start()
            start = time.perf_counter()
            subprocess.run([sys.executable, __file__, "--score", name, way], check=True, env=environment)
            times[way], memory.ended = time.perf_counter() - start, True
            peaks = ", ".join(f"{word} {peak / 2**20:.2f} GiB" for word, peak in memory.peaks.items())
            ratio = times[way] / times["engine"]
            print(f"{options.pairs:,} pairs, {way}: {times[way]:.0f} s ({ratio:.2f} times the engine); peak {peaks}", flush=True)


if __name__ == "__main__":
    main()
