"""A few records of every benchmark in its original layout: benchmark -> file -> content."""

import json


def _json(content: object) -> bytes:
    return json.dumps(content).encode()


def _lines(rows: list[dict]) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


_TABLE = b'imgid,mt,refs,score\n1.jpg,a dog,[\'a dog\'],1\n1.jpg,a dog runs,"[""a dog""]",3\n2.jpg,two men,[],2\n'
_XVNLI = [
    {"gold_label": label, "sentence1": "a dog", "sentence2": text, "Flikr30kID": "11", "pairID": label}
    for label, text in (("entailment", "a b c"), ("neutral", "a b"), ("contradiction", "a"))
]
_MARVL = [
    {
        "concept": "39-P",
        "caption": "dua",
        "left_img": "a.jpg",
        "right_img": "b.jpg",
        "id": f"id-{number}",
        "label": number % 2 == 0,
    }
    for number in range(4)
]
_FOIL = {
    "images": [{"id": 1, "file_name": "COCO_val2014_000000000001.jpg"}],
    "annotations": [
        {"id": 7, "image_id": 1, "caption": "a dog", "foil": False, "foil_word": "ORIG"},
        {"id": 7, "image_id": 1, "caption": "a cat", "foil": True, "foil_word": "cat"},
    ],
}
_VALSE = {"a": {"caption": "two dogs", "foil": "a dog", "image_file": "1.jpg", "mturk": {"caption": 3, "foil": 0, "other": 0}}}
_PARAGRAPH = [{"sentence": "a man runs", "timestamp": [0, 1]}]

LAYOUTS: dict[str, dict[str, bytes]] = {
    "polaris": {"polaris_test.csv": _TABLE},
    "nebula": {"nebula_test.csv": _TABLE.replace(b"mt", b"cand")},
    "vicr": {
        "vicr_test.json": _json(
            [{"image": "1.jpg", "caption": "a dog", "ratings": [1, 2]}, {"image": "2.jpg", "caption": "a", "ratings": [4]}]
        )
    },
    "capeval1k": {"capeval1k.csv": _TABLE.replace(b"imgid,mt,refs", b"image,caption,references")},
    "thumb": {
        "mscoco_THumB-1.0.jsonl": _lines(
            [
                {"seg_id": 1, "image": "1.jpg", "hyp": "a dog", "human_score": 2.0},
                {"seg_id": 2, "image": "2.jpg", "hyp": "men", "human_score": 3},
            ]
        ),
        "mscoco_references.json": _lines([{"seg_id": 1, "refs": ["a brown dog"]}, {"seg_id": 2, "refs": ["men talking"]}]),
    },
    "pascal-50s": {
        "pascal_50s.json": _json({"HC": [{"image": "1.jpg", "captions": ["a", "b c"], "label": 1, "references": ["c"]}]})
    },
    "foil": {
        "foilv1.0_test_2017.json": _json(_FOIL),
        "captions_val2014.json": _json(
            {"annotations": [{"image_id": 1, "caption": "a dog on a sofa"}, {"image_id": 1, "caption": "the dog"}]}
        ),
    },
    "valse": {"existence.json": _json(_VALSE), "plurals.json": _json(_VALSE)},
    "sugarcrepe": {
        f"{part}.json": _json({"0": {"filename": "1.jpg", "caption": "a dog", "negative_caption": "a red dog"}})
        for part in ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
    },
    "winoground": {
        "examples.jsonl": _lines(
            [{"id": 0, "image_0": "a", "image_1": "b", "caption_0": "a dog bites a man", "caption_1": "a man bites a dog"}]
        )
    },
    "xvnli": {"en.test.jsonl": _lines(_XVNLI)},
    "marvl": {"marvl-id.jsonl": _lines(_MARVL)},
    "vatex-eval": {
        "candidates_list.json": _json(["a", "a b", "a b c"]),
        "gts_list.json": _json([[f"reference {number}" for number in range(10)]] * 3),
        "video_ids.json": _json(["v1", "v2", "v3"]),
        "human_scores.json": _json([[1, 2, 3], [1, 2, 3], [3, 2, 1]]),
    },
    "activitynet-foil": {
        "final_right_video_sentences.json": _json({"results": {"v1": _PARAGRAPH, "v2": _PARAGRAPH}}),
        "final_foil_video_sentences.json": _json({"results": {"v1": _PARAGRAPH, "v2": _PARAGRAPH}}),
        "anet_entities_test_1.json": _json({"v1": {"timestamps": [[0, 9]]}, "v2": {"timestamps": [[0, 5]]}}),
        "anet_entities_test_2.json": _json({"v1": {"sentences": ["at the start"], "timestamps": [[0, 9]]}}),
    },
    "flickr8k-expert": {
        "Flickr8k.token.txt": b"".join(
            f"{photo}.jpg#{number}\ta dog {photo} {number}\n".encode() for photo in "xyz" for number in range(5)
        ),
        "ExpertAnnotations.txt": b"x.jpg\ty.jpg#0\t1\t2\t2\nx.jpg\tx.jpg#0\t4\t4\t4\ny.jpg\tz.jpg#1\t1\t1\t4\n",
    },
    "flickr8k-cf": {
        "Flickr8k.token.txt": b"".join(
            f"{photo}.jpg#{number}\ta dog {photo} {number}\n".encode() for photo in "xyz" for number in range(5)
        ),
        "CrowdFlowerAnnotations.txt": b"x.jpg\ty.jpg#0\t0\t0\t3\nx.jpg\tx.jpg#0\t0.5\t2\t2\n",
    },
}
"""Benchmarks whose files are mutated one at a time."""
CROSSMODAL = {
    "captions.jsonl": _lines(
        [
            {"image/key": "k1", "image/locale": "de", "en": {"caption": ["a dog", "the dog"]}, "de": {"caption": ["ein Hund"]}},
            {"image/key": "k2", "image/locale": "en", "en": {"caption": ["two men talk"]}, "de": {"caption": ["zwei"]}},
        ]
    )
}
