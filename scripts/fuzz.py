"""Feeds mutated specs to the whole pipeline and looks for anything but a verdict or a coded error.

    python scripts/fuzz.py --count 10000 --seed 1 --jobs 2 --save offenders
    python scripts/fuzz.py --seed 1 --only 4711          # one input again, with its text and traceback

The inputs are the specs of this repository, one at a time, with some bytes, tokens or lines changed.
Input number N of a seed is always the same. An offender is an input that raises anything but SpecError,
or takes more CPU time than --limit. Exit code 1 if there is any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

FOLDERS = ("examples", "placelogic/std", "tests")
LIMIT_S = 2.0
"""CPU seconds one input may take."""
RLIMIT = 100_000
"""Solver steps for one query: enough for most, and a test of giving up for the rest."""
STUCK_S = 60.0
"""Wall-clock seconds without a sign of life before a worker is killed: it hangs outside Python."""

TOKEN = re.compile(r'[A-Za-z_]\w*|\d+(?:\.\d+)?|"[^"\n]*"|[<>=!]=|[^\w\s]|\n|[ \t]+')
BLOCK = re.compile(r"^(?=spec \w+ \{)", re.MULTILINE)
ODD_BYTES = (b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\t", b"\x0c", b"\xe2\x80\xa8", b"\xcc\x81", b"#", b'"')
ODD_NUMBERS = ("0", "1", "2", "-1", "3/2", "0.5", "1/0", "99999999999999999999", "10" * 60, "1.000000001", "007")


class TooSlow(BaseException):
    """Raised by the timer. No Exception, so that nothing in the pipeline can catch it."""


class Outcome(Struct, frozen=True):
    """`kind`: the stage that refused the input, or the verdicts it got, or `OFFENDER`."""

    kind: str
    seconds: float
    trace: str = ""


OFFENDER = "offender"


def corpus() -> list[str]:
    """The specs to mutate: one spec at a time, with the declarations it shares."""
    texts: dict[str, None] = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.place")):
            shared, *blocks = BLOCK.split(path.read_text(encoding="utf-8"))
            for block in blocks or [""]:
                texts[shared + block] = None
    return list(texts)


class Mutator:
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.words = sorted({word for text in texts for word in TOKEN.findall(text) if word.strip()})
        self.lines = sorted({line.strip() for text in texts for line in text.split("\n") if line.strip()})

    def input(self, seed: int, number: int) -> bytes:
        """Input `number` of this seed."""
        rng = random.Random(f"{seed}:{number}")
        text = rng.choice(self.texts)
        level = rng.random()
        # Few changes, so that a good share gets past the parser.
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            text = self._lines(text, rng) if level < 0.35 else self._tokens(text, rng) if level < 0.8 else text
        data = text.encode("utf-8")
        return data if level < 0.8 else self._bytes(data, rng)

    def _tokens(self, text: str, rng: random.Random) -> str:
        parts = TOKEN.findall(text)
        solid = [i for i, part in enumerate(parts) if part.strip(" \t")]
        at, other = rng.choice(solid), rng.choice(solid)
        match rng.randrange(9):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case 3 | 4:
                parts[at] = rng.choice(self.words)
            case 5:
                parts.insert(at, f" {rng.choice(self.words)} ")
            case 6:
                parts[at] = parts[other]
            case 7:
                numbers = [i for i in solid if parts[i][0].isdigit()] or solid
                parts[rng.choice(numbers)] = rng.choice(ODD_NUMBERS)
            case _:
                low, high = sorted((at, other))
                high = min(high, low + rng.randrange(1, 30))
                parts[low:high] = parts[low:high] * rng.choice((0, 2, 2, 40))
        return "".join(parts)

    def _lines(self, text: str, rng: random.Random) -> str:
        lines = text.split("\n")
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, lines[other])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3 | 4:
                lines.insert(at, rng.choice(self.lines))
            case _:
                lines[at] = rng.choice(self.lines)
        return "\n".join(lines)

    def _bytes(self, data: bytes, rng: random.Random) -> bytes:
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(data) + 1)
            to = min(len(data), at + rng.choice((1, 1, 1, 4, 40)))
            match rng.randrange(6):
                case 0:
                    data = data[:at] + data[to:]
                case 1:
                    data = data[:at] + rng.randbytes(to - at) + data[to:]
                case 2:
                    data = data[:at] + rng.choice(ODD_BYTES) + data[at:]
                case 3:
                    data = data[:at] + data[at:to] * rng.choice((2, 50)) + data[to:]
                case 4:
                    data = data[:at]
                case _:
                    data = data[:at] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at:to]) + data[to:]
        return data


def run(data: bytes, path: str = "fuzz.place") -> str:
    """The whole pipeline on one input: the verdicts, or the stage that refused it. Raises what is no SpecError."""
    from placelogic.elaborate import elaborate_file
    from placelogic.elaborate.complete import complete
    from placelogic.elaborate.show import show
    from placelogic.problem import SpecError
    from placelogic.prove import Options, prove
    from placelogic.session.check import is_library
    from placelogic.syntax.format import format_text
    from placelogic.syntax.parse import normalised, parse
    from placelogic.syntax.read import decode

    stage = "read"
    try:
        text = normalised(decode(data, path))
        stage = "parse"
        file = parse(text, path)
        stage = "format"
        once = format_text(text, path)
        assert format_text(once, path) == once, "formatting twice changes the text"
        if is_library(file):
            return "library"
        stage = "elaborate"
        verdicts = []
        for spec in elaborate_file(file, {}):
            try:
                stage = "elaborate"
                program = complete(spec)
                stage = "show"
                show(program)
                stage = "prove"
                verdicts.append(prove(program, Options(explain=False, rlimit=RLIMIT, timeout_s=1.0)).verdict)
            except SpecError as error:
                _presentable(error)
                verdicts.append(f"error in {stage}")
        return "|".join(sorted(set(verdicts)))
    except SpecError as error:
        _presentable(error)
        assert stage != "format", f"what parses is not formatted: {error}"
        return f"error in {stage}"


def _presentable(error: BaseException) -> None:
    """Every problem has a code and a place."""
    problems = error.problems  # type: ignore[attr-defined]
    assert problems, "an error without a problem"
    for problem in problems:
        assert re.fullmatch(r"PL[0-4]\d\d", problem.code), f"no code for the user's mistake: {problem}"
        assert problem.message and problem.span.line >= 1, f"no place: {problem}"


def judge(data: bytes, limit: float = LIMIT_S) -> Outcome:
    """Run one input under the time limit."""

    def late(*_: object) -> None:
        raise TooSlow(f"more than {limit} s of CPU time")

    before = signal.signal(signal.SIGPROF, late)
    start = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        kind, trace = run(data), ""
    except (Exception, TooSlow):
        kind, trace = OFFENDER, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return Outcome(kind, time.process_time() - start, trace)


def place(trace: str) -> str:
    """Where an offender fails, so that one fault is told once: the last line of our own, and the error."""
    frames = re.findall(r'File "([^"]+placelogic/[^"]+)", line (\d+)', trace)
    where = f"{Path(frames[-1][0]).name}:{frames[-1][1]}" if frames else "?"
    return f"{where} {trace.strip().splitlines()[-1][:120]}"


def _work(seed: int, numbers: range, limit: float, out: Connection) -> None:
    mutator = Mutator(corpus())
    for number in numbers:
        out.send((number, None))
        out.send((number, judge(mutator.input(seed, number), limit)))
    out.send((None, None))


def campaign(seed: int, count: int, jobs: int, limit: float) -> Iterator[tuple[int, Outcome]]:
    """Every input with its outcome, as they are done. A worker that hangs outside Python is replaced."""
    context = multiprocessing.get_context("spawn")
    workers: dict[Connection, list] = {}

    def start(numbers: range) -> None:
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(seed, numbers, limit, writer), daemon=True)
        process.start()
        writer.close()
        workers[reader] = [process, numbers, numbers.start, time.monotonic()]

    for job in range(jobs):
        start(range(job, count, jobs))
    while workers:
        for reader in wait(list(workers), timeout=1.0):
            state = workers[reader]  # type: ignore[index]
            try:
                number, outcome = reader.recv()  # type: ignore[union-attr]
            except EOFError:
                number, outcome = state[2], Outcome(OFFENDER, 0.0, "the process died")
                state[3] = float("-inf")
            else:
                state[3] = time.monotonic()
            if number is None:
                del workers[reader]  # type: ignore[arg-type]
            elif outcome is None:
                state[2] = number
            else:
                yield number, outcome
        for reader, (process, numbers, current, seen) in list(workers.items()):
            if time.monotonic() - seen > STUCK_S:
                process.kill()
                del workers[reader]
                if seen != float("-inf"):
                    yield current, Outcome(OFFENDER, STUCK_S, f"no sign of life for {STUCK_S} s")
                if current + numbers.step < numbers.stop:
                    start(range(current + numbers.step, numbers.stop, numbers.step))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="CPU seconds for one input")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep offenders here")
    parser.add_argument("--only", type=int, metavar="N", help="run input N alone and print it")
    options = parser.parse_args()
    mutator = Mutator(corpus())
    if options.only is not None:
        data = mutator.input(options.seed, options.only)
        sys.stdout.write(data.decode("utf-8", "backslashreplace") + "\n")
        outcome = judge(data, options.limit)
        print(f"--- {outcome.kind}, {outcome.seconds:.2f} s\n{outcome.trace}")
        return int(outcome.kind == OFFENDER)
    began = time.monotonic()
    kinds: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    slowest = (0.0, 0)
    for done, (number, outcome) in enumerate(campaign(options.seed, options.count, options.jobs, options.limit), 1):
        kinds[outcome.kind] += 1
        slowest = max(slowest, (outcome.seconds, number))
        if outcome.kind == OFFENDER:
            fault = place(outcome.trace)
            faults[fault] += 1
            if faults[fault] == 1:
                print(f"offender {number}: {fault}", flush=True)
            if options.save:
                options.save.mkdir(parents=True, exist_ok=True)
                name = f"{options.seed}-{number}"
                (options.save / f"{name}.place").write_bytes(mutator.input(options.seed, number))
                (options.save / f"{name}.txt").write_text(outcome.trace, encoding="utf-8")
        if done % 5000 == 0:
            rate = done / (time.monotonic() - began)
            print(f"{done}/{options.count}, {rate:.0f} per second, {kinds[OFFENDER]} offenders", flush=True)
    print(f"{sum(kinds.values())} inputs in {time.monotonic() - began:.0f} s; slowest {slowest[0]:.2f} s (input {slowest[1]})")
    for kind, times in kinds.most_common():
        print(f"{times:8} {kind}")
    for fault, times in faults.most_common():
        print(f"{times:8} {OFFENDER}: {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
