"""Images for many languages: against capitals whose places are known, an example worked by hand, and properties."""

import json
from collections import Counter

import numpy as np
import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from caplens.data import Sample
from caplens.data.languages import CROSSMODAL_3600
from caplens.errors import InputError
from caplens.human.selection import Candidate, Region, located, read_regions, select_by_language
from caplens.results.loading import load_results
from caplens.results.selection import LEVELS

CAPITALS = {
    "ar": (30.04, 31.24), "bn": (23.81, 90.41), "cs": (50.08, 14.44), "da": (55.68, 12.57), "de": (52.52, 13.40),
    "el": (37.98, 23.73), "en": (51.51, -0.13), "es": (40.42, -3.70), "fa": (35.69, 51.39), "fi": (60.17, 24.94),
    "fil": (14.60, 120.98), "fr": (48.86, 2.35), "he": (31.77, 35.21), "hi": (28.61, 77.21), "hr": (45.81, 15.98),
    "hu": (47.50, 19.04), "id": (-6.21, 106.85), "it": (41.90, 12.50), "ja": (35.68, 139.69), "ko": (37.57, 126.98),
    "mi": (-41.29, 174.78), "nl": (52.37, 4.90), "no": (59.91, 10.75), "pl": (52.23, 21.01), "pt": (38.72, -9.14),
    "quz": (-13.53, -71.97), "ro": (44.43, 26.10), "ru": (55.76, 37.62), "sv": (59.33, 18.07), "sw": (-6.16, 35.75),
    "te": (17.39, 78.49), "th": (13.76, 100.50), "tr": (39.93, 32.86), "uk": (50.45, 30.52), "vi": (21.03, 105.85),
    "zh": (39.90, 116.41),
}  # fmt: skip
"""Capitals, and of Telugu and Quechua the largest city of their area."""


def candidate(number, latitude, longitude):
    return Candidate(Sample(str(number), "", image=f"{number}.jpg"), latitude, longitude)


def test_the_capital_of_each_language_lies_in_its_area():
    assert set(CAPITALS) == set(CROSSMODAL_3600) == {region.lang for region in read_regions()}
    for lang, (latitude, longitude) in CAPITALS.items():
        (chosen,) = select_by_language([candidate(0, latitude, longitude)], 1, [lang])
        assert chosen.level == "area", lang
    (chosen,) = select_by_language([candidate(0, *CAPITALS["ja"])], 1, ["quz"])
    assert chosen.level == "world"


def test_a_language_with_few_images_chooses_first():
    boxes = [("hi", "area", 10), ("te", "area", 1), ("te", "country", 10)]
    regions = [Region(lang, level, "box", 0, 0, size, size) for lang, level, size in boxes]
    # Two images in the part, and one more in the whole, of which Telugu takes the two.
    places = [candidate(0, 0.5, 0.5), candidate(1, 0.6, 0.6), candidate(2, 5, 5), candidate(3, 50, 50)]
    chosen = select_by_language(places, 2, ["hi", "te"], regions)
    by_language = {lang: [(one.id, one.level) for one in chosen if one.lang == lang] for lang in ("hi", "te")}
    assert sorted(by_language["te"]) == [("0", "area"), ("1", "area")]
    assert by_language["hi"] == [("2", "area"), ("3", "world")]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 4))
def test_no_image_is_chosen_twice_and_none_farther_than_it_must(seed, each):
    rng = np.random.default_rng(seed)
    places = [candidate(n, rng.uniform(-60, 70), rng.uniform(-180, 180)) for n in range(200)]
    chosen = select_by_language(places, each, seed=seed)
    assert Counter(one.lang for one in chosen) == dict.fromkeys(CROSSMODAL_3600, each)
    assert len({one.id for one in chosen}) == len(chosen)
    assert select_by_language(places, each, seed=seed) == chosen
    for lang in CROSSMODAL_3600:
        levels = [LEVELS.index(one.level) for one in chosen if one.lang == lang]
        assert levels == sorted(levels)


