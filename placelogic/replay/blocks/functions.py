"""Each operation in PyTorch, on the pieces of one device.

They are the real functions, made so that nothing hides what is wrong: a norm is not free of the scale of its input
(a constant is added below its root), attention is not free of a shift of its scores (its softmax has a sink, as
that of gpt-oss has), and dropout multiplies by a number near one that is drawn for each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from msgspec import Struct, field

from placelogic.program import block as bl
from placelogic.replay.blocks.held import at_places
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.data import normal
from placelogic.simulate.layers.arrays import Labels

Function = Callable[..., torch.Tensor]
"""Of the weights, where there are some, and of the inputs."""


class Here(Struct, frozen=True):
    """What an operation needs on one device. `mine`: places that its weights or experts cover; `sizes`: of
    whole dimensions; `stream`: what its random numbers are drawn from; `position`: where a place is taken to stand,
    of what was made first, `key_position` of keys."""

    op: bl.Operation
    mine: Mapping[str, Labels]
    sizes: Mapping[str, int]
    stream: tuple[object, ...]
    factor: float = 1.0
    top: int = 1
    position: Callable[[int], int] = int
    key_position: Mapping[int, int] = field(default_factory=dict)

    def places(self, dim: str) -> Labels:
        return self.mine.get(dim) or tuple(range(self.sizes[dim]))

    def drawn(self, lay: Lay) -> torch.Tensor:
        """A factor near one for each place, the same on every device that has the place."""
        whole = normal(("random", *self.stream), *(self.sizes[dim] for dim in lay.dims))
        return 1 + 0.4 * torch.tanh(at_places(whole, lay.labels))


def covered(here: Here, ins: Sequence[Lay], dims: Sequence[str]) -> tuple[Labels, ...]:
    """Which places of its weights an operation uses on one device."""
    if isinstance(here.op, bl.Norm):
        return tuple(ins[0].along(dim) for dim in dims)
    return tuple(here.places(dim) for dim in dims)


def function(here: Here, ins: Sequence[Lay], scores: torch.Tensor | None, score_lay: Lay | None) -> Function:
    """What the operation computes on one device."""
    op, x = here.op, ins[0]
    match op:
        case bl.Linear():
            experts = (x.dims[0],) if op.grouped else ()
            rows = [here.places(d).index(label) for d in experts for label in x.labels[0]]
            product = _equation(x.dims, experts, op.contracted, op.produced)
            if experts:
                return lambda w, a: torch.einsum(product, a, w[rows])
            return lambda w, a: torch.einsum(product, a, w)
        case bl.Router():
            return _router(here, op, x)
        case bl.Bias():
            return _bias(here, op, x)
        case bl.Embedding():
            return _embedding(here, op)
        case bl.Norm():
            return _norm(op, x)
        case bl.Elementwise():
            return _elementwise(here, op, x)
        case bl.Add():
            return lambda *several: torch.stack(several).sum(0)
        case bl.Multiply():
            return lambda a, b: a * b
        case bl.Concat():
            return _concat(ins)
        case bl.Attention():
            return _attention(here, op, *ins)
        case bl.Dispatch():
            assert scores is not None and score_lay is not None
            dim = next(d for d in score_lay.dims if d not in x.dims)
            chosen = _scores(scores, score_lay, dim, here.places(dim), x).ne(0).to(scores.dtype)
            return lambda a: a[None] * chosen
        case bl.Combine():
            tokens = Lay(x.dims[1:], x.labels[1:])
            return lambda a, s: (a * _scores(s, ins[1], x.dims[0], x.labels[0], tokens)).sum(0)
    raise AssertionError(op)


def _equation(dims: Sequence[str], experts: Sequence[str], contracted: Sequence[str], produced: Sequence[str]) -> str:
    """Of an einsum: what is contracted gives way to what is produced."""
    letters = {dim: chr(97 + i) for i, dim in enumerate(dims)}
    made = {dim: chr(65 + i) for i, dim in enumerate(produced)}
    read = "".join(letters.values())
    matrix = "".join(letters[d] for d in (*experts, *contracted)) + "".join(made.values())
    start = list(dims).index(contracted[0])
    before, after = list(dims)[:start], list(dims)[start + len(contracted) :]
    out = "".join(letters[d] for d in before) + "".join(made.values()) + "".join(letters[d] for d in after)
    return f"{read},{matrix}->{out}"


def _aligned(w: torch.Tensor, over: Sequence[str], dims: Sequence[str]) -> torch.Tensor:
    """Weights with dimensions `over`, so that they meet a tensor with dimensions `dims`."""
    order = sorted(over, key=list(dims).index)
    w = w.permute([list(over).index(dim) for dim in order])
    return w.reshape([w.shape[order.index(dim)] if dim in order else 1 for dim in dims])


def _bias(here: Here, op: bl.Bias, x: Lay) -> Function:
    """A device adds its own pieces of the vector, and nothing where it has none."""
    picks, own = [], []
    for dim in op.over:
        rank = {label: i for i, label in enumerate(here.places(dim))}
        wanted = [here.position(label) if dim == "sequence" else label for label in x.along(dim)]
        picks.append(torch.tensor([rank.get(label, 0) for label in wanted], dtype=torch.long))
        own.append(torch.tensor([float(label in rank) for label in wanted]))

    def run(w: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        for axis, (pick, mask) in enumerate(zip(picks, own)):
            shape = [1] * w.dim()
            shape[axis] = len(mask)
            w = w.index_select(axis, pick) * mask.reshape(shape)
        return a + here.factor * _aligned(w, op.over, x.dims)

    return run


def _embedding(here: Here, op: bl.Embedding) -> Function:
    rows = here.places(op.vocabulary)
    rank = torch.full((here.sizes[op.vocabulary],), -1, dtype=torch.long)
    rank[list(rows)] = torch.arange(len(rows))

    def run(w: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        at = rank[tokens.round().long() % len(rank)]
        found = w[at.clamp(min=0)]
        return found * (at >= 0).to(w.dtype).reshape(*at.shape, *[1] * (found.dim() - at.dim()))

    return run


def _norm(op: bl.Norm, x: Lay) -> Function:
    over = [x.dims.index(dim) for dim in op.over]

    def run(*given: torch.Tensor) -> torch.Tensor:
        a = given[-1]
        out = a / (1 + a.square().mean(over, keepdim=True)).sqrt()
        return out * _aligned(given[0], op.over, x.dims) if len(given) == 2 else out

    return run


_FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
}


def _elementwise(here: Here, op: bl.Elementwise, x: Lay) -> Function:
    if op.random:
        mask = here.drawn(x)
        return lambda a: a * mask
    if op.linear:
        return lambda a: a * here.factor
    return _FUNCTIONS.get(op.function, lambda a: a + torch.sin(2 * a) / 2)


def _concat(ins: Sequence[Lay]) -> Function:
    """Along what a part lacks of the dimensions of the first it is the same."""
    outer = ins[0].dims[:-1]
    shape = ins[0].shape[:-1]

    def run(*parts: torch.Tensor) -> torch.Tensor:
        wide = []
        for part, lay in zip(parts, ins):
            order = sorted(lay.dims[:-1], key=outer.index)
            part = part.permute([*(lay.dims.index(dim) for dim in order), part.dim() - 1])
            part = part.reshape(*[n if dim in order else 1 for dim, n in zip(outer, shape)], part.shape[-1])
            wide.append(part.expand(*shape, part.shape[-1]))
        return torch.cat(wide, -1)

    return run


def _attention(here: Here, op: bl.Attention, query: Lay, key: Lay, value: Lay) -> Function:
    ratio = here.sizes[op.heads] // here.sizes[op.kv_heads]
    picks = [
        [have.index(label) for label in want] for have, want in zip(key.labels[:-3], query.labels[:-3])
    ]  # of the samples
    heads = [key.along(op.kv_heads).index(head // ratio) for head in query.along(op.heads)]
    at, places = query.along(op.sequence), key.along(op.sequence)
    seen = torch.tensor([[not op.causal or t <= p for t in places] for p in at])
    bias: torch.Tensor | float = 0.0
    if op.positions:
        far = [[here.position(p) - here.key_position.get(t, t) for t in places] for p in at]
        bias = torch.sin(torch.tensor(far, dtype=torch.get_default_dtype()))
    mask: torch.Tensor | float = 1.0
    if op.dropout:
        # Of the probabilities of each query for each key.
        dims = (*query.dims[:-3], op.heads, op.sequence)
        lay = Lay(dims, (*query.labels[:-3], query.along(op.heads), at))
        whole = normal(("random", *here.stream), *(here.sizes[d] for d in dims), here.sizes[op.sequence])
        mask = 1 + 0.4 * torch.tanh(at_places(whole, (*lay.labels, places)))

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        for axis, pick in enumerate(picks):
            k, v = k.index_select(axis, torch.tensor(pick)), v.index_select(axis, torch.tensor(pick))
        k, v = k[..., heads, :], v[..., heads, :]
        scores = torch.einsum("...phd,...thd->...hpt", q, k) / q.shape[-1] ** 0.5 + bias
        scores = scores.masked_fill(~seen, -torch.inf)
        highest = scores.detach().amax(-1, keepdim=True).clamp(min=0)  # 0 is the score of the sink
        raised = (scores - highest).exp()
        chances = raised / ((-highest).exp() + raised.sum(-1, keepdim=True)) * mask
        return torch.einsum("...hpt,...thd->...phd", chances, v)

    return run


def _router(here: Here, op: bl.Router, x: Lay) -> Function:
    """The best scores of each token; zero for the others."""
    product = _equation(x.dims, (), op.contracted, (op.experts,))
    dim = x.dims.index(op.contracted[0])
    top = min(here.top, max(1, here.sizes[op.experts] - 1))

    def run(w: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum(product, a, w).softmax(dim)
        best = scores.topk(min(top, scores.shape[dim]), dim).indices
        return scores * torch.zeros_like(scores).scatter(dim, best, 1.0)

    return run


def _scores(scores: torch.Tensor, lay: Lay, experts: str, here: Labels, tokens: Lay) -> torch.Tensor:
    """[expert, the dimensions of the tokens]: the scores of the tokens and experts that are here."""
    order = [experts, *(dim for dim in tokens.dims if dim in lay.dims)]
    found = scores.permute([lay.dims.index(dim) for dim in order])
    for axis, dim in enumerate(order):
        have = lay.along(dim)
        want = here if dim == experts else tokens.along(dim)
        if have != want:
            found = found.index_select(axis, torch.tensor([have.index(label) for label in want]))
    return found.reshape(len(here), *[len(tokens.along(d)) if d in order else 1 for d in tokens.dims])
