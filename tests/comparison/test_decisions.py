"""Comparisons that decide: baselines, error rates of the tests, and tables for papers."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from extras import need
from scipy.stats import binomtest, permutation_test

import caplens as package
from caplens.report import latex_document
from caplens.stats import SystemPair, exchange_systems, holm
from caplens.stats.sign_flips import LEAST, MOST, smallest_p


def mean(sums):
    return sums[..., 0] / sums[..., 1]


def of_values(values):
    return np.stack([np.asarray(values, dtype=float), np.ones(len(values))], axis=1)


def bleu1(sums):
    """Matches, lengths and reference lengths -> a corpus BLEU-1, which is no mean."""
    with np.errstate(divide="ignore", invalid="ignore"):
        brevity = np.exp(np.minimum(0, 1 - sums[..., 2] / sums[..., 1]))
    return brevity * sums[..., 0] / sums[..., 1]


def captions_of(rng, size):
    lengths = rng.integers(6, 14, size).astype(float)
    return np.stack([rng.binomial(lengths.astype(int), 0.4), lengths, np.full(size, 9.5)], axis=1)


def test_with_few_images_p_is_that_of_all_swaps():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=9), rng.normal(size=9)
    (ours,) = exchange_systems([SystemPair(of_values(first), of_values(second), mean)])
    theirs = permutation_test(
        (first, second),
        lambda a, b: abs(a.mean() - b.mean()),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert ours == pytest.approx(theirs.pvalue)


def test_a_p_value_near_a_level_gets_more_permutations(monkeypatch):
    from caplens.stats import sign_flips

    drawn = []
    original = sign_flips._random_swaps
    monkeypatch.setattr(
        sign_flips, "_random_swaps", lambda groups, count, rng: drawn.append(count) or original(groups, count, rng)
    )
    rng = np.random.default_rng(1)
    clear = SystemPair(of_values(rng.normal(size=50)), of_values(rng.normal(size=50) + 3), mean)
    exchange_systems([clear])
    assert sum(drawn) == LEAST
    drawn.clear()
    differences = np.where(np.arange(49) < 32, 1.0, -1.0)
    near = SystemPair(of_values(differences), of_values(np.zeros(49)), mean)
    (p,) = exchange_systems([near])
    # By the sign test: 32 of 49 or more, either way.
    assert p == pytest.approx(binomtest(32, 49).pvalue, abs=0.004)
    assert LEAST < sum(drawn) <= MOST


@pytest.mark.parametrize(("kind", "seed"), [("mean", 0), ("corpus BLEU", 1)])
def test_equal_systems_are_told_apart_once_in_twenty_times(kind, seed):
    """400 null pairs here; `benchmarks/comparison_errors.py` simulates 2,000."""
    rng = np.random.default_rng(seed)
    pairs = [
        SystemPair(*(of_values(rng.normal(size=200)) for _ in range(2)), mean)
        if kind == "mean"
        else SystemPair(captions_of(rng, 200), captions_of(rng, 200), bleu1)
        for _ in range(400)
    ]
    rejected = int((exchange_systems(pairs) < 0.05).sum())
    assert binomtest(rejected, 400, 0.05).pvalue > 0.001


def test_a_corrected_family_keeps_its_rate():
    rng = np.random.default_rng(2)
    families = 200
    systems = [[of_values(rng.normal(size=60)) for _ in range(5)] for _ in range(families)]
    pairs = [SystemPair(others, family[0], mean) for family in systems for others in family[1:]]
    p_values = exchange_systems(pairs, family=4).reshape(families, 4)
    rejected = sum((holm(row) < 0.05).any() for row in p_values)
    assert binomtest(rejected, families, 0.05).pvalue > 0.001


@pytest.fixture
def systems(write):
    """A system and two that are better and worse than it, of 40 images."""
    references = {str(n): [f"a dog number {n} runs on the grass", f"dog {n} is running"] for n in range(40)}
    texts = {"base": "a dog number {n} sleeps", "good": "a dog number {n} runs on grass", "bad_1%": "a cat"}
    files = {
        name: write(f"{number}.json", json.dumps({key: text.format(n=key) for key in references}))
        for number, (name, text) in enumerate(texts.items())
    }
    return [f"{name}={path}" for name, path in files.items()], write("refs.json", json.dumps(references))


def test_each_system_is_tested_against_a_baseline(systems, caplens):
    files, references = systems
    said = caplens(
        "compare", *files, "-r", references, "-m", "bleu1,cider", "--baseline", "base", "--resamples", 50, "-f", "json"
    )
    assert said.status == 0, said.err
    result = json.loads(said.out)
    assert [(c["first"], c["second"]) for c in result["contrasts"]] == [("good", "base"), ("bad_1%", "base")] * 2
    for contrast in result["contrasts"]:
        scores = result["scores"][contrast["metric"]]
        assert contrast["difference"] == pytest.approx(scores[contrast["first"]]["value"] - scores["base"]["value"])
        assert contrast["p"] <= contrast["p_corrected"] <= 2 * contrast["p"] + 1e-12
    assert result["baseline"] == "base"
    assert "the baseline 'x' is none of the systems" in caplens("compare", *files, "-r", references, "--baseline", "x").err
    assert (
        "two systems have the same name" in caplens("compare", files[0], files[1].replace("good", "base"), "-r", references).err
    )


def test_a_correction_is_for_the_comparisons_of_one_metric(systems):
    files, references = systems
    named = dict(file.split("=", 1) for file in files)
    one, two = (
        package.compare(named, names, references=references, resamples=20) for names in (["bleu1"], ["bleu1", "cider", "length"])
    )
    assert [c.p_corrected for c in one.contrasts] == [c.p_corrected for c in two.contrasts[:3]]


def test_four_images_cannot_decide_and_that_is_said():
    captions = {name: {str(n): f"{name} {n}" for n in range(4)} for name in "ab"}
    found = package.compare(captions, ["length"], resamples=20)
    assert smallest_p(4) == 0.125
    assert any("no p can be below 0.125" in warning and "more images" in warning for warning in found.warnings)
    assert not found.separable


def test_a_table_for_a_paper_has_names_daggers_and_the_best_in_bold(systems, caplens, tmp_path):
    files, references = systems
    target = tmp_path / "table.tex"
    command = [
        "compare",
        *files,
        "-r",
        references,
        "-m",
        "bleu1,bleu4,rouge-l,cider,length",
        "--baseline",
        "base",
        "--resamples",
        50,
    ]
    said = caplens(*command, "--intervals", "-o", target)
    assert said.status == 0, said.err
    assert "corrected p" in said.out, "the table is printed too"
    text = target.read_text(encoding="utf-8")
    assert r"System & BLEU-1 & BLEU-4 & ROUGE-L & CIDEr & Length \\" in text
    assert re.search(r"good & \\textbf\{\d+\.\d\$\^\{\\ddagger\}\$ \[\d", text)
    assert r"bad\_1\%" in text
    assert "corrected by Holm for the 2 comparisons of a metric" in text
    assert "better or worse than base" in text
    assert r"\label{tab:table}" in text
    # Longer is not better.
    assert "textbf" not in next(line for line in text.splitlines() if line.startswith("good &")).split("&")[-1]
    shown = caplens(*command, "-f", "markdown").out
    assert "| System | BLEU-1 | BLEU-4 | ROUGE-L | CIDEr | Length |" in shown
    assert re.search(r"\| good \| \*\*\d+\.\d‡\*\* \|", shown)


@pytest.mark.slow
def test_the_table_compiles_as_it_is(systems, caplens, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian: texlive-latex-recommended)")
    files, references = systems
    table, paper = tmp_path / "table.tex", tmp_path / "paper.tex"
    metrics = "bleu1,bleu2,bleu3,bleu4,rouge-l,cider,cider-original,length"
    said = caplens("compare", *files, "-r", references, "-m", metrics, "--intervals", "--resamples", 20, "-o", table)
    assert said.status == 0, said.err
    paper.write_text(
        "\\documentclass[twocolumn]{article}\\usepackage{booktabs,graphicx}"
        "\\begin{document}before \\input{table} after\\end{document}"
    )
    for file in (table, paper):
        run = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name], cwd=tmp_path, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stdout[-2000:]
        assert "Overfull" not in run.stdout
        assert file.with_suffix(".pdf").stat().st_size > 1000


def test_names_in_every_script_leave_latex_that_compiles():
    from caplens.results.table import Table

    text = latex_document([Table(["a", "b"], [["日本 {x}", 1.0], ["ä_ñ", 2.0]], "T & U")])
    assert r"?? \{x\} & 1.000 \\" in text
    assert r"ä\_ñ & 2.000 \\" in text
    assert r"\caption{T \& U.}" in text


def test_tests_have_at_least_the_power_of_sacrebleu_s():
    """Paired approximate randomisation of corpus BLEU on the same captions."""
    need("sacrebleu")
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    rng = np.random.default_rng(3)
    words = "a dog cat bird man woman runs sits on the in red blue grass house street small big".split()
    ours = theirs = 0
    for trial in range(12):
        references = [" ".join(rng.choice(words, 9)) for _ in range(60)]

        def worse(share, texts=references):
            return [" ".join(word if rng.random() > share else str(rng.choice(words)) for word in text.split()) for text in texts]

        systems = {"a": worse(0.30), "b": worse(0.36)}
        compared = package.compare(
            systems, ["bleu4"], references=[[text] for text in references], tokenizer="space", resamples=20, seed=trial
        )
        ours += compared.contrasts[0].p < 0.05
        test = PairedTest(list(systems.items()), {"BLEU": BLEU(tokenize="none")}, [references], test_type="ar", n_samples=2000)
        theirs += test()[1]["BLEU"][1].p_value < 0.05
    assert theirs > 0
    assert ours >= theirs - 1
