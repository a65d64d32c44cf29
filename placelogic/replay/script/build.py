"""The text of a script, from the step of a few weight groups at one mesh."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from placelogic.io.quoting import python
from placelogic.program.program import Program
from placelogic.replay.cases import Case
from placelogic.replay.script import text
from placelogic.replay.script.begin import started, starts
from placelogic.replay.script.events import clipped, skipped
from placelogic.replay.script.layout import group_of
from placelogic.replay.script.lines import Names, NotShown
from placelogic.replay.script.section import Section
from placelogic.replay.script.work import Items, Row, told
from placelogic.report.diagnostic import Finding
from placelogic.run.arriving import lines_of
from placelogic.run.grid import Grid
from placelogic.run.step import Event, drive
from placelogic.run.work import Counts, Work

WIDTH = 118
"""Of a line, where it can be broken."""
STEPS = 2
"""What is stale shows in the second."""


class Build:
    """All weights of `program` that are trained, at the mesh of `case`. Raises NotShown where a step cannot be written."""

    def __init__(
        self, program: Program, finding: Finding, source: str, case: Case, counts: Counts, per_item: int
    ) -> None:
        self.program, self.finding, self.source, self.case = program, finding, source, case
        meeting = case.meeting
        self.grid = Grid(program.mesh.axes, meeting.sizes)
        self.work = Work(program, self.grid, meeting.quantities, counts, per_item)
        self.items = Items(self.work)
        self.names = Names(program.mesh.label)
        self.out: list[str] = []
        self.sections: list[Section] = []
        for number, weights in enumerate(program.weights):
            step = program.step(weights.name)
            assert step is not None
            group = group_of(program, number, weights, self.grid, step.ops)
            arriving = lines_of(program, weights.name)
            self.sections.append(Section(group, step.ops, self.items, self.names, self.out, arriving))
        self.elements = max(section.state.group.count for section in self.sections)
        self.overflow = finding.code == "SC08"
        self.skips = any(section.skipping for section in self.sections)

    def text(self) -> str:
        singles = {section.name: self.items.single(section.state.group) for section in self.sections}
        self.begin, start = started(self.sections)
        functions = [lines for lines in (list(self._single()), start, list(self._step())) if lines]
        devices = list(range(self.grid.count))
        self.together = all(sets == [devices] for sets in self.names.groups.values())
        partial = any(sorted(x for members in sets for x in members) != devices for sets in self.names.groups.values())
        helpers = [text.helper(name, self.together, partial) for name in text.HELPERS if name in self.names.helpers]
        parts = [*head(self.finding, self.source, self.case, self.work.microbatches), *self._constants(singles)]
        for body in (self._gradient(), *helpers):
            parts += ["", *body.strip("\n").split("\n")]
        for lines in functions:
            parts += ["", *lines]
        return "\n".join([*parts, "", *self._worker().strip("\n").split("\n")]) + "\n"

    # --- what comes first --------------------------------------------------------------------------

    def _constants(self, singles: dict[str, list[Row]]) -> Iterator[str]:
        steps, spots = STEPS, []
        if self.overflow:
            spots = [(rows[0][0], e) for s in self.sections for rows in [self._first(s)] for e in range(s.state.group.count)]
            steps = len(spots)
        axes = ", ".join(f"{axis} = {size}" for axis, size in self.case.meeting.sizes.items() if size > 1)
        told_axes = f"  # {axes}, the last axis fastest" if axes else ""
        yield f"DEVICES, ELEMENTS, STEPS = {self.grid.count}, {self.elements}, {steps}{told_axes}"
        if not self.together:
            groups = str(self.names.groups).replace("'", '"')
            yield f"groups, GROUPS = {{}}, {groups}  # processes that communicate"
        yield "# (number of a work item, its tokens, by what its summed loss is multiplied); by device and micro-batch"
        yield from self._tables(singles)
        yield f"START = {starts(self.sections)}"
        yield f"HELD = {{{', '.join(self._held(s) for s in self.sections)}}}  # elements by device"
        if self.overflow:
            yield f"OVERFLOWS = {spots}  # in every step one (item, element)"
            yield "overflow = []"
        yield "torch.set_default_dtype(torch.float64)"

    def _first(self, section: Section) -> list[Row]:
        devices = self.items.tables[section.name]
        return next(rows for turns in devices for rows in turns if rows)

    def _held(self, section: Section) -> str:
        rows = [list(local) for local in section.state.group.params_local]
        alike = all(row == rows[0] for row in rows)
        return f'"{section.name}": ' + (f"[{rows[0]}] * DEVICES" if alike and len(rows) > 1 else str(rows))

    def _tables(self, singles: dict[str, list[Row]]) -> Iterator[str]:
        tables = {
            name: [f"[{', '.join(told(rows) for rows in turns)}]" for turns in devices]
            for name, devices in self.items.tables.items()
        }
        yield from _table("WORK", tables)
        yield from _table("SINGLE", {name: [told([row])[1:-1] for row in rows] for name, rows in singles.items()})

    # --- functions ---------------------------------------------------------------------------------

    def _gradient(self) -> str:
        if not self.overflow:
            return text.GRADIENT
        anchor = "        (factor *"
        return text.GRADIENT.replace(anchor, text.OVERFLOW + anchor)

    def _worker(self) -> str:
        found = text.WORKER
        if self.begin is not None:
            found = found.replace("start(rank, one)", self.begin)
        if not self.together:
            found = found.replace("    one = ", text.GROUPS + "    one = ", 1)
        if self.overflow:
            anchor = "        one, held = "
            found = found.replace(anchor, f"        overflow[:] = OVERFLOWS[number]\n{anchor}")
        return found

    def _single(self) -> Iterator[str]:
        yield "def single(one):"
        yield "    found = {name: gradient(theta, range(len(theta)), SINGLE[name]) for name, theta in one.items()}"
        if self.skips:
            yield "    if not all(bool(g.isfinite().all()) for g in found.values()):"
            yield "        return one"
        if self.program.clip is not None:
            yield "    norm = sum((g**2).sum() for g in found.values()).sqrt()"
            yield "    found = {name: g / (1 + norm) for name, g in found.items()}"
        for section in self.sections:
            units = section.state.group.units
            if units is not None:
                self.names.use("seen")
                yield f'    found["{section.name}"] = seen(found["{section.name}"], {list(units)})'
        yield "    return {name: theta - 0.1 * found[name] for name, theta in one.items()}"

    def _step(self) -> Iterator[str]:
        yield "def step(rank, held):"
        for section in self.sections:
            for axis, fact in self.program.facts.get(section.name, {}).items():
                if self.grid.size[axis] > 1:
                    yield f"    # {section.name} along {axis}: {fact.because}"
        if len(self.sections) == 1 and len(self.sections[0].buffer_names()) == 1:
            self.sections[0].alone = True
        drive(self.sections, self._skip, self._clip)
        buffers = [section.variable(name)[6:-1] for section in self.sections for name in section.buffer_names()]
        total = "0" if self.sections[0].alone else f"dict.fromkeys([{', '.join(buffers)}], 0)"
        yield f"    held, total = dict(held), {total}"
        if self.skips:
            names = ", ".join(f'"{section.name}"' for section in self.sections)
            yield f"    skip = {'False' if self.sections[0].alone else f'dict.fromkeys([{names}], False)'}"
        yield from (f"    {line}" for line in self.out)
        yield "    return held"

    def _skip(self, section: Section, event: Event) -> None:
        skipped(section, self._together([section]), event, self.out)

    def _clip(self, clipping: Sequence[Section], event: Event) -> None:
        if self.program.clip is not None:
            clipped(self.program.clip, clipping, self._together(clipping), event, self.out)

    def _together(self, deciding: Sequence[Section]) -> list[Section]:
        """All that a decision looks at."""
        if len(self.sections) > 1 and any(section.inside for section in deciding):
            raise NotShown("several weights decide together inside the loop over micro-batches")
        return self.sections


def head(finding: Finding, source: str, case: Case, microbatches: int) -> Iterator[str]:
    where = ", ".join(f"{axis} = {size}" for axis, size in case.meeting.sizes.items() if size > 1)
    if not where or microbatches > 1:
        where += (", " if where else "") + f"{microbatches} micro-batches"
    message = python(finding.message).rstrip(".")
    yield from textwrap.wrap(f'"""{finding.code}, {where}: {message}.', WIDTH, break_long_words=False)
    yield ""
    yield f'From {python(source)}, by placelogic. Needs PyTorch; run it with Python."""'
    yield ""
    yield "import sys, tempfile"
    yield "import torch"
    yield "import torch.distributed as dist"
    yield "import torch.multiprocessing as mp"
    yield ""


def _table(name: str, rows: dict[str, list[str]]) -> Iterator[str]:
    """A dictionary of lists, on one line if it fits."""
    line = f"{name} = {{" + ", ".join(f'"{key}": [{", ".join(items)}]' for key, items in rows.items()) + "}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{name} = {{"
    for key, items in rows.items():
        line = f'    "{key}": ['
        for position, item in enumerate(items):
            more = item + (", " if position + 1 < len(items) else "")
            if len(line) + len(more) > WIDTH and not line.endswith("["):
                yield line.rstrip()
                line = "        "
            line += more
        yield line + "],"
    yield "}"
