"""The files that a spec imports, found without parsing it: never fewer than the parser finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.problem import SpecError
from placelogic.syntax import ast
from placelogic.syntax.imports import folder_of, imported
from placelogic.syntax.parse import parse
from placelogic.syntax.read import decode

LIBRARY = "strategy ours(d) { batch over d }\n"
FORMS = [
    'import "a.place"\n',
    'import"a.place"',
    '  \timport \t "a.place"   # a comment\nmesh dp\n',
    '\n\n# a comment\nimport "a.place"\nimport "b.place"\n',
    '\ufeffimport "a.place"\r\nimport "b.place"\r\n',
    'mesh dp,\n  tp\nimport "a.place"\n',
    'let x = (1 +\n 2)\nimport "a.place"\n',
    'weights w { size 4 }\nimport "a.place"',
    'spec s {\n}\nimport "a.place"\n',
    'import "sub/../a.place"\n',
    'import "./a.place"\nimport "none.place"\n',
]
NO_FORMS = ['import\n"a.place"\n', 'mesh dp import "a.place"\n', 'spec s { import "a.place" }\n', "import 'a.place'\n"]


@pytest.mark.parametrize("text", FORMS)
def test_every_import_of_the_parser_is_found(text: str, tmp_path: Path) -> None:
    for name in ("a.place", "b.place"):
        (tmp_path / name).write_text(LIBRARY)
    file = parse(decode(text.encode(), "x.place"), "x.place")
    named = [one.path for one in file.statements if isinstance(one, ast.ImportStmt)]
    assert named
    found = imported(text.encode(), str(tmp_path))
    assert set(found) == {str((tmp_path / name).resolve()) for name in named}
    assert found.get(str(tmp_path / "none.place")) is None


@pytest.mark.parametrize("text", NO_FORMS)
def test_what_the_parser_does_not_take_needs_not_be_found(text: str) -> None:
    with pytest.raises(SpecError):
        parse(text, "x.place")


def test_imports_of_imports_and_circles(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.place").write_text('import "b.place"\n')
    (tmp_path / "sub" / "b.place").write_text('import "../c.place"\nimport "a.place"\n')
    (tmp_path / "c.place").write_text(LIBRARY)
    found = imported(b'import "sub/a.place"\n', str(tmp_path))
    assert {Path(path).name for path in found} == {"a.place", "b.place", "c.place"}
    assert found[str(tmp_path / "c.place")] == LIBRARY.encode()


def test_a_link_imports_from_the_folder_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "real.place").write_text("")
    (tmp_path / "link.place").symlink_to(tmp_path / "there" / "real.place")
    assert folder_of(str(tmp_path / "link.place")) == str(tmp_path)
