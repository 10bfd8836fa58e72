"""A hash of what was scored, by which a report notices that the files have changed since."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from caplens.data.sample import Sample

CAPTIONS, REFERENCES = "captions", "references"
_TOGETHER = 2048


class ContentHash:
    """Hashes of captions and of references, taken in as they are scored."""

    def __init__(self, samples: Sequence[Sample] = ()) -> None:
        self._digests = {name: hashlib.sha256() for name in (CAPTIONS, REFERENCES)}
        for start in range(0, len(samples), _TOGETHER):
            self.add(samples[start : start + _TOGETHER])

    def add(self, samples: Sequence[Sample]) -> None:
        # Lengths keep two texts apart from one that holds both.
        captions = [
            f"3:{len(name)}:{name}{len(lang)}:{lang}{len(caption)}:{caption}"
            for name, lang, caption in ((sample.id, sample.lang or "", sample.caption or "") for sample in samples)
        ]
        references = [
            f"{len(parts)}:" + "".join([f"{len(part)}:{part}" for part in parts])
            for parts in ((sample.id, *sample.references) for sample in samples)
        ]
        for name, contents in ((CAPTIONS, captions), (REFERENCES, references)):
            self._digests[name].update("".join(contents).encode("utf-8", "surrogatepass"))

    def hashes(self) -> dict[str, str]:
        return {name: digest.hexdigest()[:16] for name, digest in self._digests.items()}


def captions_hash(samples: Iterable[Sample]) -> str:
    """A hash of captions, however often and in whatever order they are there."""
    captions = sorted({sample.caption or "" for sample in samples})
    return hashlib.sha256(json.dumps(captions).encode()).hexdigest()[:16]


def changes(scored: Mapping[str, str], samples: Iterable[Sample]) -> list[str]:
    """What of the samples is not what was scored: captions, references. Results of caplens 0.1 have no hashes."""
    listed = list(samples)
    now = ContentHash(listed).hashes()
    looked_at = [CAPTIONS, *([REFERENCES] if any(sample.references for sample in listed) else [])]
    return [name for name in looked_at if name in scored and scored[name] != now[name]]
