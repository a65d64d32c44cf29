"""Judges many seeds, on several processes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from msgspec import Struct

from tests.property.agree import judge
from tests.property.generate import BACKWARD, generate

CHUNK = 20


class Result(Struct, frozen=True):
    seed: int
    verdict: str
    disagreement: str | None
    meshes: int
    codes: frozenset[str]
    seconds: float


def one(seed: int, max_devices: int, max_meshes: int | None, backward: float = BACKWARD) -> Result:
    """The judgement on one random spec; a crash of either side is a disagreement too."""
    start = time.monotonic()
    try:
        judged = judge(generate(seed, backward), max_devices, max_meshes, seed)
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-3:])
        return Result(
            seed, "crash", f"{type(error).__name__}: {error}\n{where}", 0, frozenset(), time.monotonic() - start
        )
    taken = time.monotonic() - start
    return Result(seed, judged.verdict, judged.disagreement, judged.meshes, judged.codes, taken)


def _chunk(work: tuple[range, int, int | None, float]) -> list[Result]:
    seeds, max_devices, max_meshes, backward = work
    return [one(seed, max_devices, max_meshes, backward) for seed in seeds]


def results(
    seeds: range, jobs: int, max_devices: int, max_meshes: int | None, backward: float = BACKWARD
) -> Iterable[Result]:
    """`backward`: the share of specs with `backward` lines."""
    chunks = [(seeds[i : i + CHUNK], max_devices, max_meshes, backward) for i in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        for chunk in chunks:
            yield from _chunk(chunk)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(_chunk, chunks):
            yield from found
