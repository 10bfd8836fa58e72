"""The recipe of caplens-mini, from captions and photos to a model that onnxruntime runs.

1. A vocabulary of sub-words is learned from the captions of all languages.
2. The text tower learns from text alone that captions of one photo, in any two languages, belong together. Then it is locked.
3. The teacher, an ImageNet network, learns to place photos among their captions. It becomes the assistant; it is not shipped.
4. The image tower starts from nothing and learns to see what the assistants see in the same view, and to place photos as they do.
5. Both towers are written with 8-bit weights.

Every stage leaves a file behind, and a run that finds it goes on with the next.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Generator, Tensor, nn
from torch.nn import functional as F

from caplens.backbones.network import choose_device
from caplens.data.files import replacing
from caplens.errors import InputError
from caplens.progress import note
from caplens.text.subwords import Subwords
from caplens.train.collection import Group, read_groups, read_photos
from caplens.train.losses import contrastive, distance, shared_targets, unlike_maps
from caplens.train.loop import Schedule, batches, fit, shuffled
from caplens.train.networks import ImageShape, ImageTower, Teacher, TextShape, TextTower
from caplens.train.views import Views, mixed
from caplens.train.vocabulary import learn_vocabulary

Config = dict[str, dict[str, Any]]
_ENCODED_AT_ONCE = 2048
_SEEN_AT_ONCE = 256


def read_config(path: Path | None = None, changes: Sequence[str] = ()) -> Config:
    """The recipe beside this file, or another; `changes` are like `image.steps=2000`."""
    text = path.read_text(encoding="utf-8") if path else files("caplens.train").joinpath("mini.toml").read_text(encoding="utf-8")
    try:
        config: Config = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: this is not TOML ({error}).") from None
    known = tomllib.loads(files("caplens.train").joinpath("mini.toml").read_text(encoding="utf-8"))
    for change in changes:
        name, equals, value = change.partition("=")
        section, _, key = name.partition(".")
        if not equals or key not in known.get(section, {}):
            raise InputError(f"--set {change}: give SECTION.KEY=VALUE with a key of the recipe, such as image.steps=2000.")
        try:
            config[section][key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            raise InputError(f"--set {change}: {value!r} is no value of TOML.") from None
    if {section: set(keys) for section, keys in config.items()} != {section: set(keys) for section, keys in known.items()}:
        raise InputError(f"{path}: a recipe has exactly the sections and keys of mini.toml.")
    return config


@dataclass(frozen=True)
class Captions:
    """The captions of groups as numbers, and how each group's are drawn."""

    ids: Tensor
    """(captions, max_tokens)"""
    table: Tensor
    """(groups, most captions): rows of `ids`; where there are fewer, row 0."""
    chances: Tensor
    """(groups, most captions): 0 where there are fewer."""

    def draw(self, groups: Tensor, count: int, chance: Generator) -> Tensor:
        """Rows of `count` captions of each group: (groups, count). Languages are drawn first, so that none is heard only because
        it has many captions."""
        chances = self.chances[groups]
        # Efraimidis and Spirakis (2006): the largest u^(1/w) are a draw without replacement. torch.multinomial makes a GPU wait.
        keys = torch.rand(chances.shape, generator=chance, device=chances.device).log() / chances
        return self.table[groups].gather(1, keys.topk(count).indices)


def number_captions(groups: Sequence[Group], subwords: Subwords, max_tokens: int, english: float, device: str) -> Captions:
    texts = [caption for group in groups for _, caption in group.captions]
    ids = torch.from_numpy(padded([subwords.encode(text) for text in texts], subwords, max_tokens)).to(device)
    most = max(len(group.captions) for group in groups)
    table, chances = np.zeros((len(groups), most), dtype=np.int64), np.zeros((len(groups), most), dtype=np.float32)
    first = 0
    for row, group in enumerate(groups):
        langs = [lang for lang, _ in group.captions]
        table[row, : len(langs)] = np.arange(first, first + len(langs))
        chances[row, : len(langs)] = [(english if lang == "en" else 1.0) / langs.count(lang) for lang in langs]
        first += len(langs)
    return Captions(ids, torch.from_numpy(table).to(device), torch.from_numpy(chances).to(device))


