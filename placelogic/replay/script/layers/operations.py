"""Each operation as an expression of a script, for the pieces of every device and for the single device.

They are the functions that replay computes (placelogic/replay/blocks/functions.py), so that nothing hides what is
wrong: norms, attention and dropout are as they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.script.layers.mixing import attention, loss
from placelogic.replay.script.layers.pieces import Pieces, drawn
from placelogic.replay.script.lines import NotShown
from placelogic.run.grid import Grid
from placelogic.simulate.layers.arrays import Labels

Used = tuple[str, tuple[str, ...], tuple[tuple[Labels, ...], ...]]
"""A matrix in the script, its dimensions, and what each device has of them."""

FUNCTIONS = {
    "gelu": "F.gelu",
    "relu": "F.relu",
    "silu": "F.silu",
    "sigmoid": "torch.sigmoid",
    "tanh": "torch.tanh",
    "softplus": "F.softplus",
}
NOTHING = -1


class Operation(Struct, frozen=True):
    """One operation on all devices. `mine`: places that its weights or experts cover; `names`, `lays`: of what it
    reads; `scores`: of a dispatch; `apart`: what sets the random numbers of a device apart; `positions`, `keys`:
    where places are taken to stand; `shared`: axes over which a vocabulary is shared out."""

    op: bl.Operation
    index: int
    grid: Grid
    sizes: Mapping[str, int]
    pieces: Pieces
    mine: Sequence[Mapping[str, Labels]]
    names: Sequence[str]
    lays: Sequence[Sequence[Lay]]
    weights: Used | None
    number: Callable[[Expr], float]
    scores: str
    score_lays: Sequence[Lay]
    apart: Sequence[tuple[int, ...]]
    positions: Sequence[Callable[[int], int]]
    keys: Sequence[Mapping[int, int]]
    shared: tuple[str, ...]

    @property
    def x(self) -> Sequence[Lay]:
        return self.lays[0]

    @property
    def dims(self) -> tuple[str, ...]:
        return self.x[0].dims

    def places(self, dim: str) -> list[Labels]:
        return [mine.get(dim) or tuple(range(self.sizes[dim])) for mine in self.mine]

    def use(self, helper: str) -> None:
        self.pieces.helpers.add(helper)

    def seed(self) -> str:
        """Of its random numbers; a device may draw its own."""
        known = sorted(set(self.apart))
        offset = self.pieces.here(0, [0 if not own else 100_000 * (1 + known.index(own)) for own in self.apart])
        return f"seed + {self.index}" + (f" + ({offset})" if offset is not None else "")


def expression(one: Operation) -> str:
    """Raises NotShown."""
    op, x = one.op, one.names[0]
    match op:
        case bl.Linear():
            return _product(one, op.contracted, op.produced, op.grouped)
        case bl.Router():
            one.use("route")
            top = min(int(one.number(op.top)), max(1, one.sizes[op.experts] - 1))
            scores = _product(one, op.contracted, (op.experts,), False)
            return f"route({scores}, {one.dims.index(op.contracted[0])}, {top})"
        case bl.Bias():
            return _bias(one, op)
        case bl.Embedding():
            return _embedding(one, op)
        case bl.Norm():
            return _norm(one, op)
        case bl.Elementwise():
            return _elementwise(one, op)
        case bl.Add():
            return " + ".join(one.names)
        case bl.Multiply():
            return " * ".join(one.names)
        case bl.Concat():
            return _concat(one)
        case bl.Attention():
            return attention(one, op)
        case bl.Dispatch():
            dim = next(d for d in one.score_lays[0].dims if d not in one.dims)
            tokens = [lay.dims for lay in one.x][0]
            chosen = _scores(one, one.scores, one.score_lays, dim, one.places(dim), tokens)
            return f"{x}[None] * ({chosen} != 0)"
        case bl.Combine():
            here = [lay.labels[0] for lay in one.x]
            scores = _scores(one, one.names[1], one.lays[1], one.dims[0], here, one.dims[1:])
            return f"({x} * {scores}).sum(0)"
        case bl.CrossEntropy():
            return loss(one, op)
    raise AssertionError(op)


# --- weights ----------------------------------------------------------------------------------------


def _weights(one: Operation) -> Used:
    assert one.weights is not None
    return one.weights


def _product(one: Operation, contracted: Sequence[str], produced: Sequence[str], grouped: bool) -> str:
    held, dims, there = _weights(one)
    experts = one.dims[:1] if grouped else ()
    if grouped:
        at = dims.index(one.dims[0])
        for lay, places in zip(one.x, there):
            if lay.labels[0] != places[at]:
                raise NotShown("experts meet tokens of some of them only")
    letters, made = _letters(one.dims, produced)
    names = {**letters, **made}
    if set(contracted) & set(produced):  # from a dimension to itself
        matrix = "".join(letters[dim] for dim in (*experts, *contracted)) + "".join(made[dim] for dim in produced)
    else:
        matrix = "".join(names[dim] for dim in dims)
    start = one.dims.index(contracted[0])
    before, after = one.dims[:start], one.dims[start + len(contracted) :]
    out = "".join([*(letters[d] for d in before), *(made[d] for d in produced), *(letters[d] for d in after)])
    return f'torch.einsum("{"".join(letters[d] for d in one.dims)},{matrix}->{out}", {one.names[0]}, {held})'


def _letters(dims: Sequence[str], produced: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Their first letters, as far as these are not taken."""
    taken: set[str] = set()

    def letter(name: str) -> str:
        every = [*name.lower(), *"abcdefghijklmnopqrstuvwxyz"]
        found = next(c for c in every if c.isalpha() and c.isascii() and c not in taken)
        taken.add(found)
        return found

    read = {dim: letter(dim) for dim in dims}
    return read, {dim: letter(dim) for dim in produced}


