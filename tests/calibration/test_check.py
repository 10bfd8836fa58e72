"""Faults of captions: each rule on captions that have it and on captions that look like it, then whole files."""

import csv
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from extras import need
from hypothesis import given, settings
from hypothesis import strategies as st

import caplens as package
from caplens.calibration.set_faults import duplicate_faults
from caplens.calibration.text_faults import TextContext, text_faults
from caplens.data import Sample
from caplens.results.check import Verdict
from caplens.text.identification import default_model

GOOD = {
    "en": "Two dogs run across a wet field behind a red ball.",
    "de": "Zwei Hunde laufen über eine nasse Wiese einem roten Ball hinterher.",
    "fr": "Deux chiens courent dans un champ mouillé derrière une balle rouge.",
    "cs": "Dva psi běží po mokrém poli za červeným míčem.",
    "tr": "İki köpek ıslak bir tarlada kırmızı bir topun peşinden koşuyor.",
    "ar": "كلبان يركضان في حقل مبلل خلف كرة حمراء",
    "hi": "दो कुत्ते गीले मैदान में लाल गेंद के पीछे दौड़ रहे हैं",
    "ja": "二匹の犬が濡れた野原で赤いボールを追いかけている。",
    "zh": "两只狗在湿漉漉的田野上追着一个红球跑。",
}
BAD = [
    ("empty", "en", ""),
    ("empty", "en", " \u200b \n"),
    ("empty", "en", "123 - 4"),
    ("file name", "en", "IMG_2041.jpg"),
    ("file name", "de", "DSC00017"),
    ("file name", "en", "Screenshot 2024-01-02 at 10.11.12"),
    ("placeholder", "en", "TODO"),
    ("placeholder", "de", "Bild von …"),
    ("placeholder", "en", "Lorem ipsum dolor sit amet"),
    ("placeholder", "zh", "图片"),
    ("placeholder", "de", "Alt-Text folgt"),
    ("placeholder", "ar", "لا يوجد وصف"),
    ("placeholder", "de", "Bild von einem Hund, der durch den Schnee läuft"),
    ("placeholder", "en", "Photo of a dog that runs through the snow."),
    ("markup", "en", "Two <b>dogs</b> run over a field"),
    ("markup", "en", "Dogs &amp; cats on a field of grass"),
    ("markup", "en", "Dogs on a field, see https://example.org"),
    ("encoding damage", "de", "Ein MÃ¤dchen lÃ¤uft Ã¼ber die StraÃŸe"),
    ("encoding damage", "de", "Ein M\ufffddchen läuft über die Straße"),
    ("encoding damage", "de", "Ein M?dchen l?uft nach Hause"),
    ("wrong script", "en", GOOD["ar"]),
    ("wrong script", "ar", GOOD["en"]),
    ("wrong script", "zh", GOOD["ja"]),
    ("repeated words", "en", "a dog a dog a dog runs over the field"),
    ("repeated words", "en", "on the grass near the tree on the grass near the tree"),
    ("repeated words", "zh", "一只狗一只狗一只狗在草地上跑"),
    ("repeated words", "en", "a dog runs sooooooooo fast over there"),
    ("cut off", "en", "Two dogs run across a wet field behind the"),
    ("cut off", "de", "Zwei Hunde laufen über eine"),
    ("cut off", "ja", "二匹の犬が濡れた野原で赤いボールを"),
    ("cut off", "en", "Two dogs (one of them brown run over a field"),
    ("length", "en", "dogs"),
    ("length", "en", "Two dogs run across a wet field. They chase after a ball that somebody threw. " * 20),
]
"""(kind, language, caption)"""
LOOKS_LIKE_IT = [
    ("en", "A man in a white and black photo booth smiles"),
    ("en", "A 1950s car, red and white, parks near No. 7"),
    ("en", "Is it a dog? A man looks at it through a window"),
    ("en", "A couple sits on a bench the dog sleeps under"),
    ("tr", "Küçük çocuklar yavaş yavaş denize doğru yürüyor"),
    ("ar", "رجل يرتدي قميص Nike يركض في الحديقة"),
    ("zh", "一个穿着T恤的男人在弹吉他。"),
    ("hi", "एक छोटा लड़का धीरे धीरे चल रहा है"),
]


def kinds(caption, lang, **context):
    return [fault.kind for fault in text_faults(caption, TextContext(lang, **context))]


