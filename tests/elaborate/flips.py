"""Pairs of specs that differ in one statement, or in one option of it.

Each pair says what the difference must do: change the step program, or be refused with a code.
`test_every_statement.py` sees to it that every alternative of the grammar is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from tests.elaborate.flips_blocks import LAYER_TEXTS, MISFITS, OVERRIDE

CHANGES = "changes"

MESH = "mesh dp, tp, pp, cp"

WORDS = """
let h, L, V, E
weights w      { size 4*h*h*L, layers L, dims in out }
weights norm   { size 2*h, kind vector }
weights embed  { size V*h, kind embedding, used on first and last of pp }
weights expert { size E*h, kind expert, routed over cp }
"""

BASE = MESH + WORDS
ON_DP = WORDS.replace("pp", "dp").replace("cp", "dp")
"""The same weights, all on one axis."""
DEALT = BASE + "".join(f"place * over {axis} = (S(layer), S(layer), S(layer))\n" for axis in ("pp", "dp"))
"""Layers dealt out over either of two axes."""
SPLIT = BASE + "batch over dp\nmicrobatches M\n"
"""Work split over dp, micro-batches, no strategy."""
ONE = "mesh dp, tp\nlet h\n"
"""No weights yet."""
LIBRARY = "weights imported { size 8 }\n"
"""What `more.place` beside the spec says."""


class Flip(Struct, frozen=True):
    """`before` and `after` stand behind `base`; either may be empty. `outcome`: CHANGES, or the
    code that the second one is refused with."""

    before: str
    after: str
    base: str = SPLIT
    outcome: str = CHANGES

    @property
    def texts(self) -> tuple[str, str]:
        return f"{self.base}{self.before}\n", f"{self.base}{self.after}\n"

    def __str__(self) -> str:
        return f"{self.before} -> {self.after}".replace("\n", "; ")


def step(body: str, target: str = "w") -> str:
    return f"step {target} {{\n{body}\n}}"


def chain(*texts: str, base: str = SPLIT, frame: str = "@") -> Iterator[Flip]:
    """Every text, put where the frame has an @, against the one before it."""
    for before, after in pairwise(texts):
        yield Flip(frame.replace("@", before), frame.replace("@", after), base)


LOOP = "each microbatch {\n@\naccumulate\n}\nupdate"


def in_loop(op: str) -> str:
    """A step's body with one operation on the fresh gradient."""
    return LOOP.replace("@", op)


SIZES = [
    *chain("mesh dp", "mesh dp, tp", "mesh dp, tp, pp", "mesh dp, tp = 4, pp", base=ON_DP),
    *chain("dp", "dp = 8", "dp <= 8", "2 <= dp <= 8", "2 <= dp < 8", "2 < dp < 8",
           base="let h\nweights w { size h }\n", frame="mesh @"),
    *chain("", "axis both = dp * tp", "axis both = dp * tp * pp", "axis both = dp *\n tp *\n cp", base=BASE),
    *chain("", "let a", "let a, b", "let a = 3, b", "let a = 3, b, c", base=BASE),
    *chain("", "assume dp == 2", "assume dp != 2", "assume dp < 2", "assume dp <= 2", "assume dp > 2",
           "assume dp >= 2", base=BASE),
    *chain("dp >= 2", "dp >= 2, tp >= 2", "dp >= 2, tp >= 2, pp >= 2", "8 >= dp >= 2", base=BASE, frame="assume @"),
    *chain("h", "2*h", "2*h*V", "2 *\n V * L", "h/V", "h/V/2", "(h+V)*2", "h+V*2", "h+V+1", "h-V+1", "h-V-1", "h%V",
           "h%V%3", "-h", "1.5*h", base=BASE, frame="scale w by @"),
    Flip("let a = h", "let a = memory(h)", BASE, "PL114"),
]  # fmt: skip

WORK = [
    *chain("", "batch over dp", "sequence over dp", "tokens over dp", "tokens over dp, tp", "tokens over dp, tp, pp",
           "tokens over dp*tp", "tokens over none", base=ONE + "mesh pp\nweights w { size h }\n"),
    *chain("", "microbatches 2", "gradient_accumulation 4", "microbatches M", base=BASE),
    *chain("tokens even", "tokens uneven", ""),
    *chain("", "objective sum", "objective mean"),
    *chain("", "feed same over dp", "feed different over dp"),
    *chain("", "loss mean over dp", "loss mean local", "loss mean global", "loss sum", "loss mean over none",
           "loss mean over microbatches",
           "loss mean over dp, tp", "loss mean over dp, microbatches, tp", "loss aux mean local", "loss aux sum"),
]  # fmt: skip

