"""Training losses. Vectors are L2-normalised unless stated otherwise."""

import torch
from torch import Tensor
from torch.nn import functional as F

from caplens.errors import InputError


def contrastive(first: Tensor, second: Tensor, temperature: float, targets: Tensor | None = None) -> Tensor:
    """Symmetric InfoNCE, the mean of both directions (multilingual CLIPScore, equation 1).

    Row i of `first` matches row i of `second`, or several rows, weighted by `targets` (rows sum to 1).
    """
    logits = first @ second.T / temperature
    labels = torch.arange(len(logits), device=logits.device) if targets is None else targets
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def pearson(scores: Tensor, ratings: Tensor) -> Tensor:
    """1 - r of scores and human ratings (multilingual CLIPScore, equation 2)."""
    if bool((ratings == ratings[0]).all()):
        raise InputError(
            "all ratings of a batch are the same, so that a correlation with them is not defined; use larger batches."
        )
    # Without eps, the gradient at constant scores is not a number; with it, the gradient is zero.
    return 1 - F.cosine_similarity(scores - scores.mean(), ratings - ratings.mean(), dim=0, eps=1e-12)


def positive_augmented(
    images: Tensor,
    texts: Tensor,
    made_images: Tensor,
    made_texts: Tensor,
    temperature: float,
    for_images: float,
    for_texts: float,
) -> Tensor:
    """L(V, T) + a L(V', T) + b L(V, T') with generated images V' and texts T' as further positives (PAC-S, equation 3)."""
    return (
        both_directions(images, texts, temperature)
        + for_images * both_directions(made_images, texts, temperature)
        + for_texts * both_directions(images, made_texts, temperature)
    )


def both_directions(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """The sum of InfoNCE from the first to the second and back (PAC-S, equation 2); `contrastive`, CLIP's, is half of it."""
    return 2 * contrastive(first, second, temperature)


def perturbation_aware(
    images: Tensor, texts: Tensor, worse: Tensor, weights: tuple[float, float, float], margin: float
) -> Tensor:
    """Captions near their images, perturbed captions far from images and from their originals (PR-MCS, equations 1 to 3).

    L1 = 1 - cos(V, T(o)), L2 = max(m, cos(V, T(p))), L3 = max(m, cos(T(o), T(p)))
    """
    near = distance(images, texts)
    from_image = (images * worse).sum(-1).clamp(min=margin).mean()
    from_text = (texts * worse).sum(-1).clamp(min=margin).mean()
    return weights[0] * near + weights[1] * from_image + weights[2] * from_text


def ordered(images: Tensor, texts: Tensor, worse: Tensor, gap: float) -> Tensor:
    """max(0, gap - (cos(V, T(o)) - cos(V, T(p)))): each perturbed caption scores lower than its original, by `gap`.

    The original is a fixed target: it gets no gradient.
    """
    original, perturbed = (images * texts).sum(-1).detach(), (images * worse).sum(-1)
    return (perturbed - original + gap).clamp(min=0).mean()


def shared_targets(vectors: Tensor, share: float, temperature: float) -> Tensor:
    """Soft targets: 1 - `share` for a photo's own captions, the rest for photos with similar captions."""
    similarity = torch.softmax(vectors @ vectors.T / temperature, -1)
    return (1 - share) * torch.eye(len(vectors), device=vectors.device) + share * similarity


def distance(vectors: Tensor, targets: Tensor) -> Tensor:
    """Mean cosine distance."""
    return (1 - (vectors * targets).sum(-1)).mean()


def unlike(features: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error relative to the mean square of the targets, of features that are not normalised."""
    return F.mse_loss(features, targets) / targets.square().mean().clamp(min=1e-6)
