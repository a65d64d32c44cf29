"""From a violated obligation and its smallest model to what the reader is told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from placelogic.program.program import Program
from placelogic.prove.blame import blame
from placelogic.prove.boundary import of_flow, of_need
from placelogic.prove.confirm import complete, mesh_of, quantities_of
from placelogic.prove.obligations import Obligation
from placelogic.prove.place import only_factor, place
from placelogic.prove.sizes import PER_ITEM, Sizes
from placelogic.prove.table import MAX_ROWS, rows_of, summed, tabulate
from placelogic.report.diagnostic import Counterexample, DeviceRow, Finding, finding, reworded

_ORDER = (
    "CC01",
    "FW01",
    "FW02",
    "FW05",
    "FW03",
    "FW04",
    "FW06",
    "FW07",
    "FW08",
    "SC05",
    "SC07",
    "CC02",
    "GI",
    "SC02",
    "SC03",
    "SC06",
    "SC08",
    "SC04",
    "GI07",
    "SC01",
)
"""Causes before consequences; a code not listed stands with its family."""


def refuted(
    program: Program,
    sizes: Sizes,
    obligation: Obligation,
    env: Mapping[str, int],
    simulated: Mapping[str, int] | None = None,
) -> Finding:
    """The finding for one violated obligation at one model. `simulated`: the smaller mesh that the
    simulation ran on, if not the model's."""
    full = complete(sizes, env)
    mesh = mesh_of(program, sizes, env)
    quantities = quantities_of(program, sizes, env)
    sentence, span, code = obligation.sentence, obligation.span, obligation.code
    rows = _shown_rows(obligation, mesh)
    step = program.step(obligation.weights) if obligation.weights is not None else None
    about = None
    if obligation.need is not None:
        about = of_need(program, sizes, obligation, full)
    elif obligation.through is not None and code == "GI":
        about = of_flow(program, sizes, obligation, full)
    if about is not None:
        sentence, rows, span = about
    elif obligation.values is not None and obligation.weights is not None:
        weights, values = program.group(obligation.weights), obligation.values
        table = tabulate(program, weights, sizes, values.terms, full)
        rows = rows or rows_of(table)
        if code == "GI" and step is not None:
            sentence = blame(program, weights, sizes, values.terms, full, values.term, table)
            span = place(program, step, values.read, sentence.code, sentence.axes, mesh)
            if sentence.code == "GI03":
                span = only_factor(step, sizes, values.terms, values.term) or span
    elif code == "SC01" and step is not None and obligation.read is not None:
        span = place(program, step, obligation.read, "GI01", obligation.axes, mesh)
    elif code == "GI04":
        rows = _uneven_rows(program, sizes, obligation, full)
        quantities |= {f"tokens of {group}": count for group, count in _uneven_counts(sizes, obligation, full)}
    if full[PER_ITEM] != 1 and (program.work.tokens_even or sentence.code != "GI04"):
        quantities["tokens per item"] = full[PER_ITEM]
    found = finding(
        sentence,
        span,
        "warning" if obligation.warning else "error",
        Counterexample(mesh, quantities, rows, simulated),
        consequence=sentence.code == "GI06" and obligation.through is not None and _unfit(program, sentence.axes),
    )
    return replace(found, sentence=sentence)


def _unfit(program: Program, axes: tuple[str, ...]) -> bool:
    """Whether a tensor does not lie along one of the axes as its reader needs it (FW05): then what comes back
    through the reader is no gradient either."""
    needs = program.layering.needs if program.layering is not None else ()
    return any(need.axis in axes for need in needs)


def _shown_rows(obligation: Obligation, mesh: Mapping[str, int]) -> tuple[DeviceRow, ...]:
    """What the devices along the axis have instead of what a single device has, where that can be said."""
    if not obligation.variant:
        return ()
    axis = next((axis for axis in obligation.axes if mesh[axis] > 1), None)
    pairs = [obligation.sentence.shown(i) for i in range(1 if axis is None else min(mesh[axis], MAX_ROWS))]
    return tuple(DeviceRow({} if axis is None else {axis: i}, *pair) for i, pair in enumerate(pairs) if pair)


def _uneven_counts(sizes: Sizes, obligation: Obligation, env: Mapping[str, int]) -> list[tuple[str, int]]:
    """The shares that a mean treats alike, with token counts that are not: 1, then 2."""
    missing = [axis for axis in obligation.axes if sizes.size(axis).at(env) > 1]
    groups = [f"{axis}={index}" for axis in missing[:1] for index in range(int(sizes.size(axis).at(env)))]
    if not groups:
        groups = [f"microbatch={turn}" for turn in range(1, int(sizes.microbatches.at(env)) + 1)]
    return [(group, 1 if index == 0 else 2) for index, group in enumerate(groups)]