COMBINE = [
    *chain("", "sync w over dp by sum", "sync w over dp by mean", "sync w over dp by none"),
    *chain("w", "w, norm", "w, norm, embed", "*", "vector", frame="sync @ over dp by sum"),
    Flip("", "sync router over dp by sum", outcome="PL202"),
    *chain("tp", "tp, pp", "tp, pp, cp", "tp, microbatches", "tp*pp", frame="sync w over @ by sum"),
    *chain("", "scale w by 1/dp", "scale * by 1/dp", "scale * by 1/tokens"),
]  # fmt: skip

OPERATIONS = [
    "accumulate into main",
    "replace",
    "replace into main",
    "reduce over dp by sum",
    "reduce over dp by mean",
    "reduce scattered over dp by mean",
    "gather gradients over dp",
    "scale by 1/M",
    "scale loss by 1/M",
    "update",
    "gather params over dp",
    "broadcast params over dp from 0",
]
"""What may be added to a loop of SPLIT, in front of `accumulate`."""

STEPS = [
    *chain("", "step w { }", "step w { update }", step("each microbatch { accumulate }\nupdate"),
           step("each microbatch { }\nupdate"), step("each microbatch {\naccumulate\n}\nupdate"), step(in_loop("scale by 2"))),
    *[Flip(step(in_loop("")), step(in_loop(op))) for op in OPERATIONS if "main" not in op],
    *chain("accumulate into main", "replace into main", frame=step(LOOP)),
    *chain("", "scale main by 2", "reduce main over dp by sum", "reduce main scattered over dp by sum",
           frame=step("each microbatch {\naccumulate\naccumulate into main\n@\n}\nupdate")),
    *chain("update", "update from main", frame=step("each microbatch {\naccumulate into main\naccumulate\n}\n@")),
    *chain("each microbatch", "each microbatch but first", "each microbatch but last", "first microbatch",
           "last microbatch",
           "microbatch 2", "microbatch 3", frame="step w {\n@ { accumulate }\nupdate\n}"),
    *chain("dp", "dp, tp", "dp, tp, cp", "dp*tp", "none", frame="step w {\nreduce over @ by sum\nupdate\n}"),
    *chain("update", "skip on overflow over dp\nupdate", "skip on overflow over none\nupdate", frame="step * {\n@\n}"),
    *chain("update", "clip\nupdate", base=SPLIT + "clip global_norm\n", frame="step w {\n@\n}"),
    *chain("update", "update\nrefresh params from master", base=SPLIT + "precision { master fp32 }\n",
           frame="step w {\n@\n}"),
    *chain("offload gradients\nupdate", "offload gradients\nupdate\nfetch params", "offload gradients\nfetch params\nupdate",
           base=SPLIT + "place w { optimizer offloaded }\n", frame="step w {\neach microbatch { accumulate }\n@\n}"),
    Flip(step("each microbatch { accumulate }\noffload gradients\nupdate"), step("each microbatch { accumulate }\nupdate"),
         SPLIT + "place w { optimizer offloaded }\n", "PL338"),
    *chain("scale loss aux by 2", "scale loss by 2", "scale loss aux by 3", "scale loss aux by 1/tokens of aux",
           base=SPLIT + "loss mean local\nloss aux sum\n",
           frame=step(LOOP)),
    *chain("broadcast params over dp from 0", "broadcast params over dp from 1", "broadcast params over tp from 1",
           frame="step w {\nupdate\n@\n}"),
]  # fmt: skip