def _turned(held: str, dims: Sequence[str], over: Sequence[str]) -> str:
    """A matrix with its dimensions in this order."""
    if tuple(dims) == tuple(over):
        return held
    return f"{held}.permute({', '.join(str(dims.index(dim)) for dim in over)})"


def _aligned(text: str, over: Sequence[str], dims: Sequence[str]) -> str:
    """So that it meets a tensor with dimensions `dims`."""
    order = sorted(over, key=list(dims).index)
    text = _turned(text, list(over), order)
    first = list(dims).index(order[0])
    if tuple(order) == tuple(dims[first:]):
        return text
    return f"{text}[{', '.join(':' if dim in order else 'None' for dim in dims[first:])}]"


def _bias(one: Operation, op: bl.Bias) -> str:
    """A device adds its own pieces of the vector, and nothing where it has none."""
    held, dims, there = _weights(one)
    text = _turned(held, dims, op.over)
    for axis, dim in enumerate(op.over):
        rows = []
        for x, lay in enumerate(one.x):
            own = there[x][dims.index(dim)]
            wanted = [one.positions[x](label) if dim == "sequence" else label for label in lay.along(dim)]
            rows.append([own.index(label) if label in own else NOTHING for label in wanted])
        if all(row == list(range(len(own[dims.index(dim)]))) for row, own in zip(rows, there, strict=True)):
            continue  # each its own
        one.use("spread")
        text = f"spread({text}, {axis}, rank, {rows})"
    text = _aligned(text, op.over, one.dims)
    if op.scale is not None and (factor := one.number(op.scale)) != 1:
        return f"{one.names[0]} + ({one.pieces.here(1, [factor] * one.grid.count)}) * {text}"
    return f"{one.names[0]} + {text}"


def _embedding(one: Operation, op: bl.Embedding) -> str:
    held, dims, there = _weights(one)
    table = _turned(held, dims, (op.vocabulary, *op.produced))
    rows = [own[dims.index(op.vocabulary)] for own in there]
    if all(row == tuple(range(one.sizes[op.vocabulary])) for row in rows):
        return f"{table}[{one.names[0]}]"
    one.use("embed")
    return f"embed({table}, {one.names[0]}, {one.pieces.here(0, [row[0] for row in rows]) or 0})"


def _norm(one: Operation, op: bl.Norm) -> str:
    over = [one.dims.index(dim) for dim in op.over]
    one.use("norm")
    text = f"norm({one.names[0]}, {over})"
    if one.weights is None:
        return text
    held, dims, there = _weights(one)
    at = [[places.index(label) for label in lay.along(dim) if label in places]
          for dim in op.over for lay, own in zip(one.x, there) for places in [own[dims.index(dim)]]]  # fmt: skip
    wanted = [list(range(len(lay.along(dim)))) for dim in op.over for lay in one.x]
    have = [len(own[dims.index(dim)]) for dim in op.over for own in there]
    if at != wanted or have != [len(row) for row in wanted]:
        raise NotShown("a norm has other pieces of its vector than of what it reads")
    return f"{text} * {_aligned(_turned(held, dims, op.over), op.over, one.dims)}"


# --- place by place ---------------------------------------------------------------------------------


def _elementwise(one: Operation, op: bl.Elementwise) -> str:
    x = one.names[0]
    if op.random:
        whole = drawn(one.seed(), one.pieces.whole(one.dims))
        return f"{x} * (1 + 0.4 * torch.tanh({one.pieces.shares(whole, one.x)}))"
    if op.linear:
        factor = 1.0 if op.factor is None else one.number(op.factor)
        return x if factor == 1 else f"{factor:.17g} * {x}"
    if op.function in FUNCTIONS:
        return f"{FUNCTIONS[op.function]}({x})"
    return f"{x} + torch.sin(2 * {x}) / 2"


def _concat(one: Operation) -> str:
    """Along what a part lacks of the dimensions of the first it is the same."""
    first, parts = one.dims[:-1], []
    for name, lays in zip(one.names, one.lays):
        dims = lays[0].dims[:-1]
        order = sorted(dims, key=first.index)
        text = name
        if tuple(order) != tuple(dims):
            text += f".permute({', '.join(str(dims.index(dim)) for dim in order)}, {len(dims)})"
        if len(order) < len(first):
            text += f"[{', '.join(':' if dim in order else 'None' for dim in first)}]"
            text += f".expand(*{one.names[0]}.shape[:-1], -1)"
        parts.append(text)
    return f"torch.cat([{', '.join(parts)}], -1)"


def _scores(
    one: Operation, name: str, lays: Sequence[Lay], experts: str, here: Sequence[Labels], tokens: Sequence[str]
) -> str:
    """[expert, the dimensions of the tokens]: the scores of the experts that are here."""
    dims = lays[0].dims
    order = [experts, *(dim for dim in tokens if dim in dims)]
    text = f"{name}.permute({', '.join(str(dims.index(dim)) for dim in order)})"
    if any(lay.along(experts) != mine for lay, mine in zip(lays, here)):
        rows = [[lay.along(experts).index(label) for label in mine] for lay, mine in zip(lays, here)]
        one.use("spread")
        text = f"spread({text}, 0, rank, {rows})"
    if any(dim not in order for dim in tokens):
        text += f"[:, {', '.join(':' if dim in order else 'None' for dim in tokens)}]"
    return text
