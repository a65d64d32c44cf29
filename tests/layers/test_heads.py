"""Heads of queries, keys and values that several axes cut."""

from __future__ import annotations

import pytest

import placelogic

TEXT = """mesh x, y
dims batch, sequence, hidden, heads, kv_heads, head
weights q {{ kind matrix, dims hidden heads }}
weights kv {{ kind matrix, dims hidden kv_heads }}
weights o {{ kind matrix, dims hidden heads }}
block layer {{
  input t(batch, sequence, hidden)
  a = linear t with q from hidden to heads, head
  k = linear t with kv from hidden to kv_heads, head
  v = linear t with kv from hidden to kv_heads, head
  c = attention a, k, v fused
  p = linear c with o from heads, head to hidden
}}
place q over x, y {{ params sharded on heads, optimizer sharded on heads, gradients sharded on heads }}
place o over x, y {{ params sharded on heads, optimizer sharded on heads, gradients sharded on heads }}
{keys}
"""
CUT = "place kv over {axes} {{ params sharded on kv_heads, optimizer sharded on kv_heads, gradients sharded on kv_heads }}"


@pytest.mark.parametrize(("axes", "verdict"), [("x, y", "proved"), ("x", "proved"), ("", "proved"), ("y", "error")])
def test_key_heads_lie_with_their_queries(axes: str, verdict: str) -> None:
    """The outer axis may cut both and the inner one the queries alone; not the other way round."""
    text = TEXT.format(keys=CUT.format(axes=axes) if axes else "")
    (spec,) = placelogic.check(text).specs
    assert spec.verdict == verdict, str(spec.findings)
    if verdict == "error":
        (finding,) = spec.findings
        assert finding.code == "PL386"
        assert finding.message.startswith("the heads of `a` are cut over x, y, and those of `k` over y: devices would have")
        assert finding.help == "cut `k` over x too, or name x last in the mesh"
