"""The plan of one axis going forward: what is cut where, and what crosses between devices at every tensor.

A share is added up where it appears; a tensor is gathered, cut or exchanged for the readers that need it otherwise.
`returning.py` plans the way back.
"""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.layers.attending import attended, put_together
from placelogic.layers.crossing import PARTIAL, Lay, crossing, written
from placelogic.layers.overrides import handed_back
from placelogic.layers.places import ANY, check_sides, experts_dim, sent_whole, stated_dim, weights_dim
from placelogic.problem import Problem, SpecError
from placelogic.program import block as bl
from placelogic.program.block import Block
from placelogic.program.operations import inputs, mixed, needs_right, sides, weights_of
from placelogic.program.ops import Origin
from placelogic.program.plan import Boundary, Move, Work
from placelogic.program.program import Program

Reader = tuple[int, int]


class AxisPlan(Struct):
    """One block along one axis."""

    program: Program
    block: Block
    axis: str
    arrives: Lay
    leaves: Lay
    wanted: dict[str, str]
    lay: dict[str, Lay] = field(default_factory=dict)
    boundaries: list[Boundary] = field(default_factory=list)
    work: dict[int, Work] = field(default_factory=dict)
    moves: dict[int, tuple[Move, Move]] = field(default_factory=dict)
    read: dict[str, dict[tuple[Lay, bool], list[Reader]]] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    _back: dict[str, str] = field(default_factory=dict)

    def forward(self, last: bool) -> None:
        """`last`: nothing reads what the block leaves."""
        self.lay[self.block.input] = self.arrives
        self.origins[self.block.input] = Origin(self.block.span, stated=False)
        for index, op in enumerate(self.block.operations):
            self.origins[op.output] = Origin(op.origin.span, stated=False)
            made = self._operation(index, op)
            self.lay[op.output] = self._settled(op.output, made, last)

    # --- forward ------------------------------------------------------------------------------

    def _settled(self, tensor: str, made: Lay, last: bool) -> Lay:
        """What a tensor is right after it is made: shares are added up, unless a person does that later."""
        want = self.wanted.get(tensor)
        target = want if made == PARTIAL and want != PARTIAL else made
        target = self._back.get(tensor, target)
        if tensor == self.block.result and not last:
            target = self.leaves
        if target != made:
            origin = self.origins[tensor]
            self.add(tensor, None, *crossing(made, target, False, origin))
        return target

    def add(self, tensor: str, readers: tuple[Reader, ...] | None, forward: Move, backward: Move) -> None:
        self.boundaries.append(Boundary(self.block.name, tensor, readers, self.axis, forward, backward))

    def _take(self, index: int, slot: int, target: Lay, partial: bool = False) -> Lay:
        """The reader gets its input as `target`; `partial`: its gradient comes back as shares."""
        tensor = inputs(self.block.operations[index])[slot]
        if target == PARTIAL:
            target = self.lay[tensor]
        self.read.setdefault(tensor, {}).setdefault((target, partial), []).append((index, slot))
        return target

    def _operation(self, index: int, op: bl.Operation) -> Lay:
        come = [self.lay[tensor] for tensor in inputs(op)]
        match op:
            case bl.Linear():
                return self._linear(index, op, come[0])
            case bl.Bias():
                return self._bias(index, op, come[0])
            case bl.Embedding():
                return self._embedding(index, op, come[0])
            case bl.Multiply() if PARTIAL in come:
                return self._share_of_a_product(index, come)
            case bl.Add() | bl.Multiply():
                target = self._common(op.output, come)
                for slot in range(len(come)):
                    self._take(index, slot, PARTIAL if come[slot] == PARTIAL else target)
                return PARTIAL if PARTIAL in come else target
            case bl.Concat():
                made, targets = put_together(self.block, op, come, self.wanted.get(op.output))
                for slot, (target, partial) in enumerate(targets):
                    self._take(index, slot, target, partial)
                return made
            case bl.Attention():
                return self._attention(index, op, come)
            case bl.Dispatch():
                return self._dispatch(index, op, come[0])
            case bl.Combine():
                return self._combine(index, op, come)
            case bl.CrossEntropy():
                keep = come[0] != op.vocabulary or op.parallel
                if come[0] == op.vocabulary and op.parallel:
                    self.work[index] = Work(pieces=op.vocabulary)
                self._take(index, 0, come[0] if keep else None)
                return None if come[0] == op.vocabulary else come[0]
            case bl.Collective():
                return self._collective(index, op, come[0])
            case _:
                return self._alone(index, op, come[0])

    def _alone(self, index: int, op: bl.Operation, come: Lay) -> Lay:
        """An operation of one tensor, with all of its weights or with those of its own places, as the table has it."""
        cut = weights_dim(self.program, self.block, op, self.axis)
        if cut is not None:
            free = [dim for dim in sides(op)[0] if dim not in mixed(op)]
            if cut == ANY and free:
                cut = come if come in free else free[0]
            if cut not in free:
                raise self._needs_all(op)
            self.work[index] = Work(weights=cut)
            return self._take(index, 0, cut)
        made = self._take(index, 0, self._kept(op, come, mixed(op)))
        # Of shares it makes nothing that could be added up later; that is told (FW03) where it is proved.
        return None if made == PARTIAL and needs_right(op) else made

    def _kept(self, op: bl.Operation, come: Lay, needed: tuple[str, ...]) -> Lay:
        """The input of an operation that needs the whole of some dimensions and works on others as they come."""
        if come is None:
            return stated_dim(self.program, self.block, op, self.axis)
        return None if come in needed else come

    def _linear(self, index: int, op: bl.Linear, come: Lay) -> Lay:
        cut = weights_dim(self.program, self.block, op, self.axis)
        experts = experts_dim(self.block, op)
        if cut == ANY:
            cut = come if come in op.contracted else op.produced[0]
        if cut is None or sent_whole(self.program, op, self.axis, come):
            return self._take(index, 0, self._kept(op, come, op.contracted))
        check_sides(self.block, op, cut, self.axis)
        self.work[index] = Work(weights=cut)
        if cut == experts:
            return self._take(index, 0, cut)
        if cut in op.contracted:
            self._take(index, 0, cut)
            return PARTIAL
        self._take(index, 0, None, partial=True)
        return cut

    def _bias(self, index: int, op: bl.Bias, come: Lay) -> Lay:
        cut = weights_dim(self.program, self.block, op, self.axis)
        if cut is None:
            if come in op.over:
                self.work[index] = Work(pieces=come)
            return self._take(index, 0, come)
        if cut == ANY:
            cut = come if come in op.over else op.over[0]
        if come == cut:
            self.work[index] = Work(weights=cut)
            return self._take(index, 0, come)
        if come == PARTIAL:
            self.work[index] = Work(weights=cut)  # its pieces, with zeros for the rest, are shares too
            return self._take(index, 0, PARTIAL)
        raise SpecError(
            Problem(
                "PL382",
                f"`{op.weights}` is cut over {self.axis}, and is added to a tensor that is not",
                op.origin.span,
                f"keep `{op.weights}` whole over {self.axis}, or in a group of its own",
            )
        )

    def _embedding(self, index: int, op: bl.Embedding, come: Lay) -> Lay:
        cut = weights_dim(self.program, self.block, op, self.axis)
        if cut == ANY:
            cut = op.vocabulary
        if cut is None:
            return self._take(index, 0, come)
        check_sides(self.block, op, cut, self.axis)
        self.work[index] = Work(weights=cut)
        self._take(index, 0, None)
        return PARTIAL if cut == op.vocabulary else cut

    def _needs_all(self, op: bl.Operation) -> SpecError:
        name = weights_of(op)
        message = f"`{name}` is cut over {self.axis}, and this operation needs all of it"
        hint = f"keep `{name}` whole over {self.axis}: `params replicated`, or `gathered`"
        return SpecError(Problem("PL382", message, op.origin.span, hint))

    def _common(self, output: str, come: list[Lay]) -> Lay:
        """How two tensors meet: as the result is wanted, or as one of them is cut already."""
        want = self.wanted.get(output)
        cut = list(dict.fromkeys(lay for lay in come if lay not in (None, PARTIAL)))
        if PARTIAL in come:
            return None
        if want is not None and want != PARTIAL:
            return want
        return cut[0] if len(cut) == 1 else None

    def _share_of_a_product(self, index: int, come: list[Lay]) -> Lay:
        """Shares times what is whole are shares, and so is the gradient of what is whole. Shares of both are
        added up first."""
        if come.count(PARTIAL) > 1:
            for slot in range(len(come)):
                self._take(index, slot, None)
            return None
        for slot, lay in enumerate(come):
            self._take(index, slot, PARTIAL if lay == PARTIAL else None, partial=lay != PARTIAL)
        return PARTIAL

    def _attention(self, index: int, op: bl.Attention, come: list[Lay]) -> Lay:
        trades = self._trades()
        targets = attended(op, self.block.tensors[op.key], come, trades)
        if trades and set(come) == {op.sequence}:
            self._back[op.output] = op.sequence
        part = targets[0] is not None and targets[1] is None
        for slot, target in enumerate(targets):
            self._take(index, slot, target, partial=part and slot > 0)
        return targets[0]

    def _trades(self) -> bool:
        layers = self.program.layers
        return layers is not None and any(e.axis == self.axis and e.by == "all_to_all" for e in layers.attention)

    def _dispatch(self, index: int, op: bl.Dispatch, come: Lay) -> Lay:
        experts = self.block.tensors[op.output][0]
        if come is None and self.wanted.get(op.output) == experts:
            self.work[index] = Work(pieces=experts)
            self._take(index, 0, None, partial=True)
            return experts
        return self._take(index, 0, self.lay[op.router])  # tokens go where their scores are

    def _combine(self, index: int, op: bl.Combine, come: list[Lay]) -> Lay:
        experts = self.block.tensors[op.input][0]
        made, scores = come
        if made == experts and scores is None:
            self.work[index] = Work(pieces=experts)
            self._take(index, 0, made)
            self._take(index, 1, None, partial=True)
            return PARTIAL
        tokens = self.block.tensors[op.router]
        rest = made is not None and made != experts and made not in tokens
        if made == PARTIAL or rest and scores is None:
            self._take(index, 0, made)
            self._take(index, 1, None, partial=True)
            return made
        both = made if scores is None else scores  # whole, or pieces of tokens
        self._take(index, 0, both)
        self._take(index, 1, both)
        return both

    def _collective(self, index: int, op: bl.Collective, come: Lay) -> Lay:
        self._take(index, 0, come)
        if self.axis not in op.axes:
            return come
        (there, back), lay = written(op)
        line = self.said(op)
        if line is not None and not back.idle:  # in so many words what comes back: part of what was written
            scale = line.scale if line.axes[0] == self.axis else None
            back = handed_back(there, back, replace(line, scale=scale), self.axis)
        self.moves[index] = there, back
        return lay

    def said(self, op: bl.Collective) -> bl.Override | None:
        """What a person says that comes back through what the collective makes."""
        for line in self.program.layers.overrides if self.program.layers is not None else ():
            at = (line.direction, line.block, line.tensor)
            if at == ("backward", self.block.name, op.output) and self.axis in line.axes:
                return line
        return None
