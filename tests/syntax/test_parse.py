"""What texts mean, and where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fractions import Fraction

import lark
import pytest

from placelogic.problem import SpecError
from placelogic.program import block as bl
from placelogic.program import ops
from placelogic.program.expr import Binary, Call, Compare, Name, Neg, Num, show
from placelogic.syntax import ast, load
from placelogic.syntax.parse import parse, token_tree
from placelogic.syntax.phrases import EXAMPLES, OPERATIONS
from tests.syntax.helpers import cut, meaning, spans
from tests.syntax.samples import ALL, CLUSTER, LIBRARY, STEPS, WORDS


def one(text: str):
    (statement,) = parse(text, "t.place").statements
    return statement


def expr(text: str):
    return one(f"let x = {text}").items[0].value


@pytest.mark.parametrize("name", ALL)
def test_every_sample_parses(name):
    assert parse(ALL[name], name).statements


def test_every_statement_and_operation_has_a_sample():
    lines = "\n".join(OPERATIONS.values())
    texts = (*ALL.values(), f"block b {{\n{lines}\n}}")
    found = {type(node) for text in texts for node, _ in spans(parse(text, "t"))}
    assert set(ast.Statement.__args__) | set(ops.Op.__args__) | set(ast.InitOp.__args__) <= found
    assert set(bl.Operation.__args__) | set(ast.BlockLine.__args__) <= found


@pytest.mark.parametrize("word", EXAMPLES)
def test_every_example_of_a_hint_is_right(word):
    text = EXAMPLES[word]
    text = text.replace("...", "input x(a)")
    wholes = (text, f"step * {{ {text} }}", f"weights w {{ {text} }}", f"block b {{ {text} }}")
    assert any(parses(whole) for whole in wholes)


@pytest.mark.parametrize("word", OPERATIONS)
def test_every_example_of_an_operation_is_right(word):
    assert f"= {word} " in OPERATIONS[word]
    assert parses(f"block b {{\n{OPERATIONS[word]}\n}}")


def test_the_hint_about_operations_names_every_function():
    (names,) = re.findall(r"^!function_name: (.+)$", load._grammar_file().read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r'"(\w+)"', names)) <= set(OPERATIONS)


def parses(text: str) -> bool:
    try:
        return bool(parse(text, "t"))
    except SpecError:
        return False


def test_mesh_axes_are_open_sized_or_bounded():
    open_, sized, bounded, left, right = one("mesh a, b = 2*k, 2 <= c <= 16, d > 1, 3 >= e").axes
    assert (open_.name, open_.size, open_.bounds) == ("a", None, ())
    assert show(sized.size) == "2*k"
    assert (bounded.name, [show(bound) for bound in bounded.bounds]) == ("c", ["2 <= c", "c <= 16"])
    assert (left.name, right.name) == ("d", "e")


def test_a_chain_of_comparisons_becomes_several():
    assert [show(c) for c in one("assume 2 <= p <= q < 16, h % t == 0").conditions] == [
        "2 <= p", "p <= q", "q < 16", "h % t == 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, tree",
    [
        ("1 - 2 - 3", Binary("-", Binary("-", Num(1), Num(2)), Num(3))),
        ("a + b*c", Binary("+", Name("a"), Binary("*", Name("b"), Name("c")))),
        ("(a + b)*c", Binary("*", Binary("+", Name("a"), Name("b")), Name("c"))),
        ("-a*b", Binary("*", Neg(Name("a")), Name("b"))),
        ("a--b", Binary("-", Name("a"), Neg(Name("b")))),
        ("a / b % c", Binary("%", Binary("/", Name("a"), Name("b")), Name("c"))),
        ("0.125", Num(Fraction(1, 8))),
        ("1f1b", Name("1f1b")),
        ("123456789012345678901234567890", Num(123456789012345678901234567890)),
    ],
)
def test_arithmetic(text, tree):
    assert expr(text) == tree


def test_the_tuple_and_the_block_say_the_same():
    tuple_ = one("place w over dp*ep, tp = (S*(in), O(S), O, M)")
    block = one(
        "place w over dp * ep, tp { params gathered on in, optimizer sharded offloaded\n gradients O, activations M }"
    )
    assert meaning(tuple_) == meaning(block)
    assert [(e.mode.letter, e.mode.dim, e.mode.host) for e in tuple_.entries] == [
        ("S*", "in", False), ("S", None, True), ("R", None, True), ("M", None, False),
    ]  # fmt: skip
    assert [entry.state for entry in one("place w over dp = (S, R)").entries] == ["params", "optimizer"]


def test_placing_over_none_is_placing_over_no_axis():
    assert meaning(one("place * over none { params R }")) == meaning(one("place * { params R }"))


def test_losses_and_syncs_keep_microbatches_apart():
    loss = one("loss aux mean over dp, microbatches")
    assert (loss.name, loss.scope, [a.names for a in loss.axes], loss.microbatches) == ("aux", "over", [("dp",)], True)
    sync = one("sync a, b over microbatches by mean")
    assert (sync.target.names, sync.axes, sync.microbatches, sync.op) == (("a", "b"), (), True, "mean")


def test_loops_of_a_step():
    (step,) = (s for s in parse(STEPS, "t").statements if s.target.names == ("norm",))
    loops = [op for op in step.body if isinstance(op, ops.Loop)]
    assert [(loop.subset, loop.index, len(loop.body)) for loop in loops] == [
        ("each", None, 1), ("but_last", None, 2), ("but_first", None, 0), ("first", None, 1),
        ("last", None, 1), ("index", 2, 1),
    ]  # fmt: skip


def test_clip_lists_nothing_or_entries():
    assert one("clip global_norm").entries is None
    assert one("clip global_norm { }").entries == ()
    assert [e.axes for e in one("clip global_norm { * over none }").entries] == [()]


def test_a_model_is_defined_with_parentheses_and_used_without():
    assert isinstance(one("model m() { }"), ast.ModelDef)
    used = one("model m { layers 3\n hidden 2*h }")
    assert [(a.name, show(a.value)) for a in used.arguments] == [("layers", "3"), ("hidden", "2*h")]


def test_claims_call_and_nothing_else_does():
    claim = one("claim memory(zero3) * N == memory(dp)")
    assert claim.condition == Compare("==", Binary("*", Call("memory", "zero3"), Name("N")), Call("memory", "dp"))


def test_keywords_are_names_where_nothing_else_can_be_meant():
    mesh, let, *_ = parse(WORDS, "t").statements
    assert [axis.name for axis in mesh.axes] == ["first", "over", "by", "mesh", "last"]
    assert [item.name for item in let.items] == ["size", "place", "step"]


def test_a_longer_name_is_not_a_keyword_and_a_rest():
    assert one("batch over overlap").axes[0].names == ("overlap",)


@pytest.mark.parametrize("name", ALL)
def test_line_ends_blanks_and_marks_do_not_matter(name):
    text, tree = ALL[name], meaning(parse(ALL[name], "t").statements)
    assert meaning(parse("\ufeff" + text.replace("\n", "\r\n"), "t").statements) == tree
    assert meaning(parse(text.replace("\n", " # note }{\n\n\t# (note\n"), "t").statements) == tree
    assert meaning(parse(text.replace(" ", "\t  "), "t").statements) == tree
    assert meaning(parse("\n\n" + text.rstrip("\n"), "t").statements) == tree


def test_lines_go_on_where_a_statement_cannot_end():
    text = "use a(x,\n  y\n) *\n b(\nz)\nlet k = 1 +\n 2 *\n 3 /\n 4\nassume a ==\n b,\n c > 1\nfreeze *\nmesh a"
    kinds = [type(s) for s in parse(text, "t").statements]
    assert kinds == [ast.UseStmt, ast.LetStmt, ast.AssumeStmt, ast.FreezeStmt, ast.MeshStmt]


@pytest.mark.parametrize("text", ["", "\n", "# only this", "\ufeff", "  \t# a\n\n#b\n"])
def test_a_file_may_say_nothing(text):
    assert parse(text, "t").statements == ()


def test_spans_cover_exactly_what_was_written():
    text = LIBRARY + CLUSTER
    for node, span in spans(parse(text, "t")):
        covered = cut(text, span)
        assert covered == covered.strip()
        match node:
            case ast.AxisRef(names):
                assert tuple(covered.replace("*", " ").split()) == names
            case ast.Target(names):
                assert tuple(covered.replace(",", " ").split()) == names
            case Name(name):
                assert covered.strip("( )") == name
            case ast.SyncStmt() | ast.StepStmt() | ast.PlaceStmt() | ast.WeightsStmt() | ast.StrategyDef():
                assert meaning(one(covered)) == meaning(node)
    (let,) = parse("\n  let x = (a + b) * -c # note", "t").statements
    assert cut("\n  let x = (a + b) * -c", let.span) == "let x = (a + b) * -c"
    value = let.items[0].value
    assert (value.span.column, value.left.span.column, value.right.span.end_column) == (11, 11, 23)


def test_lark_reads_the_same_from_the_grammar_file_alone():
    """The grammar is the definition: lark's own contextual lexer agrees with tokens.py."""

    class LineEnds:
        always_accept = ("_NL",)

        def process(self, stream):
            depth, last = 0, ""
            for token in stream:
                joins = ("COMMA", "LBRACE", "PLUS", "MINUS", "SLASH", "PERCENT", "COMPARE")
                if token.type == "_NL" and (depth or last in joins):
                    continue
                depth += (token.type == "LPAR") - (token.type == "RPAR")
                last = token.type
                yield token

    text = load._grammar_file().read_text(encoding="utf-8")
    plain = lark.Lark(text, start="file", parser="lalr", postlex=LineEnds(), maybe_placeholders=True)
    for sample in (CLUSTER, LIBRARY, STEPS):
        assert token_tree(sample, "t")[1] == plain.parse(sample)


def test_the_cache_is_safe_and_optional(tmp_path):
    script = "from placelogic.syntax.parse import parse; print(len(parse('mesh N', 't').statements))"
    environment = dict(os.environ, XDG_CACHE_HOME=str(tmp_path / "cache"))

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert run() == "1\n"
    (kept,) = (tmp_path / "cache" / "placelogic").iterdir()
    kept.write_bytes(b"broken")
    assert run() == "1\n"
    os.chmod(kept.parent, 0o777)
    kept.write_bytes(b"broken")
    assert run() == "1\n" and kept.read_bytes() == b"broken"  # others may write there: not used
    (tmp_path / "file").write_text("")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "file")
    assert run() == "1\n"
