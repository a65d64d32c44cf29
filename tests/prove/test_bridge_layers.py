"""From the proofs to the code: what the rules of layers say of gradients that come back otherwise than is derived.

The rule says by which factor such a gradient reaches weights, and whether whole, in shares or not at all. Several
steps are tried on it: by the calculus each is right or wrong on a mesh, and the simulator, which knows arrays only,
has to say the same of these weights (proofs/pieces_added_up.md, proofs/key_heads.md, proofs/boundary_backward.md)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from placelogic.program.program import Program
from placelogic.prove.run import Run
from placelogic.prove.sizes import sizes_of
from placelogic.prove.transfer import Group
from placelogic.prove.values import Term
from placelogic.simulate import Item, simulate_layers

from .bridge import WEIGHTS, coefficient, environment, nameless, program_of, updated_terms

HEAD = "objective sum\nloss sum\ndims batch, sequence, hidden, ffn, heads, kv_heads, head\n"
SAMPLES = "mesh a\nbatch over a\n"

# What is added, at all places alike or not, before a bias at which pieces of the batch are added up.
BIASES = """
weights w { kind vector }
weights other { kind vector }
block layer {
  input x(batch, sequence, hidden)
  b = bias x with w over hidden
  c = bias b with other over hidden
}
"""
SCALED = BIASES.replace("  c = bias b", "  m = scale b by 3\n  c = bias m")
NORM = BIASES.replace("bias x with w", "norm x with w")
BEHIND_A_NORM = BIASES.replace("  c = bias b", "  m = norm b over hidden\n  c = bias m")
TABLE = BIASES.replace("bias x with w over hidden", "bias x with w over sequence, hidden")
MATRIX = BIASES.replace("bias x with w over hidden", "linear x with w from hidden to hidden").replace(
    "weights w { kind vector }", "weights w { kind matrix }"
)

# Queries are cut by heads along a; the keys and values of all heads are on every device.
HEADS = """
mesh a
weights w { kind matrix, dims hidden kv_heads }
weights queries { kind matrix, dims hidden heads }
weights keys { kind matrix, dims hidden kv_heads }
weights out { kind matrix, dims hidden heads }
place queries, out over a { params sharded on heads, optimizer sharded on heads, gradients sharded on heads }
block layer {
  input x(batch, sequence, hidden)
  q = linear x with queries from hidden to heads, head
  k = linear x with KEYS from hidden to kv_heads, head
  v = linear x with VALUES from hidden to kv_heads, head
  c = attention q, k, v causal fused
  o = linear c with out from heads, head to hidden
}
"""
KEYS = HEADS.replace("KEYS", "w").replace("VALUES", "keys")
VALUES = HEADS.replace("KEYS", "keys").replace("VALUES", "w")
CUT = "place w over a { params sharded on kv_heads, optimizer sharded on kv_heads, gradients sharded on kv_heads }\n"

# Each column of `up` hands back a share of what comes to every place of the sequence.
NORM_IN_PIECES = """
mesh a
weights w { kind vector }
weights up { kind matrix }
weights down { kind matrix }
use sequence_parallel(a)
block layer {
  input x(batch, sequence, hidden)
  n = norm x with w over hidden
  u = linear n with up from hidden to ffn
  g = gelu u
  d = linear g with down from ffn to hidden
}
"""

ROWS = {
    "places alike, by sum": (SAMPLES + BIASES + "backward c over a by sum\n", "alone mean divided"),
    "places alike, by mean": (SAMPLES + BIASES + "backward c over a by mean\n", "derived sum"),
    "places alike, twice": (SAMPLES + BIASES + "backward c over a by sum\nbackward b over a by sum\n", ""),
    "places alike, with a factor": (SAMPLES + SCALED + "backward c over a by sum scale 1/a\n", "derived sum"),
    "a table of places": (SAMPLES.replace("batch", "sequence") + TABLE + "backward c over a by sum\n", ""),
    "a norm": (SAMPLES + NORM + "backward c over a by sum\n", ""),
    "behind a norm": (SAMPLES + BEHIND_A_NORM + "backward c over a by sum\n", ""),
    "a matrix": (SAMPLES + MATRIX + "backward c over a by sum\n", ""),
    "shares of keys": (KEYS + "backward k over a by none\n", "sum"),
    "shares of values": (VALUES + "backward v over a by none\n", "sum"),
    "keys added up": (KEYS + "backward k over a by sum\n", "derived alone mean"),
    "pieces of keys": (KEYS + CUT + "backward k over a by slice\n", "derived alone"),
    "pieces of values": (VALUES + CUT + "backward v over a by slice\n", "derived alone"),
    "pieces of keys, added up": (KEYS + CUT + "backward k over a by sum\n", "derived alone"),
    "pieces of a share that is everywhere": (NORM_IN_PIECES + "backward n over a by slice\n", ""),
}
"""What is said of a gradient, and which of the steps make good for it on several devices."""

STEPS = {
    "derived": "",
    "alone": "sync w over a by none",
    "sum": "sync w over a by sum",
    "mean": "sync w over a by mean",
    "times": "scale w by a",
    "divided": "scale w by 1/a",
}


def terms(program: Program, a: int) -> Sequence[Term] | None:
    """What the update of w reads, by the way on which its gradient comes."""
    assert program.layering is not None
    sizes, _ = sizes_of(program)
    (*flows,) = (flow for flow in program.layering.flows if flow.weights == WEIGHTS)
    assert len(flows) <= 1
    flow = flows[0] if flows else None
    step = program.step(WEIGHTS)
    assert step is not None
    group = Group(program, program.group(WEIGHTS), program.facts[WEIGHTS], sizes, flow)
    return updated_terms(Run(group).run(step), environment(program, {"a": a}, 1))


def right(program: Program, a: int) -> bool:
    """What the calculus says: every device has every item once, and of shares that were cut nothing is lost."""
    found = terms(program, a)
    env = environment(program, {"a": a}, 1)
    if found is None or any(nameless(term, env) or (a > 1 and any(kind.tied for kind in term.kinds)) for term in found):
        return False
    items = [Item(None, 1, (("a", share),)) for share in range(a)]
    return all(coefficient(found, ("a",), env, (x,), item) == 1 for x in range(a) for item in items)


def simulated(program: Program, a: int) -> bool:
    quantities = {let.name: 1 for let in program.lets if let.value is None}
    return not simulate_layers(program, {"a": a}, quantities).wrong(WEIGHTS)


@pytest.mark.parametrize("row", ROWS)
def test_what_reaches_weights(row: str) -> None:
    text, wanted = ROWS[row]
    found = []
    for name, step in STEPS.items():
        program = program_of(HEAD + text + step)
        verdicts = [right(program, a) for a in (1, 2, 3)]
        assert verdicts == [simulated(program, a) for a in (1, 2, 3)], name
        assert verdicts[0] and verdicts[1] == verdicts[2]
        if verdicts[1]:
            found.append(name)
    assert found == wanted.split()
