"""Encoders that each own a part of all keys: whoever needs a vector asks its owner, so that a cluster encodes nothing twice.

An owner keeps vectors on the disk of its node. One that is lost is started again by Ray, on another node if need be, and encodes
again what it is asked for.
"""

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from caplens.backbones.load_options import BackboneSpec
from caplens.backbones.registry import load_backbone
from caplens.data.extracted import is_extracted
from caplens.embed.decode_pool import ImageItem
from caplens.embed.executors.base import EncodedBatch
from caplens.embed.executors.local import LocalExecutor
from caplens.embed.executors.ray import EncoderPlace, cause_of, connect, places_of, ray_library
from caplens.embed.keys import Text
from caplens.embed.store import Store
from caplens.embed.vector_file import ModelVectors
from caplens.embed.vector_shards import export_vectors
from caplens.errors import InputError

_IMAGES, _TEXTS = 64, 2048
"""Items that are asked for together."""
_IN_FLIGHT = 2
"""Questions to each owner that wait for an answer."""


class OwnersExecutor:
    """Asks owners for vectors.

    Parameters
    ----------
    owners
        What `start_owners` returned.
    """

    def __init__(self, owners: Sequence[Any]) -> None:
        self._owners = owners

    def encode_images(self, items: Iterable[ImageItem], expected: int) -> Iterator[EncodedBatch]:
        return self._ask("images", map(_sendable, items), _IMAGES)

    def encode_texts(self, texts: Mapping[bytes, Text]) -> Iterator[EncodedBatch]:
        return self._ask("texts", texts.items(), _TEXTS)

    def close(self) -> None:
        """Nothing to do: owners serve others."""

    def _ask(self, kind: str, items: Iterable[tuple[bytes, Any]], size: int) -> Iterator[EncodedBatch]:
        ray = ray_library()
        waiting: list[list[tuple[bytes, Any]]] = [[] for _ in self._owners]
        asked: deque[Any] = deque()

        def answer() -> EncodedBatch:
            try:
                batch: EncodedBatch = ray.get(asked.popleft())
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            return batch

        def ask(owner: int) -> None:
            asked.append(getattr(self._owners[owner], kind).remote(waiting[owner]))
            waiting[owner] = []

        for key, item in items:
            owner = owner_of(key, len(self._owners))
            waiting[owner].append((key, item))
            if len(waiting[owner]) == size:
                ask(owner)
            while len(asked) > _IN_FLIGHT * len(self._owners):
                yield answer()
        for owner, remaining in enumerate(waiting):
            if remaining:
                ask(owner)
        while asked:
            yield answer()


def owner_of(key: bytes, owners: int) -> int:
    """The first byte of a key is its kind, the second the first of its hash."""
    return int.from_bytes(key[1:3], "big") % owners


def start_owners(
    spec: BackboneSpec, fingerprint: str, address: str | None, batch_size: int | None, workers: int | None, store: Path | None
) -> list[Any]:
    """An owner for each GPU of the cluster; where there are none, for each node.

    Parameters
    ----------
    spec, fingerprint
        The model.
    address
        Of the cluster.
    batch_size, workers
        Of each owner; see `LocalExecutor`.
    store
        A folder on the own disk of each node in which vectors are kept after the job; by default they are not.
    """
    ray = ray_library()
    connect(ray, address)
    return [
        ray.remote(_Owner)
        .options(
            num_cpus=0,
            num_gpus=0 if place.gpu is None else 1,
            max_restarts=-1,
            max_task_retries=-1,
            scheduling_strategy=_preferring(ray, place),
        )
        .remote(spec, fingerprint, batch_size, workers, store, str(Path.cwd()), number)
        for number, place in enumerate(places_of(ray))
    ]


def _preferring(ray: Any, place: EncoderPlace) -> Any:
    """The node of a place as long as it is there, else any."""
    return ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place.node, soft=True)


def _sendable(item: ImageItem) -> ImageItem:
    """An image that only this process has as a file is sent as its content."""
    key, image = item
    if not is_extracted(image):
        return item
    return key, Path(str(image)).read_bytes()


class _Owner:
    """Encodes what it does not have yet, and keeps it."""

    def __init__(
        self,
        spec: BackboneSpec,
        fingerprint: str,
        batch_size: int | None,
        workers: int | None,
        store: Path | None,
        folder: str,
        number: int,
    ) -> None:
        # Relative paths of images mean what they mean to the caller.
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._spec, self._fingerprint = spec, fingerprint
        self._batch_size, self._workers = batch_size, workers
        self._store = Store.temporary() if store is None else Store(store / f"owner-{number}")
        self._number = number
        self._executor: LocalExecutor | None = None
        self._vectors: ModelVectors | None = None

    def images(self, items: list[ImageItem]) -> EncodedBatch:
        return self._answer(dict(items), lambda executor, missing: executor.encode_images(missing.items(), len(missing)))

    def texts(self, items: list[tuple[bytes, Text]]) -> EncodedBatch:
        return self._answer(dict(items), lambda executor, missing: executor.encode_texts(missing))

    def _answer(self, items: dict[bytes, Any], encode: Any) -> EncodedBatch:
        executor, vectors = self._opened()
        asked = list(items)
        stored = vectors.get(asked)
        keys = [key for key, present in zip(asked, stored.present, strict=True) if present]
        parts, flags = [stored.vectors[stored.present]] if keys else [], stored.flags[stored.present].tolist()
        errors: dict[bytes, str] = {}
        missing = {key: items[key] for key, present in zip(asked, stored.present, strict=True) if not present}
        for batch in encode(executor, missing) if missing else ():
            errors |= batch.errors
            if batch.keys:
                vectors.put(batch.keys, batch.vectors, batch.flags)
                keys += batch.keys
                flags += batch.flags
                parts.append(batch.vectors)
        return EncodedBatch(keys, np.concatenate(parts) if parts else stored.vectors, flags, errors)

    def _opened(self) -> tuple[LocalExecutor, ModelVectors]:
        if self._executor is None or self._vectors is None:
            backbone = load_backbone(*self._spec)
            if backbone.fingerprint != self._fingerprint:
                raise InputError(f"{self._spec.name}: a node of the cluster has another version of this model.")
            self._executor = LocalExecutor(backbone, self._batch_size, self._workers)
            self._vectors = self._store.model_vectors(backbone.name, backbone.fingerprint)
        return self._executor, self._vectors

    def shards(self) -> dict[str, bytes]:
        """What this owner keeps, as files of `caplens store export`."""
        files = {}
        for about in self._store.models():
            folder = Store.temporary()
            folder.folder.mkdir(exist_ok=True)
            export_vectors(self._store, about, folder.folder)
            for path in sorted(folder.folder.glob("*/*.parquet")):
                files[f"{path.parent.name}/{path.stem}-{self._number}.parquet"] = path.read_bytes()
        return files
