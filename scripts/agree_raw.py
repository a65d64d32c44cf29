"""Holds every normal form against the questions as they stand; exits 1 when a solver says otherwise, or none decides.

python scripts/agree_raw.py [FILE ...]              spec files and folders; by default tests/ and examples/
python scripts/agree_raw.py --random 2000 --seed 1  random specs
python scripts/agree_raw.py --layers 300 --seed 1   random specs with blocks
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from placelogic.problem import SpecError
from placelogic.prove import Options, decide
from placelogic.prove.recheck import confirm, recheck
from placelogic.session.session import Session


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["tests", "examples"])
    parser.add_argument("--random", type=int, default=0, metavar="COUNT")
    parser.add_argument("--layers", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--z3", action="store_true", help="do not ask cvc5")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    start = process_time()
    for name, text in _texts(options):
        try:
            programs = [(spec.name, spec.program) for spec in Session(text, name).specs if spec.has_program]
        except SpecError:
            continue
        for spec, program in programs:
            try:
                decision = decide(program, Options(confirm=False))
            except SpecError:
                continue
            found[decision.report.verdict] += 1
            for one in (confirm if options.z3 else recheck)(decision.basis):
                found["obligations"] += one.question.counts
                found["questions"] += 1
                found["of which nothing is written"] += one.question.bare
                found.update(one.confirmed_by)
                if not one.confirmed:
                    found["not confirmed"] += 1
                    said = ", ".join(answer.status for answer in one.answers)
                    print(f"{name}, spec {spec}: {one.question.name}: {one.question.status}, but {said}")
    print(f"{dict(found)}, {process_time() - start:.0f} s of CPU")
    return 1 if found["not confirmed"] else 0


def _texts(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Names and texts of what to hold against each other."""
    if options.random:
        from tests.property.generate import generate

        for seed in range(options.seed, options.seed + options.random):
            yield f"random {seed}", generate(seed)
    elif options.layers:
        from tests.layers.draw import draw as layers

        for seed in range(options.seed, options.seed + options.layers):
            yield f"random with blocks {seed}", layers(seed)
    else:
        folders = [Path(name) if Path(name).is_absolute() else ROOT / name for name in options.files]
        for path in sorted(path for one in folders for path in (one.rglob("*.place") if one.is_dir() else [one])):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