START = [
    *chain("", "init * different over dp", "init w different over dp", "init w different over dp, tp",
           "init w broadcast over dp from 0",
           "init w broadcast over dp from 1", "init w broadcast over tp from 1", "init w { different over dp }",
           "init w {\nbroadcast over dp from 0\n}", "init w {\ndifferent over dp\nbroadcast over dp from 0\n}"),
    Flip("init * different over dp", "init * different over dp\ninit w same"),
    Flip("init * different over dp", "init * different over dp\ninit * same", outcome="PL342"),
    Flip("init * {\ndifferent over dp\n}", "init * {\ndifferent over dp\nsame\n}", outcome="PL342"),
    *chain("", "clip global_norm", "clip global_norm { }", "clip global_norm { * over none\nw over tp }",
           "clip global_norm { * over dp }", "clip global_norm {\n* over tp\n}",
           "clip global_norm {\n* over dp\nw over tp\n}"),
    *chain("", "optimizer muon", "optimizer sgd", "optimizer muon for w", "optimizer muon for *",
           "optimizer muon for w gathers over tp", "optimizer muon gathers over tp", "optimizer muon gathers over dp",
           "optimizer mine needs nothing", "optimizer mine needs matrix", "optimizer mine needs whole",
           "optimizer mine needs blocks of 8", "optimizer mine needs row for w", "optimizer mine needs row along in for w",
           "optimizer mine needs row along out in for w", "optimizer mine needs whole for w",
           "optimizer mine needs whole for w gathers over tp", "optimizer mine needs whole gathers over tp"),
    *chain("params S(flat)", "params S(flat of one)", frame="place w, norm over tp { @ }"),
    *chain("params S*(flat)", "params S*(flat of one)", frame="place w, norm over tp { @ }"),
    *chain("params sharded on flat", "params sharded on flat of one", frame="place w, norm over tp { @ }"),
    *chain("params gathered on flat", "params gathered on flat of one", frame="place w, norm over tp { @ }"),
    Flip("", "place w over tp { params sharded on out of one }", outcome="PL353"),
    Flip("", "optimizer mine", outcome="PL214"),
    Flip("", "optimizer adam gathers over tp", outcome="PL349"),
    Flip("", "optimizer mine needs row", outcome="PL352"),
    Flip("", "optimizer mine needs row along inn for w", outcome="PL218"),
    *chain("", "random w over dp same", "random w over dp different", "random * over dp different"),
    *chain("", "precision { params bf16 }", "precision w { params bf16 }", "precision w { params bf16, master fp32 }",
           "precision w {\nparams bf16\nmaster fp32\nmoments fp32\n}"),
]  # fmt: skip

WEIGHTS = [
    *chain("size 8", "size 9", "size 8, layers 2", "size 8, layers 4", "size 8, layers 4, dims a",
           "size 8, layers 4, dims a b",
           "size 8, layers 4, dims a b c", "size 8, kind vector", "size 8, used on first of dp",
           "size 8, used on last of dp",
           "size 8, used on last and first of dp", "size 8, used on first of tp", "size 8, routed over tp",
           "\nsize 8\nrouted over dp*tp\n", base=ONE, frame="weights w { @ }"),
    *chain("used on first", "used on last", "used on first and last",
           base=ONE + "stages over dp\n", frame="weights w { size 8, @ }"),
    Flip("weights w { size 8 }", "weights w { }", ONE, "PL307"),
    *chain("", "freeze w", "freeze vector", "freeze w, norm", "freeze *"),
    *chain("weights x { size 8 }", "model m { }", "model n { depth 2 }", "model n { depth 3 }",
           "model n { depth 3, width 4 }", "model n {\ndepth 3\nwidth 5\n}",
           base=ONE + "model m() { weights w { size 4 } }\nmodel n(depth, width = 1) { weights w { size depth*width } }\n"),
]  # fmt: skip

PLACES = [
    *chain("replicated", "sharded", "replicated", "S", "R", "sharded on out", "S(in)", "gathered", "R", "S*",
           "gathered on out", "S*(in)",
           "materialized", "R", "M", "offloaded", "R", "O", "sharded offloaded", "R", "O(S)", "O(S*(out))",
           "gathered on out",
           frame="place w over tp { params @ }"),
    *chain("params S", "optimizer S", "gradients S", "activations S", "activations S, params S",
           "activations S\noptimizer S\n",
           "params S*, reshard_after_forward true", "params S*, reshard_after_forward false",
           "params S*, reshard_after_forward 8",
           "params S*\noptimizer S\nreshard_after_forward 8", frame="place w over tp { @ }"),
    *chain("true", "false", "8", "16", frame="place w { reshard_after_forward @ }"),
    Flip("place w { reshard_after_forward 8 }", "place w over tp { reshard_after_forward 8 }", outcome="PL317"),
    Flip("place w over tp { params S*, reshard_after_forward 8 }",
         "place w over tp { params S, reshard_after_forward 8 }",
         outcome="PL317"),
    *chain(" over tp", " over tp, dp", " over tp*dp", " over none",
           frame="place * { activations M }\nplace w@ { params S* }"),
    *chain("", "place w { params M }", "place w {\noptimizer O\n}", "place w = (M)", "place w = (M, O)",
           "place w = (R, O)",
           "place w over tp = (S)", "place w over dp = (S*, S)", "place w over dp = (S*, S, S, R)",
           "place w over dp = (R, S, R, M)"),
    *chain("", "stages over pp", "stages over dp", "stages over dp { schedule gpipe }",
           "stages over dp { schedule 1f1b }", "stages over dp { schedule zbv }",
           "stages over dp { chunks 2 }", "stages over dp {\nschedule gpipe\nchunks 2\n}",
           "stages over dp { schedule gpipe, chunks 3 }",
           base=DEALT),
]  # fmt: skip

