"""Random specs as text: right ones with no, one or two faults. The same seed, the same text."""

from __future__ import annotations

from random import Random

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.derive import derive
from placelogic.problem import SpecError
from placelogic.program import program as pg
from placelogic.syntax.parse import parse
from tests.property import base
from tests.property.arrive import add_lines
from tests.property.draft import Block, Draft
from tests.property.mutate import mutate
from tests.property.soup import soup
from tests.property.steps import printed, rewrite

TRIES = 4
"""Drafts that do not elaborate are drawn again, this often at most: errors are the tests of others."""

SOUP = 0.15
"""The share of specs whose steps are random lines."""

BACKWARD = 0.06
"""The share of specs that say something of gradients that reach weights."""


def generate(seed: int, backward: float = BACKWARD) -> str:
    """The text of one spec."""
    random = Random(seed)
    lines = Random(~seed)
    with_lines = lines.random() < backward
    text = ""
    for _ in range(TRIES):
        draft = base.draw(random)
        if random.random() < SOUP:
            soup(draft, random)
        else:
            _write_steps(draft, random)
            for _ in range(random.choices([0, 1, 2, 3], [46, 35, 15, 4])[0]):
                mutate(draft, random)
        if with_lines:
            add_lines(draft, lines)
        text = draft.text()
        if program_of(text) is not None:
            break
    return text


def program_of(text: str) -> pg.Program | None:
    """The program with its derived steps, or None where the text is no spec."""
    try:
        (spec,) = elaborate_file(parse(text, "drawn.place"))
        return None if spec.program is None or spec.stated is None else derive(spec.program, spec.stated)
    except SpecError:
        return None


def _write_steps(draft: Draft, random: Random) -> None:
    """States the derived step of some weights, rewritten; where they agree, rarely one for all."""
    if random.random() < 0.25:
        return
    program = program_of(draft.text())
    if program is None:
        return
    for step in program.steps:
        if random.random() < 0.75:
            block = printed(step)
            for _ in range(random.choices([0, 1, 2, 3, 4], [20, 30, 25, 15, 10])[0]):
                rewrite(block, draft, random, harmless=True)
            draft.steps[step.weights] = block
    if draft.steps and random.random() < 0.1:
        name = min(draft.steps)
        draft.steps = {"*": Block("step *", draft.steps[name].body)}
    trained = [step.weights for step in program.steps]
    if sorted(draft.steps) == sorted(trained) and random.random() < 0.25:
        _skip(draft, program, random)


def _skip(draft: Draft, program: pg.Program, random: Random) -> None:
    """One decision for all, before the update, right after the loop or anywhere; rarely two, or one that each step
    takes over axes of its own, or at a place of its own."""
    axes = ", ".join(draft.atoms) if random.random() < 0.7 else draft.some_axes(random)
    alike = random.random() < 0.7
    for block in draft.steps.values():
        body = block.body
        for _ in range(1 if random.random() < 0.85 else 2):
            index = body.index("update") if "update" in body and random.random() < 0.7 else min(1, len(body))
            if random.random() < 0.15:
                index = random.randint(0, len(body))
            body.insert(index, f"skip on overflow over {axes if alike else draft.some_axes(random)}")
    if random.random() < 0.15:
        draft.lines.append("place * { gradients materialized }")
