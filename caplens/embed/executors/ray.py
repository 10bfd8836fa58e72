"""The executor of a cluster: every node, or every GPU, opens the model, and images and texts are sent to whoever is free.

Vectors come back to the machine that asked, into its store, so that all that was encoded is kept whatever happens later. Images
are sent by path: all nodes see the same folders.
"""

import contextlib
import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from caplens.backbones.base import Backbone
from caplens.backbones.load_options import BackboneSpec
from caplens.backbones.registry import load_backbone
from caplens.embed.decode_pool import ImageItem
from caplens.embed.executors.base import EncodedBatch
from caplens.embed.executors.local import LocalExecutor
from caplens.embed.keys import Text
from caplens.errors import CaplensError, InputError, option, reason
from caplens.libraries import require
from caplens.progress import logger

_IMAGES, _TEXTS = 128, 4096
"""Items that are sent together."""
_IN_FLIGHT = 2
"""Portions that an encoder has: one that it works on, and one that waits."""
_MOST_LOSSES = 5
"""How often a portion may be lost with an encoder."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Settings of Ray: nothing is reported to anybody."""
_HERE = "local"
_PATIENCE = 10
"""Seconds until a cluster answers."""


class _Portion(NamedTuple):
    items: list[Any]
    losses: int = 0


class EncoderPlace(NamedTuple):
    """A node, or one of its GPUs."""

    node: str
    gpu: int | None


class RayExecutor:
    """Encodes on the nodes of a Ray cluster.

    Parameters
    ----------
    backbone
        The model; other machines open it by its name.
    address
        Of the cluster: `auto` for the one that this machine belongs to, or `HOST:PORT`; by default, processes of this machine.
    batch_size, workers
        Of each encoder; see `LocalExecutor`.

    Attributes
    ----------
    lost
        How many portions of work were lost with an encoder, and done by another.
    """

    def __init__(
        self, backbone: Backbone, address: str | None = None, batch_size: int | None = None, workers: int | None = None
    ) -> None:
        if backbone.spec is None:
            raise InputError("a cluster opens a model by its name; a model that is a Python object cannot be sent to it.")
        self._backbone, self._spec, self._address = backbone, backbone.spec, address
        self._batch_size, self._workers = batch_size, workers
        self._encoders: dict[EncoderPlace, Any] = {}
        self.lost = 0

    def encode_images(self, items: Iterable[ImageItem], expected: int) -> Iterator[EncodedBatch]:
        return self._spread("images", _portions(items, _IMAGES))

    def encode_texts(self, texts: Mapping[bytes, Text]) -> Iterator[EncodedBatch]:
        return self._spread("texts", _portions(texts.items(), _TEXTS))

    def close(self) -> None:
        for encoder in self._encoders.values():
            ray_library().kill(encoder)
        self._encoders = {}

    def _spread(self, kind: str, portions: Iterator[_Portion]) -> Iterator[EncodedBatch]:
        """Send portions to encoders, and yield what comes back; a portion whose encoder is lost goes to another."""
        waiting: deque[_Portion] = deque(islice(portions, 1))
        if not waiting:
            return
        ray = ray_library()
        self._open(ray)
        running: dict[Any, tuple[EncoderPlace, _Portion]] = {}
        while True:
            for place in self._free(place for place, _ in running.values()):
                waiting.extend(islice(portions, 0 if waiting else 1))
                if waiting:
                    portion = waiting.popleft()
                    running[getattr(self._encoders[place], kind).remote(portion.items)] = place, portion
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            place, portion = running.pop(done)
            try:
                batches = ray.get(done)
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                waiting.append(self._lost(place, portion, error))
                self._open(ray)
            except ray.exceptions.RayTaskError as error:
                raise cause_of(error) from None
            else:
                yield from batches

    def _free(self, busy: Iterable[EncoderPlace]) -> list[EncoderPlace]:
        """The place of each portion that can be sent, those with the least to do first."""
        load = Counter(busy)
        return [place for depth in range(_IN_FLIGHT) for place in self._encoders if load[place] <= depth]

    def _lost(self, place: EncoderPlace, portion: _Portion, error: Exception) -> _Portion:
        self._encoders.pop(place, None)
        self.lost += 1
        logger.warning(f"an encoder of the cluster is lost, and its work goes to another ({reason(error)})")
        if portion.losses >= _MOST_LOSSES:
            raise CaplensError(f"{portion.losses + 1} encoders were lost with the same work. Look at the logs of the cluster.")
        return portion._replace(losses=portion.losses + 1)

    def _open(self, ray: Any) -> None:
        """Open the model at each place that has no encoder."""
        connect(ray, self._address)
        for place in places_of(ray):
            if place not in self._encoders:
                affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place.node, soft=False)
                encoder = ray.remote(_Encoder).options(
                    num_cpus=0, num_gpus=0 if place.gpu is None else 1, scheduling_strategy=affinity
                )
                fingerprint = self._backbone.fingerprint
                self._encoders[place] = encoder.remote(self._spec, fingerprint, self._batch_size, self._workers, str(Path.cwd()))
        if not self._encoders:
            raise CaplensError("no node of the cluster is left.")


