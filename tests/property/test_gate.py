"""Whatever a repository contains beside its policy file: a refuted spec that the policy covers never ends in exit 0,
neither by a first run, nor by one that finds verdicts of runs before."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placelogic.cli import main

GOOD = "mesh dp\nlet P\nweights model { size P }\nuse data_parallel(dp)\n"
BAD = GOOD + "sync model over dp by none\n"
LIBRARY = "strategy ours(d) {\n  batch over d\n  place * over d { params replicated, optimizer replicated, gradients replicated }\n}\n"

NAMES = (
    "a.place", "b.PLACE", "c.Place", "sub/d.place", "sub/deeper/e.place", "f g.place", "é.place", "\udcff.place", "-q.place", "place", "x.place.bak",
    "h\n.place", ".hidden.place", ".hidden/i.place", "sub.place/j.place", "k.inc", "sub/l.inc", "json.py", "placelogic.py", "sitecustomize.py",
    "sub/placelogic.toml", "sub/pyproject.toml", "pyproject.toml", "placelogic-baseline.json", ".cache/placelogic/verdicts/x", "z3/__init__.py",
)  # fmt: skip
POLICIES = (None, "", 'paths = ["."]\n', 'exclude = ["sub/deeper"]\n', "minimum-sizes = { dp = 4 }\n", 'fail-on = ["warnings"]\n', "rlimit = 5000000\n")
"""What the policy says; none of it covers less than the spec that is refuted."""

contents = st.sampled_from(
    ["", "\0", GOOD, BAD, LIBRARY, "import os; os._exit(0)\n", "[tool.other]\n", "{}", "# nothing\n", 'import "../a.place"\n', 'import "k.inc"\n' + GOOD]
) | st.binary(max_size=40).map(lambda data: data.decode("latin-1"))
lines = st.sampled_from(
    ['import "k.inc"', 'import "sub/l.inc"', 'import "none"', 'import "/dev/zero"', 'import "pipe"', 'import "a.place"', "let Q = 4", "# placelogic: allow",
     '# placelogic: allow GI01', '# placelogic: allow GI99 reason="x"', "clip global_norm", "microbatches M", "mesh tp", "expect proved"]
)  # fmt: skip
things = st.one_of(
    st.tuples(st.just("file"), st.sampled_from(NAMES), contents),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from([".", "..", "sub", "a.place", "/dev/zero", "nowhere", "../outside", "k.inc"])),
    st.tuples(st.just("pipe"), st.sampled_from(("pipe", "p.place", "k.inc")), st.just("")),
    st.tuples(st.just("folder"), st.sampled_from(NAMES), st.just("")),
)


def made(thing: tuple[str, str, str]) -> None:
    """Put it there; what is in the way stays."""
    what, name, content = thing
    try:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        match what:
            case "file" if not os.path.lexists(name):
                with open(name, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(content)
            case "link":
                os.symlink(content, name)
            case "pipe":
                os.mkfifo(name)
            case "folder":
                os.mkdir(name)
    except OSError:
        return


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@settings(max_examples=int(os.environ.get("PLACELOGIC_EXAMPLES", 10)), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    where=st.sampled_from([name for name in NAMES if name.lower().endswith(".place") and not name.startswith(".") and "deeper" not in name]),
    before=st.lists(lines, max_size=3),
    policy=st.sampled_from(POLICIES),
    around=st.lists(things, max_size=8),
    later=st.lists(things, max_size=3),
    good_first=st.booleans(),
)
def test_a_refuted_spec_never_passes(
    where: str, before: list[str], policy: str | None, around: list[tuple[str, str, str]], later: list[tuple[str, str, str]], good_first: bool
) -> None:
    folder = Path(tempfile.mkdtemp())
    here = os.getcwd()
    try:
        (folder / "repository" / ".git").mkdir(parents=True)
        os.chdir(folder / "repository")
        if policy is not None:
            Path("placelogic.toml").write_text(policy)
        head = "".join(f"{line}\n" for line in before)
        for text in ((GOOD, BAD) if good_first else (BAD,)):
            if os.path.dirname(where):
                os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where, "w", encoding="utf-8") as file:
                file.write(head + text)
            for thing in around:
                made(thing)
            code = main(["gate", "--quiet", "--cache-dir", str(folder / "cache")])
            assert text == GOOD or code != 0
        for thing in later:
            made(thing)
        for _ in range(2):  # warm
            assert main(["gate", "--quiet", "--cache-dir", str(folder / "cache")]) != 0
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def test_an_import_that_changes_behind_a_kept_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the spec wrong comes with one of its imports, directly or through others, as a file or behind a link."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    right = "strategy ours(d) { use data_parallel(d) }\n"
    wrong = "strategy ours(d) {\n  use data_parallel(d)\n  sync * over d by none\n}\n"
    rng = random.Random(5)
    for depth in range(1, 6):
        for way in ("file", "link"):
            (tmp_path / "a.place").write_text('import "l1.inc"\n' + GOOD.replace("data_parallel", "ours"))
            for old in tmp_path.glob("l*.inc"):
                old.unlink()
            for number in range(1, depth):
                (tmp_path / f"l{number}.inc").write_text(f'import "l{number + 1}.inc"\n')
            last = tmp_path / f"l{depth}.inc"
            (tmp_path / "right.inc").write_text(right)
            (tmp_path / "wrong.inc").write_text(wrong + "# " + "x" * rng.randrange(9))
            if way == "link":
                last.symlink_to("right.inc")
            else:
                last.write_text(right)
            for _ in range(2):
                assert main(["gate", "--cache-dir", "cache"]) == 0
            last.unlink()
            if way == "link":
                last.symlink_to("wrong.inc")
            else:
                last.write_text(wrong)
            for _ in range(2):
                assert main(["gate", "--cache-dir", "cache"]) == 1
