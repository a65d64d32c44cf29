"""What costs are exported as: each form is read back, and says the same."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import product
from pathlib import Path

import pytest
import sympy

from placelogic import cost
from placelogic.cost.latex import document, writer
from placelogic.cost.letters import letter
from placelogic.cost.render import rendered
from placelogic.cost.text import formula, human
from tests.cost.tex import Reader

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECS = [
    ("zero_stages.place", "open_pos_g_p"),
    ("llama3_405b_8k.place", "open"),
    ("bloom_176b.place", "open"),
    ("deepseek_v3.place", "published"),
    ("gpt_1t_megatron.place", "published"),
]


@lru_cache
def example(name: str, spec: str) -> cost.Cost:
    return cost(EXAMPLES / name, spec=spec)


# --- JSON ---


@pytest.mark.parametrize(("name", "spec"), SPECS)
def test_json_formulas_are_read_back_by_sympy(name: str, spec: str) -> None:
    found = example(name, spec)
    (data,) = json.loads(rendered(name, [found], "rank", "json"))["specs"]
    symbols = {one: sympy.Symbol(one) for one in data["symbols"]}

    def same(text: str, expr: sympy.Expr) -> bool:
        return sympy.sympify(text, locals=symbols) == expr

    assert same(data["memory"]["held"]["formula"], found.memory.held)
    assert same(data["memory"]["peak_padded"]["formula"], found.memory.peak_padded)
    assert same(data["traffic"]["sent"]["formula"], found.traffic.sent)
    for one, term in zip(data["collectives"], found.collectives, strict=True):
        assert same(one["formula"], term.sent) and same(one["message"]["formula"], term.bytes)
    for one, held in zip(data["held"], found.held, strict=True):
        assert same(one["formula"], held.bytes)


def test_json_values_are_exact() -> None:
    (data,) = json.loads(rendered("z", [example("zero_stages.place", "published_pos_g_p")], "rank", "json"))["specs"]
    assert data["memory"]["held"] == {"formula": "16*P/N", "value": 1875000000}
    assert data["sizes"] == {"P": 7500000000, "N": 64}


# --- Python ---


@pytest.mark.parametrize(("name", "spec"), SPECS)
def test_python_functions_agree_with_the_formulas(name: str, spec: str) -> None:
    np = pytest.importorskip("numpy")
    found = example(name, spec)
    text = rendered(name, [found], "rank", "python")
    assert "placelogic" not in re.sub(r'""".*?"""', "", text, flags=re.S)
    module: dict = {}
    exec(compile(text, "costs.py", "exec"), module)
    open_ = [one for one in found.symbols if one not in found.values]
    points = list(product(*[(1, 2, 3, 16)] * len(open_)))[:64]
    arrays = {one: np.array([point[i] for point in points]) for i, one in enumerate(open_)}
    for function, expr in [
        ("memory_held_padded", found.memory.padded), ("memory_peak", found.memory.peak), ("traffic_sent", found.traffic.sent),
    ]:  # fmt: skip
        used = {one: arrays[one] for one in open_ if sympy.Symbol(one) in expr.free_symbols}
        got = np.broadcast_to(module[function](**used), len(points))
        for point, value in zip(points, got, strict=True):
            exact = found.number(expr, **dict(zip(open_, point, strict=True)))
            assert exact is not None and abs(value - float(exact)) <= 1e-9 * max(float(exact), 1)


def test_rounding_up_is_exact_in_numpy() -> None:
    """A multiple of a size, over that size, is whole: no error of a reciprocal may push it up."""
    np = pytest.importorskip("numpy")
    found = cost("mesh N\nlet P\nweights model { size P }\nuse zero3(N)\n")
    module: dict = {}
    exec(rendered("x", [found], "rank", "python"), module)
    sizes = np.arange(1, 2000)
    assert (module["memory_held_padded"](N=sizes, P=sizes * 3) == 3 * 16).all()


def test_a_size_that_is_a_word_of_python() -> None:
    found = cost("mesh lambda\nlet def\nweights model { size def }\nuse zero3(lambda)\n")
    module: dict = {}
    pytest.importorskip("numpy")
    exec(rendered("x", [found], "rank", "python"), module)
    assert module["memory_held"](lambda_=4, def_=8) == 32


# --- LaTeX ---


def formulas(tex: str) -> Iterator[str]:
    """Every formula of a document, cases one by one."""
    for table in re.findall(r"\$\\displaystyle (.*?)\$", tex):
        yield table
    for block in re.findall(r"\\begin{align\*}\n(.*?)\n\\end{align\*}", tex, re.S):
        yield re.sub(r"\\\\\n&\\quad ", "", block).split("&= ", 1)[1]


@pytest.mark.parametrize(("name", "spec"), SPECS)
def test_latex_is_read_back(name: str, spec: str) -> None:
    """Each formula is parsed, and has the value of the one it was printed from."""
    found = example(name, spec)
    write = writer(found)
    memory, traffic = found.memory, found.traffic
    for expr in (memory.held, memory.padded, memory.peak, traffic.sent, traffic.limit, found.bubble or memory.host):
        text = write.doprint(expr)
        names = sorted(expr.free_symbols, key=str)
        for values in ([3] * len(names), range(2, 2 + len(names)), [1] * len(names)):
            here = expr.subs(dict(zip(names, values, strict=True)))
            sizes = {write.doprint(one): Fraction(value) for one, value in zip(names, values, strict=True)}
            assert Fraction(int(here.p), int(here.q)) == Reader(text, sizes).value(), text


@pytest.mark.parametrize("broken", [r"\frac{1}{2", r"2 \Psi +", r"\left(2", r"\unknown{2}", "2 N_{dp", r"\frac{1}2}"])
def test_a_broken_formula_is_not_read(broken: str) -> None:
    with pytest.raises(ValueError, match="LaTeX"):
        Reader(broken, {r"\Psi": Fraction(2), "N_{dp}": Fraction(2)}).value()


@pytest.mark.parametrize(("name", "spec"), SPECS)
def test_every_displayed_formula_parses(name: str, spec: str) -> None:
    tex = document([example(name, spec)], "rank")
    found = list(formulas(tex))
    assert len(found) >= 6
    for text in found:
        Reader(text, None).value()
    assert tex.count(r"\begin{") == tex.count(r"\end{")
    assert tex.count("{") == tex.count("}")


@pytest.mark.parametrize(("name", "spec"), SPECS)
@pytest.mark.parametrize("per", ["rank", "stage", "group", "collective"])
def test_latex_compiles(name: str, spec: str, per: str, tmp_path: Path) -> None:
    engine = next(filter(None, map(shutil.which, ("tectonic", "pdflatex", "lualatex"))), None)
    if engine is None:
        pytest.skip("no TeX engine")
    (tmp_path / "costs.tex").write_text(document([example(name, spec)], per))
    options = [] if engine.endswith("tectonic") else ["-halt-on-error", "-interaction=nonstopmode"]
    run = subprocess.run([engine, *options, "costs.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]


@pytest.mark.parametrize(
    ("name", "axis", "symbol"),
    [("dp", True, "N_{dp}"), ("N", True, "N"), ("P", False, r"\Psi"), ("h", False, "h"), ("alpha", False, r"\alpha"),
     ("moe", False, r"\mathrm{moe}"), ("kv_heads", False, r"\mathrm{kv\_heads}"), ("data_axis", True, r"N_{data\_axis}")],
)  # fmt: skip
def test_symbols(name: str, axis: bool, symbol: str) -> None:
    assert letter(name, axis=axis) == symbol


def test_notebooks_show_formulas() -> None:
    found = cost("mesh dp\nlet P\nweights model { size P }\nuse zero3(dp)\n")
    assert found.memory._repr_latex_() == r"$\displaystyle M = 8 \Psi + \frac{16 \Psi}{N_{dp}}$"
    assert found._repr_latex_() == found.memory._repr_latex_()
    assert found.traffic._repr_latex_() == r"$\displaystyle T = \frac{12 \Psi \left(N_{dp} - 1\right)}{N_{dp}}$"
    assert found.memory.peak.subs("dp", 8).subs("P", 4) == 40


# --- CSV and Markdown ---


def test_csv() -> None:
    text = rendered("z", [example("zero_stages.place", "published_pos")], "rank", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0] == {
        "spec": "published_pos", "table": "memory of one device", "quantity": "params", "value": "15000000000",
        "unit": "bytes", "formula": "2*P",
    }  # fmt: skip
    open_ = list(csv.DictReader(io.StringIO(rendered("b", [example("bloom_176b.place", "open")], "rank", "csv"))))
    assert {row["value"] for row in open_} == {""}


@pytest.mark.parametrize("per", ["rank", "stage", "group", "collective"])
def test_markdown_tables_have_equal_rows(per: str) -> None:
    text = rendered("b", [example("bloom_176b.place", "published")], per, "markdown")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert tables
    for table in tables:
        assert len({line.count(" | ") for line in table.splitlines() if "---" not in line}) == 1


# --- text ---


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB (1000 B)"), (1024, "1.024 kB (1 KiB)"), (80 * 2**30, "85.9 GB (80 GiB)"),
     (999_999_999, "1 GB (953.7 MiB)"), (120 * 10**9, "120 GB (111.8 GiB)")],
)  # fmt: skip
def test_units_say_what_they_are(value: int, text: str) -> None:
    assert human(Fraction(value), "bytes") == text


def test_formulas_read_as_a_person_writes_them() -> None:
    n, p = sympy.symbols("N P")
    expr = sympy.Piecewise((p, sympy.Eq(n, 1)), (sympy.Max(p / n, sympy.ceiling(p / 3)), True))
    assert formula(expr) == "(P if N = 1 else max(ceil(P/3), P/N))"


def test_what_is_wrong_with_every_spec_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    from placelogic.cli import main

    assert main(["cost", "examples/zero_stages.place", "--at", "Q=8"]) == 2
    err = capsys.readouterr().err
    assert err.count("error[PL221]") == 1 and "= help: `placelogic show`" in err


def test_open_sizes_are_named_where_others_are_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    from placelogic.cli import main

    asked = ["cost", "examples/llama3_405b_8k.place", "--spec", "published_8192_gpus", "--per", "stage"]
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "first (pp = 16)" in out and "pp >= 2" not in out
    assert "note: a formula has no number while batch, sequence are open; give sizes with --at, as in --at" in out
    assert main([*asked, "--at", "batch=64,sequence=8192"]) == 0
    assert "has no number" not in capsys.readouterr().out
