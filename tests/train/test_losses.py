"""Losses, against open_clip and by hand."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import torch
from torch.nn import functional as F

from caplens.train.losses import contrastive, distance, shared_targets, unlike


def vectors(seed: int) -> torch.Tensor:
    return F.normalize(torch.randn(7, 5, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_the_contrastive_loss_is_that_of_open_clip():
    loss = pytest.importorskip("open_clip", reason="open_clip is not installed").ClipLoss()
    first, second = vectors(0), vectors(1)
    assert contrastive(first, second, 0.05).item() == pytest.approx(loss(first, second, torch.tensor(20.0)).item(), rel=1e-5)


def test_targets_that_are_one_photo_each_change_nothing():
    first, second = vectors(0), vectors(1)
    assert contrastive(first, second, 0.1, torch.eye(7)).item() == pytest.approx(contrastive(first, second, 0.1).item(), rel=1e-5)


def test_shared_targets_are_shares():
    targets = shared_targets(vectors(0), 0.3, 0.1)
    assert targets.sum(1) == pytest.approx(1, abs=1e-5)
    assert (targets.diagonal() >= 0.7).all()


def test_distances_by_hand():
    assert distance(torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[0.0, 1.0], [0.6, 0.8]])).item() == pytest.approx(0.5)
    assert unlike(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item() == pytest.approx(2.0)
