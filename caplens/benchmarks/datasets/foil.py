"""FOIL: COCO captions, and copies with one wrong word (Shekhar et al. 2017). The correct caption should score higher."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from caplens.benchmarks.base import Published
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial, prefer
from caplens.data.records import add_once, find_file, read_json
from caplens.data.sample import Sample
from caplens.errors import InputError

_WHERE = "foilv1.0_test_2017.json comes from the authors of FOIL, captions_val2014.json from COCO."
_KARPATHY = "dataset_coco.json"
_KARPATHY_WHERE = (
    "It is the split of COCO by Karpathy and Fei-Fei (caption_datasets.zip); PAC-S was trained on its training part."
)
_SUBSET = "-8k"
"""What the names of protocols end with that leave out images of COCO's training part."""
_HELD_OUT = ("val", "test")
_FOUR_REFS = {"bleu1": 85.4, "bleu4": 87.0, "rouge-l": 70.4, "meteor": 82.0, "cider": 94.1, "refclipscore": 92.6, "refpacs": 94.9}
_ONE_REF = {"bleu1": 65.7, "bleu4": 66.2, "rouge-l": 54.6, "meteor": 70.1, "cider": 85.7, "refclipscore": 91.0, "refpacs": 93.7}
_NO_REFS = {"clipscore": 87.2, "pacs": 89.9, "mid": 90.5}
_SOURCE = "Sarto et al. 2023 (PAC-S), table 6; CLIP scores there are with ViT-B/32"


class Foil(PreferenceBenchmark):
    name = "foil"
    summary = "COCO captions against copies with one wrong word"
    protocols = {
        "4-refs": "four of the image's other captions are the references",
        "1-ref": "the first of the image's other captions is the reference",
        "4-refs-8k": "four references; images of COCO's validation and test parts (what PAC-S reports)",
        "1-ref-8k": "one reference, the same images",
    }
    folder, marker = "foil", "foilv1.0_test_2017.json"
    image_folders = ("val2014", "images")
    published = (
        Published(_SOURCE, "4-refs-8k", {"accuracy": _FOUR_REFS | _NO_REFS}),
        Published(_SOURCE, "1-ref-8k", {"accuracy": _ONE_REF | _NO_REFS}),
    )

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        path, coco_path = (find_file(data, [name], f"the file {name}", _WHERE) for name in (self.marker, "captions_val2014.json"))
        held_out = _held_out_images(data) if protocol.endswith(_SUBSET) else None
        samples: list[Sample] = []
        trials: list[Trial] = []
        try:
            captions: dict[int, list[str]] = {}
            for annotation in read_json(coco_path)["annotations"]:
                captions.setdefault(annotation["image_id"], []).append(annotation["caption"])
            for foil in _read_foils(path):
                if held_out is not None and foil.image_id not in held_out:
                    continue
                other_captions = [text for text in captions.get(foil.image_id, []) if text.strip() != foil.right.strip()]
                references = tuple(other_captions[: 1 if protocol.startswith("1-ref") else 4])
                trials.append(prefer("accuracy", foil.photo, len(samples), len(samples) + 1))
                samples += [
                    Sample(f"{foil.key} {kind}", text, references, image=foil.photo, lang="en")
                    for kind, text in (("right", foil.right), ("foil", foil.wrong))
                ]
        except KeyError as error:
            raise InputError(f"{path}: this file or {coco_path.name} is not as expected; the key {error} is missing.") from None
        return PreferenceData(samples, trials)


class _FoilPair(NamedTuple):
    key: str
    image_id: int
    photo: str
    right: str
    wrong: str


def _read_foils(path: Path) -> Iterator[_FoilPair]:
    """Each wrong caption with the right one of the same id."""
    document = read_json(path)
    images: dict[int, str] = {}
    for image in document["images"]:
        add_once(images, image["id"], image["file_name"], path)
    right: dict[int, str] = {}
    wrong: dict[int, list[tuple[int, str]]] = {}
    for annotation in document["annotations"]:
        if annotation["foil"]:
            wrong.setdefault(annotation["id"], []).append((annotation["image_id"], annotation["caption"]))
        else:
            add_once(right, annotation["id"], annotation["caption"], path)
    for key, foils in wrong.items():
        for number, (image_id, caption) in enumerate(foils):
            yield _FoilPair(f"{key} {number}", image_id, images[image_id], right[key], caption)


def _held_out_images(data: Path) -> set[int]:
    """The ids of the images that are not in COCO's training part, by Karpathy's split."""
    path = find_file(data, [_KARPATHY], f"the file {_KARPATHY}", _KARPATHY_WHERE)
    return {int(image["cocoid"]) for image in read_json(path)["images"] if image["split"] in _HELD_OUT}
