"""Every strategy and model of the standard library on a small mesh."""

from __future__ import annotations

from placelogic.replay.cases import Case
from tests.replay.helpers import cases_of

WEIGHTS = """
let h, V, L
weights embed { size V*h, kind embedding, used on first }
weights w { size 4*h*h*L, layers L, dims in out }
weights norm { size 2*h*L, layers L, kind vector }
weights head { size V*h, kind embedding, used on last }
"""

STRATEGIES = {
    "data_parallel": "mesh dp\nuse data_parallel(dp)\nmicrobatches M",
    "zero1": "mesh dp\nuse zero1(dp)",
    "distributed_optimizer": "mesh dp\nuse distributed_optimizer(dp)\nmicrobatches M",
    "zero2": "mesh dp\nuse zero2(dp)\nmicrobatches M",
    "zero3": "mesh dp\nuse zero3(dp)",
    "fsdp": "mesh dp\nuse fsdp(dp, reshard_after_forward = false)\nmicrobatches M",
    "hsdp": "mesh r, s\nuse hsdp(replicate = r, shard = s)",
    "tensor_parallel": "mesh tp\nuse tensor_parallel(tp)",
    "sequence_parallel": "mesh tp\nuse sequence_parallel(tp)",
    "pipeline": "mesh pp\nuse pipeline(pp)\nmicrobatches M",
    "interleaved": "mesh pp\nuse pipeline(pp, schedule = interleaved_1f1b, chunks = 2)\nmicrobatches M",
    "looped": "mesh pp\nuse pipeline(pp, schedule = looped_bfs, chunks = 2)\nmicrobatches M",
    "zero_bubble": "mesh pp\nuse pipeline(pp, schedule = interleaved_zero_bubble, chunks = 2)\nmicrobatches M",
    "zbv": "mesh pp\nuse pipeline(pp, schedule = zbv)\nmicrobatches M",
    "dualpipe_v": "mesh pp\nuse pipeline(pp, schedule = dualpipe_v)\nmicrobatches M",
    "context_parallel": "mesh cp\nuse context_parallel(cp)",
    "ulysses": "mesh cp\nuse ulysses(cp)",
    "expert_parallel": (
        "mesh ep\nlet E, f\nweights expert { size E*h*f, kind expert, routed over ep }\nuse expert_parallel(ep)"
    ),
    "offload": "mesh dp\nuse zero1(dp) * offload(dp)",
    "activation_checkpointing": "mesh dp\nuse zero3(dp) * activation_checkpointing()",
}

MODELS = {
    "gpt": """
mesh dp, tp
model gpt { layers 2, hidden 64, heads 8, vocab 96, positions 32 }
use zero1(dp) * tensor_parallel(tp)
microbatches M
""",
    "llama": """
mesh dp, tp
model llama { layers 2, hidden 64, heads 8, kv_heads 4, ffn 128, vocab 96 }
use zero3(dp) * sequence_parallel(tp)
""",
    "moe": """
mesh ep, tp
model moe { layers 2, hidden 64, heads 8, kv_heads 4, ffn 128, vocab 96, experts 8, experts_over ep, shared_ffn 64 }
use data_parallel(ep) * expert_parallel(ep) * tensor_parallel(tp)
""",
    "deepseek_moe": """
mesh ep
model deepseek_moe {
  dense_layers 1, moe_layers 1, hidden 64, heads 8, ffn 128, expert_ffn 32, experts 8, top 2, vocab 96, experts_over ep
}
use data_parallel(ep) * expert_parallel(ep)
""",
    "deepseek_v3": """
mesh dp, tp
model deepseek_v3 {
  dense_layers 1, moe_layers 1, hidden 64, heads 8, q_latent 32, kv_latent 16, nope 8, rope 4, value 8, ffn 128,
  expert_ffn 32, experts 8, top 2, vocab 96
}
use zero1(dp) * sequence_parallel(tp)
""",
}
"""With their own weights and operations."""


def case_of(name: str, body: str) -> Case:
    """Of `body` with weights as every strategy takes them."""
    mesh, *rest = body.split("\n")
    weights = WEIGHTS if "pp" in mesh else WEIGHTS.replace(", used on first", "").replace(", used on last", "")
    (case,) = cases_of(mesh + weights + "\n".join(rest) + "\n", name)
    return case


def every() -> list[Case]:
    """Named by strategy and model."""
    models = [case for name, text in MODELS.items() for case in cases_of(text, name)]
    return [case_of(name, body) for name, body in STRATEGIES.items()] + models
