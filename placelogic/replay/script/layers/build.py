"""The text of a script about layers, at one mesh."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from placelogic.program import block as bl
from placelogic.program.expr import Expr
from placelogic.program.program import Program
from placelogic.replay.cases import Case
from placelogic.replay.script.build import WIDTH, head
from placelogic.replay.script.layers import text
from placelogic.replay.script.layers.matrices import Matrices, Matrix
from placelogic.replay.script.layers.pieces import Pieces, drawn
from placelogic.replay.script.layers.step import Lines, function
from placelogic.replay.script.layers.text import GLOBAL, named
from placelogic.replay.script.layers.written import FULL, Body, Written
from placelogic.replay.script.lines import NotShown, fraction
from placelogic.report.diagnostic import Finding
from placelogic.run.grid import Grid
from placelogic.run.layers.chain import Chain
from placelogic.run.layers.habits import Habits
from placelogic.run.layers.lay import Tensor
from placelogic.run.layers.setting import Setting
from placelogic.run.stop import GroupStop
from placelogic.run.work import Counts, Work

EACH = 2
"""Places of a piece of a dimension."""
MANY = 2
"""Layers that stand for many."""


class Layered:
    """All weights that operations use, at the mesh of `case`. Raises NotShown where something cannot be written."""

    def __init__(
        self, program: Program, finding: Finding, source: str, case: Case, counts: Counts, per_item: int
    ) -> None:
        self.program, self.finding, self.source, self.case = program, finding, source, case
        assert program.layers is not None and program.layering is not None
        meeting = case.meeting
        self.grid = Grid(program.mesh.axes, meeting.sizes)
        self.work = Work(program, self.grid, meeting.quantities, counts, per_item)
        if len(self.work.terms) > 1:
            raise NotShown("it has several losses")
        if any(any(coordinate for _, coordinate in foreign) for foreign in self.work.foreign):
            raise NotShown("devices are fed samples that no single device has")
        stages = program.stages is not None and self.grid.size[program.stages.axis] > 1
        self.setting = Setting(
            program, self.grid, self.work, self.grid.size[program.stages.axis] if stages else MANY, EACH
        )  # type: ignore[union-attr]
        setting, self.pieces = self.setting, Pieces(self.grid, self.setting.dims)
        self.shares = [setting.share(x) for x in range(self.grid.count)]
        self.written = Written(self.grid, self.pieces, Matrices(program, setting), self.number)
        habits = Habits(setting.layers, self.grid, setting.stages)
        chain = Chain(self.grid, setting.plan, setting.blocks, setting.dims, self.written, habits)
        try:
            self.left = chain.forward(Tensor(tuple(map(setting.lies, self.shares)), ""))
            chain.turn()
        except GroupStop as stop:
            raise NotShown(f"its step cannot be carried out: {stop}") from None
        self.matrices = list(self.written.matrices.every.values())

    def exactly(self, expr: Expr) -> Fraction:
        try:
            return self.work.value(expr)
        except ZeroDivisionError:
            raise NotShown("a factor divides by zero") from None

    def number(self, expr: Expr) -> float:
        return float(self.exactly(expr))

    def text(self) -> str:
        functions, calls = self._functions()
        step = list(self._step(calls))
        worker = self._worker()
        weights = [f"{matrix.key}: {self._weights(matrix)}, " for matrix in self.matrices]
        rest = [line for body in (*functions, step, worker) for line in ("", *body)]
        if "causal" not in self.pieces.helpers:
            rest = [re.sub(f",\\s+{FULL}", "", line) for line in rest]
        share = _share([*weights, *rest])
        parts = [*head(self.finding, self.source, self.case, self.work.microbatches), *self._constants(weights)]
        if any("F." in line for line in rest):
            parts.insert(parts.index("import torch.multiprocessing as mp") + 1, "import torch.nn.functional as F")
        for body in self._helpers(share):
            parts += ["", *body]
        return "\n".join([*parts, *rest]) + "\n"

    # --- constants and helpers ---------------------------------------------------------------------

    def _constants(self, weights: Sequence[str]) -> Iterator[str]:
        yield f"DEVICES, axes = {self.grid.count}, {{}}  # by axis: with whom a device communicates, how many, and its place"
        if self._all is None:
            told = {axis: self.grid.groups((axis,)) for axis in self.grid.axes if axis in self.pieces.axes}
            yield "AXES = {" + ", ".join(f'"{axis}": {sets}' for axis, sets in told.items()) + "}"
        yield "# sizes; along which axes each dimension is cut; by what numbers it starts: around the first, so far from it"
        line = "WEIGHTS = {"
        for entry in weights:
            if len(line) + len(entry) > WIDTH and line.strip():
                yield line.rstrip()
                line = "    "
            line += entry
        yield line.rstrip(", ") + "}"
        yield "torch.set_default_dtype(torch.float64)"

    def _weights(self, matrix: Matrix) -> str:
        cut = self.pieces.cut(matrix.dims, matrix.places)
        return f"({self.pieces.whole(matrix.dims)}, {cut}, {matrix.middle:g}, {matrix.width:.3g})"

    @property
    def _all(self) -> str | None:
        """The axis along which all devices lie, where nothing goes along another."""
        used = [axis for axis in self.grid.axes if axis in self.pieces.axes]
        return used[0] if len(used) == 1 and self.grid.size[used[0]] == self.grid.count else None

    def _helpers(self, share: str) -> Iterator[list[str]]:
        used = self.pieces.helpers
        yield _lines(text.DRAWN)
        yield _lines(share)
        told = {word: lines for word, lines in text.WORDS.items() if word in used}
        words = text.ONLY_SUMS if set(told) == {"sum"} else text.EACH_WORD + "".join(told.values())
        if "move" in used:
            yield _lines(text.MOVE.replace("{words}", words))
        elif told:
            yield _lines(text.CARRIED.replace("{words}", words))
        yield from (_lines(body) for name, body in text.HELPERS.items() if name in used)
        if "attention" in used:
            yield _lines(text.attention(used))

    # --- layers ------------------------------------------------------------------------------------

    def _functions(self) -> tuple[list[list[str]], list[str]]:
        """One function for layers that read alike, and the calls of all."""
        known: dict[tuple[str, ...], str] = {}
        calls: list[tuple[str, int, bool, bool]] = []
        for number, body in enumerate(self.written.bodies):
            numbered = any(", number]" in line for line in body.lines)
            extra = (", number" if numbered else "") + (", seed" if body.seeded else "")
            lines = (f"({body.argument}, held, rank{extra}):", *_returned(body))
            if lines not in known:
                name = named(body.block)
                taken = set(known.values()) | GLOBAL
                known[lines] = next(n for n in (name, *(f"{name}_{i}" for i in range(2, 99))) if n not in taken)
            calls.append((known[lines], number, numbered, body.seeded))
        functions = [[f"def {name}{lines[0]}", *(f"    {line}" for line in lines[1:])] for lines, name in known.items()]
        return functions, list(_calls(calls, self.work.microbatches > 1))

    def _fed(self) -> str:
        """What the first layer reads."""
        dims, first = self.setting.dims_in, self.setting.blocks[0].operations[0]
        sizes = self.pieces.whole(dims)
        if isinstance(first, bl.Embedding):
            count, rows = prod(self.setting.dims[dim] for dim in dims), self.setting.dims[first.vocabulary]
            tokens = f"torch.arange({count})" if self.work.microbatches == 1 else f"torch.arange(turn, turn + {count})"
            whole = f"({tokens} % {rows}).reshape{sizes}"
        else:
            whole = drawn(self._turn("900"), sizes)
        return self.pieces.shares(whole, [self.setting.lies(share, 1) for share in self.shares])

    def _turn(self, start: str) -> str:
        """A number of its own in each micro-batch."""
        if self.work.microbatches == 1:
            return start
        return f"{start} + turn"

    def _arrived(self) -> str:
        """How each place counts in the objective, divided as each device divides."""
        lays = [self.setting.fed(lay, share) for lay, share in zip(self.left.lays, self.shares)]
        whole = drawn(self._turn("950"), self.pieces.whole(lays[0].dims))
        if isinstance(self.setting.blocks[-1].operations[-1], bl.CrossEntropy):
            whole = f"1 + 0.5 * torch.tanh({whole})"
        found = self.pieces.shares(whole, lays)
        told = found if found.startswith(("share(", "drawn(")) else f"({found})"
        return told + self._share()

    def _share(self) -> str:
        work, turns = self.work, range(1, self.work.microbatches + 1)
        exact = Fraction(1, work.single_counted(0))
        single = fraction(exact)
        counted = zip(*(self.setting.counted(0, turn, self.left.lays) for turn in turns))
        rows = [[fraction(1 / Fraction(one)) for one in each] for each in counted]
        told = [row[0] if len(set(row)) == 1 else f"[{', '.join(row)}][turn]" for row in rows]
        if all(one == single for one in told):
            return f" / {exact.denominator}" if exact.numerator == 1 else f" * ({single})"
        many = told[0] if len(set(told)) == 1 else f"[{', '.join(told)}][rank]"
        return f" * ({single} if rank is None else {many})"

    def _step(self, calls: Sequence[str]) -> Iterator[str]:
        """All groups of weights, those whose steps read alike together."""
        alike: dict[tuple[str, ...], list[str]] = {}
        for weights in self.program.weights:
            mine = [matrix.key for matrix in self.matrices if matrix.group == weights.name]
            step = self.program.step(weights.name)
            if step is not None and mine:
                lines = Lines(step, self.work.microbatches, self.pieces, self.exactly, self.program.mesh.label).text()
                alike.setdefault(lines, []).extend(mine)
        calls = [f"x = {self._fed()}", *calls]
        if calls[1].startswith("x = "):  # no loop over layers
            calls[:2] = [calls[1].replace("(x, held", f"({calls[0][4:]}, held")]
        every = sum(map(len, alike.values())) == len(self.matrices)
        yield from function(alike, every, [*calls, f"arrived = {self._arrived()}"], self.work.microbatches)

    def _worker(self) -> list[str]:
        lays = self.left.lays
        many = self.work.microbatches > 1
        dims = ("turn", *lays[0].dims) if many else lays[0].dims
        turns = (tuple(range(self.work.microbatches)),) if many else ()
        pieces = Pieces(self.grid, {**self.setting.dims, "turn": self.work.microbatches})
        cut = pieces.cut(dims, [(*turns, *lay.labels) for lay in lays])
        self.pieces.axes |= pieces.axes
        last = self.setting.blocks[-1]
        found = text.WORKER
        alone = f'    axes["{self._all}"] = None, DEVICES, rank\n'
        found = found.replace("GROUPS", text.GROUPS if self._all is None else alone)
        return _lines(found.replace("LEFT_CUT", cut).replace("LEFT", f"{last.result} of {last.name}"))


def _share(lines: Sequence[str]) -> str:
    """The helper, with what these lines ask of it."""
    cuts = [cut for line in lines for cut in re.findall(r"\{\d+: [^}]*\}", line)]
    tables = any("[[" in cut for cut in cuts)
    if not tables and not any(" " in names for cut in cuts for names in re.findall(r'"([^"]*)"', cut)):
        return text.SHARE
    return text.SHARES.replace("TABLES", text.TABLES if tables else "")


def _lines(body: str) -> list[str]:
    return body.strip("\n").split("\n")


def _returned(body: Body) -> list[str]:
    if body.lines and body.lines[-1].startswith(f"{body.left} = ") and "  # " not in body.lines[-1]:
        return [*body.lines[:-1], f"return {body.lines[-1].split(' = ', 1)[1]}"]
    return [*body.lines, f"return {body.left}"]


def _calls(calls: Sequence[tuple[str, int, bool, bool]], turning: bool) -> Iterator[str]:
    at = 0
    while at < len(calls):
        name, first, numbered, seeded = calls[at]
        count = 1
        while at + count < len(calls) and calls[at + count][0] == name:
            count += 1
        seed = ", {}" if seeded else ""
        if count == 1:
            yield f"x = {name}(x, held, rank{f', {first}' if numbered else ''}{seed.format(_seed(turning, str(first)))})"
        else:
            yield f"for number in range({first}, {first + count}):"
            yield f"    x = {name}(x, held, rank{', number' if numbered else ''}{seed.format(_seed(turning, 'number'))})"
        at += count


def _seed(turning: bool, number: str) -> str:
    """Of the random numbers of a layer."""
    layer = str(1000 + 100 * int(number)) if number.isdigit() else f"1000 + 100 * {number}"
    return f"{layer} + 1000 * turn" if turning else layer
