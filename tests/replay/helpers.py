"""Specs as cases to replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.problem import SpecError
from placelogic.prove import prove
from placelogic.replay.cases import Case, cases
from placelogic.replay.meshes import MOST_RANKS
from placelogic.syntax.parse import parse

ROOT = Path(__file__).parents[2]


@cache
def cases_in(path: Path) -> tuple[Case, ...]:
    """Everything that can be replayed of the specs of a file; found once."""
    return tuple(cases_of(path.read_text(encoding="utf-8"), str(path)))


def cases_of(
    text: str, path: str = "replayed.place", wanted: Mapping[str, int] | None = None, most: int = 4096
) -> Iterator[Case]:
    """Everything that can be replayed of the specs in a text."""
    for spec in elaborate_file(parse(text, path)):
        try:
            program = complete(spec)
            report = replace(prove(program), name=f"{Path(path).stem}: {spec.name}")
        except SpecError:
            continue
        yield from (
            one for one in cases(program, report, wanted or {}, most if wanted else MOST_RANKS) if isinstance(one, Case)
        )
