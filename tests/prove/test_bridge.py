"""From the proofs to the code: each implemented rule against the simulator, on small meshes.

The statements in proofs/ are about the rules as docs/semantics.md has them. That `prove/kinds.py` and
`prove/transfer.py` implement these is tested here: a rule is applied to a kind, and the step it
belongs to is simulated, device by device, by code that knows nothing of kinds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placelogic.problem import SpecError
from placelogic.prove import kinds
from placelogic.prove.kinds import PARTIAL, REPLICATED, Kind, Moved, Stack
from placelogic.prove.ratio import ONE, Ratio, const, var
from placelogic.prove.values import Term

from .bridge import agree, environment, program_of, traced, updated_terms

OUT: Stack = (("out", ("a",)),)
ROOM: Stack = (("@a", ("a",)),)

STARTS: dict[str, tuple[str, Kind]] = {
    "partial": ("batch over a", PARTIAL),
    "part": ("place w over a { activations sharded on sequence }", PARTIAL),
    "replicated": ("", REPLICATED),
    "root": ("batch over a\nfeed same over a", Kind("root", 0)),
    "shard": (
        "place w over a { params sharded on out, optimizer sharded on out, gradients sharded on out }",
        kinds.shard(OUT),
    ),
}
"""How a gradient starts along axis a: the lines of a spec, and the kind."""

Rule = Callable[[Kind, Ratio], Moved]

RULES: dict[str, tuple[str, Rule]] = {
    "sum": ("reduce over a by sum", lambda kind, n: kinds.reduce(kind, "sum", n, kind.cut)),
    "mean": ("reduce over a by mean", lambda kind, n: kinds.reduce(kind, "mean", n, kind.cut)),
    "scatter": (
        "reduce scattered over a by sum",
        lambda kind, n: kinds.reduce(kind, "sum", n, kind.cut or ROOM),
    ),
    "scatter_mean": (
        "reduce scattered over a by mean",
        lambda kind, n: kinds.reduce(kind, "mean", n, kind.cut or ROOM),
    ),
    "gather": ("gather gradients over a", lambda kind, n: Moved(kinds.gather(kind, n))),
    "scale": ("scale by 1/3", lambda kind, n: Moved(kind, const(1) / const(3))),
}

OTHERS = {"none": "", "partial": "batch over b", "replicated": ""}


def spec(lines: str, operations: str, other: str = "", weights: str = "dims out in", loop: str = "accumulate") -> str:
    return f"""
