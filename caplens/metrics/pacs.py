"""PAC-S and RefPAC-S (Sarto et al. 2023): CLIPScore's formulas with w = 2, on a CLIP that was trained for captions."""

from caplens.backbones.base import Backbone
from caplens.metrics.clipscore import ClipScore, RefClipScore

W = 2.0


def checkpoint_warnings(metric: str, backbone: Backbone) -> list[str]:
    """Says so if the model is none of PAC-S."""
    if ",weights=" in backbone.name or backbone.tuned == "pacs":
        return []
    return [
        f"{metric}: this is PAC-S only with one of its checkpoints; name it behind the model, as in"
        " hf:openai/clip-vit-base-patch32,weights=clip_ViT-B-32.pth, or a model of 'caplens train pacs'."
    ]


class PacS(ClipScore):
    name = "pacs"
    weight = W

    def warnings(self) -> list[str]:
        return checkpoint_warnings(self.name, self.engine.backbone)


class RefPacS(RefClipScore):
    name = "refpacs"
    weight = W
    warnings = PacS.warnings