def _uneven_rows(
    program: Program, sizes: Sizes, obligation: Obligation, env: Mapping[str, int]
) -> tuple[DeviceRow, ...]:
    """A mean of means gives each token of a small share more."""
    counted = _uneven_counts(sizes, obligation, env)
    groups, counts = [group for group, _ in counted], [count for _, count in counted]
    total = sum(counts)
    shares = [Fraction(total, len(groups) * count) for count in counts]
    single = [f"g[{group}: {count} token{'s' if count > 1 else ''}]" for group, count in zip(groups, counts)]
    applies = [
        text if share == 1 else f"({share}) {text}" if share.denominator > 1 else f"{share} {text}"
        for share, text in zip(shares, single)
    ]
    return (DeviceRow({}, summed(applies), summed(single)),)


def arrange(
    findings: Iterable[Finding], own: Collection[int] = (), biases: Mapping[str, Collection[str]] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """One finding per fault: the same fault of several groups is told once; causes come first, and
    what follows from a cause on the same weights, along no other axes, is marked as its consequence. `own`: the ids
    of findings that follow from nothing. `biases`: as `scattered_biases` has them; the gradient of one that is
    added too early is whole, and a share where it is added in time."""
    merged: dict[object, list[Finding]] = {}
    for one in findings:
        merged.setdefault(_same(one), []).append(one)
    out = []
    alone: set[int] = set()
    for group in merged.values():
        out.append(_join(group))
        if any(id(one) in own for one in group):
            alone.add(id(out[-1]))
    out.sort(key=lambda one: (_rank(one), one.span.line, one.span.column))
    broken: dict[str, set[str]] = {}  # weights -> the axes along which a cause shows
    absent: dict[str, set[str]] = {}  # where a gradient cannot even be computed, how it is combined follows
    early = {axis for one in out if one.code == "FW04" for axis in one.axes}
    arranged = []
    for one in out:
        names = set((one.weights or "").split(", ")) - {""}
        follows = id(one) not in alone and (
            (one.code in ("SC01", "GI07") and _from(one, names, broken))
            or (one.code.startswith("GI") and _from(one, names, absent))
        )
        if one.code == "GI02" and id(one) not in alone and _from(one, names, biases) and early.issuperset(one.axes):
            follows, one = True, replace(one, help=None)  # leaving the axis out is wrong with the cause mended
        if one.severity == "error" and (
            one.code.startswith("GI") and one.code != "GI07" or one.code in ("CC01", "FW01", "FW06")
        ):
            for name in names:
                broken.setdefault(name, set()).update(one.axes)
        if one.code == "FW01":
            for name in names:
                absent.setdefault(name, set()).update(one.axes)
        arranged.append(replace(one, consequence=follows or one.consequence, sentence=None))
    return tuple(arranged)


def _from(one: Finding, names: set[str], causes: Mapping[str, Collection[str]]) -> bool:
    """Whether each of these weights has a cause, and along each of the axes."""
    return bool(names) and all(name in causes and set(one.axes) <= set(causes[name]) for name in names)


def _same(one: Finding) -> tuple[object, ...]:
    """Equal for findings that tell of one fault."""
    message = partial(reworded, one, weights="...")
    match one.code:
        case "FW06":  # one boundary, told once, with all the weights before it
            return one.code, one.span
        case "FW04":  # and so is one addition, which every reader behind it finds wrong
            return one.code, one.span, one.axes, message(tensor="...")
    example = one.counterexample
    if example is None:
        return one.code, one.axes, one.span, message(), one.severity
    rows = tuple((*row.device.items(), row.applies, row.single) for row in example.devices)
    return one.code, one.axes, one.span, message(), one.severity, (*example.mesh.items(),), rows


def _join(group: list[Finding]) -> Finding:
    """One of them for all: one that says what devices have, where one does."""
    first = next((one for one in group if one.counterexample is not None and one.counterexample.devices), group[0])
    names = list(dict.fromkeys(one.weights for one in group if one.weights))
    if len(names) < 2:
        return first
    shown = ", ".join(f"`{name}`" for name in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return replace(first, weights=", ".join(names), message=reworded(first, weights=shown))


def _rank(one: Finding) -> int:
    severity = {"error": 0, "warning": 100, "note": 200}[one.severity]
    for index, prefix in enumerate(_ORDER):
        if one.code == prefix:
            return severity + index
    return severity + next((index for index, prefix in enumerate(_ORDER) if one.code.startswith(prefix)), len(_ORDER))