def padded(texts: Sequence[list[int]], subwords: Subwords, max_tokens: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Numbers with their end markers, in a rectangle."""
    made = np.full((len(texts), max_tokens), subwords.padding, dtype=np.int32)
    for row, numbers in enumerate(texts):
        kept = [*numbers[: max_tokens - 1], subwords.end]
        made[row, : len(kept)] = kept
    return made


@dataclass
class Run:
    """One training run: where its data is, where its files go."""

    data: Path
    folder: Path
    config: Config
    seed: int
    device: str

    def stage(self, name: str, network: nn.Module, train: Callable[[], Mapping[str, Tensor]]) -> None:
        """Fill `network` with the weights of a stage: those of a file that is there, or newly trained ones."""
        path = self.folder / f"{name}.safetensors"
        if not path.is_file():
            weights = {key: value.detach().float().cpu().contiguous() for key, value in train().items()}
            with replacing(path) as temporary:
                save_file(weights, temporary)
        network.load_state_dict({key: value for key, value in load_file(path).items() if key in network.state_dict()})
        network.to(self.device).eval()

    def fit(self, name: str, networks: Mapping[str, nn.Module], loss_at: Callable[[int, Generator], Tensor], schedule: Schedule,
            faster: Sequence[str] = (), times: float = 1.0, seed: int = 0) -> dict[str, nn.Module]:  # fmt: skip
        return fit(name, networks, loss_at, schedule, folder=self.folder, seed=self.seed + 1000 * seed, device=self.device,
                   faster=faster, times=times)  # fmt: skip


def train_mini(
    data: Path, folder: Path, config: Config, seed: int = 0, device: str = "auto"
) -> tuple[ImageTower, TextTower, Subwords]:
    """Train, or go on training, and give back both towers and the vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(data, folder, config, seed, choose_device(device, torch))
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    groups = read_groups(data, "train", all_photos=config["data"]["all_photos"])
    subwords = _vocabulary(run, groups)
    captions = number_captions(groups, subwords, config["text"]["max_tokens"], config["text"]["english"], run.device)
    with_photo = sum(group.photo is not None for group in groups)
    text = _text_tower(run, captions, with_photo, len(subwords))
    known = Known(captions, with_photo, encode_rows(text, captions.ids))
    names = [group.photo for group in groups[:with_photo] if group.photo is not None]
    views = Views(torch.from_numpy(read_photos(data, names, config["data"]["stored"])).to(run.device))
    assistants = [_assistant(run, views, known, number) for number in range(config["assistant"]["count"])]
    return _image_tower(run, views, known, assistants), text, subwords


def _vocabulary(run: Run, groups: Sequence[Group]) -> Subwords:
    path = run.folder / "vocabulary.tsv"
    if not path.is_file():
        note("learning the vocabulary.")
        by_language: dict[str, list[str]] = {}
        for group in groups:
            for lang, caption in group.captions:
                by_language.setdefault(lang, []).append(caption)
        section = run.config["vocabulary"]
        learn_vocabulary(by_language, section["size"], section["per_language"], run.seed).save(path)
    return Subwords.load(path)


def text_shape(config: Config, pieces: int) -> TextShape:
    text = config["text"]
    return TextShape(pieces, text["width"], text["layers"], text["heads"], text["dim"], text["max_tokens"])


def image_shape(config: Config) -> ImageShape:
    image = config["image"]
    stages = [(str(kind), int(width), int(count), int(expansion)) for kind, width, count, expansion in image["stages"]]
    return ImageShape(image["size"], image["stem"], stages, image["head"], config["text"]["dim"])


def _text_tower(run: Run, captions: Captions, with_photo: int, pieces: int) -> TextTower:
    section = run.config["text"]
    tower = TextTower(text_shape(run.config, pieces), section["dropout"])
    text_only = len(captions.table) - with_photo

    def train() -> Mapping[str, Tensor]:
        tower.to(run.device)
        first = shuffled(with_photo, min(section["with_photo"], with_photo), run.seed, run.device)
        second = shuffled(text_only, min(section["text_only"], text_only), run.seed + 1, run.device)
        count = section["captions"]

        def loss_at(step: int, chance: Generator) -> Tensor:
            chosen = torch.cat([first(step), second(step) + with_photo])
            ids = captions.ids[captions.draw(chosen, count, chance).T.reshape(-1)]
            hidden = torch.rand(ids.shape, generator=chance, device=ids.device) < section["token_dropout"]
            # A text may not lose all of its pieces; its end marker stays.
            ids = torch.where(hidden & (ids != Subwords.end), Subwords.padding, ids)
            vectors = F.normalize(tower(ids).float(), dim=-1).view(count, len(chosen), -1)
            pairs = [(a, b) for a in range(count) for b in range(a)]
            return torch.stack([contrastive(vectors[a], vectors[b], section["temperature"]) for a, b in pairs]).mean()

        schedule = Schedule(section["steps"], len(captions.table), section["rate"], section["decay"], average=section["average"])
        return run.fit("text", {"text": tower}, loss_at, schedule)["text"].state_dict()

    run.stage("text", tower, train)
    return tower


@torch.no_grad()
def encode_rows(tower: TextTower, ids: Tensor) -> Tensor:
    """Vectors of texts, of length one."""
    return torch.cat([F.normalize(tower(ids[part]).float(), dim=-1) for part in batches(len(ids), _ENCODED_AT_ONCE)])


class Known:
    """What the locked text tower says of the photos' captions, and the loss of image vectors against it."""

    def __init__(self, captions: Captions, with_photo: int, vectors: Tensor) -> None:
        self.captions, self.count, self.vectors = captions, with_photo, vectors
        weights = captions.chances[:with_photo] / captions.chances[:with_photo].sum(1, keepdim=True)
        middle = torch.einsum("pc,pcd->pd", weights, vectors[captions.table[:with_photo]])
        self.centroids = F.normalize(middle, dim=-1)
        """Each photo's mean caption."""

    def loss(self, images: Tensor, photos: Tensor, section: Mapping[str, Any], chance: Generator) -> Tensor:
        """Photos against several of their captions, and against their mean caption, which they are also pulled to."""
        centroids = self.centroids[photos]
        targets = shared_targets(centroids, section["share"], section["alike"])
        rows = self.captions.draw(photos, section["per_photo"], chance)
        to_captions = [contrastive(images, self.vectors[rows[:, place]], section["temperature"], targets) for place in range(rows.shape[1])]
        to_centroids = contrastive(images, centroids, section["temperature"], targets)
        return torch.stack(to_captions).mean() + to_centroids + section["pull"] * distance(images, centroids)


class Assistant(nn.Module):
    """The teacher with a projection to the vectors of captions."""

    def __init__(self, teacher: Teacher, dim: int) -> None:
        super().__init__()
        self.teacher, self.project = teacher, nn.Linear(teacher.width, dim)

    def forward(self, views: Tensor) -> tuple[Tensor, Tensor]:
        """The map of features, and the vectors."""
        maps = self.teacher(views)
        return maps, F.normalize(self.project(maps.mean((2, 3))).float(), dim=-1)


def _assistant(run: Run, views: Views, known: Known, number: int) -> Assistant:
    section = run.config["assistant"]
    assistant = Assistant(Teacher(run.data / "teacher" / "mobilenet_v2_int8.npz"), run.config["text"]["dim"])

    def train() -> Mapping[str, Tensor]:
        torch.manual_seed(run.seed + 1000 * number)
        nn.init.normal_(assistant.project.weight, std=assistant.teacher.width**-0.5)
        assistant.to(run.device, memory_format=torch.channels_last)
        batch = min(section["batch"], known.count)
        at = shuffled(known.count, batch, run.seed + 1000 * number, run.device)
        per_epoch = max(1, known.count // batch)

        def loss_at(step: int, chance: Generator) -> Tensor:
            photos = at(step)
            seen = views.draw(photos, section["size"], section["smallest"], section["colour"], chance)
            seen = seen.contiguous(memory_format=torch.channels_last)
            # The new projection is brought into place before the teacher itself may change.
            with torch.set_grad_enabled(step >= per_epoch * section["frozen_epochs"]):
                maps = assistant.teacher(seen)
            vectors = F.normalize(assistant.project(maps.mean((2, 3))).float(), dim=-1)
            return known.loss(vectors, photos, run.config["captions"], chance)

        schedule = Schedule(
            per_epoch * section["epochs"], batch, section["rate"], section["decay"], average=section["average"]
        )
        networks = {"teacher": assistant.teacher, "project": assistant.project}
        trained = run.fit(f"assistant-{number}", networks, loss_at, schedule, ["project"], section["projection"], number)
        return {f"{name}.{key}": value for name, network in trained.items() for key, value in network.state_dict().items()}

    run.stage(f"assistant-{number}", assistant, train)
    return assistant.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _image_tower(run: Run, views: Views, known: Known, assistants: Sequence[Assistant]) -> ImageTower:
    section = run.config["image"]
    tower = ImageTower(image_shape(run.config))

    def train() -> Mapping[str, Tensor]:
        torch.manual_seed(run.seed)
        tower.to(run.device, memory_format=torch.channels_last)
        adapter = nn.Conv2d(section["head"], Teacher.width, 1).to(run.device)
        batch = min(section["batch"], known.count)
        at = shuffled(known.count, batch, run.seed, run.device)

        def loss_at(step: int, chance: Generator) -> Tensor:
            photos = at(step)
            # Assistant and tower look at the same view, each at the size it was made for; assistants take turns.
            wide = views.draw(photos, run.config["assistant"]["size"], section["smallest"], section["colour"], chance)
            blended = round(section["mixed"] * len(photos))
            wide = mixed(wide, blended, chance)
            seen = F.interpolate(wide, (section["size"], section["size"]), mode="bilinear")
            with torch.no_grad():
                wanted_maps, wanted = assistants[step % len(assistants)](wide.contiguous(memory_format=torch.channels_last))
            maps = tower.map(seen.contiguous(memory_format=torch.channels_last))
            vectors = F.normalize(tower.pooled(maps).float(), dim=-1)
            wanted_maps = F.adaptive_avg_pool2d(wanted_maps.float(), maps.shape[2:])
            loss = section["maps"] * unlike_maps(adapter(maps).float(), wanted_maps)
            loss = loss + section["vectors"] * distance(vectors, wanted)
            return loss + section["captions"] * known.loss(vectors[blended:], photos[blended:], run.config["captions"], chance)

        schedule = Schedule(section["steps"], batch, section["rate"], section["decay"], average=section["average"])
        return run.fit("image", {"image": tower, "adapter": adapter}, loss_at, schedule)["image"].state_dict()

    run.stage("image", tower, train)
    return tower


@torch.no_grad()
def encode_photos(network: Callable[[Tensor], Tensor], views: Views, size: int) -> Tensor:
    """Vectors of whole photos, of length one."""
    count, device = len(views.photos), views.photos.device
    rows = [torch.arange(count, device=device)[part] for part in batches(count, _SEEN_AT_ONCE)]
    return torch.cat([F.normalize(network(views.whole(some, size)).float(), dim=-1) for some in rows])
