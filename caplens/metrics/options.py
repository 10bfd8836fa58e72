"""`ScoringOptions`: everything that changes how captions are scored, with every default, in one place.

The API, the command line, the adapters and the registry all build metrics from it, with `Metric.from_options`.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TypedDict, Unpack, cast

from caplens.backbones.base import Backbone
from caplens.backbones.load_options import LoadOptions
from caplens.backbones.mini import DEFAULT
from caplens.data.languages import base_language
from caplens.embed import Engine, Store, open_engine
from caplens.embed.engine import Overlong
from caplens.embed.executors import ExecutorName, open_executor
from caplens.embed.videos import DEFAULT_FRAMES, FrameChoice, check_choice
from caplens.errors import InputError
from caplens.metrics.document_frequency import DocumentFrequency
from caplens.metrics.pair_statistics import PairStatistics, Shrinkage, parsed_shrinkage
from caplens.metrics.prompts import Prompt
from caplens.text.tokenizer import TokenizerChoice

ModelChoice = str | Backbone | Engine
CIDER_SHARE = 0.5
"""Of CIDEr in clip+cider: the mean of both."""


_TYPES: dict[str, tuple[type, ...]] = {
    "tokenizer": (str, Callable),  # type: ignore[dict-item]
    "lang": (str,),
    "weight": (int, float),
    "cider_share": (int, float),
    "overlong": (str,),
    "device": (str,),
    "dtype": (str,),
    "batch_size": (int,),
    "workers": (int,),
    "store": (Store, str, PathLike),
    "mid": (PairStatistics, str, PathLike),
    "frames": (int,),
    "fps": (int, float),
    "idf": (str, PathLike),
    "qe_model": (str,),
    "executor": (str,),
    "ray_address": (str,),
}
"""Option -> what its value may be, beside None."""


@dataclass(frozen=True)
class ScoringOptions:
    """How captions are scored.

    Parameters
    ----------
    lang
        The language of captions that name none (BCP-47).
    tokenizer
        The tokenizer for all captions, or a function from a language to a `Tokenizer`; by default, one for each language.
    df
        Where CIDEr takes document frequencies from: a file of references or of `caplens count-df`. By default, the references of
        the captions being scored.
    model
        What encodes images and texts: a name, a `Backbone` or an `Engine`. By default, caplens-mini.
    prompt
        The text before captions: one for all, or language -> text. By default, the metric's own.
    weight
        CLIPScore's w. By default, the metric's or the model's own.
    cider_share
        The share of CIDEr in clip+cider and refclip+cider, between 0 and 1; the rest is CLIPScore's.
    overlong
        What happens to texts that are longer than the model takes: `truncate` them, or `split` them into sentences.
    device, dtype, offline, trust_remote_code
        How the model is loaded; see `LoadOptions`.
    batch_size, workers
        Images or texts encoded together, and threads or processes that decode images.
    store, keep_store
        The folder that vectors are kept in, by default the user's cache; False to keep none.
    mid
        The pairs that MID is fitted on: a file of `caplens mid fit`, or what `caplens.fit_mid` returns. By default, the images
        and references of the captions being scored.
    shrinkage
        What is added to the variances of MID's Gaussians, or `ledoit-wolf`.
    frames, fps
        The frames of a video that are looked at: so many, evenly spaced, or so many per second.
    idf
        The captions by which EMScore knows rare words: a file, or `none`. By default the references, else the captions.
    qe_model
        The folder of the model of COMETKiwi, XCOMET or MetricX.
    executor, ray_address
        What encodes images and texts: this machine (`local`), or the nodes of a Ray cluster (`ray`) at an address.
    """

    lang: str | None = None
    tokenizer: TokenizerChoice | None = None
    df: str | PathLike[str] | DocumentFrequency | None = None
    model: ModelChoice | None = None
    prompt: Prompt | None = None
    weight: float | None = None
    cider_share: float = CIDER_SHARE
    overlong: Overlong = "truncate"
    device: str = "auto"
    dtype: str = "fp32"
    offline: bool = False
    trust_remote_code: bool = False
    batch_size: int | None = None
    workers: int | None = None
    store: Store | str | PathLike[str] | None = None
    keep_store: bool = True
    mid: str | PathLike[str] | PairStatistics | None = None
    shrinkage: Shrinkage = 0.0
    frames: int = DEFAULT_FRAMES
    fps: float | None = None
    idf: str | PathLike[str] | None = None
    qe_model: str | None = None
    executor: ExecutorName = "local"
    ray_address: str | None = None

    def __post_init__(self) -> None:
        for name, types in _TYPES.items():
            value = getattr(self, name)
            if value is not None and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
                raise InputError(f"the option {name!r} is {' or '.join(kind.__name__ for kind in types)}, not {value!r}.")
        base_language(self.lang or "en")
        if self.model is not None and not isinstance(self.model, str | Backbone | Engine):
            raise InputError(f"a model is a name, a Backbone or an Engine, not {self.model!r}.")
        if self.weight is not None and not 0 < self.weight < math.inf:
            raise InputError(f"the weight must be above 0 and finite, not {self.weight}.")
        if not 0 <= self.cider_share <= 1:
            raise InputError(f"the share of CIDEr is between 0 and 1, not {self.cider_share}.")
        object.__setattr__(self, "shrinkage", parsed_shrinkage(self.shrinkage))
        self.frame_choice()

    @staticmethod
    def of(options: "ScoringOptions | None" = None, **keywords: Unpack["ScoringKeywords"]) -> "ScoringOptions":
        """`options`, or the defaults, with single fields changed."""
        if "long" in keywords:
            warnings.warn("'long' is the old name of 'overlong' ('truncate' or 'split').", FutureWarning, stacklevel=3)
            long = cast(dict[str, str], keywords).pop("long")
            keywords["overlong"] = cast(Overlong, "truncate" if long == "cut" else long)
        names = [field.name for field in fields(ScoringOptions)]
        unknown = next((name for name in keywords if name not in names), None)
        if unknown is not None:
            raise InputError(
                f"there is no option {unknown!r}; choose from: {', '.join(sorted(names))}. A model is given as"
                " model='hf:ORG/NAME'."
            )
        if options is not None and not isinstance(options, ScoringOptions):
            raise InputError(
                f"options are a ScoringOptions, not {options!r}; pass single options by name, as in tokenizer='13a'."
            )
        return replace(options or ScoringOptions(), **keywords)

    def engine(self) -> Engine:
        """The engine of the model."""
        if isinstance(self.model, Engine):
            return self.model
        if isinstance(self.model, Backbone):
            store = self.store if isinstance(self.store, Store) else None if self.store is None else Store(self.store)
            executor = open_executor(self.executor, self.model, self.ray_address, self.batch_size, self.workers)
            sizes = {"batch_size": self.batch_size, "workers": self.workers}
            return Engine(self.model, store, **sizes, overlong=self.overlong, executor=executor)
        return open_engine(
            DEFAULT if self.model is None else self.model,
            store=self.store,
            keep_store=self.keep_store,
            load=self.load_options(),
            batch_size=self.batch_size,
            workers=self.workers,
            overlong=self.overlong,
            executor=self.executor,
            ray_address=self.ray_address,
        )

    def load_options(self) -> LoadOptions:
        return LoadOptions(self.device, self.dtype, self.offline, self.trust_remote_code)

    def frame_choice(self) -> FrameChoice:
        return check_choice(self.frames, self.fps)

    def pair_statistics(self) -> PairStatistics | None:
        if self.mid is None or isinstance(self.mid, PairStatistics):
            return self.mid
        backbone = self.engine().backbone
        return PairStatistics.load(self.mid, backbone.dim, backbone.name)

    def document_frequency(self) -> DocumentFrequency | None:
        if self.df is None or isinstance(self.df, DocumentFrequency):
            return self.df
        return DocumentFrequency.load(self.df, self.tokenizer, self.lang)


class ScoringKeywords(TypedDict, total=False):
    """The fields of `ScoringOptions`, as keywords of functions."""

    lang: str | None
    tokenizer: TokenizerChoice | None
    df: str | PathLike[str] | DocumentFrequency | None
    model: ModelChoice | None
    prompt: Prompt | None
    weight: float | None
    cider_share: float
    overlong: Overlong
    device: str
    dtype: str
    offline: bool
    trust_remote_code: bool
    batch_size: int | None
    workers: int | None
    store: Store | str | PathLike[str] | None
    keep_store: bool
    mid: str | PathLike[str] | PairStatistics | None
    shrinkage: Shrinkage
    frames: int
    fps: float | None
    idf: str | PathLike[str] | None
    qe_model: str | None
    executor: ExecutorName
    ray_address: str | None
