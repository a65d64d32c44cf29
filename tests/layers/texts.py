"""Specs with blocks, as text, and the plans that come of them."""

from __future__ import annotations

from placelogic.elaborate import elaborate_file
from placelogic.layers.derive import Nominal, nominal
from placelogic.problem import SpecError
from placelogic.program.program import Program
from placelogic.syntax.parse import parse

WEIGHTS = """
let h, V, L
weights embed { kind embedding }
weights attn { layers L, dims in out }
weights mlp { layers L, dims in out }
weights norm { kind vector, layers L }
weights final_norm { kind vector }
weights head { kind embedding }
dims batch, sequence, hidden = h, heads, kv_heads, head, ffn, vocab = V
"""

BLOCKS = """
block embedding {
  input t(batch, sequence)
  e = embedding t with embed from vocab to hidden
}
block decoder repeat L {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  q = linear n with attn from hidden to heads, head
  k = linear n with attn from hidden to kv_heads, head
  v = linear n with attn from hidden to kv_heads, head
  c = attention q, k, v causal fused
  p = linear c with attn from heads, head to hidden
  d = dropout p
  y = add x, d
  m = norm y with norm over hidden
  g = linear m with mlp from hidden to ffn
  s = silu g
  z = linear s with mlp from ffn to hidden
  r = add y, z
}
block last {
  input x(batch, sequence, hidden)
  n = norm x with final_norm over hidden
  logits = linear n with head from hidden to vocab
  loss = cross_entropy logits over vocab parallel
}
"""


def gpt(lines: str) -> str:
    """A small model, with the mesh, strategies and overrides in `lines`."""
    return WEIGHTS + lines + BLOCKS


def program_of(text: str) -> Program:
    """The elaborated program, before its step is derived. Raises SpecError."""
    (spec,) = elaborate_file(parse(text, "layers.place"), {})
    if spec.program is None:
        raise SpecError(*spec.problems)
    return spec.program


def planned(text: str) -> Nominal:
    program = program_of(text)
    assert program.layers is not None
    return nominal(program, program.layers)


def boundaries(text: str, axis: str) -> list[str]:
    """Every boundary along an axis, as `tensor: forward / backward`."""
    found = []
    for b in planned(text).plan.boundaries:
        if b.axis == axis:
            there, back = (f"{m.kind} {m.dim}" if m.dim else m.kind for m in (b.forward, b.backward))
            found.append(f"{b.block}.{b.tensor}: {there} / {back}")
    return found