REUSE = [
    *chain("", "use zero1(dp)", "use zero1(tp)", "use zero1(d = dp)", "use zero1(dp) * zero1(tp)",
           "use zero1(dp), zero1(cp)",
           "use zero1(dp), zero1(cp), zero1(tp)", "use zero1(dp) *\n zero1(tp) *\n tensor_parallel(cp)",
           "use activation_checkpointing()",
           "use pipeline(pp)", "use pipeline(pp, gpipe)", "use pipeline(pp, gpipe, 2)",
           "use pipeline(pp, chunks = 3)", base=BASE),
    Flip("strategy s(d) { batch over d }\nuse s(dp)", "strategy s() { }\nuse s()", BASE),
    Flip("strategy s(d) { batch over d }\nuse s(dp)", "strategy s(d, k) { batch over d }\nuse s(dp, 7)", BASE, "PL318"),
    Flip("strategy s(d) {\nbatch over d\n}\nuse s(dp)",
         "strategy s(d) {\nbatch over d\nfeed same over d\n}\nuse s(dp)", BASE),
    Flip("strategy s() { batch over dp }\nuse s()", "strategy s(d, e) { batch over d, e }\nuse s(dp, tp)", BASE),
    Flip("strategy s(d, e, f = dp) { batch over d, e, f }\nuse s(cp, tp)",
         "strategy s(d, e, f) { sequence over d, e, f }\nuse s(cp, tp, dp)", BASE),
    Flip("model m() { weights a { size 4 } }\nmodel m { }",
         "model m(p) { weights a { size p } }\nmodel m { p 3 }", BASE),
    Flip("use zero1(dp)", "strategy s(d) { use zero3(d) }\nuse s(dp)", BASE),
    Flip("model m() { weights a { size 4 } }\nmodel m { }", "", BASE),
    Flip("spec a { batch over dp }", "spec b { batch over dp }", BASE),
    Flip("spec a { }", "spec a { }\nspec b { }", BASE),
    Flip("", "spec a { }", BASE),
    Flip("", 'import "more.place"', BASE),
    Flip(BASE, "", "", "PL300"),
]  # fmt: skip

UNITS = ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")

EXPECTED = [
    *chain("", "expect proved", "expect refuted", "expect refuted GI01", "expect refuted GI02",
           "expect refuted GI02 w", "expect vacuous",
           "expect refuted w", "expect error", "expect error PL300"),
    *[Flip("", f"budget 80 {unit}") for unit in UNITS],
    *[Flip("", f"claim memory(a) {op} memory(b)") for op in ("==", "!=", "<", "<=", ">", ">=")],
]  # fmt: skip

LAYERS = [flip for texts, base, frame in LAYER_TEXTS for flip in chain(*texts, base=base, frame=frame)]
LAYERS += [Flip("", text, OVERRIDE, "PL384") for text in MISFITS]
"""Blocks of operations, from flips_blocks.py."""

FLIPS = [*SIZES, *WORK, *COMBINE, *STEPS, *START, *WEIGHTS, *PLACES, *REUSE, *EXPECTED, *LAYERS]

ALIKE = [
    Flip("microbatches M", "gradient_accumulation M", BASE),
    Flip("place w over tp { params sharded on out }", "place w over tp = (S(out))"),
    Flip("place w over tp = (S*, S, S)", "place w over tp { gradients sharded, params gathered, optimizer sharded }"),
    Flip("place w over tp { optimizer sharded offloaded }", "place w over tp { optimizer O(S) }"),
    Flip("place w { activations materialized }", "place w { activations M }"),
    Flip("place w { optimizer offloaded }", "place w over none { optimizer O }"),
    Flip("use zero1(dp) * zero1(tp)", "use zero1(dp), zero1(tp)"),
    Flip("scale w by 1/dp*tp", "scale w by (1/dp)*tp"),
    Flip("init w different over dp", "init w { different over dp }"),
    Flip(
        "place w over dp, tp { optimizer sharded }",
        "place w over dp { optimizer sharded }\nplace w over tp { optimizer sharded }",
    ),
    *chain("t = 2, d = h", "t = 2\ndims d = h", base=ONE,
           frame="weights w { size 4 }\ndims @\nblock b {\ninput i(t, d)\no = gelu i\n}"),
    *chain("checkpoint b", "checkpoint o of b", "checkpoint o to o of b", base=ONE,
           frame="weights w { size 4 }\ndims t\nblock b {\ninput i(t)\no = gelu i\n}\n@"),
    *chain("backward o over tp by sum", "backward o of b over tp by sum", base=ONE,
           frame="weights w { size 4 }\ndims t\nblock b {\ninput i(t)\no = gelu i\n}\n@"),
    Flip("weights x { size 4, kind vector }", "weights x {\n  size 4\n  kind vector\n}  # why"),
]
"""Two ways of writing one thing: nothing but the place may differ."""
