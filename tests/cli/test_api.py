"""`placelogic.check` from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import placelogic

pytestmark = pytest.mark.usefixtures("behind")


def test_text_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.place").write_text("stated\n")
    assert placelogic.check("stated\nrefuted\n").files[0].path == "<text>"
    for source in ("a.place", Path("a.place"), tmp_path / "a.place", str(tmp_path)):
        report = placelogic.check(source)
        assert isinstance(report, placelogic.Report)
        assert report.files[0].path.endswith("a.place")
        assert report.specs[0].verdict == "proved"
        assert report.exit_code == 0


@pytest.mark.parametrize("source", ["none.place", "my specs/none.place", "none", Path("two words")])
def test_what_names_a_file_is_no_text(source: str | Path) -> None:
    (file,) = placelogic.check(source).files
    assert file.path == str(source)
    assert file.specs[0].findings[0].code == "PL001"
    assert placelogic.check(source).exit_code == 2


@pytest.mark.parametrize("source", ["oh my!", "", "mesh dp!  # one line"])
def test_what_does_not_is_text(source: str) -> None:
    assert placelogic.check(source).files[0].path == "<text>"


def test_options() -> None:
    assert placelogic.check("proved\n").exit_code == 0
    report = placelogic.check("proved\n", require_stated=True)
    assert report.exit_code == 1
    assert report.specs[0].verdict == "proved"
    assert [finding.code for finding in report.specs[0].findings] == ["EX02"]


@pytest.mark.parametrize("size", [0, -1, 1.5, "8", True])
def test_sizes_are_positive_whole_numbers(size: object) -> None:
    with pytest.raises(ValueError, match="at: dp must be a positive whole number"):
        placelogic.check("proved\n", at={"dp": size})  # type: ignore[dict-item]


@pytest.mark.parametrize("options", [{"rlimit": 0}, {"timeout": 0}, {"timeout": float("nan")}])
def test_limits_must_make_sense(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        placelogic.check("proved\n", **options)


def test_the_name_is_the_function_whatever_is_imported() -> None:
    import placelogic.cli
    import placelogic.session.check

    assert callable(placelogic.check)
    assert "check" in dir(placelogic)
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        placelogic.chekc  # noqa: B018


def test_an_interruption_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        placelogic.check("interrupt\n")
