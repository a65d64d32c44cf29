"""Compares proof and simulation on thousands of random specs; exits 1 when they disagree on any.

python scripts/agree_many.py --count 20000 --seed 0 --jobs 2 --save disagreements
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.property.agree import MAX_DEVICES, judge
from tests.property.generate import BACKWARD, generate
from tests.property.many import Result, results
from tests.property.shrink import shrink


def still_disagrees(text: str) -> bool:
    """For the shrinker: the same kind of disagreement, on few meshes to be quick."""
    try:
        return judge(text, max_devices=8).disagreement is not None
    except Exception:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--devices", type=int, default=MAX_DEVICES, help="largest mesh to simulate")
    parser.add_argument("--meshes", type=int, default=None, help="simulate only so many meshes per spec")
    parser.add_argument("--save", type=Path, default=None, help="folder for specs that disagree")
    parser.add_argument("--shrink", action="store_true", help="make what disagrees small before it is saved")
    parser.add_argument("--backward", type=float, default=BACKWARD, help="share of specs with `backward` lines")
    options = parser.parse_args()

    verdicts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    disagreements = meshes = 0
    slowest = Result(0, "", None, 0, frozenset(), 0.0)
    start = shown = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    for done, result in enumerate(results(seeds, options.jobs, options.devices, options.meshes, options.backward), 1):
        verdicts[result.verdict] += 1
        codes.update(result.codes)
        meshes += result.meshes
        slowest = max(slowest, result, key=lambda r: r.seconds)
        if result.disagreement is not None:
            disagreements += 1
            _tell(result, options)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(
                f"{done}/{options.count} in {shown - start:.0f} s: {dict(verdicts)}, {disagreements} disagree",
                flush=True,
            )
    taken = time.monotonic() - start
    shares = ", ".join(f"{count} {verdict} ({count / options.count:.0%})" for verdict, count in verdicts.most_common())
    print(f"{options.count} specs, {meshes} meshes simulated, {taken:.0f} s: {shares}")
    print("findings: " + ", ".join(f"{code} {count}" for code, count in sorted(codes.items())))
    print(f"slowest: seed {slowest.seed}, {slowest.seconds:.1f} s")
    print(f"{disagreements} disagreements")
    return 1 if disagreements else 0


def _tell(result: Result, options: argparse.Namespace) -> None:
    folder: Path | None = options.save
    text = generate(result.seed, options.backward)
    if options.shrink and result.verdict != "crash":
        text = shrink(text, still_disagrees)
    print(f"\nseed {result.seed} disagrees: {result.disagreement}\n{text}", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        words = "\n".join(f"# {line}" for line in str(result.disagreement).splitlines())
        (folder / f"{result.seed}.place").write_text(f"# seed {result.seed}\n{words}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
