"""A benchmark: pairs of captions of which people preferred one, in `pairs.jsonl` with image, better and worse."""

from pathlib import Path

from caplens.benchmarks import PreferenceBenchmark, PreferenceData, Trial
from caplens.benchmarks.preference import prefer
from caplens.data import Sample
from caplens.data.records import field, find_file, read_records, text


class BetterCaptions(PreferenceBenchmark):
    name = "better-captions"
    summary = "pairs of captions, of which people preferred one"
    protocols = {"preferred": "the preferred caption scores higher"}
    folder, marker = "better-captions", "pairs.jsonl"

    def load(self, data: Path, protocol: str, lang: str = "en") -> PreferenceData:
        path = find_file(data, [self.marker], "the file of pairs", "It is made in a minute by hand.")
        samples: list[Sample] = []
        trials: list[Trial] = []
        for place, record in read_records(path):
            image = str(field(record, ["image"], place))
            trials.append(prefer("accuracy", image, len(samples), len(samples) + 1))
            for side in ("better", "worse"):
                caption = text(field(record, [side], place), place)
                samples.append(Sample(f"{place.number} {side}", caption, image=image, lang=lang))
        return PreferenceData(samples, trials)
