"""Operations of layers in PyTorch, on what one rank has.

They are the real functions, made so that nothing hides what is wrong: a norm is not free of the scale of its input
(a constant is added below its root), attention is not free of a shift of its scores (its softmax has a sink, as
that of gpt-oss has), and dropout multiplies by a number near one that is drawn for each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from msgspec import Struct
from msgspec.structs import replace

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.program.program import Axes
from placelogic.replay.blocks.held import at_places, carried, picked
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.comms import Comm, Comms
from placelogic.replay.data import generator, normal
from placelogic.replay.functions import across
from placelogic.run.grid import Grid
from placelogic.run.layers.algebra import Algebra, Attending, Rows, Site
from placelogic.run.layers.crossing import Crossing
from placelogic.run.layers.lay import Lay, Tensor
from placelogic.run.layers.uses import start
from placelogic.run.stop import GroupStop

Value = Tensor[torch.Tensor]

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": F.softplus,
}


class Numbers(Struct, frozen=True):
    """`values`: weights -> all their elements, zeros where this device has none; `matrices`: how operations
    use them; `stream`: what random numbers of this pass depend on; `value`: of an expression over sizes."""

    values: Mapping[str, torch.Tensor]
    matrices: Mapping[str, Matrices]
    stream: tuple[object, ...]
    value: Callable[[Expr], float]


class Real(Algebra[torch.Tensor]):
    """`alone`: one device, which does what the model says."""

    def __init__(self, grid: Grid, comms: Comms, numbers: Numbers, alone: bool) -> None:
        self.grid, self.comms, self.numbers, self.alone = grid, comms, numbers, alone
        self.rank = 0 if alone else comms.rank
        self.leaves = {name: values.detach().clone().requires_grad_() for name, values in numbers.values.items()}

    def gradients(self, left: Value, entered: Value, arrived: torch.Tensor) -> dict[str, torch.Tensor]:
        """weights -> gradients of their elements, from that of what the last block leaves."""
        asked = [*self.leaves.values(), *([entered.data] if entered.data.requires_grad else [])]
        found = torch.autograd.grad(
            left.data, asked, arrived, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return dict(zip(self.leaves, found))

    def _number(self, expr: Expr) -> float:
        try:
            return self.numbers.value(expr)
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    def _among(self, axes: Axes) -> Comm:
        comm = self.comms.among(self.grid.groups(axes))
        assert comm is not None, "every device is in a group along axes"
        return comm

    # --- between devices ----------------------------------------------------------------------

    def crossed(self, name: str, value: Value, crossing: Crossing) -> torch.Tensor:
        one = crossing
        if not one.there and not one.back:
            return value.data
        comm, x, number = self._among((one.axis,)), self.rank, self._number
        return across(
            value.data,
            lambda data: carried(data, one.before, one.there, comm, x, number),
            lambda data: carried(data, one.after, one.back, comm, x, number),
        )

    def _owners(self, s: Site[torch.Tensor]) -> list[tuple[Comm, int]]:
        """Whole layers, and the ends of a pipeline, are computed where they are; the others hear of it."""
        name = getattr(s.op, "weights", None)
        if name is None or self.alone:
            return []
        return [(self._among((axis,)), owner) for axis, owner in self.numbers.matrices[name].owners(s.layer, s.index)]

    def read(self, s: Site[torch.Tensor]) -> Site[torch.Tensor]:
        ins = list(s.ins)
        for comm, owner in reversed(self._owners(s)):
            for slot, one in enumerate(ins):
                back = lambda data, comm=comm, owner=owner: comm.broadcast(data, owner)  # noqa: E731
                ins[slot] = Tensor(one.lays, across(one.data, lambda data: data, back))
        return replace(s, ins=ins)

    def made(self, s: Site[torch.Tensor], value: Value) -> Value:
        data = value.data
        if (noise := self._random(s, value.lays[self.rank])) is not None:
            data = data * noise
        for comm, owner in self._owners(s):
            data = across(data, lambda data, comm=comm, owner=owner: comm.broadcast(data, owner), lambda data: data)
        return Tensor(value.lays, data)

    def _random(self, s: Site[torch.Tensor], lay: Lay) -> torch.Tensor | None:
        """Where the spec speaks of random numbers used with these weights."""
        name = getattr(s.op, "weights", None)
        if name is None or not self.numbers.matrices[name].group.weights.random:
            return None
        group = self.numbers.matrices[name].group
        noisy = () if self.alone else tuple(group.grid.coordinate[a][self.rank] + 1 for a in group.noisy)
        key = ("used with", group.number, *self.numbers.stream, s.layer, s.index, noisy)
        return 1 + 0.2 * torch.tanh(at_places(normal(key, *(s.sizes[dim] for dim in lay.dims)), lay.labels))

    # --- weights ------------------------------------------------------------------------------

    def weights(self, s: Site[torch.Tensor], lays: Sequence[Lay]) -> Value:
        name, lay = s.op.weights, lays[self.rank]  # type: ignore[union-attr]
        elements = self.numbers.matrices[name].elements(s.layer, s.index, lay.dims)
        values = self.leaves[name][at_places(elements, lay.labels)]
        if any(comm.index != owner for comm, owner in self._owners(s)):
            values = across(values, lambda data: data, torch.zeros_like)
        base, scale = start(s.op, s.sizes)
        return Tensor(tuple(lays), base + scale * values)

    def whole_number(self, expr: Expr) -> int:
        return int(self._number(expr))

    # --- arithmetic ---------------------------------------------------------------------------

    def added(self, several: Sequence[Value]) -> torch.Tensor:
        first, *others = (one.data for one in several)
        for other in others:
            first = first + other
        return first

    def multiplied(self, one: Value, two: Value) -> torch.Tensor:
        return one.data * two.data

    def scaled(self, value: Value, factor: Expr, everywhere: bool) -> torch.Tensor:
        return value.data if self.alone and not everywhere else value.data * self._number(factor)

    def product(self, x: Value, w: Value, start: int, experts: int, contracted: int) -> torch.Tensor:
        read = [chr(97 + i) for i in range(x.data.dim())]
        made = [chr(65 + i) for i in range(w.data.dim() - experts - contracted)]
        matrix = [*read[:experts], *read[start : start + contracted], *made]
        out = [*read[:start], *made, *read[start + contracted :]]
        return torch.einsum(f"{''.join(read)},{''.join(matrix)}->{''.join(out)}", x.data, w.data)

    def summed(self, x: Value) -> torch.Tensor:
        return x.data.sum(0)

    def function(self, s: Site[torch.Tensor], x: Value, name: str) -> torch.Tensor:
        return FUNCTIONS.get(name, lambda a: a + torch.sin(2 * a) / 2)(x.data)

    def noise(self, s: Site[torch.Tensor], lays: Sequence[Lay]) -> torch.Tensor:
        lay, apart = lays[self.rank], s.apart[self.rank]
        key = ("random", *self.numbers.stream, s.layer, s.index, *apart)
        return 1 + 0.4 * torch.tanh(at_places(normal(key, *(s.sizes[dim] for dim in lay.dims)), lay.labels))

    # --- places -------------------------------------------------------------------------------

    def aligned(self, x: Value, dims: Sequence[str]) -> torch.Tensor:
        found = self.ordered(x, sorted(x.dims, key=list(dims).index))
        lengths = iter(found.shape)
        return found.reshape([next(lengths) if dim in x.dims else 1 for dim in dims])

    def ordered(self, x: Value, dims: Sequence[str]) -> torch.Tensor:
        return x.data.permute([x.dims.index(dim) for dim in dims])

    def picked(self, x: Value, dim: str, rows: Rows, alone: Sequence[int] | None = None) -> torch.Tensor:
        return picked(x.data, x.dims.index(dim), rows[self.rank])

    def looked_up(self, table: Value, vocabulary: str, words: Value, size: int) -> torch.Tensor:
        rows = table.lays[self.rank].along(vocabulary)
        rank = torch.full((size,), -1, dtype=torch.long)
        rank[list(rows)] = torch.arange(len(rows))
        at = rank[words.data.round().long() % size]
        found = table.data[at.clamp(min=0)]
        return found * (at >= 0).to(found.dtype).reshape(*at.shape, *[1] * (found.dim() - at.dim()))

    def concatenated(self, several: Sequence[Value]) -> torch.Tensor:
        outer, shape = several[0].dims[:-1], several[0].data.shape[:-1]
        wide = [self.aligned(one, (*outer, one.dims[-1])).expand(*shape, -1) for one in several]
        return torch.cat(wide, -1)

    def spread(self, x: Value, scores: Value) -> torch.Tensor:
        return x.data[None] * scores.data.ne(0).to(x.data.dtype)

    # --- what mixes places --------------------------------------------------------------------

    def normalised(self, s: Site[torch.Tensor], x: Value, dims: Sequence[str]) -> torch.Tensor:
        over = [x.dims.index(dim) for dim in dims]
        return x.data / (1 + x.data.square().mean(over, keepdim=True)).sqrt()

    def attention(self, s: Site[torch.Tensor], query: Value, key: Value, value: Value, how: Attending) -> torch.Tensor:
        op, x = s.op, self.rank
        assert isinstance(op, bl.Attention)
        q, k, v = query.data, key.data, value.data
        for axis, rows in enumerate((*how.samples[x], [*range(k.shape[-3])], how.heads[x])):
            k, v = picked(k, axis, rows), picked(v, axis, rows)
        scores = torch.einsum("...phd,...thd->...hpt", q, k) / q.shape[-1] ** 0.5
        if op.positions:
            scores = scores + torch.sin(torch.tensor(how.far[x], dtype=torch.get_default_dtype()))
        seen = torch.tensor([[not op.causal or t <= p for t in how.keys[x]] for p in how.queries[x]])
        scores = scores.masked_fill(~seen, -torch.inf)
        highest = scores.detach().amax(-1, keepdim=True).clamp(min=0)  # 0 is the score of the sink
        raised = (scores - highest).exp()
        chances = raised / ((-highest).exp() + raised.sum(-1, keepdim=True))
        if op.dropout:
            chances = chances * self.noise(s, how.chances)
        return torch.einsum("...hpt,...thd->...phd", chances, v)

    def best(self, s: Site[torch.Tensor], scores: Value, dim: str, top: int) -> torch.Tensor:
        axis = scores.dims.index(dim)
        found = scores.data.softmax(axis)
        best = found.topk(min(top, found.shape[axis]), axis).indices
        return found * torch.zeros_like(found).scatter(axis, best, 1.0)

    def loss(self, s: Site[torch.Tensor], logits: Value, vocabulary: str, over: Axes) -> torch.Tensor:
        lay = logits.lays[self.rank]
        rest = lay.of([dim for dim in lay.dims if dim != vocabulary])
        wanted = at_places(
            words(self.numbers.stream, s.sizes[vocabulary], [s.sizes[dim] for dim in rest.dims]), rest.labels
        )
        here = torch.tensor(lay.along(vocabulary), dtype=torch.long)
        comm = self._among(over) if over else None
        moved = logits.data.movedim(lay.dims.index(vocabulary), -1)
        return Loss.apply(moved, (wanted.unsqueeze(-1) == here).to(moved.dtype), comm)


class Loss(torch.autograd.Function):
    """Cross entropy of logits (..., vocabulary). `picked`: 1 where a logit is that of the wanted word; `comm`: the devices
    that share out the vocabulary with this one. Two numbers per token are added up; back, nothing crosses."""

    @staticmethod
    def forward(context, logits: torch.Tensor, picked: torch.Tensor, comm: Comm | None) -> torch.Tensor:  # type: ignore[no-untyped-def, override]
        highest = logits.amax(-1, keepdim=True)
        if comm is not None:
            highest = comm.all_reduce(highest, "max")
        total, hit = (logits - highest).exp().sum(-1), (logits * picked).sum(-1)
        if comm is not None:
            total, hit = comm.all_reduce(total), comm.all_reduce(hit)
        level = total.log() + highest.squeeze(-1)
        context.save_for_backward((logits - level.unsqueeze(-1)).exp() - picked)
        return level - hit

    @staticmethod
    def backward(context, arrived: torch.Tensor):  # type: ignore[no-untyped-def, override]
        return context.saved_tensors[0] * arrived.unsqueeze(-1), None, None


def words(stream: tuple[object, ...], count: int, shape: Sequence[int]) -> torch.Tensor:
    """The wanted word of every token."""
    drawn = torch.randint(count, tuple(shape), generator=generator("words", *stream), device="cpu")
    return drawn.to(torch.get_default_device())
