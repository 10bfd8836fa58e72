"""Winoground: two images and two captions with the same words in a different order (Thrush et al. 2022).

Text score: each image scores higher with its own caption. Image score: each caption scores higher with its own image. Group
score: both.
"""

from pathlib import Path

from caplens.benchmarks.base import count_warning
from caplens.benchmarks.preference import PreferenceBenchmark, PreferenceData, Trial
from caplens.data.records import field, find_file, read_records
from caplens.data.sample import Sample

_WHERE = "It is in the data set facebook/winoground of the Hugging Face hub (data/examples.jsonl, data/images.zip)."


class Winoground(PreferenceBenchmark):
    name = "winoground"
    summary = "400 examples of two images and two captions with the same words"
    protocols = {"scores": "text, image and group score (what papers report)"}
    folder, marker = "winoground", "examples.jsonl"

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        samples: list[Sample] = []
        trials: list[Trial] = []
        for place, record in read_records(find_file(data, [self.marker], "the examples file", _WHERE)):
            key = str(field(record, ["id"], place))
            first = len(samples)
            for image in (0, 1):
                for caption in (0, 1):
                    text, photo = (
                        str(field(record, [f"{kind}_{number}"], place))
                        for kind, number in (("caption", caption), ("image", image))
                    )
                    photo = photo if photo.endswith((".png", ".jpg")) else f"{photo}.png"
                    samples.append(Sample(f"{key} {image}{caption}", text, image=photo, lang="en"))
            image0_caption0, image0_caption1, image1_caption0, image1_caption1 = ((first + offset,) for offset in range(4))
            by_text = ((image0_caption0, image0_caption1), (image1_caption1, image1_caption0))
            by_image = ((image0_caption0, image1_caption0), (image1_caption1, image0_caption1))
            trials += [Trial("text", key, by_text), Trial("image", key, by_image), Trial("group", key, by_text + by_image)]
        return PreferenceData(samples, trials, warnings=count_warning(len(samples) // 4, 400, "examples"))
