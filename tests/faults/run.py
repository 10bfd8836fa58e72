"""The long run, by hand: `PYTHONPATH=tests python -m faults.run --kills 500`. It prints how many faults each job survived."""

import argparse
import random
import tempfile
import time
from pathlib import Path

from faults.harness import JOBS, expected, kill_and_resume, prepare, starve, together

_AT_ONCE = 5
"""Kills before a job may finish."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--job", help="Only the jobs whose names begin with this.")
    asked = parser.parse_args()
    rng, began, total = random.Random(asked.seed), time.monotonic(), 0
    jobs = [job for job in JOBS if job.name.startswith(asked.job or "")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder / "inputs")
        for job in jobs:
            wanted, seconds = expected(folder, job)
            rounds = max(1, round(asked.kills / len(jobs) / _AT_ONCE))
            hits = sum(kill_and_resume(folder, job, wanted, seconds, _AT_ONCE, rng) for _ in range(rounds))
            full = [starve(folder, job, wanted, limit) for limit in (0, 100, 5000, 100_000)] if not job.needs else []
            if not job.needs:
                together(folder, job, wanted)
            total += hits
            seconds_so_far = f"{time.monotonic() - began:.0f} s"
            print(f"{job.name}: {hits} kills, {rounds} resumed runs, disk full {len(full)} times, {seconds_so_far}", flush=True)
    print(f"{total} kills: nothing lost, nothing half-written, every resumed result equal bit by bit.")


if __name__ == "__main__":
    main()
