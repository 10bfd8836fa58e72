"""COMETKiwi (Rei et al. 2022, 2023) and XCOMET without a reference (Guerreiro et al. 2024), from their released checkpoints.

An XLM-R encoder reads `<s> translation </s></s> source </s>`. The states of all its layers are mixed by the softmax of learned
weights, times gamma; the first token goes through a feed-forward network. XCOMET tags error spans from the same states.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from caplens.backbones.pretrained import from_configuration
from caplens.metrics.quality_estimation import Estimates, SourcePair
from caplens.metrics.translation_models import CheckpointEstimate, encoder_of, load_strictly, weights_of

_BATCH, _MOST_TOKENS, _FIRST_POSITION = 16, 512, 2


class CometKiwi(CheckpointEstimate):
    """The estimate, between about 0 and 1."""

    name = "cometkiwi"
    tags = False

    def _load(self) -> tuple[Any, Any, Any, str]:
        """PyTorch, the tokenizer, the network, and its device."""
        if self._loaded is None:
            torch, tokenizer, config, device = encoder_of(self._files, None, self._options)
            weights = weights_of(self._files)
            build = partial(_network, torch, config, weights, tags=self.tags)
            network = load_strictly(build, _renamed(weights), self._files, ("encoder.model.pooler.", "encoder.pooler."))
            self._loaded = torch, tokenizer, network.to(device).eval(), device
        return self._loaded

    def run(self, pairs: Sequence[SourcePair]) -> Estimates:
        values = np.array([score for scores, _ in self._batches(pairs) for score in scores])
        tokenizer = self._load()[1]
        ids = tokenizer([pair.translation for pair in pairs], [pair.source for pair in pairs])["input_ids"]
        return Estimates(values, np.array([len(row) > self._most_tokens for row in ids]))

    @property
    def _most_tokens(self) -> int:
        """Tokens of a pair that the encoder has positions for; RoBERTa's begin after that of padding."""
        positions = getattr(self._load()[2].encoder.config, "max_position_embeddings", None)
        return _MOST_TOKENS if positions is None else min(_MOST_TOKENS, positions - _FIRST_POSITION)

    def _batches(self, pairs: Sequence[SourcePair]) -> Any:
        """The scores and tags of batches."""
        torch, tokenizer, network, device = self._load()
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            inputs = tokenizer(
                [pair.translation for pair in batch],
                [pair.source for pair in batch],
                padding=True,
                truncation=True,
                max_length=self._most_tokens,
                return_tensors="pt",
            ).to(device)
            with torch.inference_mode():
                scores, tags = network(inputs["input_ids"], inputs["attention_mask"])
            yield scores.float().cpu().tolist(), None if tags is None else tags.float().cpu()


class XComet(CometKiwi):
    """The regression score of XCOMET from source and translation alone."""

    name = "xcomet-qe"
    tags = True


def _renamed(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the network below; position ids are no weights."""
    return {
        key.replace("encoder.model.", "encoder."): value for key, value in weights.items() if not key.endswith("position_ids")
    }


def _network(torch: Any, config: Any, weights: Mapping[str, Any], *, tags: bool) -> Any:
    """The network of a checkpoint: sizes are those of its weights."""
    import transformers

    nn = torch.nn
    sizes = [tuple(weights[key].shape) for key in sorted(weights) if key.startswith("estimator.ff.") and key.endswith(".weight")]
    layers: list[Any] = []
    for outputs, inputs in sizes:
        layers += [nn.Linear(inputs, outputs), nn.Tanh(), nn.Dropout(0.0)]

    class Mix(nn.Module):  # type: ignore[misc, name-defined]
        """gamma * sum of softmax(w) times the states of the layers."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.scalar_parameters = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(count)])
            self.gamma = nn.Parameter(torch.ones(1))

        def forward(self, states: Any) -> Any:
            shares = torch.softmax(torch.cat(list(self.scalar_parameters)), 0)
            return self.gamma * sum(share * state for share, state in zip(shares, states, strict=True))

    class Estimator(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.ff = nn.Sequential(*layers[:-2])

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = from_configuration(transformers.AutoModel, config)
            # The pooling layer is not used.
            self.encoder.pooler = None
            self.layerwise_attention = Mix(config.num_hidden_layers + 1)
            self.estimator = Estimator()
            if tags:
                shape = weights["hidden2tag.weight"].shape if "hidden2tag.weight" in weights else (5, config.hidden_size)
                self.hidden2tag = nn.Linear(shape[1], shape[0])

        def forward(self, ids: Any, mask: Any) -> Any:
            states = self.encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
            mixed = self.layerwise_attention(states)
            return self.estimator.ff(mixed[:, 0]).flatten(), self.hidden2tag(mixed) if tags else None

    return Network()
