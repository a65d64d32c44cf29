"""Strategies and models written out: arguments, local names, the standard library, imports, specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.library import standard, standard_names
from placelogic.program.expr import show
from placelogic.source import NOWHERE
from placelogic.syntax import ast
from placelogic.syntax.parse import parse
from tests.elaborate.helpers import SMALL, codes, layout, one, program, specs

# --- arguments --------------------------------------------------------------------------------


def test_products_numbers_and_words_are_bound_by_substitution() -> None:
    text = """
mesh a, b, pp
weights w { size 4, used on first of pp }
strategy s(d, p, schedule, k, o = lion) {
  batch over d
  stages over p { schedule schedule }
  scale w by k/d
  optimizer o
}
use s(a*b, pp, schedule = zbv, k = 3)
"""
    spec = one(text)
    assert spec.program is not None and spec.stated is not None, spec.problems
    assert spec.program.work.split_axes == ("a", "b")
    assert spec.program.stages is not None and spec.program.stages.vee
    assert [show(factor) for factor, _ in spec.stated.scales["w"]] == ["3/(a*b)"]
    assert spec.program.weights[0].optimizer.name == "lion"


def test_a_default_may_speak_of_a_later_parameter() -> None:
    p = program(SMALL + "strategy s(a = b, b) { batch over a }\nuse s(b = N)")
    assert p.work.split_axes == ("N",)


def test_names_of_caller_and_definition_do_not_mix() -> None:
    # Inside `inner` the name `d` is its own parameter; the caller's `d` and `e` are swapped on purpose.
    text = """
mesh d, e
weights w { size 4 }
strategy inner(d, e) {
  batch over d
  sequence over e
}
strategy outer(d, e) { use inner(e, d) }
use outer(d, e)
"""
    p = program(text)
    assert [(s.axis, s.dim) for s in p.work.splits] == [("e", "batch"), ("d", "sequence")]


def test_local_names_stay_inside() -> None:
    text = """
mesh N
let k = 5
strategy s(d) {
  let k = 2, free
  axis both = d
  batch over both
  scale * by 1/k
  scale * by 1/free
}
weights w { size k }
use s(N)
"""
    spec = one(text)
    assert spec.program is not None and spec.stated is not None, spec.problems
    assert [show(f) for f, _ in spec.stated.scales["w"]] == ["1/2", "1/s_free"]
    assert [let.name for let in spec.program.lets] == ["k", "s_free"]
    assert spec.program.weights[0].size is not None and show(spec.program.weights[0].size) == "k"


def test_none_leaves_things_out() -> None:
    text = """
