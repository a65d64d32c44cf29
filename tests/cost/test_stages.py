"""Layers of several repeated blocks on stages, held against a count that runs every schedule step by step."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
import sympy

from placelogic.cost import Cost
from placelogic.cost.schedule import warmed
from tests.cost.specs import of

TEXT = """
mesh p{p}
microbatches M{m}
let A{a}, B{b}
weights small {{ layers A, kind matrix }}
weights large {{ layers B, kind matrix }}
weights both  {{ layers A + B, kind vector }}
dims batch, sequence, hidden, ffn
block light repeat A {{
  input x(batch, sequence, hidden)
  n = norm x with both over hidden
  y = linear n with small from hidden to hidden2
  g = gelu y
  z = linear g with small from hidden2 to hidden
}}
block heavy repeat B {{
  input x(batch, sequence, hidden)
  n = norm x with both over hidden
  u = linear n with large from hidden to ffn
  g = gelu u
  w = multiply u, g
  z = linear w with large from ffn to hidden
}}
use pipeline(p, {schedule})
""".replace("hidden, ffn", "hidden = 4, ffn = 100, hidden2 = 4")

LIGHT, HEAVY = 4 * (4 + 4 + 4 + 4), 4 * (4 + 4 + 3 * 100)
"""Bytes of one layer and token: x, n, y and g; x, n, and u, g, w."""


def cost(schedule: str, p: int | None, a: int | None, b: int | None, m: int | None = None) -> Cost:
    def given(value: int | None) -> str:
        return "" if value is None else f" = {value}"

    text = TEXT.format(schedule=schedule, p=given(p), a=given(a), b=given(b), m="")
    return of(text if m is None else text.replace("microbatches M", f"let M = {m}\nmicrobatches M"))


def kept(found: Cost, **sizes: int) -> Fraction:
    """Bytes of activations a token of the device that has the most."""

    def on(place: object) -> sympy.Expr:
        return found.sum(lambda h: h.place == place and h.state == "activations")

    many = sizes.get("p", found.values.get("p")) != 1
    places = [place for place in found.places if many == (place.name != "single")]
    return max(found.number(on(place), batch=1, sequence=1, **sizes) for place in places)


# --- the count --------------------------------------------------------------------------------


def steps(schedule: str, device: int, p: int, v: int, m: int) -> Iterator[tuple[int, int]]:
    """What a device does, in order: +1 and the chunk for a forward pass, -1 for a backward pass."""
    if schedule == "gpipe":
        yield from [(1, 0)] * m + [(-1, 0)] * m
    elif v == 1:
        warm = min(p - 1 - device, m)
        yield from [(1, 0)] * warm + [(1, 0), (-1, 0)] * (m - warm) + [(-1, 0)] * warm
    else:
        forward = [n // p % v for n in range(m * v)]
        backward = [v - 1 - chunk for chunk in forward]
        warm = m * v if m == p else min(2 * (p - device - 1) + (v - 1) * p, m * v)
        yield from ((1, chunk) for chunk in forward[:warm])
        for n in range(warm, m * v):
            yield from [(1, forward[n]), (-1, backward[n - warm])]
        yield from ((-1, chunk) for chunk in backward[m * v - warm :])


def counted(schedule: str, p: int, v: int, m: int, a: int, b: int) -> Fraction:
    room = Fraction(a + b, p * v)

    def weight(stage: int) -> Fraction:
        start, end = stage * room, (stage + 1) * room
        light = max(Fraction(0), min(end, Fraction(a)) - start)
        return light * LIGHT + (room - light) * HEAVY

    most = Fraction(0)
    for device in range(p):
        now = Fraction(0)
        for sign, chunk in steps(schedule, device, p, v, m):
            now += sign * weight(device + chunk * p)
            most = max(most, now)
    return most


# --- tests ------------------------------------------------------------------------------------

SIZES = [
    (4, 8, 3, 13),
    (3, 2, 5, 1),
    *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in [(4, 8, 1, 7), (2, 1, 2, 2), (4, 2, 6, 6), (5, 10, 2, 9), (1, 4, 2, 3)]),
]
CHUNKS = [
    (2, 4, 1, 7),
    *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in [(4, 8, 3, 13), (2, 2, 2, 2), (3, 12, 5, 7), (4, 16, 3, 61)]),
]


@pytest.mark.parametrize(("p", "m", "a", "b"), SIZES)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_every_stage_is_counted(schedule: str, p: int, m: int, a: int, b: int) -> None:
    most = counted(schedule, p, 1, m, a, b)
    assert kept(cost(schedule, p, a, b, m)) == most
    assert kept(cost(schedule, p, a, b), M=m) == most
    for open_ in (cost(schedule, None, None, None), cost(schedule, None, a, b, m)):
        bound = kept(open_, p=p, M=m, A=a, B=b)
        assert most <= bound <= most * 2


@pytest.mark.parametrize(("p", "m", "a", "b"), CHUNKS)
@pytest.mark.parametrize("v", [2, 3])
def test_interleaved_chunks(v: int, p: int, m: int, a: int, b: int) -> None:
    most = counted("interleaved_1f1b", p, v, m, a, b)
    schedule = f"interleaved_1f1b, {v}"
    known = kept(cost(schedule, p, a, b, m))
    assert most <= known <= most * Fraction(23, 20)
    assert known <= kept(cost(schedule, p, a, b), M=m) <= most * 2
    assert most <= kept(cost(schedule, None, None, None), p=p, M=m, A=a, B=b)


@pytest.mark.parametrize("device", [0, 1, 3])
def test_what_is_in_flight_of_each_chunk(device: int) -> None:
    """The first stage has p + (p - 1)/v micro-batches of all its layers (arXiv 2205.05198, section 4.2.3)."""
    assert {sum(found) for found in warmed(device, 4, 3, 4)} == {12}
    assert {sum(found) for found in warmed(device, 4, 3, 8)} == {12 + 3 - 2 * device}
    assert {sum(found) for found in warmed(device, 4, 3, None)} == {12, 12 + 3 - 2 * device}


def test_the_first_stage_with_every_size_open() -> None:
    """min(A, (A + B)/p) light layers, and as many heavy ones as there is room for."""
    found = cost("1f1b", None, None, None)
    first = next(place for place in found.places if place.name == "first")
    assert first.stage is not None
    light, heavy = (one for _, one in first.stage.even)
    a, b, p = sympy.symbols("A B p")
    assert light == sympy.Min(a, (a + b) / p)
    assert heavy == sympy.Min(b, sympy.Max(0, (a + b) / p - a))
    assert any("stages hold equally many consecutive layers of `light` and `heavy`" in note for note in found.notes)
    assert any("at most" in note for note in found.notes)
    exact = cost("1f1b", 4, 3, 13)
    assert not any("at most" in note for note in exact.notes)


def test_weights_follow_their_layers() -> None:
    """The first of four stages has the three light layers and one heavy one, not a quarter of each."""
    found = cost("1f1b", 4, 3, 13)
    first = next(place for place in found.places if place.name == "first")

    def params(group: str) -> Fraction:
        return found.number(found.sum(lambda h: h.place == first and h.group == group and h.state == "params"))

    assert params("small") == 4 * 3 * 2 * 16
    assert params("large") == 4 * 1 * 2 * 400
    assert params("both") == 4 * 4 * 4
    middle = [place for place in found.places if place.name == "middle"]
    assert [place.when for place in middle] == ["p = 4, stage 2"]


def test_stages_hold_whole_layers() -> None:
    """61 layers on 16 stages: four on each, and one on the last."""
    found = cost("1f1b", 16, 3, 58)
    by_name = {place.name: place for place in found.places}
    assert by_name["first"].stage is not None and by_name["last"].stage is not None
    assert by_name["first"].stage.whole == (("light", 3), ("heavy", 1))
    assert by_name["last"].stage.whole == (("light", 0), ("heavy", 1))


@pytest.mark.parametrize(("schedule", "passes"), [("zbv", 8), ("dualpipe_v", 10)])
def test_a_vee_bounds_what_its_two_chunks_have(schedule: str, passes: int) -> None:
    """Eight stages of two layers on four devices: as if all that is in flight were of the larger chunk."""
    found = cost(schedule, 4, 4, 12)
    assert kept(found, M=64) == passes * 2 * HEAVY
    assert any("at most" in note for note in found.notes)


def test_the_stream_is_handed_on_once() -> None:
    """Between stages there is one stream, however many blocks the layers are of."""
    found = cost("1f1b", 4, 3, 13)
    sends = [one for one in found.collectives if one.operation == "send"]
    assert {(one.group, one.what) for one in sends} == {("light", "x"), ("light", "gradient of x")}
