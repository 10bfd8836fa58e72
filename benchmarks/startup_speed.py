"""How long the package takes to start: `import caplens`, `caplens --version` and `caplens score --help`, medians of five.

    python benchmarks/startup_speed.py

The bare interpreter and `import numpy`, which scoring cannot do without, are measured in the same run.
"""

import statistics
import subprocess
import sys
import time

RUNS = 5
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import caplens": [sys.executable, "-c", "import caplens"],
    "caplens.score, first use": [sys.executable, "-c", "import caplens; caplens.score"],
    "caplens --version": [sys.executable, "-m", "caplens", "--version"],
    "caplens score --help": [sys.executable, "-m", "caplens", "score", "--help"],
}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    medians = {name: statistics.median(seconds(command) for _ in range(RUNS)) for name, command in COMMANDS.items()}
    for name, value in medians.items():
        print(f"{name:28} {value:6.3f} s  {value / medians['import numpy']:5.2f} x import numpy")


if __name__ == "__main__":
    main()
