"""The formatter says the same, keeps comments, and is done after one run. The printer parses back."""

from __future__ import annotations

import random

import pytest

from placelogic.problem import SpecError
from placelogic.syntax import ast
from placelogic.syntax.format import format_text
from placelogic.syntax.parse import parse
from placelogic.syntax.unparse import mode_letters, mode_text, op_text, statement_text
from tests.syntax.helpers import meaning
from tests.syntax.samples import ALL

UGLY = """


# head   
mesh   edp ,ep=2   # atoms
axis dp=edp*ep # names
let h= 8192,L

assume h%ep==0 ,
   dp>=2



place model over N=(S*,S( out ),O ( S ),R)
place model over N {params gathered,optimizer sharded on out offloaded
 # own comment
gradients sharded,
activations R }   # after
step norm {# replaces

  each microbatch {accumulate}

  scale by -1/M+(-3) * - (h)   # c1
  reduce over edp*ep,tp by mean # c22
  # last in block

}
freeze *
clip global_norm { expert over ep , edp         # not listed
                       * over tp }                 # also: none
use hsdp( shard=s,
   replicate =r )*pipeline(pp, schedule=1f1b) *
     zero1(dp)
sync expert over ep by sum   # a comment that needs
                             # two lines
weights x {}
# end

# end2"""

NORMAL = """\
# head
mesh edp, ep = 2    # atoms
axis dp = edp * ep  # names
let h = 8192, L

assume h % ep == 0,
  dp >= 2

place model over N = (S*, S(out), O(S), R)
place model over N {
  params gathered, optimizer sharded on out offloaded
  # own comment
  gradients sharded,
  activations R
}            # after
step norm {  # replaces
  each microbatch { accumulate }

  scale by -1/M + (-3) * -(h)     # c1
  reduce over edp*ep, tp by mean  # c22
  # last in block
}
freeze *
clip global_norm {
  expert over ep, edp  # not listed
  * over tp
}  # also: none
use hsdp(shard = s,
  replicate = r) * pipeline(pp, schedule = 1f1b) *
  zero1(dp)
sync expert over ep by sum  # a comment that needs
                            # two lines
weights x { }
# end

# end2
"""


def test_normal_form():
    assert format_text(UGLY, "t") == NORMAL
    assert format_text(NORMAL, "t") == NORMAL


@pytest.mark.parametrize("text", ["", "# a", "\n\n# a\n\n\n# b", "mesh N", "mesh N\n\n\n\nlet P # c\n\n"])
def test_small_files(text):
    done = format_text(text, "t")
    assert format_text(done, "t") == done
    assert done == "" or (done.endswith("\n") and not done.endswith("\n\n") and not done.startswith("\n"))


@pytest.mark.parametrize("name", ALL)
def test_formatting_keeps_the_meaning(name):
    text = ALL[name]
    done = format_text(text, name)
    assert meaning(parse(done, name)) == meaning(parse(text, name))
    assert format_text(done, name) == done


@pytest.mark.parametrize("name", ALL)
def test_formatting_undoes_any_spacing(name):
    """Blanks, tabs, comments and blank lines put in at random places where they may stand."""
    draw = random.Random(name)
    done = format_text(ALL[name], name)
    for _ in range(20):
        noisy = "".join(
            {
                " ": draw.choice([" ", "   ", "\t"]),
                "\n": draw.choice(["\n", "  \n", "\n\n", " # c\n", "\n\n\n # d\n"]),
            }.get(c, c)
            for c in done
        )
        again = format_text(noisy, name)
        assert format_text(again, name) == again
        assert again.count("# c") == noisy.count("# c") and again.count("# d") == noisy.count("# d")
        assert meaning(parse(again, name)) == meaning(parse(done, name))


def test_line_ends_and_marks_are_normalised():
    assert format_text("\ufeffmesh N\r\nlet P\r\n", "t") == "mesh N\nlet P\n"


def test_a_broken_file_is_not_touched():
    with pytest.raises(SpecError) as caught:
        format_text("mesh N {\n", "t")
    assert caught.value.problems[0].code == "PL101"


@pytest.mark.parametrize("name", ALL)
def test_printed_statements_parse_back(name):
    # `0.5` is one number in the tree and prints as a division.
    file = parse(ALL[name].replace(", rate = 0.5", ""), name)
    for level in (0, 2):
        text = "\n".join(statement_text(statement, level) for statement in file.statements)
        assert meaning(parse(text, name).statements) == meaning(file.statements)
    assert format_text(text, name) == "".join(f"{statement_text(s)}\n" for s in file.statements)


def test_printed_operations_parse_back():
    for statement in parse(ALL["steps"], "t").statements:
        for op in statement.body:
            (again,) = parse(f"step x {{\n{op_text(op, 1)}\n}}", "t").statements
            assert meaning(again.body) == meaning((op,))


def test_long_blocks_take_several_lines():
    statement = ast.ModelStmt("m", parse("use m(" + ", ".join(f"argument_{i} = {i}" for i in range(9)) + ")", "t").statements[0].calls[0].arguments, None)  # fmt: skip
    assert statement_text(statement, 1).splitlines()[1] == "    argument_0 0"


def test_modes_in_words_and_letters():
    (place,) = parse("place w over dp = (S*(in), O(S), O, M)", "t").statements
    modes = [entry.mode for entry in place.entries]
    assert [mode_text(m) for m in modes] == ["gathered on in", "sharded offloaded", "offloaded", "materialized"]
    assert [mode_letters(m) for m in modes] == ["S*(in)", "O(S)", "O", "M"]
