"""What `show` prints elaborates to the same program."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.derive import derive
from placelogic.elaborate.show import show
from placelogic.problem import SpecError
from placelogic.syntax.parse import parse
from tests.elaborate.helpers import bare, program

STEP = """
step * {
  each microbatch {
    scale loss by 2
    reduce scattered over dp by mean
    accumulate into main
  }
  first microbatch { replace }
  microbatch 3 { accumulate }
  reduce main over dp, cp by sum
  gather gradients over dp
  scale main by 0.5*(dp - 2*M)
  skip on overflow over dp, tp
  clip
  update from main
  refresh params from master
  gather params over dp
  broadcast params over edp from 1
}
"""
HEAD = """
mesh edp, ep = 2, tp = t, 2 <= pp <= 16, cp
axis dp = edp * ep
let q = t/2, t = 8
assume edp % q == 0
microbatches M
"""
COMPLETE = {
    "small": "mesh N\nlet P\nweights model { size P }\nstep model { update }",
    "dense": HEAD + """
model llama { layers 80, hidden 8192, heads 64, kv_heads 8, ffn 28672, vocab 128256 }
use zero3(dp) * sequence_parallel(tp) * pipeline(pp, schedule = interleaved_1f1b, chunks = 3) * context_parallel(cp)
precision { params bf16, compute bf16, gradients fp32, master fp32, moments fp32 }
precision vector { master none }
precision matrix, embedding { moments bf16 }
clip global_norm
optimizer muon for matrix
""" + STEP.replace("  refresh params from master\n", ""),
    "moe": HEAD + """
model moe { layers 32, hidden 4096, heads 32, ffn 14336, vocab 32000, experts 8, experts_over ep, shared_ffn 512 }
use hsdp(shard = edp, replicate = cp) * expert_parallel(ep) * fsdp(tp, reshard_after_forward = 4)
use offload() * activation_checkpointing()
tokens uneven
objective sum
loss sum
feed same over cp
precision { master fp32 }
init * {
  different over tp, edp
  broadcast over edp from 0
}
init norm same
random * over tp, edp different
random norm over tp same
clip global_norm {
  expert over ep, edp
  * over none
}
freeze embed
""" + STEP.replace("  clip\n", "  offload gradients\n  clip\n"),
    "nesting": """
mesh a, b, c
weights w { size 64, dims out, layers 4 }
weights e { size 64, kind embedding, used on first and last of c }
place w over a, b { params sharded on out }
place w over b, a { optimizer sharded on out }
place w over a*b { gradients sharded on flat }
place e over c { params gathered }
loss main mean over a, microbatches
loss aux mean local
batch over a
sequence over b
step * {
  each microbatch but first { accumulate }
  update
}
expect refuted GI01 w
expect refuted
""",
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLETE)
def test_round_trip(name: str) -> None:
    first = program(COMPLETE[name])
    text = show(first)
    second = program(text)
    assert bare(first)[1:] == bare(second)[1:], text
    assert show(second) == text


def test_dimensions_that_no_tensor_has_are_left_out() -> None:
    """Several specs of a file may share `dims`; a size for one that is not used is an error."""
    text = show(
        program(
            """
mesh tp
dims batch, sequence, hidden, heads
weights w { kind vector }
block layer {
  input x(batch, sequence, hidden)
  n = norm x with w over hidden
}
"""
        )
    )
    assert "dims batch = batch, sequence = sequence, hidden = hidden\n" in text
    assert show(program(text)) == text


def test_what_it_looks_like() -> None:
    text = """
mesh edp, ep
axis dp = edp * ep
weights attn { size 64 }
weights mlp { size 64 }
weights norm { size 8, kind vector }
use zero1(dp)
step matrix {
  each microbatch { accumulate }
  reduce over dp by mean
  update
  gather params over dp
}
step norm { update }
"""
    assert (
        show(program(text))
        == """\
spec spec {
  mesh edp, ep
  axis dp = edp * ep
  batch over dp
  tokens even
  objective mean
  loss mean local

  weights attn { size 64, kind matrix }
  weights mlp { size 64, kind matrix }
  weights norm { size 8, kind vector }

  place attn, mlp, norm over dp = (R, S, R, R)

  optimizer adamw

  step attn, mlp {
    each microbatch { accumulate }
    reduce over dp by mean
    update
    gather params over dp
  }

  step norm {
    update
  }
}
"""
    )


def test_conflicts_are_told_in_comments() -> None:
    text = show(program("mesh N\nweights w { size 4 }\nuse zero1(N) * data_parallel(N)\nstep w { update }"))
    assert text.startswith("# CC01: the optimizer states of `w` are placed twice along N")


ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("examples/**/*.place"), *ROOT.glob("tests/verdicts/**/*.place")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_derived_steps_of_every_spec_around(path: Path) -> None:
    for spec in elaborate_file(parse(path.read_text(encoding="utf-8"), str(path))):
        if spec.program is None or spec.stated is None:
            continue
        try:
            complete = derive(spec.program, spec.stated)
        except SpecError:
            assert any((one.code or "").startswith("PL") for one in spec.expectations), spec.name
            continue  # what is refused has no step
        text = show(complete)
        (read,) = elaborate_file(parse(text, "shown.place"))
        assert read.program is not None and read.stated is not None, text
        again = derive(read.program, read.stated)  # what follows from the operations of layers follows again
        kept = {"conflicts": complete.conflicts, "unheeded": complete.unheeded}
        assert bare(replace(again, **kept, name=spec.name)) == bare(complete), text
