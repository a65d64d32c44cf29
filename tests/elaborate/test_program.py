"""Sizes, work, lines and steps: what ends up in the program."""

from __future__ import annotations

from placelogic.program.expr import number, show
from placelogic.program.program import InitOp
from tests.elaborate.helpers import SMALL, bare, codes, one, program, stated

# --- sizes ------------------------------------------------------------------------------------


def test_mesh_lets_and_assumptions() -> None:
    p = program("""
mesh edp, ep = 2, tp = t, 2 <= pp <= 16
axis dp = edp * ep
axis all = dp * tp
let s = t*t, t = 8, open
assume heads % tp == 0, dp >= 2
let heads
weights w { size s*dp }
""")
    assert [(a.name, None if a.size is None else show(a.size)) for a in p.mesh.atoms] == [
        ("edp", None), ("ep", "2"), ("tp", "t"), ("pp", None)
    ]  # fmt: skip
    assert p.mesh.views == (("dp", ("edp", "ep")), ("all", ("edp", "ep", "tp")))
    assert [let.name for let in p.lets] == ["t", "open", "heads", "s"]
    assert [a.text for a in p.assumptions] == ["2 <= pp", "pp <= 16", "heads % tp == 0", "dp >= 2"]
    assert show(p.assumptions[-1].condition) == "edp*ep >= 2"
    assert p.weights[0].size is not None and show(p.weights[0].size) == "s*(edp*ep)"


def test_microbatches() -> None:
    assert program(SMALL).work.microbatches == number(1)
    assert program(SMALL + "gradient_accumulation 4").work.microbatches == number(4)
    p = program(SMALL + "microbatches M")
    assert show(p.work.microbatches) == "M" and [let.name for let in p.lets] == ["P", "M"]
    p = program(SMALL + "microbatches M\nlet M = 8\nscale * by 1/M")
    assert [(let.name, let.value) for let in p.lets][1:] == [("M", number(8))]
    assert codes(SMALL + "microbatches 2*K") == ["PL201"]


def test_sizes_from_outside() -> None:
    text = "mesh edp, ep, tp = 4\naxis dp = edp * ep\nlet h\nmicrobatches M\nweights w { size h }"
    p = program(text, {"edp": 3, "dp": 6, "h": 8, "M": 2})
    assert [a.text for a in p.assumptions] == [
        f"{name} (from --at)" for name in ("edp == 3", "dp == 6", "h == 8", "M == 2")
    ]
    assert show(p.assumptions[1].condition) == "edp*ep == 6"
    assert p.mesh.atoms[0].size == number(3) and p.lets[0].value == number(8)
    assert program(text, {"tp": 4}).mesh.atoms[2].size == number(4)
    assert program(text, {"microbatches": 4}).lets[1].value == number(4)
    assert codes(text, {"tp": 8}) == ["PL405"]
    assert codes(text, {"edp": 3, "ep": 2, "dp": 5}) == ["PL405"]
    assert codes(text, {"edp": 0}) == ["PL405"]
    assert codes(text, {"pp": 2}) == ["PL221"]
    assert codes(text, {"microbatches": 2, "h": 3, "P": 1}) == ["PL221"]
    assert one(text, fixed={"edpp": 2}).problems[0].help == "did you mean `edp`?"


def test_a_fixed_size_settles_a_root() -> None:
    text = "mesh a, b\nweights w { size 4 }\ninit w broadcast over a*b from 3"
    assert codes(text) == ["PL340"]
    assert codes(text, {"a": 2, "b": 2}) == []
    assert codes(text, {"a": 2, "b": 1}) == ["PL404"]


def test_conditions_on_numbers_alone() -> None:
    # One that holds says nothing; one that does not leaves no mesh at all, and is kept.
    assert program(SMALL + "assume 64 % 8 == 0").assumptions == ()
    assert [a.text for a in program(SMALL + "assume 64 % 3 == 0").assumptions] == ["64 % 3 == 0"]


# --- work -------------------------------------------------------------------------------------


def test_splits_feeds_and_losses() -> None:
    p = program("""
mesh a, b, c
weights w { size 4 }
tokens over a
batch over a, b
tokens over b
feed same over a
loss mean over a, microbatches
loss aux mean global
loss z sum
objective sum
tokens uneven
""")
    work = p.work
    assert [(s.axis, s.dim) for s in work.splits] == [("a", "batch"), ("b", "batch")]
    assert [(f.axis, f.kind) for f in work.feeds] == [("a", "same")]
    assert [(t.name, t.mean, t.over, t.microbatches) for t in work.losses] == [
        (None, True, ("a",), True), ("aux", True, ("a", "b"), True), ("z", False, (), False)
    ]  # fmt: skip
    assert (work.objective, work.tokens_even) == ("sum", False)


def test_defaults_of_work() -> None:
    work = program(SMALL).work
    assert [(t.name, t.mean, t.over, t.microbatches) for t in work.losses] == [(None, True, (), False)]
    assert (work.objective, work.tokens_even, work.splits, work.feeds) == ("mean", True, (), ())


# --- lines ------------------------------------------------------------------------------------

TWO = "mesh dp, cp, e\nweights norm { size 4, kind vector }\nweights x { size 4, kind expert, routed over e }\n"


def test_sync_is_settled_per_weights_and_axis() -> None:
    s = stated(TWO + "sync * over dp, cp, microbatches by mean\nsync norm over cp by none\nsync x over e by sum")
    assert {key: line.op for key, line in s.sync.items()} == {
        ("norm", "dp"): "mean", ("norm", "cp"): "none", ("x", "dp"): "mean", ("x", "cp"): "mean", ("x", "e"): "sum"
    }  # fmt: skip
    assert {key: line.op for key, line in s.sync_microbatches.items()} == {"norm": "mean", "x": "mean"}
    assert s.sync["norm", "cp"].origin.span.line == 5


