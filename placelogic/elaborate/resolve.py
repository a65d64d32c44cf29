"""From one flat list of statements to a step program whose steps are the stated ones only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from msgspec.structs import replace

from placelogic.elaborate import hosted, lines, optimizers, placements, skips, steps
from placelogic.elaborate.count import count_weights
from placelogic.elaborate.declare import read_sizes
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.sizes import Declared
from placelogic.elaborate.stated import Stated
from placelogic.elaborate.targets import Groups, WeightsGroup, select
from placelogic.elaborate.weights import read_weights
from placelogic.elaborate.work import read_stages, read_work
from placelogic.problem import closest
from placelogic.program.catalog import STATES
from placelogic.program.program import (
    Budget,
    Claim,
    Conflict,
    Expectation,
    Layout,
    Op,
    Program,
    Refresh,
    Step,
    Weights,
    flat,
)
from placelogic.source import Span
from placelogic.syntax import ast

VERDICT_CODES = frozenset(
    [f"GI0{n}" for n in range(1, 8)]
    + [f"SC0{n}" for n in range(1, 9)]
    + [f"FW0{n}" for n in range(1, 9)]
    + ["CC01", "CC02", "CL01", "BU01"]
)

ABOUT_LAYERS = (
    ast.AttentionStmt,
    ast.BlockStmt,
    ast.CheckpointStmt,
    ast.DimsStmt,
    ast.DrawnStmt,
    ast.OverrideStmt,
    ast.PositionsStmt,
)
"""The statements that say something about operations of layers."""


def resolve(name: str, items: Sequence[Item], span: Span, fixed: Mapping[str, int], log: Log) -> tuple[Program, Stated]:
    """The program and what was stated beside it. Every problem goes to `log`; with problems the
    result is of no use."""
    sizes = read_sizes(items, fixed, log)
    if not sizes.atoms and not select(items, ast.MeshStmt):
        log.add("PL305", f"spec `{name}` has no mesh", span, "declare the axes of the devices: `mesh dp`")
    work = read_work(items, sizes, log)
    stages = read_stages(items, sizes, work.splits, log)
    groups = read_weights(items, sizes, stages, work.splits, log)
    if not groups.members and not select(items, ast.WeightsStmt):
        log.add("PL306", f"spec `{name}` has no weights", span, "declare some: `weights model { size P }`")
    layers = None
    if any(_about_layers(item) for item in items):
        from placelogic.elaborate.layers import read_layers  # so that specs without blocks start faster

        layers = read_layers(items, work.splits, sizes, groups, log)
    if layers is not None and not log.problems:
        groups = count_weights(groups, layers, sizes, log)
    if layers is not None and layers.blocks and not log.problems:
        from placelogic.elaborate.stages import on_stages

        groups = on_stages(groups, layers, stages, log)
    lines.check_lines(items, groups, sizes, log)
    clip = lines.read_clip(items, groups, sizes, log)
    reader = steps.StepReader(sizes, work.losses, clip is not None, log)
    found = steps.find_steps(items, groups, log)
    stated = lines.read_stated(items, groups, found, reader, log)

    placed = placements.read_places(items, sizes, groups, log)
    reshards = placements.read_reshards(items, sizes, groups, log)
    everywhere: dict[str, dict[str, Layout]] = {}
    conflicts: list[Conflict] = []
    for group in groups.members:
        layouts: dict[str, Layout] = {}
        for state in STATES:
            layouts[state], differ = placements.layout(group, state, placed, groups, sizes)
            conflicts += differ
        if group.name in reshards:
            layouts["params"] = replace(layouts["params"], reshard=reshards[group.name])
        placements.check_activations(group, layouts["activations"], work.splits, log)
        placements.check_stages(group, layouts, log)
        hosted.check_hosted(group, layouts, log)
        placements.check_routed(group, layouts["params"], work.splits, log)
        everywhere[group.name] = layouts
    everywhere = placements.with_members(everywhere)
    weights = [_weights(group, everywhere[group.name], items, groups, sizes, log) for group in groups.members]
    placements.check_loose_ends(groups, stages, everywhere, log)
    if layers is not None and layers.blocks and not log.problems:
        from placelogic.elaborate.across import check_across

        check_across(layers, groups, stages, work.splits, everywhere, log)
    if stages is not None and not log.problems:
        from placelogic.elaborate.stages import check_dealt

        check_dealt(groups, layers, stages, everywhere, log)
    program = Program(
        name=name,
        mesh=sizes.mesh(),
        lets=tuple(sizes.lets.values()),
        assumptions=tuple(sizes.assumptions),
        work=work,
        stages=stages,
        weights=tuple(weights),
        steps=_steps(weights, found, reader, sizes.constant(work.microbatches), log),
        clip=clip,
        conflicts=tuple(conflicts),
        expectations=expectations(items, groups.names, log),
        span=span,
        layers=layers,
        claims=tuple(
            Claim(item.statement.condition, item.at(item.statement.span))
            for item in select(items, ast.ClaimStmt)
            if isinstance(item.statement, ast.ClaimStmt)
        ),
        budgets=tuple(_budget(item, sizes) for item in select(items, ast.BudgetStmt)),
        unheeded=tuple(log.unheeded),
    )
    return program, stated


def _about_layers(item: Item) -> bool:
    """What a strategy of the library says about attention says nothing where no block has any."""
    return isinstance(item.statement, ABOUT_LAYERS) and not (
        item.standard and isinstance(item.statement, ast.AttentionStmt)
    )


def _budget(item: Item, sizes: Declared) -> Budget:
    node = item.statement
    assert isinstance(node, ast.BudgetStmt)
    amount = sizes.expr(node.amount, item, node.span)
    return Budget(amount, node.unit, item.at(node.span))


def _weights(
    group: WeightsGroup, layouts: dict[str, Layout], items: Sequence[Item], groups: Groups, sizes: Declared, log: Log
) -> Weights:
    return Weights(
        name=group.name,
        kind=group.kind,
        size=group.size,
        layers=group.layers,
        dims=group.dims,
        uses=group.uses,
        routed=group.routed,
        frozen=group.frozen,
        optimizer=optimizers.optimizer_of(group, items, groups, sizes, log),
        precision=lines.precision_of(group, items, groups, log),
        params=layouts["params"],
        optimizer_state=layouts["optimizer"],
        gradients=layouts["gradients"],
        activations=layouts["activations"],
        init=lines.init_of(group, items, groups, sizes, log),
        random=lines.random_of(group, items, groups, sizes, log),
        span=group.item.at(group.statement.span),
    )


def _steps(
    weights: Sequence[Weights],
    found: dict[str, steps.StatedStep],
    reader: steps.StepReader,
    count: Fraction | None,
    log: Log,
) -> tuple[Step, ...]:
    """The stated steps, in the order of the weights; every block is read once."""
    read: dict[int, tuple[Op, ...]] = {}
    result: list[Step] = []
    for group in weights:
        step = found.get(group.name)
        if step is None:
            continue
        if id(step.item) not in read:
            read[id(step.item)] = reader.read(step)
        ops = read[id(step.item)]
        span = step.statement.span
        if not group.master:
            for op in flat(ops):
                if isinstance(op, Refresh):
                    log.once(step.item, "PL336", f"`{group.name}` has no master copy to refresh params from",
                           op.origin.library or op.origin.span,
                           "say so in `precision { master fp32 }`, or leave `refresh` out")  # fmt: skip
        layouts = {"params": group.params, "optimizer": group.optimizer_state, "gradients": group.gradients}
        hosted.check_host(group, ops, layouts, count, step.item, step.statement.target.span, log)
        result.append(Step(group.name, ops, True, step.item.origin(span)))
    trained = [group.name for group in weights if not group.frozen]
    skips.check_together({step.weights: step.ops for step in result}, trained, found, log)
    return tuple(result)


def expectations(items: Sequence[Item], weights: frozenset[str] | None, log: Log) -> tuple[Expectation, ...]:
    """What the spec expects of itself. `weights` None: do not check the names of weights."""
    result = []
    for item in select(items, ast.ExpectStmt):
        node = item.statement
        assert isinstance(node, ast.ExpectStmt)
        code, known = node.code, node.code in VERDICT_CODES
        if code is not None and not known and not (code.startswith("PL") and code[2:].isdigit()):
            log.at(item, "PL220", f"there is no finding `{code}`", node.span,
                   closest(code, VERDICT_CODES) or "one of GI01-07, SC01-08, FW01-08, CC01-02")  # fmt: skip
        elif code is not None and code.startswith("PL") != (node.verdict == "error"):
            log.at(item, "PL220", f"`{code}` does not go with `{node.verdict}`", node.span,
                   "PL codes are errors, all others belong to a verdict")  # fmt: skip
        if weights is not None and node.weights is not None and node.weights not in weights:
            log.at(item, "PL202", f"there are no weights `{node.weights}`", node.span, closest(node.weights, weights))
        result.append(Expectation(node.verdict, code, node.weights, item.at(node.span)))
    return tuple(result)