def test_places_are_read_from_columns_and_from_photos(tmp_path):
    exif = Image.Exif()
    exif[0x8825] = {1: "S", 2: (13.0, 31.0, 48.0), 3: "W", 4: (71.0, 58.0, 12.0)}
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", exif=exif)
    Image.new("RGB", (8, 8)).save(tmp_path / "b.jpg")
    samples = [
        Sample("photo", "", image=str(tmp_path / "a.jpg")),
        Sample("none", "", image=str(tmp_path / "b.jpg")),
        Sample("columns", "", meta={"Lat": "52.5", "lon": 13}),
    ]
    found, unknown = located(samples)
    assert [(one.sample.id, round(one.latitude, 2), round(one.longitude, 2)) for one in found] == [
        ("photo", -13.53, -71.97), ("columns", 52.5, 13.0),
    ]  # fmt: skip
    assert unknown == ["none"]


def test_the_command_writes_levels_and_says_what_is_wrong(tmp_path, caplens):
    lines = ["id,latitude,longitude", *(f"{lang}.jpg,{lat},{lon}" for lang, (lat, lon) in CAPITALS.items()), "none.jpg,,"]
    (tmp_path / "places.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = caplens("select-images", tmp_path / "places.csv", tmp_path / "chosen.jsonl", "--per-language", "1", "--json")
    assert said.status == 3, said.err
    assert json.loads(said.out)["unknown"] == 1
    rows = [json.loads(line) for line in (tmp_path / "chosen.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 36
    assert {row["image"] for row in rows} == {f"{lang}.jpg" for lang in CAPITALS}
    header = "\t".join(Region._fields)
    (tmp_path / "regions.tsv").write_text(f"{header}\nde\tarea\tx\t5\t5\t1\t1\n", encoding="utf-8")
    for arguments, words in (
        (("--per-language", "2"), "need 72"),
        (("--per-language", "1", "--regions", tmp_path / "regions.tsv"), "a box lies between"),
        (("--per-language", "1", "--langs", "ka"), "regions of ka are not known"),
        (("--per-language", "1", "--langs", "de,de"), "each language once"),
    ):
        said = caplens("select-images", tmp_path / "places.csv", tmp_path / "out.jsonl", *arguments)
        assert said.status == 2
        assert words in said.err
        assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(InputError, match="no place on earth"):
        located([Sample("1", "", meta={"lat": 91, "lon": 0})])


def test_the_report_draws_a_map_on_which_capitals_lie_on_land(tmp_path, caplens):
    need("matplotlib")
    from matplotlib.path import Path as Outline

    from caplens.report.world_map import outlines

    # To about a hundred kilometres; Wellington, Jakarta and the like are at the sea.
    land = [Outline(outline.T) for outline in outlines().values()]
    for lang, (latitude, longitude) in CAPITALS.items():
        assert any(outline.contains_point((longitude, latitude), radius=side) for outline in land for side in (0, -1.5, 1.5)), (
            lang
        )
    oceans = [(0, -30), (-30, 80), (30, -150), (-40, -120), (35, 18), (43, 34), (60, -85), (0, -160), (-20, 0), (75, -40 + 40)]
    for latitude, longitude in oceans:
        assert not any(outline.contains_point((longitude, latitude)) for outline in land), (latitude, longitude)

    lines = ["id,latitude,longitude", *(f"{lang}.jpg,{lat},{lon}" for lang, (lat, lon) in CAPITALS.items())]
    (tmp_path / "places.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    chosen, page = tmp_path / "chosen.json", tmp_path / "map.html"
    assert caplens("select-images", tmp_path / "places.csv", chosen, "--per-language", "1").status == 0
    result = load_results(chosen)
    assert (len(result.images), result.counts()["de"]) == (36, {"area": 1})
    assert caplens("report", chosen, "-o", page).status == 0
    assert "Where the images were taken" in page.read_text(encoding="utf-8")
