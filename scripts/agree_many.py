"""Compares proof and simulation on thousands of random specs; exits 1 when they disagree on any.

    python scripts/agree_many.py --count 20000 --seed 0 --jobs 2 --save disagreements
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.property.agree import MAX_DEVICES, judge  # noqa: E402
from tests.property.generate import generate  # noqa: E402
from tests.property.shrink import shrink  # noqa: E402

CHUNK = 20


@dataclass(frozen=True, slots=True)
class Result:
    seed: int
    verdict: str
    disagreement: str | None
    meshes: int
    codes: frozenset[str]
    seconds: float


def one(seed: int, max_devices: int, max_meshes: int | None) -> Result:
    """The judgement on one random spec; a crash of either side is a disagreement too."""
    start = time.monotonic()
    try:
        judged = judge(generate(seed), max_devices, max_meshes, seed)
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        return Result(seed, "crash", f"{type(error).__name__}: {error}\n{where}", 0, frozenset(), time.monotonic() - start)
    taken = time.monotonic() - start
    return Result(seed, judged.verdict, judged.disagreement, judged.meshes, judged.codes, taken)


def _chunk(work: tuple[range, int, int | None]) -> list[Result]:
    seeds, max_devices, max_meshes = work
    return [one(seed, max_devices, max_meshes) for seed in seeds]


def results(seeds: range, jobs: int, max_devices: int, max_meshes: int | None) -> Iterable[Result]:
    chunks = [(seeds[i : i + CHUNK], max_devices, max_meshes) for i in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        for chunk in chunks:
            yield from _chunk(chunk)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(_chunk, chunks):
            yield from found


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
    options = parser.parse_args()

    verdicts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    disagreements = meshes = 0
    slowest = Result(0, "", None, 0, frozenset(), 0.0)
    start = shown = time.monotonic()
    seeds = range(options.seed, options.seed + options.count)
    for done, result in enumerate(results(seeds, options.jobs, options.devices, options.meshes), 1):
        verdicts[result.verdict] += 1
        codes.update(result.codes)
        meshes += result.meshes
        slowest = max(slowest, result, key=lambda r: r.seconds)
        if result.disagreement is not None:
            disagreements += 1
            _tell(result, options.save, options.shrink)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(f"{done}/{options.count} in {shown - start:.0f} s: {dict(verdicts)}, {disagreements} disagree", flush=True)
    taken = time.monotonic() - start
    shares = ", ".join(f"{count} {verdict} ({count / options.count:.0%})" for verdict, count in verdicts.most_common())
    print(f"{options.count} specs, {meshes} meshes simulated, {taken:.0f} s: {shares}")
    print("findings: " + ", ".join(f"{code} {count}" for code, count in sorted(codes.items())))
    print(f"slowest: seed {slowest.seed}, {slowest.seconds:.1f} s")
    print(f"{disagreements} disagreements")
    return 1 if disagreements else 0


def _tell(result: Result, folder: Path | None, small: bool) -> None:
    text = generate(result.seed)
    if small and result.verdict != "crash":
        text = shrink(text, still_disagrees)
    print(f"\nseed {result.seed} disagrees: {result.disagreement}\n{text}", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        words = "\n".join(f"# {line}" for line in str(result.disagreement).splitlines())
        (folder / f"{result.seed}.place").write_text(f"# seed {result.seed}\n{words}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
