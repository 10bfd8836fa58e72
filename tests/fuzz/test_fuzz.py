"""A small, fixed part of the fuzzing in every run, and the corpus of what was found."""

import random
from pathlib import Path

import pytest
from extras import need
from fuzz.mutation import mutated

need("scipy")

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


@pytest.mark.parametrize("seed", range(4))
def test_mutated_inputs_get_a_result_or_a_sentence(seed, tmp_path):
    need("torch")
    from fuzz.run import fuzz

    counts, failures = fuzz(500, seed, 0.1, tmp_path)
    assert sum(counts.values()) == 500
    assert not failures


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_before(path, tmp_path):
    """A file of the corpus is called TARGET.NAME: the target, and the file of it that the content replaces."""
    need("torch")
    from fuzz.targets import commands, data_sets, lay_out, readers, run_once

    wanted, _, name = path.name.partition(".")
    target = next(target for target in readers() + data_sets() + commands() if target.name.replace(" ", "-") == wanted)
    lay_out(tmp_path)
    run_once(target, path.read_bytes(), name, tmp_path)


def test_mutations_depend_on_the_seed_alone():
    content = b'{"id": "1", "caption": "a dog"}\n'
    assert [mutated(content, random.Random(seed)) for seed in range(50)] == [
        mutated(content, random.Random(seed)) for seed in range(50)
    ]
