"""Processes that train together, and batches larger than memory: the gradient is that of one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from extras import need

need("torch")

import torch
from torch import nn

from caplens.training.loop.losses import contrastive
from caplens.training.loop.process_group import ProcessGroup

WORK = """
import sys, torch
from torch import nn
from caplens.training.loop.losses import contrastive
from caplens.training.loop.fit import Schedule, RunContext, fit
from caplens.training.loop.process_group import ProcessGroup
from pathlib import Path

group = ProcessGroup()
torch.manual_seed(0)
towers = {name: nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)) for name in ("image", "text")}
data = torch.randn(2, 50, 6)

def loss_at(step, rng):
    rows = torch.randperm(50, generator=rng)[:13]
    vectors = [group.encode(towers[name], inputs[rows], at_once=3) for name, inputs in zip(towers, data)]
    return contrastive(*(nn.functional.normalize(some, dim=-1) for some in vectors), 0.1)

folder = Path(sys.argv[1])
made = fit("x", towers, loss_at, Schedule(12, 1e-2, 0.01, average=0.5), RunContext(folder, "cpu", 3, False, group))
if group.is_main:
    torch.save({name: network.state_dict() for name, network in made.items()}, folder / "weights.pt")
"""


def run(folder: Path, *launcher: str) -> dict:
    folder.mkdir()
    (folder / "work.py").write_text(WORK)
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *launcher, str(folder / "work.py"), str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return torch.load(folder / "weights.pt", weights_only=True)


@pytest.mark.slow
def test_two_processes_make_the_weights_of_one(tmp_path):
    one = run(tmp_path / "one")
    two = run(tmp_path / "two", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    for tower, weights in one.items():
        for name, value in weights.items():
            torch.testing.assert_close(two[tower][name], value, atol=1e-4, rtol=0)


@pytest.mark.parametrize("at_once", [1, 3, 10, 64])
def test_encoding_in_pieces_changes_no_gradient(at_once):
    torch.manual_seed(1)
    tower, images, texts = nn.Linear(5, 4).double(), torch.randn(10, 5).double(), torch.randn(10, 4).double()

    def gradient(pieces):
        tower.zero_grad()
        made = nn.functional.normalize(ProcessGroup().encode(tower, images, pieces), dim=-1)
        contrastive(made, nn.functional.normalize(texts, dim=-1), 0.1).backward()
        return tower.weight.grad.clone()

    torch.testing.assert_close(gradient(at_once), gradient(0), atol=1e-12, rtol=0)
