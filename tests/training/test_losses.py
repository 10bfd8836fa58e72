"""Losses against numpy, as the papers' formulas read, against open_clip, and their gradients against finite differences."""

import numpy as np
import pytest
from extras import need

need("torch")

import torch

from caplens.errors import InputError
from caplens.training.loop import losses


def vectors(count, seed, width=5):
    made = np.random.default_rng(seed).normal(size=(count, width))
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def cross_entropy(logits):
    return -np.mean(np.diag(logits - np.log(np.exp(logits).sum(1, keepdims=True))))


def contrastive(first, second, temperature):
    """Equation 1 of multilingual CLIPScore."""
    logits = first @ second.T / temperature
    return (cross_entropy(logits) + cross_entropy(logits.T)) / 2


V, T, V2, T2 = (vectors(6, seed) for seed in range(4))
tensors = [torch.tensor(some) for some in (V, T, V2, T2)]


def test_the_contrastive_loss():
    assert losses.contrastive(*tensors[:2], 0.07).item() == pytest.approx(contrastive(V, T, 0.07), abs=1e-9)
    assert losses.contrastive(tensors[0], tensors[0], 0.001).item() == pytest.approx(0, abs=1e-6)


def test_the_pearson_loss():
    scores, ratings = np.array([0.1, 0.5, 0.3, 0.9]), np.array([1.0, 3.0, 3.0, 4.0])
    found = losses.pearson(torch.tensor(scores), torch.tensor(ratings))
    assert found.item() == pytest.approx(1 - np.corrcoef(scores, ratings)[0, 1], abs=1e-9)
    assert losses.pearson(torch.tensor(ratings), torch.tensor(5 - 2 * ratings)).item() == pytest.approx(2)
    with pytest.raises(InputError, match="all ratings of a batch are the same"):
        losses.pearson(torch.tensor(scores), torch.ones(4))
    with pytest.raises(InputError, match="all ratings of a batch are the same"):
        losses.pearson(torch.ones(1), torch.ones(1))
    constant = torch.ones(4, dtype=torch.float64, requires_grad=True)
    losses.pearson(constant, torch.tensor(ratings)).backward()
    assert torch.isfinite(constant.grad).all()


def test_the_positive_augmented_loss():
    """Equation 2 sums both directions, so that it is twice CLIP's loss."""
    expected = 2 * (contrastive(V, T, 0.1) + 0.05 * contrastive(V2, T, 0.1) + 0.1 * contrastive(V, T2, 0.1))
    assert losses.positive_augmented(*tensors, 0.1, 0.05, 0.1).item() == pytest.approx(expected, abs=1e-9)


def test_the_perturbation_losses():
    cosines = {"vo": (V * T).sum(1), "vp": (V * T2).sum(1), "op": (T * T2).sum(1)}
    expected = (
        0.1 * np.mean(1 - cosines["vo"])
        + 0.05 * np.mean(np.maximum(0.1, cosines["vp"]))
        + 0.05 * np.mean(np.maximum(0.1, cosines["op"]))
    )
    found = losses.perturbation_aware(tensors[0], tensors[1], tensors[3], (0.1, 0.05, 0.05), 0.1)
    assert found.item() == pytest.approx(expected, abs=1e-9)


def test_the_order_of_a_caption_and_its_perturbed_form():
    expected = np.mean(np.maximum(0, 0.3 - ((V * T).sum(1) - (V * T2).sum(1))))
    assert losses.ordered(tensors[0], tensors[1], tensors[3], 0.3).item() == pytest.approx(expected, abs=1e-9)


def test_the_contrastive_loss_is_that_of_open_clip():
    loss = need("open_clip").ClipLoss()
    first, second = tensors[0], tensors[1]
    assert losses.contrastive(first, second, 0.05).item() == pytest.approx(
        loss(first.float(), second.float(), torch.tensor(20.0)).item(), rel=1e-5
    )


def test_targets_that_are_one_photo_each_change_nothing():
    first, second = tensors[0], tensors[1]
    assert losses.contrastive(first, second, 0.1, torch.eye(6, dtype=torch.float64)).item() == pytest.approx(
        losses.contrastive(first, second, 0.1).item(), rel=1e-5
    )


def test_shared_targets_are_shares():
    targets = losses.shared_targets(tensors[0], 0.3, 0.1)
    assert targets.sum(1) == pytest.approx(1, abs=1e-5)
    assert (targets.diagonal() >= 0.7).all()


def test_distances_by_hand():
    assert losses.distance(
        torch.tensor([[1.0, 0.0], [0.6, 0.8]]), torch.tensor([[0.0, 1.0], [0.6, 0.8]])
    ).item() == pytest.approx(0.5)
    assert losses.unlike(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item() == pytest.approx(2.0)


@pytest.mark.parametrize(
    "loss",
    [
        lambda v, t, v2, t2: losses.contrastive(v, t, 0.2),
        lambda v, t, v2, t2: losses.pearson((v * t).sum(-1), torch.arange(6.0, dtype=torch.float64)),
        lambda v, t, v2, t2: losses.positive_augmented(v, t, v2, t2, 0.2, 0.05, 0.1),
        lambda v, t, v2, t2: losses.perturbation_aware(v, t, t2, (0.1, 0.05, 0.05), 0.1),
        lambda v, t, v2, t2: losses.distance(v, t),
        lambda v, t, v2, t2: losses.ordered(tensors[0], tensors[1], t2, 3.0),
    ],
)
def test_gradients(loss):
    given = [tensor.clone().requires_grad_() for tensor in tensors]
    assert torch.autograd.gradcheck(loss, given, atol=1e-6)