class _Encoder:
    """What encodes on a node. The model is opened with the first portion, so that its errors are those of the work."""

    def __init__(self, spec: BackboneSpec, fingerprint: str, batch_size: int | None, workers: int | None, folder: str) -> None:
        # Relative paths of images mean what they mean to the caller.
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._spec, self._fingerprint = spec, fingerprint
        self._batch_size, self._workers = batch_size, workers
        self._executor: LocalExecutor | None = None

    def images(self, items: list[ImageItem]) -> list[EncodedBatch]:
        return list(self._opened().encode_images(items, len(items)))

    def texts(self, items: list[tuple[bytes, Text]]) -> list[EncodedBatch]:
        return list(self._opened().encode_texts(dict(items)))

    def _opened(self) -> LocalExecutor:
        if self._executor is None:
            backbone = load_backbone(*self._spec)
            if backbone.fingerprint != self._fingerprint:
                raise InputError(f"{self._spec.name}: a node of the cluster has another version of this model.")
            self._executor = LocalExecutor(backbone, self._batch_size, self._workers)
        return self._executor


def _portions(items: Iterable[Any], size: int) -> Iterator[_Portion]:
    remaining = iter(items)
    return map(_Portion, iter(lambda: list(islice(remaining, size)), []))


def ray_library() -> Any:
    """Ray, with its settings."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    library = require("ray", "Encoding on a cluster", "ray")
    require("ray.util.scheduling_strategies", "Encoding on a cluster", "ray")
    return library


def cause_of(error: Any) -> Exception:
    """What went wrong in a process of the cluster: our own error, or Ray's about another."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, CaplensError) else error


def connect(ray: Any, address: str | None) -> None:
    """Join the cluster at an address, or start one of this machine; nothing to do where that was done."""
    if ray.is_initialized():
        return
    started: dict[str, Any] = {"include_dashboard": False} if address in (None, _HERE) else {}
    try:
        if address not in (None, _HERE, "auto"):
            # Ray itself would wait for a minute, and then end the program.
            _check_reachable(str(address))
        # Ray lets its workers import from the current folder, which may be a stranger's.
        with contextlib.chdir(sys.prefix):
            ray.init(address or _HERE, log_to_driver=False, configure_logging=False, **started)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            f"there is no Ray cluster at {address!r} ({reason(error)}). Start one, and name its address with"
            f" {option('ray_address')}."
        ) from None


def _check_reachable(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    socket.create_connection((host, int(port)), _PATIENCE).close()


def places_of(ray: Any) -> list[EncoderPlace]:
    """Every GPU of the cluster; where there are none, every node."""
    nodes = [(node["NodeID"], node["Resources"]) for node in ray.nodes() if node["Alive"]]
    gpus = [EncoderPlace(name, gpu) for name, resources in nodes for gpu in range(int(resources.get("GPU", 0)))]
    return gpus or [EncoderPlace(name, None) for name, resources in nodes if resources.get("CPU", 0)]
