"""The reward of a caption that a captioner drew: the score of any metric, less what repetitions cost."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from caplens.backbones.base import Backbone
from caplens.data.sample import Sample
from caplens.errors import InputError
from caplens.metrics.base import Metric
from caplens.metrics.cider import Cider
from caplens.metrics.options import ScoringOptions
from caplens.metrics.registry import get_metric, needs_encoder
from caplens.metrics.scoring import run_metrics
from caplens.partitions.frequencies import CorpusFrequency, add_counts, count_documents
from caplens.training.captioner.recipe import RewardSettings
from caplens.training.recipes.pairs import Photos


class CaptionReward:
    """Rewards by a metric. CIDEr takes its document frequencies from the captions of all photos.

    Parameters
    ----------
    settings
        Which metric, and what repetitions cost.
    photos
        The photos with people's captions, which are the references.
    backbone
        The model of metrics that look at images.
    """

    def __init__(self, settings: RewardSettings, photos: Photos, backbone: Backbone | str) -> None:
        self._photos, self._settings = photos, settings
        metric = reward_metric(settings.metric, backbone)
        if isinstance(metric, Cider):
            counted = count_documents(
                (self._sample(row, lang, "") for row, captions in enumerate(photos.captions) for lang in captions), None, None
            )
            metric.frequency = CorpusFrequency(add_counts([counted]))
        self._metric = metric

    def _sample(self, row: int, lang: str, caption: str) -> Sample:
        references = tuple(self._photos.captions[row].get(lang, ()))
        return Sample(str(row), caption or "-", references, image=self._photos.images[row], lang=lang)

    def __call__(
        self, rows: Sequence[int], langs: Sequence[str], texts: Sequence[str], tokens: Sequence[Sequence[int]]
    ) -> Tensor:
        """The reward of each caption: rows of photos, languages, texts, and the tokens among which repetitions are counted."""
        samples = [self._sample(*caption) for caption in zip(rows, langs, texts, strict=True)]
        scores = run_metrics(samples, [self._metric], require_scores=False)[self._metric.name].values
        # A caption without a token has no score, and deserves none.
        rewards = np.nan_to_num(scores, nan=0.0)
        if self._settings.repetition:
            rewards = rewards - self._settings.repetition * np.array([repeated_share(caption) for caption in tokens])
        return torch.from_numpy(rewards.astype(np.float32))


def self_critical(rewards: Tensor, logits: Tensor, ids: Tensor, padding: int, samples: int) -> Tensor:
    """The loss of captions that were drawn, `samples` of each photo side by side.

    It is minus the mean log-probability of a caption's tokens times how far its reward is above the mean of those of the other
    captions of its photo (Rennie et al. 2017, with the baseline of Luo 2020).
    """
    present = ids != padding
    chosen = logits.float().log_softmax(-1).gather(2, ids.clamp(min=0)[:, :, None])[:, :, 0]
    log_probabilities = (chosen * present).sum(1) / present.sum(1).clamp(min=1)
    by_photo = rewards.to(logits.device).view(-1, samples)
    others = (by_photo.sum(1, keepdim=True) - by_photo) / (samples - 1)
    return -((by_photo - others).flatten() * log_probabilities).mean()


def reward_metric(name: str, backbone: Backbone | str) -> Metric:
    """The metric of a reward; an error for one that cannot score single captions."""
    metric = get_metric(name, ScoringOptions(keep_store=False, model=backbone if needs_encoder(name) else None))
    if metric.needs_all_captions and not isinstance(metric, Cider):
        raise InputError(f"reward.metric: {metric.name} needs all captions at once, and cannot score one that was just drawn.")
    return metric


def repeated_share(tokens: Sequence[int]) -> float:
    """The share of a caption's tokens, and of its pairs of tokens, that were there before; the mean of both."""
    pairs = list(pairwise(tokens))
    shares = [1 - len(set(units)) / len(units) for units in (tokens, pairs) if units]
    return float(np.mean(shares)) if shares else 0.0
