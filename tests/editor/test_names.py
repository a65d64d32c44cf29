"""Names: where they are declared and used, what a hover says of them, and renaming."""

from __future__ import annotations

from pathlib import Path

import pytest

import placelogic
from placelogic.editor.define import definition, file_of, references
from placelogic.editor.hover import hover
from placelogic.editor.names import at, occurrences
from placelogic.editor.rename import CannotRename, rename
from placelogic.editor.text import Text
from placelogic.session.check import check_text
from placelogic.session.settings import Settings
from placelogic.syntax.parse import normalised, parse, token_tree
from placelogic.syntax.read import read_source

ROOT = Path(__file__).parents[2]
CASES = [pytest.param(path, marks=pytest.mark.slow) for path in (ROOT / "tests" / "verdicts" / "cases").glob("*.place")]
MOST = 20
"""Names that are renamed in one file, one after the other: the file is read anew each time."""
SPECS = [*sorted((ROOT / "examples").glob("*.place")), *sorted(CASES, key=str)]

TEXT = """mesh edp, ep, tp = 2, 1 <= pp <= 4
axis dp = edp * ep
let h, L = 2*h
weights attn { size h*h*L, dims in out }
weights expert { size h, kind expert, routed over ep }
loss aux mean local

strategy ours(d, t = none) {
  let h
  batch over d
  place matrix over t { params sharded on out }
  assume h >= 1
}

spec one {
  microbatches M
  use ours(dp, t = tp)
  step attn {
    each microbatch { scale loss aux by 1/M
      accumulate into main }
    reduce main over edp, ep by mean
    update from main
  }
  expect refuted GI01 attn
}

spec two {
  let M = 2
  microbatches M
  sync expert over ep by sum
  scale expert by 1/M
}
"""


def text(source: str = TEXT, path: str = "t.place") -> Text:
    found = Text(path, source)
    assert found.file is not None
    return found


def places(source: str, word: str, number: int = 1) -> tuple[int, int]:
    """Line and column of the given occurrence of a word."""
    import re

    found = [
        (line, match.start() + 1)
        for line, content in enumerate(source.split("\n"), 1)
        for match in re.finditer(rf"\b{word}\b", content)
    ]
    return found[number - 1]


@pytest.mark.parametrize(
    ("word", "number", "lines"),
    [
        ("edp", 1, [1, 2, 21]),
        ("pp", 1, [1]),
        ("dp", 1, [2, 17]),
        ("h", 1, [3, 3, 4, 4, 5]),  # not the h of the strategy
        ("h", 6, [9, 12]),
        ("L", 1, [3, 4]),
        ("attn", 1, [4, 18, 24]),
        ("expert", 1, [5, 30, 31]),  # the weights, not their kind in line 5
        ("out", 1, [4, 11]),
        ("aux", 1, [6, 19]),
        ("ours", 1, [8, 17]),
        ("d", 1, [8, 10]),
        ("t", 1, [8, 11, 17]),  # and where it is given by name
        ("M", 1, [16, 19]),  # each spec has its own
        ("M", 3, [28, 29, 31]),
        ("main", 1, [20, 21, 22]),
        ("one", 1, [15]),
    ],
)
def test_places_of_a_name(word: str, number: int, lines: list[int]) -> None:
    found = references(text(), *places(TEXT, word, number))
    assert [span.line for span in found] == lines
    for span in found:
        assert TEXT.split("\n")[span.line - 1][span.column - 1 : span.end_column - 1] == word


@pytest.mark.parametrize("word", ["tp", "none", "matrix", "mean", "GI01"])
def test_words_of_the_language_are_no_names(word: str) -> None:
    found = at(text().names, *places(TEXT, word))
    assert (found is not None) == (word == "tp")


