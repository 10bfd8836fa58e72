"""Compare what pip would install with the pinned hashes, or write these anew.

pip install --dry-run --ignore-installed --report build/resolved.json -c constraints.txt -e ".[dev]"
python .ci/hashes.py build/resolved.json hashes.txt [--write]
"""

import json
import re
import sys
from pathlib import Path

HEADER = """# SHA-256 of the files of constraints.txt for Linux on x86-64 with Python 3.11, and torch for CPUs.
# To install exactly these: pip install --require-hashes -r hashes.txt, then pip install --no-deps .
# Written by .ci/hashes.py, which also checks them.
"""
ENTRY = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+)(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)")


def resolved(report: Path) -> dict[str, tuple[str, str]]:
    """Name -> version and hash of each distribution in pip's report; the package itself has no hash."""
    entries = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {
        entry["metadata"]["name"].lower().replace("_", "-"): (
            entry["metadata"]["version"].partition("+")[0],
            entry["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for entry in entries
        if "archive_info" in entry["download_info"]
    }


def pinned(path: Path) -> dict[str, tuple[str, set[str]]]:
    """Name -> version and hashes."""
    matches = ENTRY.finditer(path.read_text(encoding="utf-8")) if path.exists() else ()
    return {match["name"]: (match["version"], set(re.findall("[0-9a-f]{64}", match["hashes"]))) for match in matches}


def main() -> None:
    report, path = Path(sys.argv[1]), Path(sys.argv[2])
    distributions, pins = resolved(report), pinned(path)
    if "--write" in sys.argv:
        lines = []
        for name, (version, digest) in sorted(distributions.items()):
            # A version may have several builds: those that were known stay.
            hashes = sorted({digest, *(pins[name][1] if pins.get(name, ("",))[0] == version else ())})
            lines.append(" ".join([f"{name}=={version}", *(f"--hash=sha256:{value}" for value in hashes)]))
        path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    problems = [
        f"{name} {version}: sha256 {digest} is not the one in {path}"
        for name, (version, digest) in sorted(distributions.items())
        if pins.get(name, ("", set()))[0] != version or digest not in pins[name][1]
    ]
    if problems and "--write" not in sys.argv:
        sys.exit("\n".join(problems))
    print(f"{len(distributions)} distributions have the hashes of {path}")


if __name__ == "__main__":
    main()