mesh a, b
let P
objective sum
loss sum
microbatches M
weights w {{ size P, {weights} }}
{lines}
{other}
step w {{
  each microbatch {{ {loop} }}
{operations}
  update
}}
"""


def terms_of(moved: list[Moved], other: Kind) -> tuple[Term, ...]:
    scale = ONE
    for one in moved:
        scale = scale * one.factor
    return (Term(scale, (moved[-1].kind, other)),)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("other", OTHERS)
def test_one_rule(start: str, rule: str, other: str) -> None:
    lines, kind = STARTS[start]
    operation, apply = RULES[rule]
    program = program_of(spec(lines, f"  {operation}", OTHERS[other]))
    moved = [apply(kind, var("a"))]
    terms = terms_of(moved, PARTIAL if other == "partial" else REPLICATED)
    sizes = (1, 2, 3), ((1,) if other == "none" else (1, 2))
    for a, b in product(*sizes):
        agree(program, terms, {"a": a, "b": b}, 1)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("first", RULES)
@pytest.mark.parametrize("second", RULES)
def test_two_rules(start: str, first: str, second: str) -> None:
    """One after the other: reducing again, gathering what was scattered."""
    lines, kind = STARTS[start]
    program = program_of(spec(lines, f"  {RULES[first][0]}\n  {RULES[second][0]}"))
    one = RULES[first][1](kind, var("a"))
    # A scattered reduction of a whole value leaves a shard; a later reduction acts on that shard.
    two = RULES[second][1](one.kind, var("a"))
    terms = terms_of([one, two], REPLICATED)
    for a in (1, 2, 3):
        agree(program, terms, {"a": a, "b": 1}, 1)


@pytest.mark.parametrize("tokens", ["tokens over a", "", "tokens over a\nfeed same over a"])
def test_route(tokens: str) -> None:
    """Contributions meet at the owner: shares once, copies N times."""
    kind = PARTIAL if tokens == "tokens over a" else Kind("root", 0) if tokens else REPLICATED
    moved = kinds.route(kind, var("a"), OUT)
    place = "place w over a { params sharded, optimizer sharded, gradients sharded }"
    program = program_of(spec(f"{tokens}\n{place}", "", weights="kind expert, routed over a"))
    for a in (1, 2, 3):
        agree(program, (Term(moved.factor, (moved.kind, REPLICATED)),), {"a": a, "b": 1}, 1)


@pytest.mark.parametrize("start", ["partial", "part", "replicated", "root"])
@pytest.mark.parametrize("operation", ["", "reduce over a by sum", "reduce over a by mean"])
def test_settle(start: str, operation: str) -> None:
    """Accumulating into a buffer that has room for a shard; then a reduction into it."""
    lines, kind = STARTS[start]
    place = "place w over a { optimizer sharded on out, gradients sharded on out }"
    moved = Moved(kinds.settle(kind, OUT))
    steps = [moved]
    if operation:
        op = "sum" if operation.endswith("sum") else "mean"
        steps.append(kinds.reduce(moved.kind, op, var("a"), OUT))
    program = program_of(spec(f"{lines}\n{place}", f"  {operation}" if operation else ""))
    for a in (1, 2, 3):
        agree(program, terms_of(steps, REPLICATED), {"a": a, "b": 1}, 1)


# --- whole steps ------------------------------------------------------------------------------

_OPERATIONS = st.sampled_from(
    [
        "reduce over a by sum", "reduce over a by mean", "reduce over b by sum", "reduce over b by mean",
        "reduce over a*b by sum", "reduce scattered over a by mean", "gather gradients over a", "scale by 1/2",
        "scale by 1/M", "scale by a/b", "scale by 3",
    ]
)  # fmt: skip
_LOOPS = ["each microbatch", "each microbatch but last", "each microbatch but first", "first microbatch",
          "last microbatch", "microbatch 2"]  # fmt: skip
_FRESH = st.sampled_from(["reduce over a by sum", "reduce over a by mean", "reduce over b by mean", "scale by 1/2"])


@st.composite
def _loops(draw: st.DrawFn) -> str:
    before = draw(st.lists(_FRESH, max_size=1))
    after = draw(st.lists(_FRESH, max_size=1))
    into = draw(st.sampled_from(["accumulate"] * 4 + ["replace"]))
    body = "\n    ".join([*before, into, *after])
    return f"  {draw(st.sampled_from(_LOOPS[:1] * 4 + _LOOPS))} {{\n    {body}\n  }}"


@st.composite
def _specs(draw: st.DrawFn) -> str:
    lines = [
        "mesh a, b", "let P", f"objective {draw(st.sampled_from(['mean', 'sum']))}",
        draw(st.sampled_from(["loss mean local", "loss mean global", "loss sum", "loss mean over a"])),
        "microbatches M", "weights w { size P, dims out in }", "batch over a",
    ]  # fmt: skip
    lines += draw(
        st.sampled_from(
            [
                [], ["feed same over a"], ["sequence over b"],
                ["place w over b { activations sharded on sequence }"],
                ["place w over b { params sharded on out, optimizer sharded on out, gradients sharded on out }"],
                ["place w over a { optimizer sharded, gradients sharded }"], ["place w over a { optimizer sharded }"],
            ]
        )
    )  # fmt: skip
    loops = draw(st.lists(_loops(), min_size=1, max_size=2))
    after = [f"  {operation}" for operation in draw(st.lists(_OPERATIONS, max_size=3))]
    step = "\n".join([*loops, *after, "  update"])
    return "\n".join([*lines, f"step w {{\n{step}\n}}\n"])


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(_specs(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_whole_steps(text: str, a: int, b: int, M: int) -> None:
    """Random steps: starts, sequences of rules, loops over parts of the micro-batches, denominators."""
    try:
        program = program_of(text)
        trace = traced(program)
    except SpecError:
        return
    sizes = {"a": a, "b": b}
    agree(program, updated_terms(trace, environment(program, sizes, M)), sizes, M)