def test_a_name_of_the_outside_is_one_thing_in_all_specs() -> None:
    source = "weights w { size h }\nspec a {\n  mesh d\n  let h\n}\nspec b {\n  mesh d\n  let h\n}\n"
    assert [span.line for span in references(text(source), 1, 18)] == [1, 4, 8]
    assert [span.line for span in references(text(source), 3, 8)] == [3]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_name_can_be_renamed_and_changes_nothing(path: Path) -> None:
    source = normalised(read_source(path))
    before = Text(str(path), source)
    wanted = [(spec.name, spec.verdict) for spec in check_text(source, str(path), Settings(fixes=None)).specs]
    declared = list({one.key: one for one in before.names if one.declares}.values())
    declared = declared[:: len(declared) // MOST + 1]
    changed = source
    for number, key in enumerate(one.key for one in declared):
        now = Text(str(path), changed)
        new = f"fresh_{number}"
        one = next(one for one in now.names if one.key[:2] == key[:2] and one.declares and _same(one.key[2], key[2]))
        spans = rename(now, one.span.line, one.span.column, new, {})[str(path)]
        lines = changed.split("\n")
        for span in reversed(spans):
            line = lines[span.line - 1]
            lines[span.line - 1] = line[: span.column - 1] + new + line[span.end_column - 1 :]
        changed = "\n".join(lines)
    assert changed != source
    names = {f"fresh_{number}": one.key for number, one in enumerate(declared)}
    found = check_text(changed, str(path), Settings(fixes=None)).specs
    assert [(names[spec.name][1] if spec.name in names else spec.name, spec.verdict) for spec in found] == wanted


def _same(one, other) -> bool:
    """The same owner, wherever renaming has moved its end."""
    return (one is None) == (other is None) and (one is None or (one.line, one.column) == (other.line, other.column))


@pytest.mark.parametrize(
    ("word", "new", "said"),
    [
        ("attn", "expert", "`expert` is already a name in t.place"),
        ("attn", "matrix", "`matrix` has another meaning in t.place"),
        ("edp", "tokens", "`tokens` has a meaning of its own"),
        ("edp", "9", "`9` is no name"),
        ("edp", "h", "`h` is already a name"),
        ("M", "tp", "`tp` is already a name"),
        ("main", "scattered", "`scattered` has another meaning"),
    ],
)
def test_what_cannot_be_a_name(word: str, new: str, said: str) -> None:
    with pytest.raises(CannotRename, match=said):
        rename(text(), *places(TEXT, word), new, {})


def test_what_is_declared_elsewhere() -> None:
    source = "mesh d\nlet P\nweights w { size P }\nuse zero1(d)\nmodel llama { layers 2, hidden 2, heads 1, ffn 2, vocab 2 }\nfreeze embed\n"
    for line, column, file in [(4, 5, "zero1.place"), (5, 7, "llama.place"), (6, 8, "llama.place")]:
        with pytest.raises(CannotRename, match=f"declared in {file}: rename it there"):
            rename(text(source), line, column, "other", {})


def test_names_of_models_are_taken() -> None:
    source = "mesh d\nweights w { size 3 }\nmodel llama { layers 2, hidden 2, heads 1, ffn 2, vocab 2 }\n"
    with pytest.raises(CannotRename, match="`attn` is already a name in a file or model that this one uses"):
        rename(text(source), 2, 9, "attn", {})


def test_definitions_lead_to_files(tmp_path: Path) -> None:
    (tmp_path / "lib.place").write_text("let width = 3\nweights w { size width }\nstrategy s(d) {\n  batch over d\n}\n")
    source = 'import "lib.place"\nmesh d\nuse s(d) * zero1(d)\nfreeze w\nassume width == 3\n'
    here = text(source, str(tmp_path / "m.place"))
    assert definition(here, 1, 10).path == str(tmp_path / "lib.place")
    s = definition(here, 3, 5)
    assert (s.path, s.line, s.column, s.end_column) == (str(tmp_path / "lib.place"), 3, 10, 11)
    w = definition(here, 4, 8)
    assert (w.path, w.line, w.column) == (str(tmp_path / "lib.place"), 2, 9)
    assert definition(here, 5, 8).line == 1
    std = definition(here, 3, 13)
    assert Path(file_of(std.path)) == Path(placelogic.__file__).parent / "std" / "zero1.place"
    assert definition(here, 3, 1) is None


# --- hover ----------------------------------------------------------------------------------------


def told(source: str, word: str, number: int = 1) -> str:
    found = hover(text(source), *places(source, word, number))
    assert found is not None
    return found[0]


HOVERED = """mesh dp, tp
let h, L = 4
microbatches M
weights attn { size 4*h*h*L, layers L }
weights norm { size 2*h*L, kind vector }
use zero3(dp) * tensor_parallel(tp) * offload()
spec a { expect proved }
"""


def test_hover_of_weights() -> None:
    shown = told(HOVERED, "attn")
    assert "| params | S\\* over dp, S over tp | `(4*h*h*L)/(dp*tp)`, and a unit while used |" in shown
    assert "| optimizer | O: S over dp, S over tp | 0; `(4*h*h*L)/(dp*tp)` on the host |" in shown
    assert "The step (derived):\n\n```place\nstep attn, norm {\n" in shown
    assert "    reduce over dp by mean\n" in shown


def test_hover_of_stated_steps() -> None:
    shown = told(HOVERED.replace("spec a", "sync norm over tp by mean\nspec a"), "norm")
    assert "The step (derived, but for what is stated):" in shown


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("dp", "**dp**: axis\n\n- splits batch\n\n- cuts params of `attn`, `norm`"),
        ("L", "**L** = 4"),
        ("h", "**h** any size"),
        ("M", "**M** the number of micro-batches"),
        (
            "zero3",
            "**strategy zero3(d)**\n\nZeRO stage 3: params, optimizer states and gradients are all sharded over d; params",
        ),
        ("a", "```place\nspec a {\n  mesh dp, tp\n"),
        ("mesh", "```place\nmesh dp, tp = 8, 2 <= pp <= 16\n```"),
    ],
)
def test_hover_of_other_words(word: str, said: str) -> None:
    assert told(HOVERED, word).startswith(said)