def test_scales_multiply() -> None:
    s = stated(TWO + "scale * by 1/tokens\nscale x by 1/e")
    assert {name: [show(f) for f, _ in factors] for name, factors in s.scales.items()} == {
        "norm": ["1/tokens"], "x": ["1/tokens", "1/e"]
    }  # fmt: skip


def test_a_routed_product_is_fine_where_others_say_more() -> None:
    assert codes(TWO + "sync * over dp*e by mean") == ["PL320"]
    assert codes(TWO + "sync * over dp*e by mean\nsync x over dp, e by mean") == []
    assert codes(TWO + "sync * over e by none\nsync x over e by sum") == []


def test_a_step_replaces_less_specific_lines() -> None:
    s = stated(TWO + "sync * over dp by none\nscale vector by 2\nstep norm { update }")
    assert set(s.sync) == {("x", "dp")} and s.scales == {}


def test_init_lines_add_up() -> None:
    def init(text: str) -> list[tuple[str, tuple[str, ...], int]]:
        ops: tuple[InitOp, ...] = program(TWO + text).group("norm").init
        return [(op.kind, op.axes, op.root) for op in ops]

    assert init("init * different over dp\ninit * different over cp") == [
        ("different", ("dp",), 0), ("different", ("cp",), 0)
    ]  # fmt: skip
    assert init("init * different over dp\ninit norm same") == []
    assert init("init norm {\n different over dp, cp\n broadcast over dp from 2\n}") == [
        ("different", ("dp", "cp"), 0), ("broadcast", ("dp",), 2)
    ]  # fmt: skip
    assert init("init * same\ninit * broadcast over dp from 0") == [("broadcast", ("dp",), 0)]


def test_random_optimizer_and_precision_by_specificity() -> None:
    p = program(
        TWO
        + """
random * over dp different
random norm over dp same
optimizer muon for vector
precision { params bf16, master fp32 }
precision norm { master none, gradients bf16 }
"""
    )
    norm, x = p.weights
    assert [(r.axis, r.kind) for r in norm.random] == [("dp", "same")]
    assert [(r.axis, r.kind) for r in x.random] == [("dp", "different")]
    assert (norm.optimizer.name, x.optimizer.name) == ("muon", "adamw")
    assert norm.precision == {"params": "bf16", "gradients": "bf16"} and not norm.master
    assert x.precision == {"params": "bf16", "master": "fp32"} and x.master


def test_clip_lists_every_trained_group() -> None:
    p = program(TWO + "clip global_norm {\n x over e, dp\n}")
    assert p.clip is not None and p.clip.listed is not None
    assert {name: axes for name, (axes, _) in p.clip.listed.items()} == {"norm": (), "x": ("e", "dp")}
    p = program(TWO + "freeze norm\nclip global_norm {\n * over cp\n expert over none\n}")
    assert p.clip is not None and p.clip.listed is not None
    assert {name: axes for name, (axes, _) in p.clip.listed.items()} == {"x": ()}
    derived = program(TWO + "clip global_norm")
    assert derived.clip is not None and derived.clip.listed is None


# --- steps ------------------------------------------------------------------------------------


def test_a_step_in_full() -> None:
    p = program("""
mesh edp, ep
axis dp = edp * ep
microbatches M
loss mean local
loss aux sum
weights w { size 4 }
clip global_norm
precision { master fp32 }
place * { optimizer offloaded }
step w {
  each microbatch but last {
    scale loss aux by 1/dp
    scale loss by 2
    reduce scattered over dp by mean
    accumulate into main
    replace
  }
  microbatch 2 { accumulate into main }
  reduce main over edp by sum
  gather gradients over dp
  scale main by 1/M
  offload gradients
  skip on overflow over none
  clip
  update from main
  fetch params
  refresh params from master
  gather params over dp
  broadcast params over dp from 0
}
""")
    (step,) = p.steps
    assert step.weights == "w" and step.stated
    loop, second = step.ops[0], step.ops[1]
    assert [type(op).__name__ for op in loop.body] == ["ScaleLoss", "ScaleLoss", "Reduce", "Accumulate", "Accumulate"]  # type: ignore[union-attr]
    assert (loop.subset, second.subset, second.index) == ("but_last", "index", 2)  # type: ignore[union-attr]
    assert bare(loop.body[2]) == ("Reduce", None, ("edp", "ep"), "mean", True, None)  # type: ignore[union-attr]
    assert [type(op).__name__ for op in step.ops[2:]] == [
        "Reduce", "GatherGradients", "Scale", "OffloadGradients", "Skip", "Clip", "Update", "FetchParams", "Refresh",
        "GatherParams", "BroadcastParams",
    ]  # fmt: skip


def test_the_most_specific_step_wins() -> None:
    p = program(TWO + "step * { update }\nstep norm {\n each microbatch { accumulate }\n update\n}")
    assert [(s.weights, len(s.ops)) for s in p.steps] == [("norm", 2), ("x", 1)]


def test_steps_only_for_trained_weights() -> None:
    assert [s.weights for s in program(TWO + "freeze norm\nstep * { update }").steps] == ["x"]


def test_a_skip_in_all_steps() -> None:
    assert codes(TWO + "step * {\n update\n skip on overflow over dp\n}") == []
    assert codes(TWO + "freeze x\nstep norm {\n skip on overflow over none\n update\n}") == []
