"""People as one of the systems (PAC-S, table 7): of each image one reference is the caption, the others are its references."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from caplens.data.sample import Sample
from caplens.errors import InputError

HUMANS = "humans"


def human_captions(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """The samples with one of their references, drawn at random, as caption; the draw depends on the id and the seed alone.

    Those with fewer than two references are left out.
    """
    captions = []
    for sample in samples:
        references = [text for text in sample.references if text.strip()]
        if len(references) > 1 and not sample.invalid:
            digest = hashlib.sha256(f"{seed}\0{sample.id}".encode()).digest()
            drawn = int(np.random.default_rng(list(digest[:16])).integers(len(references)))
            rest = tuple(text for place, text in enumerate(references) if place != drawn)
            captions.append(replace(sample, caption=references[drawn], references=rest, system=None))
    if not captions:
        raise InputError("no image has two references, of which one could be the caption of a human baseline.")
    return captions
