"""A small pre-norm transformer, made to be parallelised: no biases, and modules that components know by name."""

from __future__ import annotations

from collections.abc import Callable

import torch
from msgspec import Struct
from torch import nn

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Widths(Struct, frozen=True):
    """`experts`: of each layer, 0 for a plain MLP. `tied`: the embedding is the output matrix too."""

    layers: int = 2
    hidden: int = 32
    heads: int = 4
    ffn: int = 64
    vocab: int = 64
    length: int = 8
    experts: int = 0
    tied: bool = False


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of a whole sequence on one device; (batch, heads, length, width)."""
    return masked(q, k, v, 0)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: int) -> torch.Tensor:
    """Queries from position `start` on, against all keys."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    place = torch.arange(q.shape[-2])[:, None] + start
    scores = scores.masked_fill(torch.arange(k.shape[-2])[None] > place, float("-inf"))
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    def __init__(self, sizes: Widths) -> None:
        super().__init__()
        self.width = sizes.hidden // sizes.heads
        for name in ("wq", "wk", "wv", "wo"):
            setattr(self, name, nn.Linear(sizes.hidden, sizes.hidden, bias=False))
        self.inner: Attention = causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (w(x).unflatten(-1, (-1, self.width)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(self.inner(q, k, v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, sizes: Widths) -> None:
        super().__init__()
        self.w1 = nn.Linear(sizes.hidden, sizes.ffn, bias=False)
        self.w2 = nn.Linear(sizes.ffn, sizes.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(torch.tanh(self.w1(x)))


class Block(nn.Module):
    def __init__(self, sizes: Widths, mlp: Callable[[Widths], nn.Module] = MLP) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(sizes.hidden, bias=False)
        self.attention = SelfAttention(sizes)
        self.ffn_norm = nn.LayerNorm(sizes.hidden, bias=False)
        self.ffn = mlp(sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Transformer(nn.Module):
    """`first`, `last`: whether this stage has the embedding, and the final norm with the output matrix."""

    def __init__(
        self,
        sizes: Widths,
        layers: range | None = None,
        first: bool = True,
        last: bool = True,
        mlp: Callable[[Widths], nn.Module] = MLP,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(sizes.vocab, sizes.hidden) if first else None
        every = range(sizes.layers) if layers is None else layers
        self.layers = nn.ModuleDict({str(number): Block(sizes, mlp) for number in every})
        self.norm = nn.LayerNorm(sizes.hidden, bias=False) if last else None
        self.output = nn.Linear(sizes.hidden, sizes.vocab, bias=False) if last else None
        if sizes.tied and self.embed is not None and self.output is not None:
            self.output.weight = self.embed.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.embed is not None:
            x = self.embed(x)
        for layer in self.layers.values():
            x = layer(x)
        if self.norm is not None and self.output is not None:
            x = self.output(self.norm(x))
        return x


def started(model: nn.Module, seed: int, tied: bool = False) -> None:
    """Every weight by its name, so that any part of the model starts like the whole. `tied`: the output matrix
    like the embedding."""
    from placelogic.replay.data import normal

    with torch.no_grad():
        for name, weight in model.named_parameters():
            name = source(name, tied)
            drawn = normal((seed, "weight", name), *weight.shape)
            weight.copy_(1 + 0.1 * drawn if weight.dim() == 1 else drawn / weight.shape[-1] ** 0.5)


def source(name: str, tied: bool) -> str:
    """The name under which one device has these weights."""
    return "embed.weight" if tied and name == "output.weight" else name


def mean_loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
