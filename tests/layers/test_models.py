"""The models of the library under its strategies: what is derived trains what one device would, in exact simulation."""

from __future__ import annotations

import pytest

from placelogic.prove import prove
from placelogic.simulate import simulate_layers
from tests.layers.agree import program_of

SIZES = "let L, h, a, f, V, E\n"
MODELS = {
    "gpt": "model gpt { layers L, hidden h, heads a, vocab V, ffn f }",
    "llama": "model llama { layers L, hidden h, heads a, ffn f, vocab V }",
    "moe": "model moe { layers L, hidden h, heads a, ffn f, vocab V, experts E }",
    "moe_routed": "model moe { layers L, hidden h, heads a, ffn f, vocab V, experts E, experts_over ep }",
}
STRATEGIES = {
    "tensor": ("dp, tp", "data_parallel(dp) * tensor_parallel(tp)"),
    "sequence": ("dp, tp", "zero1(dp) * sequence_parallel(tp)"),
    "context": ("cp, tp", "context_parallel(cp) * sequence_parallel(tp)"),
    "ulysses": ("cp, tp", "ulysses(cp) * tensor_parallel(tp)"),
    "pipeline": ("dp, pp", "zero2(dp) * pipeline(pp)"),
}
PAIRS = [(model, strategy) for model in ("gpt", "llama", "moe") for strategy in STRATEGIES]


def spec(model: str, axes: str, use: str) -> str:
    return f"mesh {axes}\n{SIZES}{MODELS[model]}\nuse {use}\n"


@pytest.mark.parametrize(("model", "strategy"), PAIRS)
def test_derived_is_right(model: str, strategy: str) -> None:
    program = program_of(spec(model, *STRATEGIES[strategy]))
    assert prove(program).verdict == "proved"
    axes = program.mesh.axes
    quantities = {let.name: 1 for let in program.lets if let.value is None}
    outcome = simulate_layers(program, dict.fromkeys(axes, 2), {**quantities, "L": 2})
    assert outcome.right, outcome


def test_experts_are_routed() -> None:
    """Tokens travel to their experts and back; each device divides by its own tokens, and routing sums."""
    program = program_of(spec("moe_routed", "ep, tp", "expert_parallel(ep) * tensor_parallel(tp)"))
    assert prove(program).verdict == "proved"
    quantities = {let.name: 1 for let in program.lets if let.value is None}
    for sizes in ({"ep": 2, "tp": 1}, {"ep": 2, "tp": 2}, {"ep": 3, "tp": 1}):
        outcome = simulate_layers(program, sizes, quantities)
        assert outcome.right, outcome
