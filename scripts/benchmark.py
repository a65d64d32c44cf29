"""How long checking takes: whole processes cold, one process warm, small and large meshes.

    python scripts/benchmark.py                 # print the table
    python scripts/benchmark.py --write         # and write it into docs/benchmarks.md, with the machine

Every figure is the median of several runs, with the smallest and largest beside it. Nothing here is a
test: speed is recorded, not asserted.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LLAMA = ROOT / "examples" / "llama3_405b_8k.place"
PAGE = ROOT / "docs" / "benchmarks.md"
SWEEP = 1_000_000

SPEC = """mesh {mesh}
{lets}
weights embed {{ size 128256*16384, kind embedding, used on first of pp }}
weights attn {{ size 126*570425344, layers 126 }}
weights mlp {{ size 126*2617245696, layers 126 }}
weights norm {{ size 126*2*16384, layers 126, kind vector }}
weights final_norm {{ size 16384, kind vector, used on last of pp }}
weights head {{ size 128256*16384, kind embedding, used on last of pp }}
microbatches M
clip global_norm
use zero2(dp) * sequence_parallel(tp) * pipeline(pp) * context_parallel(cp)
sync norm, final_norm over tp by sum
"""
"""The shape of Llama 3 405B in 4D parallelism, one statement of what the trainer does."""

LAYERED = """mesh pp, dp, cp, tp
model llama { layers 126, hidden 16384, heads 128, kv_heads 8, ffn 53248, vocab 128256 }
optimizer adamw
precision { params fp32, compute bf16, gradients fp32, moments fp32 }
clip global_norm
microbatches M
use fsdp(dp, reshard_after_forward = false) * sequence_parallel(tp) * context_parallel(cp)
use pipeline(pp, schedule = interleaved_1f1b, chunks = 8)
"""
"""The same training, with the library's model: its blocks say what a layer computes."""


def spec(devices: int | None) -> str:
    """The spec with this many devices (tp 8, pp 16 where they fit), or with every size open."""
    if devices is None:
        return SPEC.format(mesh="dp, tp, pp, cp", lets="")
    tp = 8 if devices >= 128 else 1
    pp = 16 if devices >= 128 else 1
    return SPEC.format(mesh=f"dp = {devices // (tp * pp)}, tp = {tp}, pp = {pp}, cp = 1", lets="let M = 16")


PRINTED = "Printed by `python scripts/benchmark.py --write`; medians of whole runs, never asserted by a test."
GROWTH = """\
The work grows with weight groups times axes, never with the number of devices: the solver sees sizes
as symbols or as numbers, and nothing is enumerated unless a counterexample is shown."""
BOUND = """\
A cold process is busy all the time, on one core, so its time is that of the processor: where others use the machine too the same
command takes half as long again. Importing z3, lark and click takes a quarter of it, the definition of some 220 frozen data classes
with slots (each compiles six methods) another quarter, and checking, once all is loaded, a thirtieth (the row *warm*).
`python -X importtime -m placelogic check FILE` shows the imports; the share of the classes is estimated from the time one of them takes."""


def measured(run: Callable[[], object], runs: int) -> tuple[float, float, float]:
    """Seconds: median, smallest, largest, after one run that is not counted."""
    run()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds), max(seconds)