mesh e
strategy s(a = none, b = none) {
  batch over a
  sync * over a by sum
  step * {
    each microbatch { accumulate }
    reduce over a by sum
    reduce over e, a by sum
    update
    broadcast params over b from 0
  }
  place * over a { params sharded }
}
model m(route = none, extra = none, stage = none) {
  weights w { size 4, routed over route, used on first of stage }
  weights x { size 4*extra }
}
model m { }
use s()
"""
    p = program(text)
    assert [w.name for w in p.weights] == ["w"]
    assert (p.weights[0].routed, p.weights[0].uses, layout(p.weights[0].params)) == ((), None, "R")
    assert [type(op).__name__ for op in p.steps[0].ops] == ["Loop", "Reduce", "Update"]
    assert p.work.splits == ()


def test_a_circle_is_found_and_explosions_are_stopped() -> None:
    chain = "\n".join(f"strategy s{n}(d) {{ use s{n + 1}(d) * s{n + 1}(d) }}" for n in range(20))
    assert codes(SMALL + chain + "\nstrategy s20(d) { batch over d }\nuse s0(N)") == ["PL303"]
    empty = chain + "\nstrategy s20(d) { }\nuse s0(N)"
    assert codes(SMALL + empty) == ["PL303"]
    deep = "\n".join(f"strategy s{n}(d) {{ use s{n + 1}(d) }}" for n in range(40))
    assert codes(SMALL + deep + "\nstrategy s40(d) { batch over d }\nuse s0(N)") == ["PL303"]
    assert set(codes("mesh " + ", ".join(f"a{n}" for n in range(100)) + "\nweights w { size 4 }")) == {"PL303"}
    lets = ", ".join(f"x{n} = x{n + 1} + x{n + 1}" for n in range(40))
    assert codes(SMALL + f"strategy s(d) {{\n let {lets}, x40 = 1\n scale * by x0\n}}\nuse s(N)")[0] == "PL303"


# --- the standard library ---------------------------------------------------------------------

STRATEGIES = {
    "data_parallel": "(a)",
    "zero1": "(a)",
    "distributed_optimizer": "(a)",
    "zero2": "(a)",
    "zero3": "(a)",
    "fsdp": "(a)",
    "hsdp": "(shard = a, replicate = b)",
    "tensor_parallel": "(a)",
    "sequence_parallel": "(a)",
    "pipeline": "(a, schedule = interleaved_1f1b, chunks = 3)",
    "context_parallel": "(a)",
    "ulysses": "(a)",
    "expert_parallel": "(a)",
    "offload": "()",
    "activation_checkpointing": "()",
}
MODELS = {
    "gpt": "layers 12, hidden 768, heads 12, vocab 50257, positions 1024",
    "llama": "layers 80, hidden 8192, heads 64, kv_heads 8, ffn 28672, vocab 128256",
    "moe": "layers 32, hidden 4096, heads 32, kv_heads 8, ffn 14336, vocab 32000, experts 8, experts_over a",
    "deepseek_moe": "moe_layers 27, hidden 2048, heads 16, ffn 10944, expert_ffn 1408, experts 64, top 6, "
    "vocab 102400, experts_over a",
    "deepseek_v3": "experts_over a",
}


def test_the_library_is_complete() -> None:
    """The strategies and models as such; what frameworks do is in tests/frontends/test_tables.py."""
    assert set(standard_names("std")) == {*STRATEGIES, *MODELS}
    for name in standard_names("std"):
        definition = standard(name)
        assert definition is not None and definition.node.name == name
        assert isinstance(definition.node, ast.StrategyDef if name in STRATEGIES else ast.ModelDef)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_on_every_model(strategy: str, model: str) -> None:
    p = program(f"mesh a, b\nmodel {model} {{ {MODELS[model]} }}\nuse {strategy}{STRATEGIES[strategy]}")
    assert p.conflicts == ()


def total(model: str, **arguments: int) -> int:
    from placelogic.program.expr import evaluate

    given = ", ".join(f"{name} {value}" for name, value in arguments.items())
    weights = program(f"mesh a\nmodel {model} {{ {given} }}").weights
    return int(sum(evaluate(w.size, {}) for w in weights if w.size is not None))


def test_models_have_their_published_sizes() -> None:
    # GPT-2 small: 124,439,808 parameters; Llama 2 7B: 6,738,415,616; Mixtral 8x7B: 46,702,792,704;
    # DeepSeekMoE 16B: 16,375,728,128.
    assert total("gpt", layers=12, hidden=768, heads=12, vocab=50257, positions=1024) == 124_439_808
    assert total("llama", layers=32, hidden=4096, heads=32, ffn=11008, vocab=32000) == 6_738_415_616
    assert (
        total("moe", layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=32000, experts=8) == 46_702_792_704
    )
    fine = {"ffn": 10944, "expert_ffn": 1408, "experts": 64, "top": 6, "vocab": 102400}
    assert total("deepseek_moe", moe_layers=27, hidden=2048, heads=16, **fine) == 16_375_728_128


def test_a_definition_of_ones_own_comes_first() -> None:
    p = program(SMALL + "strategy zero1(d) { sequence over d }\nuse zero1(N)")
    assert p.work.splits[0].dim == "sequence"
    # ... and does not change what the library means by the name.
    p = program(SMALL + "strategy zero1(d) { sequence over d }\nuse distributed_optimizer(N)")
    assert p.work.splits[0].dim == "batch"


def test_the_stages_axis_is_that_of_the_pipeline() -> None:
    p = program(f"mesh a, b\nmodel gpt {{ {MODELS['gpt']} }}\nuse pipeline(b, schedule = zbv)")
    embed = p.group("embed").uses
    assert embed is not None and (embed.axis, embed.first, embed.last, embed.vee) == ("b", True, True, True)
    assert program(f"mesh a, b\nmodel gpt {{ {MODELS['gpt']} }}").group("embed").uses is None


# --- imports ----------------------------------------------------------------------------------


def check(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.place"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    main = folder / "main.place"
    (spec,) = elaborate_file(parse(main.read_text(), str(main)))
    return [problem.code for problem in spec.problems]


def test_import_brings_definitions_weights_and_sizes(tmp_path: Path) -> None:
    library = "let h = 8\nstrategy mine(d) { batch over d }\nweights w { size h*h }"
    assert check(tmp_path, main='import "lib__a.place"\nmesh N\nuse mine(N)', lib__a=library) == ["PL020"]
    main = 'import "lib/a.place"\nmesh N\nuse mine(N)'
    assert check(tmp_path, main=main, lib__a=library) == []
    (spec,) = elaborate_file(parse(main, str(tmp_path / "main.place")))
    assert spec.program is not None and spec.name == "main"
    group = spec.program.weights[0]
    assert group.name == "w" and group.span.path.endswith("main.place") and group.span.line == 1


def test_imports_of_imports_and_each_file_once(tmp_path: Path) -> None:
    files = {
        "main": 'import "a.place"\nimport "b.place"\nmesh N\nuse one(N)',
        "a": 'import "c.place"\nstrategy one(d) { use two(d) }',
        "b": 'import "c.place"',
        "c": "strategy two(d) { batch over d }\nweights w { size 4 }",
    }
    assert check(tmp_path, **files) == []


@pytest.mark.parametrize(
    ("code", "main", "other"),
    [
        ("PL020", 'import "missing.place"', ""),
        ("PL021", 'import "../outside.place"', ""),
        ("PL021", 'import "/etc/passwd"', ""),
        ("PL022", 'import "other.place"', 'import "main.place"'),
        ("PL022", 'import "main.place"', ""),
        ("PL023", 'import "other.place"', "mesh ("),
        ("PL023", 'import "other.place"', 'import "gone.place"'),
        ("PL023", 'import "other.place"', "spec a { mesh N }"),
        ("PL210", 'import "other.place"\nimport "third.place"', "strategy s(d) { batch over d }"),
    ],
)  # fmt: skip
def test_import_problems(tmp_path: Path, code: str, main: str, other: str) -> None:
    rest = "\nmesh N\nweights w { size 4 }"
    found = check(tmp_path, main=main + rest, other=other, third="strategy s(d) { sequence over d }")
    # A circle is found while reading the other file, whose error it then is.
    assert found in ([code], ["PL023"] if code == "PL022" else [code])


def test_a_broken_import_says_where(tmp_path: Path) -> None:
    (tmp_path / "other.place").write_text("mesh N\nbatch ovr N\n")
    (spec,) = elaborate_file(parse('import "other.place"', str(tmp_path / "main.place")))
    assert spec.problems[0].message.startswith("`other.place` has an error in line 2: ")
    assert spec.problems[0].span.line == 1


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.place").write_text("weights w { size 4 }")
    (tmp_path / "in" / "link.place").symlink_to(tmp_path / "secret.place")
    assert check(tmp_path / "in", main='import "link.place"\nmesh N') == ["PL021"]


# --- specs ------------------------------------------------------------------------------------


def test_specs_share_what_is_outside() -> None:
    a, b = specs("mesh N\nweights w { size 4 }\nspec a { use zero1(N) }\nspec b {\n use zero2(N)\n expect proved\n}")
    assert (a.name, b.name) == ("a", "b")
    assert a.program is not None and b.program is not None
    assert layout(a.program.weights[0].gradients) == "R" and layout(b.program.weights[0].gradients) == "S@N"
    assert (len(a.expectations), len(b.expectations)) == (0, 1)


def test_a_spec_may_define_its_own() -> None:
    a, b = specs("mesh N\nweights w { size 4 }\nuse zero1(N)\nspec a { batch over N }\nspec b { sync * over N by sum }")
    assert a.problems == b.problems == ()


def test_the_name_of_a_file_without_specs() -> None:
    assert one(SMALL, path="dir/my-run.place").name == "my-run"
    assert one(SMALL, path="-").name == "stdin"


def test_a_file_by_hand_needs_no_text() -> None:
    (spec,) = elaborate_file(ast.File("x", (), NOWHERE))
    assert [p.code for p in spec.problems] == ["PL300"]
