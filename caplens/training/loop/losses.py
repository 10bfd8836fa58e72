"""What training makes small. Vectors are of length one unless said otherwise."""

import torch
from torch import Tensor
from torch.nn import functional as F

from caplens.errors import InputError


def contrastive(first: Tensor, second: Tensor, temperature: float, targets: Tensor | None = None) -> Tensor:
    """InfoNCE in both directions: row i of one belongs to row i of the other, or to several by `targets` (rows sum to 1)."""
    logits = first @ second.T / temperature
    aim = torch.arange(len(logits), device=logits.device) if targets is None else targets
    return (F.cross_entropy(logits, aim) + F.cross_entropy(logits.T, aim)) / 2


def pearson(scores: Tensor, ratings: Tensor) -> Tensor:
    """1 - r of scores and human ratings (multilingual CLIPScore, equation 2)."""
    if bool((ratings == ratings[0]).all()):
        raise InputError(
            "all ratings of a batch are the same, so that a correlation with them is not defined; take larger batches."
        )
    # Scores that are all the same have a cosine of 0 and a gradient that is no number; the small term makes it zero.
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
    """L(V, T) + a L(V', T) + b L(V, T') with generated images V' and texts T' as further positives (PAC-S, equations 2 and 3)."""
    return (
        contrastive(images, texts, temperature)
        + for_images * contrastive(made_images, texts, temperature)
        + for_texts * contrastive(images, made_texts, temperature)
    )


def perturbation_aware(
    images: Tensor, texts: Tensor, worse: Tensor, weights: tuple[float, float, float], margin: float
) -> Tensor:
    """Captions near their images, perturbed ones far from images and from the captions they were (PR-MCS, equations 1 to 3).

    L1 = 1 - cos(V, T(o)), L2 = max(m, cos(V, T(p))), L3 = max(m, cos(T(o), T(p)))
    """
    near = distance(images, texts)
    from_image = (images * worse).sum(-1).clamp(min=margin).mean()
    from_text = (texts * worse).sum(-1).clamp(min=margin).mean()
    return weights[0] * near + weights[1] * from_image + weights[2] * from_text


def ordered(images: Tensor, texts: Tensor, worse: Tensor, gap: float) -> Tensor:
    """max(0, gap - (cos(V, T(o)) - cos(V, T(p)))): each perturbed caption below its own original, and only as far as `gap`.

    The original is what is compared with, and is not moved.
    """
    good, bad = (images * texts).sum(-1).detach(), (images * worse).sum(-1)
    return (bad - good + gap).clamp(min=0).mean()


def shared_targets(vectors: Tensor, share: float, temperature: float) -> Tensor:
    """A photo's own captions, and by `share` those of photos that are described alike: no two photos of dogs are strangers."""
    alike = torch.softmax(vectors @ vectors.T / temperature, -1)
    return (1 - share) * torch.eye(len(vectors), device=vectors.device) + share * alike


def distance(made: Tensor, wanted: Tensor) -> Tensor:
    """1 - cosine."""
    return (1 - (made * wanted).sum(-1)).mean()


def unlike(made: Tensor, wanted: Tensor) -> Tensor:
    """The squared error of features, of any length, relative to their size."""
    return F.mse_loss(made, wanted) / wanted.square().mean().clamp(min=1e-6)
