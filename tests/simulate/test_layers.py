"""The exact simulation of layers stands on its own: what comes back is found by differentiation, for every loss."""

from __future__ import annotations

from msgspec.structs import replace

from placelogic.program.plan import Move, Plan
from placelogic.program.program import Program
from placelogic.simulate import Outcome, simulate_layers
from tests.layers.agree import program_of

LAYER = """mesh tp
weights norm { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use sequence_parallel(tp)
dims batch, sequence, hidden, ffn
block layer {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  u = linear n with up from hidden to ffn
  a = gelu u
  d = linear a with down from ffn to hidden
  y = add x, d
}
"""


def simulated(program: Program, **sizes: int) -> Outcome:
    return simulate_layers(program, sizes, {let.name: 2 for let in program.lets if let.value is None})


def without_a_way_back(plan: Plan) -> Plan:
    """Whatever crosses forward, nothing comes back."""
    nothing = [replace(one, backward=Move("zero", one.backward.origin)) for one in plan.boundaries]
    return replace(plan, boundaries=tuple(nothing))


def test_the_way_back_is_not_read_from_the_plan() -> None:
    program = program_of(LAYER)
    assert program.layering is not None
    blind = replace(program.layering, plan=without_a_way_back(program.layering.plan))
    assert any(one.backward.kind == "scatter" for one in program.layering.plan.boundaries)
    assert simulated(program, tp=2).right
    assert simulated(replace(program, layering=blind), tp=2).right


def test_what_a_person_states_of_the_way_back_happens() -> None:
    for line in ("by slice", "by mean", "by sum scale 2", "by zero"):
        outcome = simulated(program_of(f"{LAYER}backward n over tp {line}\n"), tp=2)
        assert outcome.wrong("norm"), line
        assert not outcome.wrong("down"), line
    assert simulated(program_of(f"{LAYER}backward n over tp by sum\n"), tp=2).right


def test_a_line_is_not_healed_by_what_comes_back_elsewhere() -> None:
    """Shares that are not added up where they should be stay shares, although the next place could see that they are."""
    text = LAYER.replace("sequence_parallel", "tensor_parallel").replace("  n = norm x", "  e = scale x by 1\n  n = norm e")
    assert simulated(program_of(text), tp=2).right
    outcome = simulated(program_of(f"{text}backward n over tp by none\n"), tp=2)
    assert outcome.wrong("norm")
    assert not outcome.wrong("up")


TERMS = """mesh dp
loss mean local
loss aux mean local
weights w { kind matrix }
use data_parallel(dp)
dims batch, hidden, ffn
block layer {
  input x(batch, hidden)
  y = linear x with w from hidden to ffn
}
"""


def test_every_loss_comes_back() -> None:
    assert simulated(program_of(TERMS), dp=2).right
    step = """step w {
  each microbatch {
    scale loss aux by 2
    accumulate
  }
  reduce over dp by mean
  update
}
"""
    assert simulated(program_of(TERMS + step), dp=2).wrong("w")
    assert simulated(program_of(TERMS + step.replace("by 2", "by 1")), dp=2).right
