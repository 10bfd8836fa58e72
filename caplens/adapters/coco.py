"""`compute_score(gts, res)`, as scorers of the COCO caption evaluation (pycocoevalcap) have it.

In code written for that, change the imports to `from caplens.adapters.coco import Bleu, Cider, COCOEvalCap, PTBTokenizer, Rouge`.
Like there, `gts` and `res` are {id: [text, …]} that `PTBTokenizer` has made; scores are in the order of `gts`. No Java is needed,
but for METEOR.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from caplens.arrays import Floats
from caplens.errors import InputError
from caplens.metrics import get_metric
from caplens.metrics.java import JavaMetric
from caplens.metrics.lexical import LexicalMetric
from caplens.text.corpus import CorpusBuilder
from caplens.text.tokenizer import get_tokenizer

ImageTexts = Mapping[Any, Sequence[str]]


class PTBTokenizer:
    """Captions as the COCO evaluation writes them ({id: [{"caption": …}, …]}) -> {id: [tokenized text, …]}."""

    def __init__(self) -> None:
        self._tokenizer = get_tokenizer("ptb")

    def tokenize(self, captions_for_image: Mapping[Any, Sequence[Mapping[str, Any]]]) -> dict[Any, list[str]]:
        return {
            image: [" ".join(self._tokenizer(caption["caption"])) for caption in captions]
            for image, captions in captions_for_image.items()
        }


def _checked(gts: ImageTexts, res: ImageTexts) -> tuple[list[str], list[list[str]]]:
    """Captions and references, in the order of `gts`."""
    if gts.keys() != res.keys():
        odd = next(iter(gts.keys() ^ res.keys()))
        raise InputError(f"the id {odd!r} is in one of gts and res only; both need the same ids.")
    if not gts:
        raise InputError("gts and res are empty.")
    for name, texts in (("gts", gts), ("res", res)):
        for image, some in texts.items():
            if isinstance(some, str) or not some or not all(isinstance(text, str) for text in some):
                raise InputError(f"{name}[{image!r}] must be a list of texts.")
            if name == "res" and len(some) > 1:
                raise InputError(f"res[{image!r}] must be a list of one caption.")
    return [res[image][0] for image in gts], [list(gts[image]) for image in gts]


def _scored(name: str, gts: ImageTexts, res: ImageTexts) -> tuple[float, Floats]:
    """Unlike in 'caplens score', a caption or reference without a word counts, and scores what the original gives it."""
    captions, references = _checked(gts, res)
    metric = get_metric(name, tokenizer="space", lang="en")
    if isinstance(metric, JavaMetric):
        return metric.score_texts(captions, references)
    assert isinstance(metric, LexicalMetric)
    builder = CorpusBuilder(get_tokenizer("space"))
    builder.add(captions, references)
    values, statistics = metric.score_corpus(builder.build())
    return float(metric.pool(statistics.sum(axis=0))), values


class _Scorer:
    _name: str
    _method: str

    def compute_score(self, gts: ImageTexts, res: ImageTexts) -> tuple[float, Floats]:
        """The score of the corpus, and of each caption."""
        return _scored(self._name, gts, res)

    def method(self) -> str:
        return self._method


class Cider(_Scorer):
    """CIDEr-D, with document frequencies of these references."""

    _name, _method = "cider", "CIDEr"

    def __init__(self, n: int = 4, sigma: float = 6.0) -> None:
        if (n, sigma) != (4, 6.0):
            raise InputError(f"CIDEr is computed with n = 4 and sigma = 6, not {n} and {sigma}.")


class Rouge(_Scorer):
    _name, _method = "rouge-l", "Rouge"


class Meteor(_Scorer):
    """Needs Java, as there."""

    _name, _method = "meteor", "METEOR"


class Bleu:
    """BLEU-1 to BLEU-n, together."""

    def __init__(self, n: int = 4) -> None:
        if not 1 <= n <= 4:
            raise InputError(f"BLEU goes up to 4 words in a row, not {n}.")
        self._n = n

    def compute_score(self, gts: ImageTexts, res: ImageTexts, verbose: int = 0) -> tuple[list[float], list[list[float]]]:
        """For each length the score of the corpus, and of each caption; `verbose` is taken for the original's sake."""
        scored = [_scored(f"bleu{length}", gts, res) for length in range(1, self._n + 1)]
        return [corpus for corpus, _ in scored], [values.tolist() for _, values in scored]

    def method(self) -> str:
        return "Bleu"


class COCOEvalCap:
    """The evaluation of COCO results as a whole: `coco` and `coco_res` are `pycocotools.coco.COCO` and what its `loadRes` gives.

    BLEU, ROUGE-L and CIDEr come as there; METEOR and SPICE, which need Java, do not.
    """

    def __init__(self, coco: Any, coco_res: Any) -> None:
        self.coco, self.cocoRes = coco, coco_res
        self.params = {"image_id": coco.getImgIds()}
        self.eval: dict[str, float] = {}
        self.imgToEval: dict[Any, dict[str, Any]] = {}

    def evaluate(self) -> None:
        """Fill `eval` with the scores, `imgToEval` with those of each image, and print the former."""
        tokenizer, images = PTBTokenizer(), self.params["image_id"]
        uncaptioned = next((image for image in images if not self.cocoRes.imgToAnns.get(image)), None)
        if uncaptioned is not None:
            raise InputError(
                f"the image {uncaptioned!r} has no caption; for those that have, set params['image_id'] = coco_res.getImgIds()."
            )
        gts, res = (tokenizer.tokenize({image: data.imgToAnns[image] for image in images}) for data in (self.coco, self.cocoRes))
        self.imgToEval = {image: {"image_id": image} for image in images}
        bleu, bleus = Bleu(4).compute_score(gts, res)
        for number, (score, scores) in enumerate(zip(bleu, bleus, strict=True), 1):
            self._keep(f"Bleu_{number}", score, scores)
        for name, scorer in (("ROUGE_L", Rouge()), ("CIDEr", Cider())):
            self._keep(name, *scorer.compute_score(gts, res))
        for name, score in self.eval.items():
            print(f"{name}: {score:.3f}")

    def _keep(self, name: str, score: float, scores: Sequence[float] | Floats) -> None:
        self.eval[name] = score
        for image, value in zip(self.imgToEval, scores, strict=True):
            self.imgToEval[image][name] = float(value)

    @property
    def evalImgs(self) -> list[dict[str, Any]]:  # noqa: N802
        return list(self.imgToEval.values())