def test_hover_of_modes_and_codes() -> None:
    source = "mesh d\nlet P\nweights w { size P }\nplace w over d { optimizer sharded }\nexpect refuted GI02\n"
    assert told(source, "sharded").startswith("**sharded (S)**: every device along these axes holds its own part")
    assert told(source, "GI02") == "**GI02**: counted more than once: copies were summed, or a share twice"


def test_hover_while_the_text_has_errors() -> None:
    broken = Text("t.place", HOVERED.replace("use zero3", "use zero3)"))
    assert broken.file is None
    shown = hover(broken, 4, 10)
    assert shown is not None and shown[0].startswith("**weights attn**")
    assert hover(Text("t.place", "(((("), 1, 1) is None


def test_the_last_readable_text_is_kept() -> None:
    good = Text("t.place", HOVERED)
    bad = Text("t.place", HOVERED.replace("{", "(", 1), good)
    assert bad.names and {one.name for one in bad.names} >= {"dp", "norm"}


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_hover_everywhere(path: Path) -> None:
    """Every name of a real file has something to say, and every question is answered."""
    source = read_source(path)
    here = Text(str(path), source)
    for token in token_tree(here.text, here.path)[0]:
        hover(here, token.line, token.column)
        definition(here, token.line, token.column)
    for one in here.names:
        if one.declares and one.space == "weights" and here.programs:
            assert hover(here, one.span.line, one.span.column) is not None or len(here.programs) < len(here.specs)


def test_occurrences_are_tokens() -> None:
    for path in (ROOT / "examples").glob("*.place"):
        source = normalised(read_source(path))
        tokens = {(token.line, token.column, str(token)) for token in token_tree(source, str(path))[0]}
        names = occurrences(parse(source, str(path)))
        assert names and {(one.span.line, one.span.column, one.name) for one in names} <= tokens


def test_operations_of_blocks_name_weights() -> None:
    source = """mesh tp
let h
dims batch, attn = h, width
weights attn { }
weights norm { kind vector }
block layer {
  input with(batch, attn)
  norm = norm with with norm over attn
  attn = linear norm with attn from attn to width
}
"""
    def renamed(source: str, line: int, column: int, new: str) -> str:
        lines = source.split("\n")
        for span in reversed(rename(text(source), line, column, new, {})["t.place"]):
            row = lines[span.line - 1]
            lines[span.line - 1] = row[: span.column - 1] + new + row[span.end_column - 1 :]
        return "\n".join(lines)

    edited = renamed(source, 4, 9, "matrices")
    assert "weights matrices { }" in edited
    assert "attn = linear norm with matrices from attn to width" in edited
    edited = renamed(source, 5, 9, "scales")
    assert "weights scales { kind vector }" in edited and "norm = norm with with scales over attn" in edited
    assert "backward u over" in renamed("mesh tp\nweights w { size 4 }\nbackward w over tp by none\n", 2, 9, "u")
