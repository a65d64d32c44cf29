"""The text of a script, from the step of a few weight groups at one mesh."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from placelogic.io.quoting import python
from placelogic.program.catalog import Needs
from placelogic.program.program import Program, Skip
from placelogic.replay.cases import Case
from placelogic.replay.script import text
from placelogic.replay.script.begin import started, starts
from placelogic.replay.script.events import decided
from placelogic.replay.script.layout import Layout
from placelogic.replay.script.lines import Names, NotShown
from placelogic.replay.script.section import Content, Event, Section
from placelogic.replay.script.work import Items, Row, told
from placelogic.report.diagnostic import Finding
from placelogic.run.grid import Grid
from placelogic.run.work import Counts, Work
from placelogic.simulate.arriving import kept_along, lines_of
from placelogic.simulate.group import Group

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
        self.sections: list[Section] = []
        for number, weights in enumerate(program.weights):
            step = program.step(weights.name)
            assert step is not None
            lines = lines_of(program, weights.name)
            layout = Layout(Group(number, weights, self.grid, self.work.split, kept_along(lines)), step.ops)
            self.sections.append(Section(layout, step.ops, self.items, self.names, self._inside, lines))
        self.elements = max(section.layout.count for section in self.sections)
        self.overflow = finding.code == "SC08"
        self.skips = any(section.skips for section in self.sections)

    def text(self) -> str:
        singles = {section.name: self.items.single(section.layout.group) for section in self.sections}
        self.begin, start = started(self.sections, self.names)
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
            spots = [(rows[0][0], e) for s in self.sections for rows in [self._first(s)] for e in range(s.layout.count)]
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
        rows = [list(local) for local in section.layout.params]
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
            if section.layout.needs is not Needs.ELEMENT:
                self.names.use("seen")
                yield f'    found["{section.name}"] = seen(found["{section.name}"], {section.layout.units()})'
        yield "    return {name: theta - 0.1 * found[name] for name, theta in one.items()}"

    def _step(self) -> Iterator[str]:
        yield "def step(rank, held):"
        for section in self.sections:
            for axis, fact in self.program.facts.get(section.name, {}).items():
                if self.grid.size[axis] > 1:
                    yield f"    # {section.name} along {axis}: {fact.because}"
        if len(self.sections) == 1 and len(self.sections[0].buffers()) == 1:
            self.sections[0].alone = True
        lines = list(self._lines())
        buffers = [section.variable(name)[6:-1] for section in self.sections for name in section.buffers()]
        total = "0" if self.sections[0].alone else f"dict.fromkeys([{', '.join(buffers)}], 0)"
        yield f"    held, total = dict(held), {total}"
        if self.skips:
            names = ", ".join(f'"{section.name}"' for section in self.sections)
            yield f"    skip = {'False' if self.sections[0].alone else f'dict.fromkeys([{names}], False)'}"
        yield from (f"    {line}" for line in lines)
        yield "    return held"

    def _lines(self) -> Iterator[str]:
        """All groups, from one common decision to the next."""
        waiting: dict[str, Event] = {}
        going = {section.name: section.parts() for section in self.sections}
        by_name = {section.name: section for section in self.sections}
        while going:
            for name in [name for name in going if name not in waiting]:
                part = next(going[name], None)
                if part is None:
                    del going[name]
                    continue
                lines, event = part
                yield from lines
                if event is None:
                    del going[name]
                else:
                    waiting[name] = event
            # Clipping is one event: it waits until every group that clips has come to it.
            skipping = {name: event for name, event in waiting.items() if isinstance(event, Skip)}
            every = [section.now(waiting.get(section.name)) for section in self.sections]
            for names in [[name] for name in skipping] or [list(waiting)] if waiting else []:
                deciding = [by_name[name].content(waiting[name]) for name in names]
                yield from decided(self.program.clip, waiting[names[0]], deciding, every)
            waiting = {name: event for name, event in waiting.items() if skipping and name not in skipping}

    def _inside(self, op: Event, contents: list[Content]) -> Iterator[str]:
        """A decision inside the loop over micro-batches."""
        if len(self.sections) > 1:
            raise NotShown("several weights decide together inside the loop over micro-batches")
        return decided(self.program.clip, op, contents, contents)


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
