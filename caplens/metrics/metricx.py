"""MetricX-23-QE and MetricX-24-QE (Juraska et al. 2023, 2024): an mT5 whose first output token's logit is the error, 0 to 25."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from caplens.backbones.pretrained import from_configuration
from caplens.metrics.quality_estimation import Estimates, SourcePair
from caplens.metrics.translation_models import CheckpointEstimate, encoder_of, load_strictly, weights_of

_BATCH, _MOST_TOKENS = 8, 1024
_ERROR_TOKEN = 250089
_MOST = 25.0


class MetricX23(CheckpointEstimate):
    """The estimated error of a translation: lower is better."""

    name = "metricx23-qe"
    lower_is_better = True
    prompt = "candidate: {translation} source: {source}"

    def _load(self) -> tuple[Any, Any, Any, str]:
        if self._loaded is None:
            torch, tokenizer, config, device = encoder_of(self._files, None, self._options)
            import transformers

            weights = weights_of(self._files)
            shared = weights.get("shared.weight")
            if shared is not None:
                # Checkpoints may leave out what is the same as the shared embedding.
                for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
                    weights.setdefault(name, shared)
            build = partial(from_configuration, transformers.AutoModelForSeq2SeqLM, config)
            network = load_strictly(build, weights, self._files)
            self._loaded = torch, tokenizer, network.to(device).eval(), device
        return self._loaded

    def run(self, pairs: Sequence[SourcePair]) -> Estimates:
        torch, tokenizer, network, device = self._load()
        errors: list[float] = []
        truncated: list[bool] = []
        for start in range(0, len(pairs), _BATCH):
            texts = [
                self.prompt.format(source=pair.source, translation=pair.translation) for pair in pairs[start : start + _BATCH]
            ]
            ids = tokenizer(texts)["input_ids"]
            truncated += [len(row) > _MOST_TOKENS for row in ids]
            # Without the end marker, as the models were trained.
            ids = [row[:-1][: _MOST_TOKENS - 1] for row in ids]
            batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(device)
            first = torch.zeros((len(ids), 1), dtype=torch.long, device=device)
            with torch.inference_mode():
                logits = network(**batch, decoder_input_ids=first).logits
            errors += logits[:, 0, min(_ERROR_TOKEN, logits.shape[-1] - 1)].float().clamp(0, _MOST).cpu().tolist()
        return Estimates(np.array(errors), np.array(truncated))


class MetricX24(MetricX23):
    name = "metricx24-qe"
    prompt = "source: {source} candidate: {translation}"
