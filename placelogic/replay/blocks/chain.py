"""The chain of layers in PyTorch, as one rank of a mesh runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.expr import Expr
from placelogic.program.plan import Move, Plan
from placelogic.replay.blocks import moves
from placelogic.replay.blocks.functions import Here, covered, function
from placelogic.replay.blocks.held import Held, at_places
from placelogic.replay.blocks.lay import Lay
from placelogic.replay.blocks.loss import Loss, check, words
from placelogic.replay.blocks.lying import made
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.blocks.uses import start
from placelogic.replay.comms import Comms
from placelogic.replay.data import normal
from placelogic.run.grid import Grid
from placelogic.run.stop import GroupStop
from placelogic.simulate.layers.chain import Chain, Layer
from placelogic.simulate.layers.habits import Habits
from placelogic.simulate.layers.one import inputs, weights_dims


class Ran(Struct):
    """One operation that was run: what its gradients are found from. `elements`: the numbers of the
    elements of its weights that it used."""

    leaves: list[torch.Tensor]
    out: torch.Tensor
    matrices: Matrices | None = None
    elements: torch.Tensor | None = None
    loss: Loss | None = None


class Numbers(Struct, frozen=True):
    """`values`: weights -> all their elements, zeros where this device has none; `matrices`: how operations
    use them; `stream`: what random numbers of this pass depend on; `value`: of an expression over sizes."""

    values: Mapping[str, torch.Tensor]
    matrices: Mapping[str, Matrices]
    stream: tuple[object, ...]
    value: Callable[[Expr], float]


class Real(Chain[Held]):
    """`habits` None: one device, which does what the model says. `gradients`: weights -> elements, after `backward`."""

    def __init__(
        self,
        grid: Grid,
        plan: Plan,
        blocks: Sequence[Block],
        sizes: Mapping[str, int],
        comms: Comms,
        numbers: Numbers,
        habits: Habits | None = None,
    ) -> None:
        super().__init__(grid, plan, blocks, sizes)
        self.comms = comms
        self.numbers = numbers
        self.habits = habits
        self.gradients: dict[str, torch.Tensor] = {}
        self._ran: dict[tuple[int, int], Ran] = {}

    @property
    def rank(self) -> int:
        return 0 if self.habits is None else self.comms.rank

    # --- between devices ----------------------------------------------------------------------

    def moved(self, value: Held, move: Move, axis: str) -> Held:
        return moves.forward(value, move, axis, self.grid, self.comms, self._factor(move), self.ragged)

    def moved_back(self, value: Held, move: Move, axis: str, before: Held) -> Held:
        return moves.backward(value, move, axis, self.grid, self.comms, self._factor(move), self.ragged, before)

    def _factor(self, move: Move) -> float:
        return 1.0 if move.scale is None else self._number(move.scale)

    def _number(self, expr: Expr) -> float:
        try:
            return self.numbers.value(expr)
        except ZeroDivisionError:
            raise GroupStop("a factor divides by zero") from None

    def added(self, several: Sequence[Held]) -> Held:
        for one in several[1:]:
            if any(a.shape != b.shape for a, b in zip(one.lays, several[0].lays)):
                raise GroupStop("arrays of different sizes are added up")
        data = several[0].data if len(several) == 1 else torch.stack([one.data for one in several]).sum(0)
        return Held(several[0].lays, data)

    def _from_owner(self, data: torch.Tensor, matrices: Matrices | None, layer: int, index: int) -> torch.Tensor:
        """Whole layers, and the ends of a pipeline, are computed where they are; the others hear of it."""
        for axis, owner in matrices.owners(layer, index) if matrices is not None and self.habits is not None else ():
            comm = self.comms.among(self.grid.groups((axis,)))
            assert comm is not None
            data = comm.broadcast(data, owner)
        return data

    # --- one operation ------------------------------------------------------------------------

    def operate(self, layer: Layer[Held], index: int, op: bl.Operation, ins: list[Held]) -> Held:
        scores = layer.arrays[op.router] if isinstance(op, bl.Dispatch) else None
        lays = []
        for x in range(self.grid.count):
            mine, score = self.mine(layer, index, op, x), scores.lays[x] if scores is not None else None
            lays.append(made(layer.block, op, [held.lays[x] for held in ins], mine, self.sizes, score))
        here, x = self._here(layer, index, op), self.rank
        own = [held.lays[x] for held in ins]
        leaves = [held.data.detach().requires_grad_(held.data.is_floating_point()) for held in ins]
        if isinstance(op, bl.CrossEntropy):
            ran = self._loss(layer, index, op, ins[0], leaves)
        else:
            with torch.enable_grad():
                run = function(here, own, scores and scores.data, scores and scores.lays[x])
                ran = self._ran_of(layer, index, op, run, here, own, leaves)
                if ran.matrices is not None and (noise := self._noise(ran.matrices, layer, index, lays[x])) is not None:
                    ran.out = ran.out * noise
        self._ran[layer.number, index] = ran
        data = self._from_owner(ran.out.detach(), ran.matrices, layer.number, index)
        return Held(tuple(lays), data)

    def _ran_of(
        self, layer: Layer[Held], index: int, op: bl.Operation, run: Callable[..., torch.Tensor], here: Here,
        own: list[Lay], leaves: list[torch.Tensor],
    ) -> Ran:  # fmt: skip
        name = getattr(op, "weights", None)
        if name is None:
            return Ran(leaves, run(*leaves))
        matrices = self.numbers.matrices[name]
        dims = weights_dims(layer.block, op)
        elements = at_places(matrices.elements(layer.number, index, dims), covered(here, own, dims))
        weights = self.numbers.values[name][elements].requires_grad_()
        leaves = [weights, *leaves]
        base, scale = start(op, self.sizes)
        return Ran(leaves, run(base + scale * weights, *leaves[1:]), matrices, elements)

    def _noise(self, matrices: Matrices, layer: Layer[Held], index: int, lay: Lay) -> torch.Tensor | None:
        """Where the spec speaks of random numbers used with these weights."""
        group = matrices.group
        if not group.weights.random:
            return None
        x = self.rank
        noisy = tuple(group.grid.coordinate[a][x] + 1 for a in group.noisy) if self.habits is not None else ()
        key = ("used with", group.number, *self.numbers.stream, layer.number, index, noisy)
        whole = normal(key, *(self.sizes[dim] for dim in lay.dims))
        return 1 + 0.2 * torch.tanh(at_places(whole, lay.labels))

    def _here(self, layer: Layer[Held], index: int, op: bl.Operation) -> Here:
        x = self.rank
        factor = op.factor if isinstance(op, bl.Elementwise) else None
        apart: tuple[int, ...] = ()
        position, keys = int, {}
        if self.habits is not None:
            if isinstance(op, bl.Bias):
                factor = op.scale
            block, whole = layer.block, self.sizes.get("sequence", 1)
            apart = self.habits.apart(block, op.output, x, layer.read[index, 0].lays)
            counted = layer.arrays[op.query if isinstance(op, bl.Attention) else inputs(op)[0]]
            if not isinstance(op, bl.Attention):
                counted = layer.read[index, 0]
            position = self.habits.position(block, op.output, x, counted.lays, whole)  # type: ignore[assignment]
            if isinstance(op, bl.Attention) and op.positions:
                # Keys are counted where they are made, before they are brought together.
                lays = layer.arrays[op.key].lays
                for y in range(self.grid.count):
                    of = self.habits.position(block, op.output, y, lays, whole)
                    keys.update({place: of(place) for place in lays[y].along(op.sequence)})
        top = int(self._number(op.top)) if isinstance(op, bl.Router) else 1
        return Here(
            op,
            self.mine(layer, index, op, x),
            self.sizes,
            (*self.numbers.stream, layer.number, index, *apart),
            1.0 if factor is None else self._number(factor),
            top,
            position,  # type: ignore[arg-type]
            keys,
        )

    def _loss(
        self, layer: Layer[Held], index: int, op: bl.CrossEntropy, logits: Held, leaves: list[torch.Tensor]
    ) -> Ran:
        axes = self.shared_out(layer, index) if op.parallel else ()
        for members in self.grid.groups(axes) if axes else ():
            check([logits.lays[y] for y in members], op.vocabulary)
        comm = self.comms.among(self.grid.groups(axes)) if axes else None
        lay = logits.lays[self.rank]
        wanted = words(self.numbers.stream, dict(self.sizes), lay, op.vocabulary)
        loss = Loss(lay, op.vocabulary, wanted, comm)
        out, level = loss.forward(logits.data)
        return Ran([*leaves, level], out, loss=loss)

    # --- back through it ----------------------------------------------------------------------

    def operate_back(self, layer: Layer[Held], index: int, op: bl.Operation, ins: list[Held], here: Held) -> list[Held]:
        ran = self._ran[layer.number, index]
        if ran.loss is not None:
            logits, level = ran.leaves
            return [Held(ins[0].lays, ran.loss.backward(logits, level, here.data).detach())]
        asked = [leaf for leaf in ran.leaves if leaf.requires_grad]
        found = iter(torch.autograd.grad(ran.out, asked, here.data, retain_graph=True, allow_unused=True))
        back = [next(found) if leaf.requires_grad else None for leaf in ran.leaves]
        back = [torch.zeros(leaf.shape) if one is None else one for one, leaf in zip(back, ran.leaves)]
        if ran.matrices is not None and ran.elements is not None:
            self._keep(ran.matrices, layer.number, index, ran.elements, back.pop(0))
        return [
            Held(held.lays, self._from_owner(one, ran.matrices, layer.number, index)) for held, one in zip(ins, back)
        ]

    def _keep(self, matrices: Matrices, layer: int, index: int, elements: torch.Tensor, back: torch.Tensor) -> None:
        x, group = self.rank, matrices.group
        if self.habits is not None:
            for axis, owner in matrices.owners(layer, index):
                if group.grid.coordinate[axis][x] != owner:
                    return
        total = self.gradients.setdefault(group.name, torch.zeros(group.count))
        total.index_add_(0, elements.flatten(), back.flatten())
