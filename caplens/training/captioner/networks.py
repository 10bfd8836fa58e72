"""The decoder of caplens-mini-captioner: a small transformer that reads feature maps of a photo and writes a caption.

`captioners/mini_decoder.py` computes the same without PyTorch; a test holds the two together.
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from caplens.captioners.mini_decoder import DecoderShape


class DecoderLayer(nn.Module):
    """A pre-norm layer: attention to the tokens before, attention to the photo, and a feed-forward network."""

    def __init__(self, shape: DecoderShape, dropout: float) -> None:
        super().__init__()
        width = shape.width
        self._heads, self._dropout = shape.heads, dropout
        self.before_tokens, self.before_photo, self.before_network = (nn.LayerNorm(width) for _ in range(3))
        self.inwards, self.outwards = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.query, self.photo, self.joined = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, photo: tuple[Tensor, ...], past: "list[tuple[Tensor, Tensor]] | None" = None) -> Tensor:
        """`photo` is what `seen` returns. With `past`, x is one further token, whose keys and values are added to it."""
        query, key, value = self._split(self.inwards(self.before_tokens(x)), 3)
        if past is not None:
            if past:
                key, value = (torch.cat(parts, 2) for parts in zip(past.pop(), (key, value), strict=True))
            past.append((key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self._drop(self.outwards(_merged(mixed)))
        (query,) = self._split(self.query(self.before_photo(x)), 1)
        keys, values = photo
        x = x + self._drop(self.joined(_merged(F.scaled_dot_product_attention(query, keys, values))))
        return x + self._drop(self.down(F.relu(self.up(self.before_network(x)))))

    def seen(self, photo: Tensor) -> tuple[Tensor, ...]:
        """The keys and values of a photo."""
        return self._split(self.photo(photo), 2)

    def _split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        """Parts of the last dimension, each as (n, heads, length, width of a head)."""
        count, length, width = x.shape
        return x.view(count, length, parts, self._heads, width // parts // self._heads).permute(2, 0, 3, 1, 4).unbind(0)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self._dropout, self.training)


class CaptionDecoder(nn.Module):
    """Feature maps and the tokens so far to the next token."""

    def __init__(self, shape: DecoderShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape, self._dropout = shape, dropout
        self.pieces = nn.Embedding(shape.pieces, shape.width)
        self.langs = nn.Embedding(len(shape.languages), shape.width)
        self.places = nn.Parameter(torch.zeros(shape.longest + 1, shape.width))
        self.features, self.features_norm = nn.Linear(shape.features, shape.width), nn.LayerNorm(shape.width)
        self.positions = nn.Parameter(torch.zeros(shape.positions, shape.width))
        self.layers = nn.ModuleList([DecoderLayer(shape, dropout) for _ in range(shape.layers)])
        self.norm, self.bias = nn.LayerNorm(shape.width), nn.Parameter(torch.zeros(shape.pieces))
        for weight in (self.pieces.weight, self.langs.weight, self.places, self.positions):
            nn.init.normal_(weight, std=0.02)

    def photo(self, maps: Tensor) -> Tensor:
        """Feature maps (n, positions, features) as the layers read them."""
        photo: Tensor = self.features_norm(self.features(maps.float())) + self.positions
        return F.dropout(photo, self._dropout, self.training)

    def states(self, photo: Tensor, langs: Tensor, ids: Tensor) -> Tensor:
        """The state after the language and after each token: (n, 1 + length, width)."""
        x = torch.cat([self.langs(langs)[:, None], self.pieces(ids)], 1) + self.places[: ids.shape[1] + 1]
        x = F.dropout(x, self._dropout, self.training)
        for layer in self.layers:
            x = layer(x, layer.seen(photo))  # type: ignore[operator]
        states: Tensor = self.norm(x)
        return states

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.pieces.weight, self.bias)

    def forward(self, maps: Tensor, langs: Tensor, ids: Tensor) -> Tensor:
        """The logits of each token of `ids` and of the one after: (n, 1 + length, pieces)."""
        return self.logits(self.states(self.photo(maps), langs, ids))

    @torch.no_grad()
    def sample(self, maps: Tensor, langs: Tensor, end: int, padding: int, *, greedy: bool = False) -> Tensor:
        """Captions drawn from the model, or the most likely token at each step: (n, at most `longest`), padded after the end."""
        photo = self.photo(maps)
        seen = [layer.seen(photo) for layer in self.layers]  # type: ignore[operator]
        past: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self.layers]
        ids = torch.zeros((len(maps), 0), dtype=torch.long, device=maps.device)
        ended = torch.zeros(len(maps), dtype=torch.bool, device=maps.device)
        x = self.langs(langs)
        for length in range(self.shape.longest):
            x = (x + self.places[length])[:, None]
            for layer, keys_and_values, of_layer in zip(self.layers, seen, past, strict=True):
                x = layer(x, keys_and_values, of_layer)
            logits = self.logits(self.norm(x[:, 0])).float()
            token = logits.argmax(-1) if greedy else torch.multinomial(logits.softmax(-1), 1)[:, 0]
            ids = torch.cat([ids, token.masked_fill(ended, padding)[:, None]], 1)
            ended |= token == end
            if bool(ended.all()):
                break
            x = self.pieces(token)
        return ids

    def settings(self) -> dict[str, Any]:
        return asdict(self.shape)


def _merged(x: Tensor) -> Tensor:
    """(n, heads, length, width of a head) -> (n, length, width)"""
    return x.transpose(1, 2).flatten(2)
