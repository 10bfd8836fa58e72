"""Peak memory and time of a nightly job: `python benchmarks/filter_speed.py --data DATA --images PHOTOS`.

Writes captions of Flickr8k in its languages as Parquet, and runs `caplens filter` and `caplens score --fail-under` on it, each in
a process of its own, first without and then with the vectors of the run before.
"""

import argparse
import lzma
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import memory
import pyarrow
from pyarrow import parquet

Row = dict[str, str]


def rows_of(data: Path, count: int) -> list[Row]:
    """So many captions, from the files of all languages by turns; repeated where there are fewer."""
    rows: list[Row] = []
    for path in sorted((data / "flickr8k" / "captions").glob("*.tsv.xz")):
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                photo, _, caption = line.rstrip("\n").split("\t")
                image = Path(photo).with_suffix(".webp").name
                rows.append({"image": image, "caption": caption, "lang": path.name.partition(".")[0]})
    return [{"id": str(number), **row} for number, row in enumerate(islice(cycle(rows), count))]


def measure(what: str, count: int, *arguments: str) -> None:
    start = time.perf_counter()
    # 3: some captions are empty.
    peak = memory.peak_of([sys.executable, "-m", "caplens", *arguments, "-q"], statuses=(0, 3))
    seconds = time.perf_counter() - start
    print(f"| {what} | {seconds:.0f} s | {count / seconds:,.0f} | {peak:.2f} GiB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds flickr8k")
    parser.add_argument("--images", type=Path, required=True, help="the folder of Flickr8k's photos")
    parser.add_argument("--rows", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(options.data, options.rows)
        photos, texts = len({row["image"] for row in rows}), len({row["caption"] for row in rows})
        print(f"{len(rows):,} rows, {photos:,} photos, {texts:,} different captions")
        parquet.write_table(pyarrow.Table.from_pylist(rows), f"{folder}/pairs.parquet", row_group_size=20_000)
        del rows
        common = [f"{folder}/pairs.parquet", "--images", str(options.images), "--store", f"{folder}/store"]
        print("\n| job | time | rows/s | peak memory |\n|---|---|---|---|")
        for run in ("first run", "with the vectors kept"):
            measure(f"filter --keep-top 30%, {run}", options.rows, "filter", common[0], f"{folder}/good.parquet", *common[1:],
                    "--keep-top", "30%")  # fmt: skip
        measure("score --fail-under, with the vectors kept", options.rows, "score", *common, "-m", "clipscore", "--fail-under",
                "clipscore=0.05", "--resamples", "0", "-o", f"{folder}/scores.parquet")  # fmt: skip


if __name__ == "__main__":
    main()