def process(*arguments: str) -> Callable[[], object]:
    command = [sys.executable, "-m", "placelogic", *arguments]
    return lambda: subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def figures(folder: Path, runs: int) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """What is measured, its target, and the figures."""
    from placelogic.session.files import check

    yield "`placelogic --help`, a process", "0.15 s", measured(process("--help"), runs)
    one = folder / "one.place"
    one.write_text(spec(None))
    yield "405B in 4D, all sizes open, cold process", "0.4 s", measured(process("check", str(one)), runs)
    yield "405B in 4D, all sizes open, warm", "20 ms", measured(lambda: check(one), 5 * runs)
    layered = folder / "blocks.place"
    layered.write_text(LAYERED)
    yield "the same with the operations of its layers, cold process", "0.6 s", measured(process("check", str(layered)), runs)
    yield "the same with the operations of its layers, warm", "", measured(lambda: check(layered), 5 * runs)
    yield f"`{LLAMA.name}` (its four specs), cold process", "", measured(process("check", str(LLAMA)), runs)
    yield f"`{LLAMA.name}` (its four specs), warm", "", measured(lambda: check(LLAMA), 5 * runs)
    for devices in (2, 128, 16_384, 100_096):
        sized = folder / f"{devices}.place"
        sized.write_text(spec(devices))
        yield f"405B in 4D on {devices:,} devices, warm", "flat", measured(lambda path=sized: check(path), 5 * runs)
    many = folder / "many"
    many.mkdir()
    for index in range(1000):
        (many / f"s{index:04}.place").write_text(spec(None if index % 2 else 2 * 128 * (1 + index % 50)))
    yield "1,000 such specs in one call", "15 s", measured(process("check", "--quiet", str(many)), max(1, runs // 5))
    yield "the same, in one process", "", measured(process("check", "-q", "-j1", str(many)), max(1, runs // 5))
    half = folder / "half"
    half.mkdir()
    for path in sorted(many.iterdir())[:500]:
        (half / path.name).write_text(path.read_text())
    kept = str(folder / "cache")
    again = process("gate", "--quiet", "--cache-dir", kept, str(half))
    yield "500 such specs through the gate, nothing changed", "2 s", measured(again, runs)
    yield from cost_figures(runs)
    wrong = folder / "wrong.place"
    wrong.write_text(spec(None).replace("by sum", "by none"))
    yield "a refuted one: counterexample, simulation and fix, warm", "", measured(lambda: check(wrong), runs)
    from editing import Editing

    editing = Editing(LLAMA)
    yield f"`{LLAMA.name}` in an editor, an edit to its diagnostics", "150 ms", measured(editing.edit, 5 * runs)
    editing.close()


def cost_figures(runs: int) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """Formulas from a cold start, and a sweep over sizes with the functions that are exported."""
    from inspect import signature

    import numpy as np

    from placelogic import cost
    from placelogic.cost.render import rendered

    opened = ("cost", str(LLAMA), "--spec", "open")
    yield f"costs of `{LLAMA.name}`, all sizes open, cold process", "2 s", measured(process(*opened), runs)
    module: dict = {}
    exec(rendered("llama", [cost(LLAMA, spec="open")], "rank", "python"), module)
    points = np.random.default_rng(0)
    sizes = {name: points.integers(1, most, SWEEP) for name, most in (("dp", 256), ("tp", 16), ("pp", 32), ("cp", 16), ("M", 64), ("batch", 64), ("sequence", 8192))}

    def sweep() -> None:
        for function in (module["memory_peak_padded"], module["traffic_sent"]):
            function(**{name: sizes[name] for name in signature(function).parameters})

    yield f"its peak and traffic at {SWEEP:,} points (dp, tp, pp, cp, M), NumPy", "5 s", measured(sweep, runs)


REPLAYED = """mesh dp, tp
let h, L
weights attn { size 4*h*h*L, layers L, dims in out }
weights norm { size 2*h*L, layers L, kind vector }
use fsdp(dp) * sequence_parallel(tp)
"""


def replays(runs: int) -> Iterator[tuple[str, str, tuple[float, float, float]]]:
    """One spec on 4 processes, both ways, once torch is imported. Nothing where it is not installed."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return
    from placelogic.replay.specs import Wishes, replay_text

    for way in ("direct", "native"):
        wishes = Wishes(way=way, optimizer="sgd")

        def run(wishes: Wishes = wishes) -> object:
            return replay_text(REPLAYED, "replayed.place", None, wishes, lambda what: None)

        what = f"replay of FSDP x sequence parallelism on 4 processes, {way}, torch imported"
        yield what, "5 s", measured(run, max(1, runs // 2))


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores, {model}; Python {platform.python_version()}, z3 {version('z3-solver')}"


def shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms" if seconds >= 0.1 else f"{seconds * 1000:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    lines = ["| what | target | median | min | max |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for what, target, (median, low, high) in chain(figures(Path(folder), options.runs), replays(options.runs)):
            lines.append(f"| {what} | {target} | {shown(median)} | {shown(low)} | {shown(high)} |")
            print(lines[-1], flush=True)
    if options.write:
        told = ("# Speed", PRINTED, f"{date.today()}, {machine()}.", "\n".join(lines), GROWTH, BOUND)
        PAGE.write_text("\n\n".join(told) + "\n")


if __name__ == "__main__":
    main()
