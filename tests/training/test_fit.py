"""The training loop on a network of one layer: what it logs, keeps and checks."""

import json
from itertools import count
from types import SimpleNamespace

import pytest
from extras import need

need("torch")

import torch
from torch import nn

from caplens.errors import CaplensError
from caplens.training.loop import fit
from caplens.training.loop.fit import RunContext, Schedule, Validation


@pytest.fixture
def context(tmp_path):
    return RunContext(tmp_path, "cpu", seed=0, half=False)


def network():
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def train(context, layer, loss_at, schedule, validation=None):
    return fit.fit("x", {"layer": layer}, loss_at, schedule, context, validation=validation)["layer"]


def squares(layer):
    return lambda step, rng: layer(torch.randn(4, 3, generator=rng)).square().mean()


def logged_steps(context):
    return [json.loads(line)["step"] for line in (context.folder / "log.jsonl").read_text().splitlines()]


def test_a_checkpoint_is_only_written_of_a_step_whose_loss_was_checked(context, monkeypatch):
    """A clock that runs on between two questions: whether a checkpoint is due is asked once in a step."""
    clock, saved = count(0.0, 20.0), []
    monkeypatch.setattr(fit, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(fit, "save_checkpoint", lambda path, step, *rest: saved.append(step))
    layer = network()
    train(context, layer, squares(layer), Schedule(40, 1e-2, 0.0))
    assert len(saved) > 2
    assert set(saved) <= set(logged_steps(context))


def test_a_loss_that_is_not_a_number_is_not_saved(context, monkeypatch):
    monkeypatch.setattr(fit, "_CHECKPOINT_SECONDS", -1.0)
    layer = network()
    loss_at = squares(layer)
    with pytest.raises(CaplensError, match="the loss is not a number at step 3"):
        train(context, layer, lambda step, rng: loss_at(step, rng) * (float("nan") if step == 2 else 1), Schedule(5, 1e-2, 0.0))
    assert torch.load(context.folder / "x.checkpoint.pt", weights_only=True)["step"] == 2


def test_training_stops_without_a_better_value_and_returns_the_best_weights(context):
    layer, values, weights = network(), iter([1.0, 3.0, 2.0, 0.0, 9.0]), []

    def measure():
        assert not layer.training
        weights.append(layer.weight.detach().clone())
        return next(values)

    best = train(context, layer, squares(layer), Schedule(10, 1e-2, 0.0, average=0.5), Validation(measure, every=2, patience=4))
    assert logged_steps(context) == [2, 4, 6, 8]
    # Measured were the averaged weights, of which those after step 4 were best.
    assert torch.equal(best.weight, weights[1])
    assert layer.training


def test_losses_of_one_step_add_up(context):
    def both(layer):
        return lambda step, rng: (layer.weight.sum() * factor for factor in (0.25, 0.75))

    layers = [network(), network()]
    one = train(context, layers[0], lambda step, rng: layers[0].weight.sum(), Schedule(5, 1e-2, 0.0))
    two = train(context, layers[1], both(layers[1]), Schedule(5, 1e-2, 0.0))
    torch.testing.assert_close(one.weight, two.weight)


def test_a_partly_frozen_network_runs_as_it_is_used(context):
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    layer[0].requires_grad_(False)
    before = layer[0].weight.clone()
    modes = []

    def loss_at(step, rng):
        modes.append(layer.training)
        return layer(torch.ones(2, 3)).square().mean()

    train(context, layer, loss_at, Schedule(3, 1e-2, 0.0))
    assert modes == [False] * 3
    assert torch.equal(layer[0].weight, before)
