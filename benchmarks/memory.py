"""The peak memory of a program in a process of its own."""

import subprocess
import time
from pathlib import Path


def peak_of(command: list[str], statuses: tuple[int, ...] = (0,)) -> float:
    """Run a command that ends with one of `statuses`; returns its peak resident memory in GiB, as Linux counts it."""
    process = subprocess.Popen(command)
    status = Path(f"/proc/{process.pid}/status")
    peak = 0
    while process.poll() is None:
        lines = status.read_text().splitlines() if status.exists() else []
        peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        time.sleep(0.02)
    if process.returncode not in statuses:
        raise SystemExit(process.returncode)
    return peak / 2**20
