"""The plan of a job: its size is a plain count, and hours and money follow from rates by hand."""

import json
import math

import pytest
from extras import need
from PIL import Image

need("pyarrow")

from caplens import load_results, plan_job
from caplens.errors import InputError
from caplens.metrics.options import ScoringOptions
from caplens.partitions import inputs
from caplens.partitions.planning import read_machines

LOCAL = ScoringOptions(keep_store=False)
MACHINES = """
[[machine]]
name = "big"
cores = 64
gpu = true
price = 4.0
[machine.rates]
"caplens-mini" = { images = 100, texts = 1000 }

[[machine]]
name = "other"
cores = 2
gpu = true
"""


@pytest.fixture
def job(tmp_path):
    """600 captions of 30 photos in two files; 200 texts are different, and so are 50 references."""
    (tmp_path / "photos").mkdir()
    for number in range(30):
        Image.new("RGB", (40, 30), (number * 8, 90, 255 - number * 8)).save(tmp_path / "photos" / f"{number}.png")
    rows = [
        {"id": str(n), "image": f"{n % 30}.png", "caption": f"a dog {n % 200}", "references": [f"a cat {n % 50}"]}
        for n in range(600)
    ]
    (tmp_path / "parts").mkdir()
    for number in range(2):
        lines = "".join(json.dumps(row) + "\n" for row in rows[number::2])
        (tmp_path / "parts" / f"{number}.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "machines.toml").write_text(MACHINES, encoding="utf-8")
    return tmp_path


def planned(job, metrics=("clipscore",), **more):
    return plan_job(job / "parts", list(metrics), images=job / "photos", options=LOCAL, sample=8, **more)


def test_the_size_of_a_job_is_a_plain_count(job):
    assert planned(job).size == (600, 30, 200)
    assert planned(job, ["clipscore", "refclipscore"]).size == (600, 30, 250)
    assert planned(job, ["cider"]).size == (600, 0, 0)


def test_of_a_long_input_a_part_is_read_and_the_rest_taken_to_be_alike(job, monkeypatch):
    monkeypatch.setattr(inputs, "_STRETCH", 4000)
    plan = planned(job, ["length"], read_rows=200)
    assert 200 <= plan.rows_read < 400
    assert plan.size.rows == pytest.approx(600, rel=0.15)


def test_hours_and_money_follow_from_the_rates_of_a_machine(job):
    plan = planned(job, machines=job / "machines.toml", machine_count=3, price=0.5)
    here, big, other = plan.machines
    assert here.hours == pytest.approx((600 / plan.rows_rate + 30 / here.images_rate + 200 / here.texts_rate) / 3600 / 3)
    assert here.money == pytest.approx(here.hours * 3 * 0.5)
    model = 30 / 100 + 200 / 1000
    assert model / 3600 / 3 < big.hours
    assert big.money == pytest.approx(big.hours * 3 * 4.0)
    assert math.isnan(other.hours)
    assert "run this there" in other.source


def test_a_plan_is_written_and_read_again(job, tmp_path, caplens):
    path = tmp_path / "plan.json"
    run = caplens("plan", job / "parts", "--images", job / "photos", "-m", "clipscore", "--sample", 4, "-o", path)
    assert run.status == 0
    assert "different images" in run.out
    assert "30" in str(load_results(path))
    assert load_results(path).to_dict()["machines"] == json.loads(path.read_text(encoding="utf-8"))["machines"]


def test_the_machines_of_the_package_have_rates_and_prices():
    kinds = read_machines()
    assert any(kind.gpu and kind.rates for kind in kinds)
    assert all(kind.price > 0 for kind in kinds)


@pytest.mark.parametrize(
    "text", ["", "machine = 3", '[[machine]]\nname = "x"\ncores = 0', '[[machine]]\nname = "x"\ncores = 1\nprice = -1', "["]
)
def test_a_wrong_list_of_machines_is_one_sentence(tmp_path, text):
    path = tmp_path / "machines.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"machines\.toml"):
        read_machines(path)


def test_a_job_of_which_nothing_can_be_scored_says_why(job):
    with pytest.raises(InputError, match="can be scored with clipscore"):
        plan_job(job / "parts", ["clipscore"], images=job / "parts", options=LOCAL)
    with pytest.raises(InputError, match="at least 1"):
        planned(job, machine_count=0)