@pytest.mark.parametrize(("kind", "lang", "caption"), BAD)
def test_what_is_wrong_is_named(kind, lang, caption):
    faults = text_faults(caption, TextContext(lang))
    assert kind in [fault.kind for fault in faults]
    assert all(fault.verdict is not Verdict.fine and fault.reason for fault in faults)


@pytest.mark.parametrize(("lang", "caption"), [*GOOD.items(), *LOOKS_LIKE_IT])
def test_good_captions_are_left_alone(lang, caption):
    assert kinds(caption, lang) == []


def test_a_caption_is_its_own_image_name():
    assert kinds("beach_2", "en", image="photos/beach_2.jpg") == ["file name"]
    assert kinds("a wide beach with people", "en", image="photos/beach_2.jpg") == []


def test_damage_is_undone_where_it_can_be():
    sentence = GOOD["de"]
    damaged = sentence.encode().decode("cp1252")
    (fault,) = [fault for fault in text_faults(damaged, TextContext("de")) if fault.kind == "encoding damage"]
    assert sentence in fault.reason


@pytest.mark.parametrize(("lang", "other"), [("de", "en"), ("en", "fr"), ("fr", "cs"), ("cs", "tr"), ("tr", "de")])
def test_another_language_in_the_same_letters(lang, other):
    need("py3langid")
    (fault,) = text_faults(GOOD[other], TextContext(lang, candidates=tuple(GOOD), model=default_model()))
    assert fault.kind == "wrong language"
    assert "seems to be in" in fault.reason


@settings(deadline=None)
@given(st.text(max_size=200), st.sampled_from([*GOOD, "bo", "ta", "th"]))
def test_any_text_is_judged(caption, lang):
    for fault in text_faults(caption, TextContext(lang)):
        assert fault.verdict in (Verdict.fix, Verdict.look)
        assert len(fault.reason) < 300


def test_duplicates_need_two_images_and_one_system():
    long = "two brown dogs run over a wide green field"
    near = "two black dogs run over a wide green field"
    samples = [
        Sample("a", long, image="1.jpg"), Sample("b", long.title() + ".", image="2.jpg"),
        Sample("c", near, image="3.jpg"), Sample("d", "a dog runs", image="4.jpg"), Sample("e", "a cat runs", image="5.jpg"),
        Sample("f", "birds in a tree", image="6.jpg"), Sample("g", "birds in a tree", image="6.jpg"),
    ]  # fmt: skip
    faults = duplicate_faults(samples, ["en"] * 7)
    assert set(faults) == {0, 1, 2}
    assert faults[0].reason == "another image has the same caption (b)"
    assert "nearly the same" in faults[2].reason
    other_systems = [sample if n else Sample("a", long, image="1.jpg", system="x") for n, sample in enumerate(samples)]
    assert 0 not in duplicate_faults(other_systems, ["en"] * 7)


@pytest.fixture(scope="module")
def examples_folder():
    return Path(str(files("caplens").joinpath("examples")))


@pytest.fixture(scope="module")
def alt_texts(tmp_path_factory, examples_folder):
    """The photos of the package: captions of people, one of another photo, one cut off, one file name, one without its photo."""
    folder = tmp_path_factory.mktemp("alt")
    rows = [json.loads(line) for line in (examples_folder / "good.jsonl").read_text(encoding="utf-8").splitlines()]
    english = [row for row in rows if row["lang"] == "en"]
    captions = {row["id"]: row["caption"] for row in english}
    first, second, third, fourth, fifth = captions
    captions |= {first: captions[second], third: "IMG_0007.JPG", fourth: captions[fourth].rsplit(" ", 2)[0] + " and the"}
    lines = [f"{row['id']};{row['image']};{captions[row['id']]}" for row in english]
    lines = [line.replace(english[4]["image"], "lost.jpg") if line.startswith(f"{fifth};") else line for line in lines]
    (folder / "alt.csv").write_bytes("\r\n".join(["id;Bild;Alt-Text", *lines]).encode("utf-8-sig"))
    return folder / "alt.csv", {"other": first, "name": third, "cut": fourth, "lost": fifth}


