"""What a fifth attacker met: each test failed before."""

import json
import lzma
import os
import shutil
import struct
from datetime import datetime, time

import numpy as np
import pytest
from extras import need
from PIL import Image, features

import caplens as package
from caplens.backbones import load_backbone
from caplens.backbones.manifest import check_manifest, writing_model
from caplens.backbones.mini import mini_folder
from caplens.benchmarks import get_benchmark
from caplens.comparison.systems import _is_name_of
from caplens.data import Sample, SampleFile
from caplens.data.files import Source
from caplens.data.ratings import ratings_by
from caplens.data.records import numbers, texts
from caplens.embed.images import UnreadableError, decode
from caplens.embed.store import Store
from caplens.errors import CaplensError, InputError
from caplens.report.plots import drawn


@pytest.fixture
def model(tmp_path):
    """A copy of caplens-mini@1, with its manifest."""
    folder = tmp_path / "model"
    with writing_model(folder) as temporary:
        for file in mini_folder("caplens-mini@1").iterdir():
            if file.name != "caplens-manifest.json":
                shutil.copy(file, temporary)
    return folder


def test_settings_of_matplotlib_in_the_current_folder_do_not_count(monkeypatch):
    import matplotlib

    def draw(figure):
        figure.add_subplot().set_title("a $title$")

    usual = drawn(1, draw)
    for name, value in (("text.usetex", True), ("axes.facecolor", "red"), ("font.size", 40)):
        monkeypatch.setitem(matplotlib.rcParams, name, value)
    assert "red" not in drawn(1, draw)
    assert drawn(1, draw).count("<path") == usual.count("<path")
    assert matplotlib.rcParams["font.size"] == 40


