"""Checks that the built packages in a folder carry everything the program reads at run time.

Usage: python -m build --outdir dist . && python scripts/packages.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def wanted() -> list[str]:
    """Paths in the wheel: the package as it is in the checkout, the grammar, and the proofs."""
    package = ROOT / "placelogic"
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".place", ".json", ".md")]
    proofs = [f"placelogic/{path.relative_to(ROOT).as_posix()}" for path in sorted((ROOT / "proofs").rglob("*.*"))]
    return [
        "placelogic/grammar/placement.lark",
        *(path.relative_to(ROOT).as_posix() for path in sorted(files)),
        *proofs,
    ]


def main(folder: Path) -> int:
    wheels, archives = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        print(f"{folder} must hold one wheel and one source package", file=sys.stderr)
        return 2
    with zipfile.ZipFile(wheels[0]) as wheel:
        in_wheel = set(wheel.namelist())
    with tarfile.open(archives[0]) as archive:
        in_archive = {name.partition("/")[2] for name in archive.getnames()}
    missing = [f"{wheels[0].name}: {name}" for name in wanted() if name not in in_wheel]
    if not any(name.endswith("/LICENSE") for name in in_wheel):
        missing.append(f"{wheels[0].name}: LICENSE")
    for name in ("grammar/placement.lark", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"):
        if name not in in_archive:
            missing.append(f"{archives[0].name}: {name}")
    for line in missing:
        print(f"missing in {line}", file=sys.stderr)
    if not missing:
        print(f"{wheels[0].name} and {archives[0].name} are complete: {len(in_wheel)} files in the wheel")
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: packages.py FOLDER")
    sys.exit(main(Path(sys.argv[1])))
