"""Replays many specs in PyTorch; exits 1 when what happens is not what any verdict says.

python scripts/replay_many.py random --count 200        random specs on 2 to 4 processes
python scripts/replay_many.py blocks --count 100        random specs with blocks, on 2 to 6 processes
python scripts/replay_many.py files examples tests/corpus   every spec of these files and folders
python scripts/replay_many.py table                     examples and the standard library, as a Markdown table
python scripts/replay_many.py scripts tests/verdicts/cases  a script of every refuted spec, run; and of every proved one
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from placelogic.files import find
from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice, Outcome, replay
from placelogic.replay.native.recognise import NoComponent, recognise
from placelogic.replay.native.replay import replayed
from placelogic.replay.specs import told
from placelogic.report.replayed import Replayed
from tests.layers.draw import draw
from tests.property.generate import generate
from tests.replay.helpers import cases_of
from tests.replay.library import every
from tests.replay.shown import DIFFERENT, SAME, of_right_steps, printed, written

CHUNK = 48
"""Cases that are prepared together, so that those with equally many devices share processes."""


def drawn(count: int, seed: int, text: Callable[[int], str], most: int) -> Iterator[list[Case]]:
    """One case of each random spec that has one on 2 devices to `most`."""
    found: list[Case] = []
    done = 0
    while done < count:
        fitting = [case for case in cases_of(text(seed), f"seed {seed}.place") if 2 <= case.meeting.ranks <= most]
        found += fitting[:1]
        done += len(fitting[:1])
        seed += 1
        if len(found) == CHUNK or (done == count and found):
            yield found
            found = []


def read(paths: list[str]) -> Iterator[list[Case]]:
    for one in find(paths):
        yield list(cases_of(Path(one.path).read_text(encoding="utf-8"), one.path))


def compare(chunks: Iterator[list[Case]], choice: Choice) -> int:
    """Counts, and every disagreement."""
    start = time.monotonic()
    counts: Counter[str] = Counter()
    factors = disagreements = 0
    for chunk in chunks:
        for outcome in replay(chunk, choice):
            counts[f"{outcome.case.verdict} and {outcome.result}"] += 1
            factors += outcome.factor is not None
            if not outcome.agrees:
                disagreements += 1
                print(_wrong(outcome), flush=True)
    shown = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    print(f"{sum(counts.values())} replayed in {time.monotonic() - start:.0f} s: {shown}")
    print(f"{factors} with a factor named, {disagreements} disagreements")
    return 1 if disagreements else 0


def _wrong(outcome: Outcome) -> str:
    case = outcome.case
    return (
        f"{case.name}: {case.verdict} {case.code or ''} {case.weights or ''} at {dict(case.meeting.sizes)} "
        f"{dict(case.meeting.quantities)}: {outcome.result} {dict(outcome.worst)} {outcome.factor} {outcome.reason}"
    )


def table(choice: Choice) -> int:
    """Both ways, one row each."""
    found = [replace(case, name=case.name.split(": ")[0]) for case in every()]
    for one in find(sorted(str(path) for path in (ROOT / "examples").glob("*.place"))):
        found += list(cases_of(Path(one.path).read_text(encoding="utf-8"), one.path))
    print("| spec | verdict | mesh | way | result | gradient | params | state | held | sent |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    wrong = 0
    for case in found:
        for row in _both(case, choice):
            wrong += row.agrees is not True
            print(_row(row), flush=True)
    return 1 if wrong else 0


def _both(case: Case, choice: Choice) -> Iterator[Replayed]:
    for outcome in replay([case], choice):
        yield told(outcome, 0.0)
    try:
        native = recognise(case.meeting.program, case.meeting.sizes, case.meeting.quantities)
    except NoComponent:
        return
    if case.verdict == "proved":
        yield from replayed(case, native, choice)


def _row(row: Replayed) -> str:
    mesh = " ".join(f"{name}={size}" for name, size in row.mesh.items())
    numbers = [f"{row.differences.get(what, 0.0):.1e}" for what in ("gradient", "params", "state")]
    held = [f"{b.what.split()[0]} {_amount(b)}" for b in row.bytes if b.what.endswith("held")]
    sent = [f"{b.what} {_amount(b)}" for b in row.bytes if not b.what.endswith("held")]
    verdict = f"{row.verdict} {row.code or ''}".strip()
    cells = [row.spec, verdict, mesh, row.way, row.result, *numbers, "; ".join(held), "; ".join(sent)]
    return "| " + " | ".join(cells) + " |"


def _amount(b) -> str:  # type: ignore[no-untyped-def]
    if b.derived is None:
        return f"{b.measured} B"
    if b.measured == b.derived:
        return f"{b.measured} B, as derived"
    return f"{b.measured} B, derived {b.derived} B: {b.cause}"


def scripts(paths: list[str]) -> int:
    """What `--script` writes, run: refuted specs must differ, proved ones must not."""
    start = time.monotonic()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    lines: list[int] = []
    for one in find(paths):
        for shown in written(Path(one.path)):
            if shown.text is None:
                counts["refuted without a script"] += 1
                reasons[shown.reason.split(":")[0]] += 1
                continue
            lines.append(len(shown.text.splitlines()))
            counts["refuted and " + _shows(shown.name, shown.text, DIFFERENT)] += 1
        for shown in of_right_steps(Path(one.path)):
            counts["proved and " + _shows(shown.name, shown.text or "", SAME)] += 1
    print(
        f"{time.monotonic() - start:.0f} s: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    )
    print(
        f"{sum(length <= 80 for length in lines)} of {len(lines)} in 80 lines, the longest has {max(lines, default=0)}"
    )
    print("without a script: " + "; ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    return 1 if any(name.endswith("WRONG") for name in counts) else 0


def _shows(name: str, text: str, wanted: str) -> str:
    told = printed(text)
    if wanted in told:
        return "shown as that"
    print(name, told, flush=True)
    return "WRONG"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["random", "blocks", "files", "table", "scripts"])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first seed of random specs")
    parser.add_argument("--sgd", action="store_true", help="with SGD only, which is quicker")
    options = parser.parse_args()
    choice = Choice(optimizers=("sgd",)) if options.sgd else Choice()
    if options.what == "table":
        return table(choice)
    if options.what == "scripts":
        return scripts(options.paths)
    if options.what == "files":
        return compare(read(options.paths), choice)
    text, most = (draw, 6) if options.what == "blocks" else (generate, 4)
    return compare(drawn(options.count, options.seed, text, most), choice)


if __name__ == "__main__":
    sys.exit(main())
