"""Operations of layers as straight lines of PyTorch, one for each operation and one for each move.

They are the functions that replay computes (placelogic/replay/blocks/real.py), for the pieces of every device and for
the single device, whose rank is None. The backward pass is that of autograd: a move carries its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.program import Axes
from placelogic.replay.script.layers.matrices import Matrices
from placelogic.replay.script.layers.pieces import Pieces, drawn
from placelogic.replay.script.layers.text import named
from placelogic.replay.script.layers.words import words
from placelogic.replay.script.lines import NotShown, by_device
from placelogic.run.algebra import line_of
from placelogic.run.grid import Grid
from placelogic.run.layers.algebra import Algebra, Attending, Rows, Site
from placelogic.run.layers.crossing import Crossing
from placelogic.run.layers.lay import Lay, Tensor

FUNCTIONS = {
    "gelu": "F.gelu",
    "relu": "F.relu",
    "silu": "F.silu",
    "sigmoid": "torch.sigmoid",
    "tanh": "torch.tanh",
    "softplus": "F.softplus",
}
BREAK = ",\n        "
"""Before an argument, in a line that is long."""
FULL = "causal=False"
"""An argument that is needed where other attention is causal."""


class Body(Struct):
    """The function of one layer. `argument`: the name of what it reads; `left`: of what it leaves."""

    block: str
    argument: str
    lines: list[str] = field(default_factory=list)
    left: str = ""
    seeded: bool = False


class Written(Algebra[str]):
    """The data of a tensor is its name, or an expression. `bodies`: one for each layer. All of it raises NotShown."""

    def __init__(self, grid: Grid, pieces: Pieces, matrices: Matrices, number: Callable[[Expr], float]) -> None:
        self.grid, self.pieces, self.matrices, self.number = grid, pieces, matrices, number
        self.bodies: list[Body] = []

    def _use(self, helper: str) -> None:
        self.pieces.helpers.add(helper)

    # --- the course of a layer ----------------------------------------------------------------

    def entered(self, block: Block, name: str, value: Tensor[str]) -> Tensor[str]:
        if name == block.input:
            self.bodies.append(Body(block.name, named(name), left=named(name)))
            return Tensor(value.lays, named(name))
        return self._line(name, value)

    def made(self, s: Site[str], value: Tensor[str]) -> Tensor[str]:
        self.bodies[-1].seeded |= "seed" in value.data
        return self._line(s.op.output, value)

    def _line(self, name: str, value: Tensor[str], said: str = "") -> Tensor[str]:
        body, name = self.bodies[-1], named(name)
        body.lines.append(f"{name} = {value.data}{said}")
        body.left = name
        return Tensor(value.lays, name)

    def crossed(self, name: str, value: Tensor[str], crossing: Crossing) -> str:
        """A line, unless nothing happens either way."""
        axis, source, lines = crossing.axis, value.data, self.bodies[-1].lines
        there = words(crossing.before, crossing.there, axis, self.grid, self.number)
        back = words(crossing.after, crossing.back, axis, self.grid, self.number)
        if not there and not back:
            return source
        self.pieces.axes.add(axis)
        self.pieces.helpers |= {word.split()[0] for word in (*there, *back)} | {"move"}
        told = ", ".join(f'"{", ".join(one) or "none"}"' for one in (there, back))
        last = lines[-1].split(" = ", 1) if lines else ["", ""]
        if last[0] == source == named(name) and last[1].isidentifier():
            source = last[1]  # nothing has happened to it yet
            lines.pop()
        text = f'move({source}, rank, "{axis}", {told})'
        return self._line(name, Tensor(crossing.after, text), _said(crossing)).data

    # --- weights ------------------------------------------------------------------------------

    def weights(self, s: Site[str], lays: Sequence[Lay]) -> Tensor[str]:
        held, found = self.matrices.used(self.grid, s.layer, s.index, s.op, s.mine)
        if any(have.of(lay.dims) != lay for have, lay in zip(found, lays) if len(set(lay.dims)) == len(lay.dims)):
            raise NotShown("a norm has other pieces of its vector than of what it reads")
        return Tensor(found, held)

    def whole_number(self, expr: Expr) -> int:
        return int(self.number(expr))

    # --- arithmetic ---------------------------------------------------------------------------

    def added(self, several: Sequence[Tensor[str]]) -> str:
        return " + ".join(one.data for one in several)

    def multiplied(self, one: Tensor[str], two: Tensor[str]) -> str:
        return f"{one.data} * {two.data}"

    def scaled(self, value: Tensor[str], factor: Expr, everywhere: bool) -> str:
        number = self.number(factor)
        if number == 1:
            return value.data
        if everywhere:
            return f"{number:.17g} * {value.data}"
        return f"({self.pieces.here(1, [number] * self.grid.count)}) * {value.data}"

    def product(self, x: Tensor[str], w: Tensor[str], start: int, experts: int, contracted: int) -> str:
        end, produced = start + contracted, list(w.dims)
        known = (*x.dims[:experts], *x.dims[start:end])
        for dim in known:
            produced.remove(dim)
        letters, made = _letters(x.dims, produced)
        if set(known) & set(produced):  # from a dimension to itself
            matrix = [*(letters[dim] for dim in known), *made.values()]
        else:
            matrix = [{**letters, **made}[dim] for dim in w.dims]
        out = [*(letters[d] for d in x.dims[:start]), *made.values(), *(letters[d] for d in x.dims[end:])]
        equation = f"{''.join(letters.values())},{''.join(matrix)}->{''.join(out)}"
        return f'torch.einsum("{equation}", {x.data}, {w.data})'

    def summed(self, x: Tensor[str]) -> str:
        return f"({x.data}).sum(0)"

    def function(self, s: Site[str], x: Tensor[str], name: str) -> str:
        return f"{FUNCTIONS[name]}({x.data})" if name in FUNCTIONS else f"{x.data} + torch.sin(2 * {x.data}) / 2"

    def noise(self, s: Site[str], lays: Sequence[Lay]) -> str:
        return f"(1 + 0.4 * torch.tanh({self._drawn(s, lays)}))"

    def _drawn(self, s: Site[str], lays: Sequence[Lay]) -> str:
        """Random numbers; a device may draw its own."""
        known = sorted(set(s.apart))
        offset = self.pieces.here(0, [0 if not own else 100_000 * (1 + known.index(own)) for own in s.apart])
        seed = f"seed + {s.index}" + (f" + ({offset})" if offset is not None else "")
        return self.pieces.shares(drawn(seed, self.pieces.whole(lays[0].dims)), lays)

    # --- places -------------------------------------------------------------------------------

    def aligned(self, x: Tensor[str], dims: Sequence[str]) -> str:
        order = sorted(x.dims, key=list(dims).index)
        text, first = self.ordered(x, order), list(dims).index(order[0])
        if tuple(order) == tuple(dims[first:]):
            return text
        return f"{text}[{', '.join(':' if dim in order else 'None' for dim in dims[first:])}]"

    def ordered(self, x: Tensor[str], dims: Sequence[str]) -> str:
        if x.dims == tuple(dims):
            return x.data
        return f"{x.data}.permute({', '.join(str(x.dims.index(dim)) for dim in dims)})"

    def picked(self, x: Tensor[str], dim: str, rows: Rows, alone: Sequence[int] | None = None) -> str:
        at, every = x.dims.index(dim), [list(row) for row in rows]
        if alone is None:
            self._use("spread")
            return f"spread({x.data}, {at}, rank, {every})"
        self._use("picked")
        return f"picked({x.data}, {at}, {self._row(list(alone), every)})"

    def looked_up(self, table: Tensor[str], vocabulary: str, words: Tensor[str], size: int) -> str:
        text = self.ordered(table, (vocabulary, *(dim for dim in table.dims if dim != vocabulary)))
        rows = [lay.along(vocabulary) for lay in table.lays]
        if all(row == tuple(range(size)) for row in rows):
            return f"{text}[{words.data}]"
        self._use("embed")
        return f"embed({text}, {words.data}, {self.pieces.here(0, [row[0] for row in rows]) or 0})"

    def concatenated(self, several: Sequence[Tensor[str]]) -> str:
        first, parts = several[0].dims[:-1], []
        for one in several:
            *dims, last = one.dims
            order = sorted(dims, key=first.index)
            text = self.ordered(one, (*order, last))
            if len(order) < len(first):
                text += f"[{', '.join(':' if dim in order else 'None' for dim in first)}]"
                text += f".expand(*{several[0].data}.shape[:-1], -1)"
            parts.append(text)
        return f"torch.cat([{', '.join(parts)}], -1)"

    def spread(self, x: Tensor[str], scores: Tensor[str]) -> str:
        return f"{x.data}[None] * ({scores.data} != 0)"

    # --- what mixes places --------------------------------------------------------------------

    def normalised(self, s: Site[str], x: Tensor[str], dims: Sequence[str]) -> str:
        self._use("norm")
        return f"norm({x.data}, {[x.dims.index(dim) for dim in dims]})"

    def attention(self, s: Site[str], query: Tensor[str], key: Tensor[str], value: Tensor[str], how: Attending) -> str:
        op = s.op
        assert isinstance(op, bl.Attention)
        if any(k.labels[:-3] != q.labels[:-3] for k, q in zip(key.lays, query.lays)):
            raise NotShown("attention picks keys of some samples only")
        size, given = s.sizes[op.sequence], [""]
        at, places = ([list(row) for row in rows] for rows in (how.queries, how.keys))
        if how.ratio > 1 or any(row != list(range(k.shape[-2])) for row, k in zip(how.heads, key.lays)):
            self._use("heads")
            given.append(f"heads={self._row([head // how.ratio for head in range(s.sizes[op.heads])], how.heads)}")
        every = list(range(size))
        told = []
        if any(row != every for row in (*at, *places)):
            told = [f"at={self._row(every, at)}", f"places={self._row(every, places)}"]
        self._use("causal" if op.causal else "full")
        given += told if op.causal else [FULL]
        if op.positions:
            self._use("far")
            plain = [[[p - t for t in there] for p in mine] for mine, there in zip(at, places)]
            if list(how.far) != plain:
                given.append(f"far={self._row([[p - t for t in every] for p in every], how.far)}")
            elif not op.causal:
                given += told
        if op.dropout:
            self._use("mask")
            given.append(f"mask={self._drawn(s, how.chances)}")
        self._use("attention")
        names = ", ".join(one.data for one in (query, key, value))
        line = f"attention({names}{', '.join(given)})"
        return line if len(line) < 100 else f"attention({names}{BREAK.join(given)})"

    def _row(self, whole: object, rows: Sequence[object]) -> str:
        return self.pieces.here(whole, rows) or by_device([whole])

    def best(self, s: Site[str], scores: Tensor[str], dim: str, top: int) -> str:
        self._use("route")
        return f"route({scores.data}, {scores.dims.index(dim)}, {top})"

    def loss(self, s: Site[str], logits: Tensor[str], vocabulary: str, over: Axes) -> str:
        *rest, last = logits.dims
        if last != vocabulary:
            raise NotShown("the vocabulary is not the last dimension of its logits")
        size = s.sizes[vocabulary]
        told = f"words(seed + {s.index}, {size}, {self.pieces.whole(rest)})"
        wanted = self.pieces.shares(told, [lay.of(rest) for lay in logits.lays])
        self._use("words")
        labels = [lay.labels[-1] for lay in logits.lays]
        several = [axis for axis in over if self.grid.size[axis] > 1]
        if not several and all(row == tuple(range(size)) for row in labels):
            return f'F.cross_entropy({logits.data}.movedim(-1, 1), {wanted}, reduction="none")'
        if any(row != tuple(range(row[0], row[0] + len(row))) for row in labels):
            raise NotShown("a device has logits of several pieces of the vocabulary")
        self._use("loss")
        self.pieces.axes |= set(several)
        first = self.pieces.here(0, [row[0] for row in labels]) or 0
        axes = ", ".join(f'"{axis}"' for axis in several)
        return f"Loss.apply({logits.data}, {wanted}, {first}, rank, [{axes}])"


def _said(crossing: Crossing) -> str:
    """Where a person said so."""
    there, back = (line_of(move.origin) for move in crossing.moves)
    if there == back:
        return f"  # {there[2:]}" if there else ""
    told = [f"{which}{where}" for which, where in (("forward", there), ("backward", back)) if where]
    return f"  # {'; '.join(told)}"


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
