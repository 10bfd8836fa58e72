"""Images are prepared as each library does it: the score cannot tell the difference."""

from itertools import product

import numpy as np
import pytest
import tiny_models
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

from caplens.backbones.transform import ImageTransform, patched_size

OPEN_CLIP = {**tiny_models.OPEN_CLIP_IMAGES, "size": 48, "fill_color": 0}


def test_clip_images_equal_those_of_transformers():
    transformers = need("transformers")
    library = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)(**_settings())
    transform = ImageTransform.from_transformers(tiny_models.CLIP_IMAGES, "here")
    for width, height in product(range(30, 110, 7), range(30, 110, 9)):
        picture = tiny_models.picture(3, width, height)
        theirs = np.asarray(library(picture, return_tensors="np", do_normalize=False)["pixel_values"][0]) * 255
        np.testing.assert_allclose(theirs.transpose(1, 2, 0), transform(picture), atol=0.01)


def _settings():
    return {key: value for key, value in tiny_models.CLIP_IMAGES.items() if key != "image_processor_type"}


@pytest.mark.parametrize("mode", ["shortest", "squash", "longest"])
@given(st.integers(20, 120), st.integers(20, 120))
@settings(max_examples=15, deadline=None)
def test_open_clip_images_equal_those_of_open_clip(mode, width, height):
    library = need("open_clip.transform")
    config = {**OPEN_CLIP, "resize_mode": mode}
    picture = tiny_models.picture(1, width, height)
    plain = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
    preprocess = library.image_transform_v2(library.PreprocessCfg(**{**config, **plain}), is_train=False)
    ours = ImageTransform.from_open_clip(config)(picture)
    np.testing.assert_allclose(preprocess(picture).numpy().transpose(1, 2, 0) * 255, ours, atol=0.01)


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([8, 14, 16]), st.sampled_from([16, 256, 729]))
@settings(deadline=None)
def test_patches_cover_as_much_as_they_may(height, width, patch, most):
    tall, wide = patched_size(height, width, patch, most)
    assert tall % patch == wide % patch == 0
    assert 1 <= (tall // patch) * (wide // patch) <= max(most, 1)
