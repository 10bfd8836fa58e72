"""The captioner of Crossmodal-3600 (Thapliyal et al. 2022, section 3.2): a vision transformer and mT5.

The features of all patches are pooled into one vector. It stands beside the embedded code of the language as input of mT5's
encoder, and the decoder writes the caption.
"""

from typing import Any

import torch
from torch import Tensor, nn


class VitMt5(nn.Module):
    """A vision transformer and a sequence-to-sequence model of transformers, joined by a projection."""

    def __init__(self, vit: nn.Module, mt5: nn.Module) -> None:
        super().__init__()
        self.vit, self.mt5 = vit, mt5
        vit_config: Any = vit.config
        mt5_config: Any = mt5.config
        self.project = nn.Linear(vit_config.hidden_size, mt5_config.d_model)

    def inputs(self, pixels: Tensor, langs: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """What the encoder reads: images (n, 3, height, width), and token ids of languages with their mask."""
        config: Any = self.vit.config
        features = self.vit(pixel_values=pixels).last_hidden_state
        patches = (config.image_size // config.patch_size) ** 2
        # Tokens that stand for no patch come first.
        pooled = self.project(features[:, -patches:].mean(1))
        embedded = self.mt5.get_input_embeddings()(langs)  # type: ignore[operator]
        first = torch.ones(len(mask), 1, dtype=mask.dtype, device=mask.device)
        return {"inputs_embeds": torch.cat([pooled[:, None], embedded], 1), "attention_mask": torch.cat([first, mask], 1)}

    def forward(self, pixels: Tensor, langs: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of captions, whose padding is -100."""
        loss: Tensor = self.mt5(**self.inputs(pixels, langs, mask), labels=labels).loss
        return loss
