"""Peak memory and time of scoring a JSONL of a million rows with CIDEr: `python benchmarks/million_rows.py`.

Writes the file into a temporary folder (about 600 MB) and runs the `caplens` command on it in a process of its own.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import captions
import memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="the folder with multi30k/ and flickr8k/, for real captions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "captions.jsonl"
        # Ten captions per image.
        images = max(1, options.rows // 10)
        entries = captions.real(images, options.data) if options.data else captions.synthetic(images)
        with path.open("w", encoding="utf-8") as out:
            for row in range(options.rows):
                candidate, references = entries[(row * 7919) % images][0], entries[row % images][1]
                out.write(json.dumps({"id": f"row-{row}", "caption": candidate, "references": references}) + "\n")
        del entries
        start = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "caplens",
            "score",
            str(path),
            "-m",
            "cider",
            "--resamples",
            "0",
            "-o",
            f"{folder}/scores.json",
        ]
        peak = memory.peak_of(command)
        seconds = time.perf_counter() - start
        size = path.stat().st_size / 1e6
        rate = options.rows / seconds
        print(f"{options.rows:,} rows ({size:,.0f} MB): {seconds:.0f} s, {rate:,.0f} rows/s, peak memory {peak:.2f} GiB")


if __name__ == "__main__":
    main()