def test_the_command_says_what_is_wrong_and_with_which(caplens, alt_texts, examples_folder, tmp_path):
    path, planted = alt_texts
    said = caplens("check", path, "--images", examples_folder, "--lang", "en", "-o", tmp_path / "found.csv")
    assert said.status in (0, 3), said.err
    with (tmp_path / "found.csv").open(encoding="utf-8-sig", newline="") as lines:
        rows = {row["id"]: row for row in csv.DictReader(lines)}
    assert rows[planted["name"]]["verdict"] == "fix"
    assert "file" in rows[planted["name"]]["reasons"]
    assert "cut off" in rows[planted["cut"]]["reasons"]
    assert rows[planted["other"]]["verdict"] != "fine"
    assert "lost.jpg" in rows[planted["lost"]]["reasons"]
    assert set(list(rows)[:4]) == set(planted.values())


def test_the_page_has_the_worst_first(caplens, alt_texts, examples_folder, tmp_path):
    path, _ = alt_texts
    said = caplens("check", path, "--images", examples_folder, "--lang", "en", "-o", tmp_path / "check.html", "--page-lang", "de")
    assert said.status in (0, 3), said.err
    html = (tmp_path / "check.html").read_text(encoding="utf-8")
    assert re.search('<html lang="de"', html)
    assert "IMG_0007.JPG" in html


def test_the_table_to_hand_on_keeps_all_columns_and_says_why_in_the_reader_s_language(caplens, write, tmp_path):
    rows = [
        {"Inventarnummer": "7", "Alt-Text": "Platzhalter", "Sprache": "de", "Freigegeben": "ja"},
        {"Inventarnummer": "8", "Alt-Text": "Ein Hund läuft durch den Schnee.", "Sprache": "de", "Freigegeben": "nein"},
    ]
    path = tmp_path / "alt.csv"
    path.write_text("\n".join(";".join(cells) for cells in [rows[0], *(row.values() for row in rows)]), encoding="utf-8")
    assert caplens("check", path, "--page-lang", "de", "-o", tmp_path / "fix.csv").status == 0
    with (tmp_path / "fix.csv").open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["id"], first["Freigegeben"], first["reasons"]) == ("7", "ja", "die Bildunterschrift ist ein Platzhalter")
    assert (second["id"], second["verdict"], second["Freigegeben"]) == ("8", "fine", "nein")
    need("openpyxl")
    assert caplens("check", path, "-o", tmp_path / "fix.xlsx").status == 0
    sheet = need("openpyxl").load_workbook(tmp_path / "fix.xlsx").active
    header = [cell.value for cell in sheet[1]]
    assert sheet.auto_filter.ref == f"A1:{sheet.cell(3, len(header)).coordinate}"
    assert sheet.cell(2, header.index("reasons") + 1).alignment.wrap_text
    assert [sheet.cell(row, header.index("Freigegeben") + 1).value for row in (2, 3)] == ["ja", "nein"]


def test_no_captions_is_an_error(caplens, tmp_path):
    (tmp_path / "none.jsonl").write_text("", encoding="utf-8")
    said = caplens("check", tmp_path / "none.jsonl")
    assert said.status == 2


def test_a_function_gives_the_same(alt_texts, examples_folder):
    path, planted = alt_texts
    result = package.check(path, images=examples_folder, lang="en")
    found = {caption.id: caption for caption in result}
    assert found[planted["name"]].verdict is Verdict.fix
    assert [caption.verdict for caption in result] == sorted(
        (caption.verdict for caption in result), key=[Verdict.fix, Verdict.look, Verdict.fine].index
    )


def test_captions_of_other_images_do_not_fit(examples_folder):
    rows = [json.loads(line) for line in (examples_folder / "good.jsonl").read_text(encoding="utf-8").splitlines()]
    english = [row for row in rows if row["lang"] == "en"]
    captions = [row["caption"] for row in english]
    turned = [{**row, "caption": caption} for row, caption in zip(english, captions[1:] + captions[:1], strict=True)]
    found = [caption for caption in package.check(turned, images=examples_folder) if caption.verdict is Verdict.fix]
    assert len(found) >= 3
    own = {row["caption"]: row["image"] for row in english}
    assert any(caption.better_image == own[caption.caption] for caption in found)


def test_images_that_are_nowhere_are_said_and_texts_are_judged(caplens, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("captions.jsonl", [{"id": "1", "image": "elsewhere.jpg", "caption": "A dog runs in the", "lang": "en"}])
    said = caplens("check", path, "--json")
    assert said.status == 0
    assert "none of the images is in the current folder" in said.err
    assert json.loads(said.out)["captions"][0]["faults"][0]["kind"] == "cut off"
    assert caplens("check", path, "--images", tmp_path).status == 2
