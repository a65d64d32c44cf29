"""Random specs with blocks on the stages of a pipeline: tied tables, ends that are said or follow, and gradients
that are not kept. The same seed, the same text."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from placelogic.problem import SpecError
from placelogic.program import block as bl
from placelogic.program.program import Program
from placelogic.prove import prove
from placelogic.simulate import SimulationTooLarge, simulate_any
from tests.layers import draw as drawing
from tests.layers.agree import Judged, program_of, simulated, small

TRIES = 4
PIPELINE = ["pipeline(pp)"] * 3 + ["pipeline(pp, schedule = zbv)", "pipeline(pp, schedule = interleaved_1f1b, chunks = 2)"]


def draw(seed: int) -> str:
    """The text of one spec. Drafts that are errors are drawn again, but not always: whatever is accepted is judged."""
    random = Random(seed)
    text = ""
    for _ in range(TRIES):
        text = _drawn(random)
        try:
            program_of(text)
        except SpecError:
            continue
        break
    return text


def _drawn(random: Random) -> str:
    draft = drawing.Draft(random)
    draft.axes = random.choice([["tp"], ["tp"], ["dp", "tp"]])
    mesh = [*draft.axes, "pp"]
    random.shuffle(mesh)
    draft.head = [f"mesh {', '.join(mesh)}"]
    if "dp" in draft.axes:
        draft.head.append("batch over dp")
    if random.random() < 0.15:
        draft.head.append("microbatches 2")
    draft.head.append("dims batch, sequence, hidden, ffn, heads, kv_heads, head, expert, vocab")
    if random.random() < 0.8:
        drawing._embedding(draft)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        drawing._layer(draft)
    if random.random() < 0.8:
        drawing._head(draft)
    for block in draft.blocks:
        if block[0].startswith("block layer") and "repeat" not in block[0] and random.random() < 0.9:
            block[0] = block[0].replace(" {", f" repeat {random.choice([1, 2, 3])} {{")
    _tie(draft, random)
    draft.places.append(f"use {random.choice(PIPELINE)}" if random.random() < 0.95 else "stages over pp")
    for index, group in enumerate(draft.groups):
        if random.random() < 0.06:
            ends = random.choice(["first", "last", "first and last"])
            draft.groups[index] = group.replace(" }", f", used on {ends} }}")
    names = [group.split()[1] for group in draft.groups]
    if random.random() < 0.5 and names:
        how = random.choice(["none", "sum", "mean"])
        draft.lines.append(f"sync {random.choice([names[0], names[-1], *names])} over {random.choice(mesh)} by {how}")
    if random.random() < 0.15 and names:
        draft.lines.append(f"place {random.choice([names[0], *names])} {{ gradients materialized }}")
    if random.random() < 0.2:
        drawing._override(draft, drawing._boundaries(draft))
    return draft.text()


def _tie(draft: drawing.Draft, random: Random) -> None:
    """The head uses the table of the embedding, mostly."""
    first, last = draft.blocks[0], draft.blocks[-1]
    if not first[0].startswith("block first") or not last[0].startswith("block last") or random.random() < 0.3:
        return
    table = first[2].split(" with ")[1].split()[0]
    line = next(index for index, line in enumerate(last) if "logits = linear" in line)
    own = last[line].split(" with ")[1].split()[0]
    last[line] = last[line].replace(f"with {own} ", f"with {table} ")
    draft.groups = [group for group in draft.groups if group.split()[1] != own]
    draft.places = [place for place in draft.places if place.split()[1] != own]


# --- judging ----------------------------------------------------------------------------------


def judge(text: str, seed: int = 0, meshes: int = 3) -> Judged:
    """Whether proof and simulation agree, and every stage has what its blocks use."""
    try:
        program = program_of(text)
        report = prove(program)
    except SpecError as error:
        return Judged("error", codes=frozenset(problem.code for problem in error.problems))
    codes = frozenset(finding.code for finding in report.findings if finding.severity == "error")
    if (missing := absent(program)) is not None:
        return Judged(report.verdict, missing, codes)
    every = list(small(program))
    random = Random(seed)
    some = every if len(every) <= meshes else random.sample(every, meshes)
    if report.verdict == "proved":
        wrong = next((f"proved, but wrong at {at}: {found}" for at in some if (found := differs(program, at))), None)
        return Judged("proved", wrong, codes)
    if report.verdict != "refuted":
        told = next((finding.message for finding in report.findings if finding.code.startswith("UN")), report.verdict)
        return Judged(report.verdict, told, codes)
    at = random.choice(every)
    verdict, wrong = prove(program_of(text, at)).verdict, differs(program, at)
    agreed = verdict == ("proved" if wrong is None else "refuted")
    return Judged("refuted", None if agreed else f"{verdict} at {at}, and simulated: {wrong}", codes)


def differs(program: Program, sizes: Mapping[str, int]) -> str | None:
    """What goes wrong on this mesh: in the layers, or else in a step on gradients that come as placements say."""
    if (wrong := simulated(program, sizes)) is not None:
        return wrong
    assert program.layering is not None
    quantities = {let.name: sizes.get(let.name, 1) for let in program.lets if let.value is None}
    try:
        outcome = simulate_any(program, {axis: sizes[axis] for axis in program.mesh.axes}, quantities)
    except SimulationTooLarge:
        return None
    if program.layering.flows:  # gradients come otherwise, and only what cannot be run is told
        return str(outcome.stops[0]) if outcome.stops else None
    return None if outcome.right else str(outcome)


def absent(program: Program, count: int = 3) -> str | None:
    """A block that runs on a stage, of `count`, that does not hold its weights; None where there is none."""
    assert program.layers is not None and program.stages is not None
    blocks = program.layers.blocks
    repeated = [index for index, block in enumerate(blocks) if block.repeat is not None]
    end = 0 if program.stages.vee else count - 1
    for index, block in enumerate(blocks):
        if repeated:
            runs = set(range(count)) if block.repeat is not None else {0 if index < repeated[0] else end}
        else:
            runs = {0} if index == 0 else {end} if index == len(blocks) - 1 else set()
        for op in block.operations:
            name = getattr(op, "weights", None)
            if name is None:
                continue
            weights = program.group(name)
            if weights.uses is not None:
                holders = {0} if weights.uses.first else set()
                holders |= {end} if weights.uses.last else set()
                if not runs <= holders:
                    return f"block `{block.name}` runs on stages {sorted(runs)}, and `{name}` is on {sorted(holders)}"
            elif not weights.frozen and ((cut := weights.params.cut("pp")) is None or cut.dim != "layer"):
                return f"`{name}` of block `{block.name}` is not dealt out"
    return _twice(program)


def _twice(program: Program) -> str | None:
    """One table on two stages is a share of each."""
    assert program.layers is not None
    ops = [(block, op) for block in program.layers.blocks for op in block.operations]
    for block, op in ops:
        for other, linear in ops:
            if isinstance(op, bl.Embedding) and isinstance(linear, bl.Linear) and op.weights == linear.weights:
                uses = program.group(op.weights).uses
                if block is not other and (uses is None or not (uses.vee or (uses.first and uses.last))):
                    return f"`{op.weights}` is used in two blocks, and lies on {uses}"
    return None
