"""What lies on the ends of a pipeline by its blocks costs as much as where it is said."""

from __future__ import annotations

import pytest

from tests.cost.specs import of

LAYER = """
block layer repeat 12 {
  input x(batch, sequence, hidden)
  y = linear x with mlp from hidden to hidden
}
"""
TEXT = """
mesh dp = 4, pp = 3
microbatches 8
dims batch = 4, sequence = 128, hidden = 64, vocab = 512
weights embed {{ kind embedding{first} }}
weights mlp {{ layers 12 }}
weights head {{ kind embedding{last} }}
block start {{
  input ids(batch, sequence)
  x = embedding ids with embed from vocab to hidden
}}{layer}
block finish {{
  input x(batch, sequence, hidden)
  logits = linear x with {head} from hidden to vocab
  loss = cross_entropy logits over vocab
}}
use zero1(dp) * pipeline(pp{more})
"""


def _text(first: str, last: str, head: str, more: str, layer: str = LAYER) -> str:
    text = TEXT.format(first=first, last=last, head=head, more=more, layer=layer)
    return text if head == "head" else text.replace(f"weights head {{ kind embedding{last} }}\n", "")


@pytest.mark.parametrize("more", ["", ", schedule = zbv"])
@pytest.mark.parametrize(("first", "last", "head"), [("first", "last", "head"), ("first and last", "last", "embed")])
def test_as_if_it_were_said(first: str, last: str, head: str, more: str) -> None:
    said = of(_text(f", used on {first}", f", used on {last}", head, more))
    derived = of(_text("", "", head, more))
    assert _numbers(said) == _numbers(derived)


def test_stages_send_where_no_block_is_repeated() -> None:
    text = _text(", used on first", ", used on last", "head", "", "").replace("weights mlp { layers 12 }\n", "")
    sends = [one for one in of(text).collectives if one.operation == "send"]
    assert {place.name for one in sends for place in one.places} == {"first", "middle", "last"}
    assert {one.group for one in sends} == {"finish"}


def _numbers(cost) -> list[str]:  # type: ignore[no-untyped-def]
    held = [repr(held) for held in cost.held]
    return [*held, *(f"{one.places} {one.group} {one.operation} {one.bytes} {one.times}" for one in cost.collectives)]