def test_damage_that_leaves_the_times_of_a_file_is_noticed(model):
    check_manifest(model)
    file = model / "text.onnx"
    stat, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    with file.open("r+b") as stream:
        stream.write(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(InputError, match="is not the one that the model was saved with"):
        check_manifest(model)


def test_the_cache_of_hashes_does_not_serve_the_manifest(model, monkeypatch):
    from caplens.backbones import hub

    monkeypatch.setattr(hub, "_version", lambda path: f"the same for {path}")
    check_manifest(model)
    content = bytearray((model / "text.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (model / "text.onnx").write_bytes(content)
    with pytest.raises(InputError, match="is not the one that the model was saved with"):
        check_manifest(model)


@pytest.mark.parametrize("file", ["text.onnx", "vocabulary.tsv"])
def test_a_model_that_is_replaced_while_it_is_used_is_noticed(model, tmp_path, file):
    backbone = load_backbone(str(model))
    shutil.copy(model / file, tmp_path / file)
    os.replace(tmp_path / file, model / file)
    with pytest.raises(InputError, match="was changed since the command began"):
        backbone.encode_texts(["a dog"])


def test_a_torch_model_that_is_replaced_is_noticed(clip_folder, tmp_path):
    copy = shutil.copytree(clip_folder, tmp_path / "clip")
    backbone = load_backbone(f"hf:{copy}")
    (copy / "config.json").write_bytes((copy / "config.json").read_bytes() + b"\n")
    with pytest.raises(InputError, match="was changed since the command began"):
        backbone.encode_texts(["a dog"])


def test_kernels_that_a_configuration_names_are_not_loaded(clip_folder, tmp_path, monkeypatch):
    from transformers.integrations import hub_kernels

    asked = []
    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    monkeypatch.setattr(hub_kernels, "get_kernel", lambda *arguments, **options: asked.append(arguments))
    copy = shutil.copytree(clip_folder, tmp_path / "clip")
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    (copy / "config.json").write_text(json.dumps({**config, "attn_implementation": "evil/kernel@main"}), encoding="utf-8")
    with pytest.raises(InputError, match="code of its own"):
        load_backbone(f"hf:{copy}").encode_texts(["a dog"])
    assert asked == []


@pytest.mark.parametrize(
    "name", ["part-a.safetensors", "../model-00001-of-00001.safetensors", "model-00002-of-00002.safetensors"]
)
def test_weights_that_only_an_index_names_are_refused(clip_folder, tmp_path, name):
    copy = shutil.copytree(clip_folder, tmp_path / "clip")
    for target in {"model-00001-of-00001.safetensors", name} - {"model-00002-of-00002.safetensors"}:
        shutil.copy(clip_folder / "model.safetensors", copy / target)
    (copy / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"a": "model-00001-of-00001.safetensors", "b": name}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(InputError, match="none of the model's files of weights"):
        load_backbone(f"hf:{copy}")


def test_a_damaged_checkpoint_is_not_resumed(tmp_path, monkeypatch):
    torch = need("torch")
    from caplens.training.loop import fit
    from caplens.training.loop.fit import RunContext, Schedule

    layer, context = torch.nn.Linear(3, 1), RunContext(tmp_path, "cpu", seed=0, half=False)
    monkeypatch.setattr(fit, "_CHECKPOINT_SECONDS", -1.0)

    def stopped(step, rng):
        if step == 2:
            raise KeyboardInterrupt
        return layer(torch.ones(1, 3)).square().mean()

    with pytest.raises(KeyboardInterrupt):
        fit.fit("x", {"layer": layer}, stopped, Schedule(5, 1e-2, 0.0), context)
    path = tmp_path / "x.checkpoint.pt"
    state = torch.load(path, weights_only=True)
    state["networks"]["layer"]["weight"][0, 0] *= 2
    torch.save(state, path)
    with pytest.raises(CaplensError, match="it is damaged"):
        fit.fit("x", {"layer": layer}, stopped, Schedule(5, 1e-2, 0.0), context)


def test_captions_of_one_image_id_are_of_one_group():
    assert Sample("1", meta={"image_id": 7}).group == Sample("2", meta={"image_id": "7"}).group == "7"
    assert Sample("1", meta={"image_id": ""}).group == "1"
    assert Sample("1", image="a.jpg", meta={"image_id": 7}).group == "a.jpg"


@pytest.mark.parametrize("more", [{"references": {"0": ["a dog runs"]}}, {"images": {"0": Image.new("RGB", (8, 8))}}])
def test_a_data_frame_without_ids_is_not_joined_by_row_numbers(more):
    frame = need("pandas").DataFrame({"caption": ["a dog runs", "a cat sleeps"]})
    with pytest.raises(InputError, match="no column 'id' by which"):
        package.score(frame[1:], ["length"], **more)
    assert len(package.score(frame[1:], ["length"])["length"].values) == 1


def test_ratings_by_several_criteria_are_not_trained_on():
    need("torch")
    from caplens.training.recipes.pairs import RatedCaptions

    ratings = [package.Rating(5, "x", "fluency"), package.Rating(1, "x", "errors")]
    samples = [Sample(str(number), "a dog", image="a.jpg", ratings=ratings) for number in range(2)]
    with pytest.raises(InputError, match="several criteria"):
        RatedCaptions.of(samples)
    twice = [Sample("1", "a dog", image="a.jpg", ratings=[package.Rating(5, "x"), package.Rating(1, "x")])]
    with pytest.raises(InputError, match="two ratings of the rater 'x'"):
        RatedCaptions.of(twice)


def test_one_of_many_raters_who_appears_twice_is_found_at_once():
    ratings = [package.Rating(1, str(number)) for number in range(100_000)]
    with pytest.raises(InputError, match="two ratings of the rater '99999'"):
        ratings_by(Sample("1", ratings=[*ratings, package.Rating(2, "99999")]))


@pytest.mark.parametrize("verifies", [True, False])
def test_a_damaged_page_of_a_store_costs_its_own_vectors_only(tmp_path, verifies):
    store, count = Store(tmp_path / "store"), 600
    vectors = store.model_vectors("a model", "0" * 64)
    keys = [number.to_bytes(16, "big") for number in range(count)]
    vectors.put(keys, np.random.default_rng(0).normal(size=(count, 512)).astype(np.float32), [False] * count)
    vectors.close()
    (about,) = store.models()
    content = bytearray(about.path.read_bytes())
    (size,) = struct.unpack(">H", content[16:18])
    # A page with rows of the table, a tenth into the file.
    page = next(page for page in range(len(content) // size // 10, len(content) // size) if content[page * size] == 13)
    content[page * size : page * size + 512] = b"\xff" * 512
    about.path.write_bytes(content)
    if verifies:
        ((_, kept, broken),) = store.verify()
        assert broken == -1
        assert kept >= count - 10
    after = store.model_vectors("a model", "0" * 64)
    present = after.get(keys).present
    after.close()
    assert count - 10 <= int(present.sum()) < count


@pytest.mark.skipif(not features.check("avif"), reason="needs a Pillow with AVIF")
def test_avif_is_not_opened(tmp_path):
    Image.new("RGB", (64, 64)).save(tmp_path / "a.avif")
    with pytest.raises(UnreadableError, match="convert it to PNG"):
        decode(tmp_path / "a.avif")


ROWS = [b'{"id": "%d", "caption": "a dog"}\n' % number for number in range(3)]


def lines_of(path):
    with Source(path) as source:
        return [line for _, line in source.lines()]


def test_many_streams_of_xz_are_read_in_linear_time(write):
    packed = lzma.compress(ROWS[0]) + lzma.compress(b"") * 60_000 + lzma.compress(ROWS[1])
    assert len(lines_of(write("a.xz", packed))) == 2


@pytest.mark.parametrize("zeros", [0, 4, 65_536, 3 << 20])
def test_what_follows_the_padding_of_xz_is_read(write, zeros):
    packed = lzma.compress(ROWS[0] + ROWS[1]) + bytes(zeros) + lzma.compress(ROWS[2])
    assert len(lines_of(write("a.xz", packed))) == 3
    assert len(lines_of(write("b.xz", lzma.compress(ROWS[0]) + bytes(zeros)))) == 1


@pytest.mark.parametrize("rest", [b"\0", b"\0\0\0\0\0", b"\0" + lzma.compress(b"x")])
def test_damaged_padding_of_xz_is_told(write, rest):
    with pytest.raises(InputError, match="odd bytes after its end"):
        lines_of(write("a.xz", lzma.compress(ROWS[0]) + rest))


def test_names_of_columns_of_scores_may_have_capitals(write, caplens):
    rows = [{"id": str(number), "caption": "a " * (number + 1), "System": "B", "ratings": [number]} for number in range(12)]
    scores = [{"ID": str(number), "score": number / 12, "System": "A"} for number in range(12)]
    said = caplens("agreement", write("own.jsonl", rows), "-m", "length", "--scores", write("scores.jsonl", scores))
    assert said.status == 2
    assert caplens(
        "agreement", write("own.jsonl", rows), "-m", "length",
        "--scores", write("scores.jsonl", [{**row, "System": "B"} for row in scores]),
    ).status == 0  # fmt: skip


def test_times_of_parquet_that_python_has_no_value_for_are_text(tmp_path):
    arrow = need("pyarrow")
    import pyarrow.parquet

    columns = {
        "ns": arrow.array([1], arrow.timestamp("ns")),
        "far": arrow.array([10**17], arrow.timestamp("us")),
        "time": arrow.array([1], arrow.time64("ns")),
        "long": arrow.array([10**15], arrow.duration("s")),
        "plain": arrow.array([datetime(2020, 1, 1)]),
    }
    for name, column in columns.items():
        table = arrow.table({"id": ["1"], "caption": ["a dog"], name: column})
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        (sample,) = SampleFile(tmp_path / "a.parquet")
        assert isinstance(sample.meta[name], datetime if name == "plain" else str | time | datetime)


def test_a_column_of_parquet_that_cannot_be_read_is_told(tmp_path):
    arrow = need("pyarrow")
    import pyarrow.parquet

    column = arrow.StructArray.from_arrays([arrow.array([1]), arrow.array([2])], names=["a", "a"])
    pyarrow.parquet.write_table(arrow.table({"id": ["1"], "caption": ["x"], "pair": column}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the column 'pair' cannot be read"):
        list(SampleFile(tmp_path / "a.parquet"))


def composite(folder):
    for part, count in (("8k", 3), ("30k", 4), ("coco", 4)):
        for kind in ("correctness", "throughness"):
            cells = [*[""] * 27, f"{part}.jpg", *(f"dog {n}" for n in range(count)), *("5" for _ in range(count))]
            lines = [";".join(f"column {place}" for place in range(len(cells))), ";".join(cells)]
            (folder / f"{part}_{kind}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_an_image_of_coco_that_appears_twice_is_told(tmp_path):
    composite(tmp_path)
    images = [{"id": 0, "file_name": "coco_0.jpg"}, {"id": 0, "file_name": "coco_3.jpg"}]
    document = {"images": images, "annotations": [{"image_id": 0, "caption": "a dog"}]}
    (tmp_path / "captions_val2014.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="there is another value for 0 before"):
        get_benchmark("composite").load(tmp_path, "correctness")


@pytest.mark.parametrize("caption", ['"a dog', '"' + "a dog " * 30_000])
def test_an_open_quote_in_a_table_of_composite_is_told(tmp_path, caption):
    composite(tmp_path)
    path = tmp_path / "8k_correctness.csv"
    head, line = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([head, line.replace("dog 0", caption), line, line]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"8k_correctness\.csv, line 2"):
        get_benchmark("composite").load(tmp_path, "correctness")


@pytest.mark.parametrize(
    "value", ['["a dog", "the dog"', "['a' 'b']", "[f'{1}']", "[x] a cat", "['a\0']", "['\\x']", "[" + "f'{1}'" * 200_000 + "]"]
)
def test_a_list_in_a_cell_that_is_none_is_told(tmp_path, value):
    with pytest.raises(InputError, match="not a list"):
        texts(value, tmp_path)


def test_lists_in_cells_are_json_or_python(tmp_path):
    assert texts("""['a dog', "it's", u'x', 'a\\'b',]""", tmp_path) == ("a dog", "it's", "x", "a'b")
    assert texts('["a dog"]', tmp_path) == ("a dog",)
    assert numbers("[1, -2.5, 3e1]", tmp_path) == [1, -2.5, 30]


def test_what_people_put_beside_a_model_stays(model):
    (model / "notes").mkdir()
    (model / "notes" / "a.txt").write_text("x", encoding="utf-8")
    (model / "README.md").write_text("my model", encoding="utf-8")
    with writing_model(model) as temporary:
        (temporary / "model.json").write_text("{}", encoding="utf-8")
    assert sorted(path.name for path in model.iterdir()) == ["README.md", "caplens-manifest.json", "model.json", "notes"]
    assert (model / "notes" / "a.txt").read_text(encoding="utf-8") == "x"
    check_manifest(model)


@pytest.mark.parametrize(
    ("name", "shorter", "same"),
    [
        ("COCO_val2014_000000000042", "42", True),
        ("000000000042", "42", True),
        ("21", "1", False),
        ("101", "1", False),
        ("video_abc", "abc", True),
        ("xabc", "abc", False),
        ("abc", "abc", True),
    ],
)
def test_the_end_of_a_name_is_not_a_name(name, shorter, same):
    assert _is_name_of(name, shorter) is same


def test_a_model_of_ours_without_its_manifest_is_told(model, caplog):
    (model / "caplens-manifest.json").unlink()
    with caplog.at_level("WARNING"):
        check_manifest(model)
    assert "cannot be checked for damage" in caplog.text


def test_what_onnxruntime_prints_is_not_on_standard_output(model, capsys):
    content = bytearray((model / "text.onnx").read_bytes())
    place = content.index(b"MatMul")
    content[place] = 0xD0
    (model / "text.onnx").write_bytes(content)
    (model / "caplens-manifest.json").unlink()
    with pytest.raises(InputError, match="onnxruntime cannot load this file"):
        load_backbone(str(model)).encode_texts(["a dog"])
    assert capsys.readouterr().out == ""
