"""A repository with good specs, bad ones, and all that a gate has to tell apart."""

from __future__ import annotations

from pathlib import Path

import pytest

HEAD = """\
mesh dp, tp
let h, L
microbatches M
weights attn { size 4*h*h*L, layers L }
weights norm { size 2*h*L, layers L, kind vector }
use zero2(dp) * tensor_parallel(tp)
"""
GOOD = HEAD + "sync norm over tp by mean\n"
BAD = HEAD + "\nsync norm over tp by sum\n"
BAD_LINE = HEAD.count("\n") + 2
ALLOWED = HEAD + 'sync norm over tp by sum  # placelogic: allow GI02 reason="divided by tp later"\n'
UNKNOWN = HEAD + "sync norm over tq by sum\n"
LIBRARY = """\
strategy ours(d) {
  batch over d
  place * over d { params replicated, optimizer replicated, gradients replicated }
}
"""
IMPORTS = (
    'import "lib/ours.place"\nmesh dp\nlet P\nweights model { size P }\nuse ours(dp)\nsync model over dp by mean\n'
)
EXPECTED = HEAD + "sync norm over tp by sum\nexpect refuted GI02 norm\n"
VACUOUS = HEAD + "assume tp == 2, tp == 3\n"
SEVERAL = HEAD + "spec right { sync norm over tp by mean }\n\nspec wrong {\n  sync norm over tp by sum\n}\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty repository to work in, with a cache of its own; nothing of ours is around it."""
    root = tmp_path / "a repository"
    (root / ".git").mkdir(parents=True)
    (root / "specs").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("PLACELOGIC_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return root


@pytest.fixture
def sample(repository: Path) -> Path:
    """Good and bad specs, in a path with a space."""
    (repository / "placelogic.toml").write_text('paths = ["specs"]\nexclude = ["drafts"]\n')
    specs = {
        "allowed.place": ALLOWED,
        "bad one.place": BAD,
        "drafts/never.place": UNKNOWN,
        "expected.place": EXPECTED,
        "good.place": GOOD,
        "imports.place": IMPORTS,
        "lib/ours.place": LIBRARY,
        "several.place": SEVERAL,
        "unknown.place": UNKNOWN,
        "vacuous.place": VACUOUS,
    }
    for name, text in specs.items():
        path = repository / "specs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return repository
