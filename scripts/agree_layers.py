"""Compares proof and simulation on thousands of random specs with blocks; exits 1 when they disagree on any.

    python scripts/agree_layers.py --count 5000 --seed 0 --jobs 2
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.layers.agree import Judged, judge  # noqa: E402
from tests.layers.draw import draw  # noqa: E402


def one(seed: int) -> tuple[int, Judged]:
    return seed, judge(draw(seed), seed)


def judged(seeds: range, jobs: int) -> Iterator[tuple[int, Judged]]:
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, seeds, chunksize=20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    start = time.monotonic()
    verdicts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    wrong = 0
    for seed, result in judged(range(arguments.seed, arguments.seed + arguments.count), arguments.jobs):
        verdicts[result.verdict] += 1
        if sum(verdicts.values()) % 100 == 0:
            print(f"{sum(verdicts.values())} specs, {wrong} disagreements", file=sys.stderr, flush=True)
        codes.update(result.codes)
        if result.disagreement is not None:
            wrong += 1
            print(f"seed {seed}: {result.disagreement}\n{draw(seed)}", flush=True)
    print(f"{arguments.count} specs in {time.monotonic() - start:.0f} s: {dict(verdicts)}, {wrong} disagreements")
    print(f"codes: {dict(sorted(codes.items()))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
