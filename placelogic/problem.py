"""What is wrong with an input, as data: raised by the reader and the elaborator, printed by report/."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from placelogic.source import Span


class Problem(Struct, frozen=True):
    """One error in the input. `code` is PLnnn: PL0 files, PL1 syntax, PL2 names, PL3 meaning
    not modelled or ambiguous, PL4 arithmetic, PL9 internal. `help` is the way forward."""

    code: str
    message: str
    span: Span
    help: str | None = None


class SpecError(Exception):
    """The input cannot be read as a spec; carries every problem found so far."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(f"{p.code}: {p.message}" + (f" ({p.help})" if p.help else "") for p in problems))
        self.problems = problems


def closest(name: str, known: Iterable[str]) -> str | None:
    """A hint with the closest known name, or None when nothing is near."""
    import difflib  # half of the start-up time of `--help`

    spelled = {one.lower(): one for one in sorted(set(known), reverse=True)}
    near = difflib.get_close_matches(name.lower(), sorted(spelled), n=1, cutoff=0.6)
    return f"did you mean `{spelled[near[0]]}`?" if near else None
