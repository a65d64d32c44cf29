"""Every code of the elaborator, with its sentence. The snippet is the smallest file that has the problem."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import placelogic.elaborate
from tests.elaborate.helpers import SMALL, one, specs

STAGED = "mesh pp\ndims batch, sequence, hidden\n"
LAYER = "block layer repeat 4 {\n input x(batch, sequence, hidden)\n y = linear x with w from hidden to hidden\n}\n"

PROBLEMS = [
    # --- names
    ("PL200", SMALL + "batch over n", "there is no axis `n`"),
    ("PL200", SMALL + "batch over P", "there is no axis `P`"),
    ("PL201", SMALL + "scale model by 1/Q", "`Q` is not declared"),
    ("PL201", "mesh N = K\nweights w { size 4 }", "`K` is not declared"),
    ("PL202", SMALL + "place modle over N { params sharded }", "there are no weights and no kind `modle`"),
    ("PL202", SMALL + "freeze lora", "there are no weights and no kind `lora`"),
    ("PL202", SMALL + "expect refuted GI01 norm", "there are no weights `norm`"),
    ("PL203", SMALL + "use zero4(N)", "there is no strategy `zero4`"),
    ("PL203", SMALL + "use llama(N)", "there is no strategy `llama`"),
    ("PL204", SMALL + "model lama { layers 2 }", "there is no model `lama`"),
    ("PL205", SMALL + "use zero1(axis = N)", "strategy `zero1` has no parameter `axis`"),
    ("PL206", SMALL + "use zero1(N, N)", "strategy `zero1` takes 1 argument, not more"),
    ("PL207", SMALL + "use zero1()", "strategy `zero1` needs `d`"),
    ("PL208", SMALL + "use zero1(N, d = N)", "parameter `d` of strategy `zero1` is given twice"),
    ("PL210", "mesh N, N\nweights w { size 4 }", "`N` is declared twice"),
    ("PL210", "mesh N\nlet N\nweights w { size 4 }", "`N` is declared twice"),
    ("PL210", "mesh N\naxis N = N\nweights w { size 4 }", "`N` is declared twice"),
    ("PL210", SMALL + "weights model { size P }", "weights `model` are declared twice"),
    ("PL210", SMALL + "strategy s(d) { batch over d }\nstrategy s(d) { batch over d }", "`s` is defined twice"),
    ("PL210", SMALL + "strategy s(d) {\n let d = 2\n batch over d }\nuse s(N)", "`d` is declared twice in `s`"),
    ("PL210", SMALL + "loss mean local\nloss sum", "the unnamed loss is stated twice"),
    ("PL210", SMALL + "loss aux mean local\nloss aux sum", "loss `aux` is stated twice"),
    ("PL210", "mesh N\nweights w { size 4, dims a a }", "dimension `a` is declared twice"),
    ("PL211", "mesh true\nweights w { size 4 }", "`true` is a word of the language"),
    ("PL211", "mesh N\nweights w { size 4, dims layer }", "every weights have `layer`"),
    ("PL213", "mesh N\nweights w { size 4, kind matrx }", "there is no kind `matrx` of weights"),
    ("PL214", SMALL + "optimizer adamv", "there is no optimizer `adamv`"),
    ("PL215", SMALL + "stages over N { schedule f1b }", "there is no pipeline schedule `f1b`"),
    ("PL215", SMALL + "stages over N { schedule 2 }", "a pipeline schedule is a word"),
    ("PL216", SMALL + "precision { params bf15 }", "there is no dtype `bf15`"),
    ("PL216", SMALL + "precision { params none }", "there is no dtype `none`"),
    ("PL217", SMALL + "precision { param bf16 }", "there is no precision of `param`"),
    ("PL218", SMALL + "place model over N { params sharded on out }", "no weights declare a dimension `out`"),
    ("PL218", SMALL + "place model over N { activations sharded on layer }", "activations have no dimension `layer`"),
    ("PL219", SMALL + "step model { each microbatch {\n scale loss aux by 2\n accumulate\n }\n update }", "no loss `aux`"),
    ("PL220", SMALL + "expect refuted GI77", "there is no finding `GI77`"),
    ("PL220", SMALL + "expect error GI01", "`GI01` does not go with `error`"),
    ("PL222", SMALL + "clip value", "clipping by `value` is not modelled"),
    # --- meaning
    ("PL300", "strategy s(d) { batch over d }", "there is nothing to check in this file"),
    ("PL300", "# nothing", "there is nothing to check in this file: it is empty"),
    ("PL301", SMALL + "strategy s(d) {\n mesh M\n }\nuse s(N)", "`mesh` cannot stand inside `s`"),
    ("PL301", SMALL + "strategy s(d) {\n expect proved\n }\nuse s(N)", "`expect` cannot stand inside `s`"),
    ("PL302", SMALL + "strategy s(d) { use s(d) }\nuse s(N)", "circle: s -> s"),
    ("PL302", SMALL + "strategy a(d) { use b(d) }\nstrategy b(d) { use a(d) }\nuse a(N)", "circle: a -> b -> a"),
    ("PL302", SMALL + "strategy s(a = b, b = a) { batch over a }\nuse s()", "refer to each other in a circle"),
    ("PL304", SMALL + "use zero1(3)", "`d` must be an axis here, and stands for `3`"),
    ("PL304", SMALL + "strategy s(k) { optimizer k }\nuse s(2*N)", "`k` must be a word here"),
    ("PL304", SMALL + "strategy s(k) { scale * by k }\nuse s(none)", "a number is needed here, not `none`"),
    ("PL305", "let P\nweights w { size P }", "spec `spec` has no mesh"),
    ("PL306", "mesh N", "spec `spec` has no weights"),
    ("PL307", "mesh N\nweights w { kind vector }", "weights `w` have no size"),
    ("PL309", SMALL + "microbatches 4\nmicrobatches 8", "`microbatches` is stated differently in line 5"),
    ("PL309", SMALL + "tokens even\ntokens uneven", "`tokens` is stated differently"),
    ("PL309", SMALL + "objective mean\nobjective sum", "`objective` is stated differently"),
    ("PL309", SMALL + "clip global_norm\nclip global_norm { model over N }", "`clip` is stated differently"),
    ("PL310", SMALL + "batch over N\nsequence over N", "axis `N` splits batch (line 5) and sequence"),
    ("PL311", SMALL + "feed same over N\nfeed different over N", "fed the same and different samples"),
    ("PL312", "mesh a, b\nweights w { size 4, used on first of a*b }", "stages of one axis of the mesh"),
    ("PL312", "mesh a, b\nweights w { size 4 }\nstages over a*b", "stages lie on one axis of the mesh"),
    ("PL313", "mesh a\nbatch over a\nweights w { size 4, used on last of a }", "axis `a` splits batch (line 2)"),
    ("PL314", SMALL + "batch over N, N", "axis `N` is named twice here"),
    ("PL314", "mesh a, b\naxis d = a*b\nbatch over d\nweights w { size 4 }\nsync w over d, a by sum", "axis `a` is named twice"),
    ("PL315", SMALL + "batch over N\nplace model over N { activations sharded on heads }",
     "axis `N` splits batch (line 5) and cannot also cut the activations of `model` on heads"),
    ("PL316", "mesh N\nweights a { size 4, dims out }\nweights b { size 4 }\nplace * over N { params sharded on out }",
     "`b` has no dimension `out`"),
    ("PL317", SMALL + "place model over N { reshard_after_forward 8 }", "about gathered params"),
    ("PL318", SMALL + "strategy s(d, k) { batch over d }\nuse s(N, 7)", "`s` takes `k` and does nothing with it"),
    ("PL320", "mesh a, e\nweights x { size 4, routed over e }\nsync x over a*e by mean", "a factor of a*e"),
    ("PL321", "mesh e\nweights x { size 4, routed over e }\nsync x over e by none", "which `none` cannot undo"),
    ("PL322", SMALL + "sync * over N by sum\nsync * over N by mean", "`sync` of `model` over N is stated differently"),
    ("PL322", SMALL + "sync * over microbatches by sum\nsync * over microbatches by mean", "over micro-batches"),
    ("PL322", SMALL + "optimizer adam\noptimizer lion", "the optimizer of `model` is stated differently"),
    ("PL322", SMALL + "random * over N same\nrandom * over N different", "`random` of `model` over N"),
    ("PL322", SMALL + "precision { params bf16 }\nprecision { params fp32 }", "the precision of params of `model`"),
    ("PL322", SMALL + "step * { update }\nstep * {\n update\n update\n}", "two equally specific steps of `model` differ"),
    ("PL322", SMALL + "clip global_norm {\n * over N\n * over none\n}", "squares of `model` over different axes"),
    ("PL322", SMALL + "use fsdp(N)\nuse fsdp(N, reshard_after_forward = false)", "`reshard_after_forward` of `model`"),
    ("PL323", SMALL + "step model { update }\nsync model over N by sum", "`model` has a step of its own (line 5)"),
    ("PL323", SMALL + "step * { update }\nscale model by 2", "less specific `scale` lines"),
    ("PL324", SMALL + "freeze model\nsync model over N by sum", "`model` is frozen: it has no gradient to combine"),
    ("PL324", SMALL + "freeze model\nscale model by 2", "frozen"),
    ("PL324", SMALL + "freeze model\nstep model { update }", "frozen"),
    ("PL324", SMALL + "freeze model\noptimizer adam for model", "frozen"),
    ("PL324", SMALL + "freeze model\nclip global_norm { model over N }", "frozen"),
    ("PL324", SMALL + "freeze model\nprecision model { master fp32 }", "frozen"),
    ("PL349", SMALL + "optimizer adam gathers over N", "updates each element by itself"),
    ("PL352", SMALL + "optimizer own needs row", "along which dimension a row of `model` runs is not known"),
    ("PL352", SMALL + "optimizer own needs blocks of 0", "a block has at least one element"),
    ("PL353", SMALL + "place model over N { optimizer sharded on layer of all }", "only flat ones have names"),
    ("PL325", SMALL + "loss mean local\nloss aux mean local\nscale * by 1/tokens", "several losses each count their own"),
    ("PL325", SMALL + "assume tokens > 3", "can only scale a gradient"),
    ("PL330", SMALL + "step model {\n accumulate\n update\n}", "no fresh gradient to accumulate outside a loop"),
    ("PL331", SMALL + "step model { each microbatch {\n accumulate\n scale loss by 2\n }\n update }", "while its gradient is fresh"),
    ("PL331", SMALL + "step model {\n scale loss by 2\n update\n}", "while its gradient is fresh"),
    ("PL332", SMALL + "step model {\n clip\n update\n}", "the step clips, and no `clip` statement says how"),
    ("PL333", "mesh N\nweights a { size 4 }\nweights b { size 4 }\nstep a {\n skip on overflow over none\n update\n}",
     "`a` skips the update on overflow and `b` does not"),
    ("PL334", SMALL + "step model { each microbatch { skip on overflow over N } }", "decided once per step"),
    ("PL319", "mesh pp\nweights w { size 4, used on last of pp }\nplace w over pp { activations sharded }",
     "its activations cannot be cut over pp"),
    ("PL319", "mesh pp\nweights w { size 4, used on first and last of pp }\nplace w over pp { optimizer sharded on flat }",
     "its optimizer cannot be cut over pp"),
    ("PL345", SMALL + "sync model over microbatches by none", "micro-batches are added up in the buffer"),
    ("PL346", "mesh pp\nweights e { size 4, used on first }\nweights m { size 4 }\nplace m over pp { params sharded on layer }",
     "nothing says on which axis `e` is used first or last"),
    ("PL347", "mesh ep\nweights e { size 4, kind expert, dims in out, routed over ep }\ntokens over ep\n"
     "place e over ep { params sharded on in }", "which deals out whole experts"),
    *(("PL347", f"mesh ep\nweights e {{ size 4, kind expert, routed over ep }}\ntokens over ep\nplace e over ep {{ params sharded on {on} }}",
       f"cut `on {on}` there") for on in ("flat", "param", "layer")),
    ("PL391", STAGED + "weights w { used on last }\n" + LAYER + "use pipeline(pp)", "`w` is `used on last` (line 3), and block `layer` uses it in layers"),
    ("PL392", STAGED + "weights w { }\n" + LAYER.replace(" repeat 4", "") + "use pipeline(pp)", "nothing says on which of the stages over pp it lies"),
    ("PL393", STAGED + "weights w { }\n" + LAYER + "stages over pp", "its params are whole on every stage"),
    ("PL394", SMALL + "use pipeline(N, schedule = zbv, chunks = 3)", "zbv lays the stages in a V, which gives each device two chunks, not 3"),
    ("PL394", SMALL + "stages over N { schedule dualpipe_v, chunks 1 }", "not 1"),
    ("PL335", SMALL + "step model {\n each microbatch { accumulate into main }\n update from mian\n}", "buffer `mian` is read"),
    ("PL335", SMALL + "step model {\n each microbatch { accumulate into main }\n reduce over N by mean\n update from main\n}",
     "the unnamed buffer is read"),
    ("PL348", SMALL + "step model {\n each microbatch { accumulate into a }\n skip on overflow over N\n each microbatch { accumulate into b }\n"
     " reduce b over N by mean\n update from b\n}", "before anything is accumulated into buffer `b`"),
    ("PL343", SMALL + "step model {\n each microbatch { accumulate }\n last microbatch { reduce over N by mean }\n update\n}",
     "nothing is accumulated in this loop"),
    ("PL343", SMALL + "step model {\n each microbatch {\n accumulate into a\n reduce over N by mean\n accumulate into b\n }\n update from b\n}",
     "between two accumulates"),
    ("PL343", SMALL + "step model {\n each microbatch {\n reduce a over N by mean\n accumulate into a\n }\n update from a\n}",
     "acts on the fresh gradient, not on `a`"),
    ("PL336", SMALL + "step model {\n update\n refresh params from master\n}", "no master copy to refresh params from"),
    ("PL337", SMALL + "step model {\n offload gradients\n update\n}", "nothing of `model` lies on the host"),
    ("PL337", SMALL + "step model {\n update\n fetch params\n}", "params could be fetched from"),
    ("PL338", SMALL + "use offload()\nstep model { update }", "does not say how all gradients get there before the update"),
    ("PL339", SMALL + "place * { gradients offloaded }\n", "are not modelled"),
    ("PL340", "mesh a, b\nweights w { size 4 }\ninit w broadcast over a*b from 1", "depends on sizes that are open"),
    ("PL341", SMALL + "init * different over N\ninit * broadcast over N from 0", "before or after the other `init` lines"),
    ("PL342", SMALL + "init * different over N\ninit * same", "start the same here, and different in line 5"),
    ("PL342", SMALL + "init * {\n same\n different over N\n}", "start the same here, and different in line 7"),
    ("PL350", "mesh N\nlet k = 2*N\nweights w { size k }", "`k` is given by axis `N`: that is not modelled"),
    ("PL350", "mesh N, K = N\nweights w { size 4 }", "the size of axis `K` is given by axis `N`"),
    # --- arithmetic
    ("PL400", "mesh N = 0\nweights w { size 4 }", "the size of axis `N` is 0"),
    ("PL400", "mesh N\nlet k = 2 - 5\nweights w { size 4 }", "`k` is -3"),
    ("PL400", "mesh N\nlet k = 3/2\nweights w { size 4 }", "`k` is 3/2"),
    ("PL400", "mesh N\nlet k = 3\nweights w { size k/2 }", "the size of `w` is 3/2"),
    ("PL400", "mesh N\nweights w { size 4, layers 0 }", "the number of layers of `w` is 0"),
    ("PL400", SMALL + "microbatches 0", "the number of micro-batches is 0"),
    ("PL400", SMALL + "stages over N { chunks 0 }", "the number of chunks is 0"),
    ("PL401", SMALL + "let k = 2\nscale * by 1/(k - 2)", "`k - 2` is zero, and divides"),
    ("PL402", "mesh N\nlet k = 3\nweights w { size 4 }\nassume (k/2) % 2 == 1", "takes a remainder of a fraction"),
    ("PL403", "mesh N\nlet a = b, b = a\nweights w { size 4 }", "sizes are defined by each other: `a`, `b`"),
    ("PL403", "mesh N\naxis a = b*N\naxis b = a*N\nweights w { size 4 }", "axis `a` is made of itself"),
    ("PL403", SMALL + "strategy s(d) {\n let x = y, y = x\n scale * by x\n}\nuse s(N)", "are defined by each other"),
    ("PL404", "mesh N = 2\nweights w { size 4 }\ninit w broadcast over N from 2", "there is no device 2 along N: it has 2"),
    ("PL404", "mesh N = 2\nweights w { size 4 }\nstep w {\n update\n broadcast params over N from 5\n}", "no device 5"),
    ("PL406", "mesh N\nlet a = 999999999999*999999999999, b = a*a*a*a, c = b*b*b*b, d = c*c*c*c\nweights w { size 4 }",
     "is larger than any real size"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "message"), PROBLEMS, ids=[f"{p[0]}-{n}" for n, p in enumerate(PROBLEMS)])
def test_problem(code: str, text: str, message: str) -> None:
    spec = one(text)
    assert spec.program is None
    assert code in [problem.code for problem in spec.problems], spec.problems
    problem = next(problem for problem in spec.problems if problem.code == code)
    assert message in problem.message
    assert problem.span.line >= 1 and problem.span.path == "spec.place"


def test_every_code_has_a_test_and_a_line_in_the_table() -> None:
    folder = Path(placelogic.elaborate.__file__).parent
    used = {
        code
        for file in folder.glob("*.py")
        if file.name != "__init__.py"
        for code in re.findall(r'"(PL\d{3})"', file.read_text())
    }
    used |= set(re.findall(r'"(PL\d{3})"', (folder / "__init__.py").read_text()))
    table = set(re.findall(r"PL\d{3}", placelogic.elaborate.__doc__ or ""))
    assert used == table
    here = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    assert {code for code in used if f'"{code}"' not in here} == set()


def test_problems_of_a_spec_are_told_together() -> None:
    spec = one("mesh N\nweights w { size Q, kind matrx }\nbatch over M\noptimizer adamv")
    assert [p.code for p in spec.problems] == ["PL200", "PL201", "PL213", "PL214"]


def test_hints_name_the_closest() -> None:
    assert one(SMALL + "use zero4(N)").problems[0].help in (
        "did you mean `zero1`?",
        "did you mean `zero2`?",
        "did you mean `zero3`?",
    )
    assert one("mesh data\nweights w { size 4 }\nbatch over dat").problems[0].help == "did you mean `data`?"
    assert one(SMALL + "use llama(N)").problems[0].help == "`llama` is a model: write model llama { ... }"


def test_a_problem_inside_a_strategy_points_at_the_use() -> None:
    (problem,) = one(SMALL + "strategy s(d) {\n  batch over q\n}\nuse s(N)").problems
    assert (problem.span.line, problem.span.column) == (8, 5)
    assert problem.help is not None and "spec.place:6" in problem.help


def test_an_expectation_survives_problems() -> None:
    spec = one(SMALL + "batch over Q\nexpect error PL200")
    assert [(e.verdict, e.code) for e in spec.expectations] == [("error", "PL200")]


def test_problems_outside_are_in_every_spec() -> None:
    both = specs("mesh N\nweights w { size Q }\nspec a { batch over N }\nspec b { sequence over N }")
    assert [[p.code for p in spec.problems] for spec in both] == [["PL201"], ["PL201"]]


def test_spec_twice_and_spec_in_spec() -> None:
    assert all(
        "PL210" in [p.code for p in spec.problems]
        for spec in specs("mesh N\nspec a { batch over N }\nspec a { batch over N }")
    )


def test_an_axis_of_unknown_factors_is_told_once() -> None:
    spec = one("axis dp = edp * ep\nweights w { size 4 }\nplace w over dp { optimizer sharded }")
    assert [problem.code for problem in spec.problems] == ["PL200", "PL200", "PL305"]
