"""Verdicts kept from one run to the next.

An entry is found by everything its verdict depends on: the content of the file and of all it imports, the
options, this program and its solvers, as they are installed. It is kept in a folder of the user, never in the
repository, where a change could bring its own verdicts along. Only what is decided is kept.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from msgspec import MsgspecError, Struct, field
from msgspec.json import Decoder, encode

from placelogic import __version__
from placelogic.files import Found, cache_home, private
from placelogic.io.reading import read_file
from placelogic.io.writing import put
from placelogic.report.diagnostic import FileReport, SpecReport
from placelogic.session.errors import sources_of
from placelogic.syntax.imports import content_of, folder_of, imported
from placelogic.syntax.read import decode, normalised

MAX_ENTRIES = 20_000
"""Of one version; when there are more, the older half goes."""

MAX_ENTRY = 50_000_000
"""Bytes."""

_FORM = 2
_DECIDED = ("proved", "refuted", "vacuous")
_DOUBTFUL = ("PL", "UN", "CL02")


def folder_of_user() -> Path:
    """Where verdicts are kept unless somebody says otherwise."""
    said = os.environ.get("PLACELOGIC_CACHE_DIR")
    return Path(said) if said else cache_home() / "verdicts"


@cache
def program(recheck: bool = False) -> str:
    """A digest of what decides: the files of this program, and the versions of what it stands on."""
    from importlib.metadata import PackageNotFoundError, version

    digest = hashlib.sha256(f"{_FORM} {__version__} {sys.version_info[:2]}".encode())
    for library in ("z3-solver", "lark", "sympy", *(["cvc5"] if recheck else [])):
        try:
            digest.update(f" {library} {version(library)}".encode())
        except PackageNotFoundError:
            digest.update(f" {library} none".encode())
    package = Path(__file__).resolve().parents[1]
    grammar = [path for path in (package.parent / "grammar").glob("*.lark") if not (package / "grammar").exists()]
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.place"), *package.rglob("*.lark"), *grammar]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


class Entry(Struct, frozen=True):
    """What is kept of a report, and a digest of each file that was imported for it."""

    path: str
    imports: dict[str, str | None]
    specs: tuple[SpecReport, ...]
    library: bool


class Cache(Struct):
    """`folder` None: nothing is kept, and nothing found. `options`: everything in the settings that a verdict
    depends on, as text."""

    folder: Path | None
    options: str
    hits: int = 0
    kept: int = 0
    _contents: dict[str, bytes | None] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path | None, options: str, recheck: bool) -> Cache:
        """A cache that others can write to is not used; neither is one that cannot be written."""
        if folder is None or not private(folder) or not private(folder / program(recheck)):
            return cls(None, options)
        return cls(folder / program(recheck), options)

    def find(self, found: Found) -> FileReport | None:
        """The report on this very content, from a run before."""
        if self.folder is None or found.data is None:
            return None
        try:
            entry = _entries().decode(read_file(self.folder / self._key(found), MAX_ENTRY))
            now = imported(found.data, folder_of(found.path), self._content)  # a link may lead elsewhere by now
            if now is None or {path: _sha(content) for path, content in now.items()} != entry.imports:
                return None
            if entry.path != found.path:
                return None
            text = normalised(decode(found.data, found.path))
            sources = sources_of(found.path, entry.specs)
        except Exception:  # whatever is wrong with an entry, it is not used
            return None
        self.hits += 1
        return FileReport(entry.path, entry.specs, text, sources, entry.library)

    def keep(self, found: Found, report: FileReport, imports: Mapping[str, bytes | None] | None) -> None:
        """Keep a decided report. `imports`: what the file imported before it was checked; if that has changed
        meanwhile, nobody knows which of the two was read; None: nobody knows what it imports."""
        if self.folder is None or found.data is None or imports is None or not decided(report):
            return
        if imported(found.data, folder_of(found.path)) != imports:
            return
        read = {path: _sha(content) for path, content in imports.items()}
        entry = Entry(report.path, read, report.specs, report.library)
        try:
            data = encode(entry)
            if report.findings or _entries().decode(data) != entry:
                return  # it would not come back as it was
            self._write(self._key(found), data)
            self.kept += 1
        except (OSError, MsgspecError, UnicodeError):
            return  # the next run has to decide again

    def close(self) -> None:
        """Make room where there are too many entries."""
        if self.folder is None or not self.kept:
            return
        with suppress(OSError):
            entries = sorted(
                (entry.stat().st_mtime, entry.path) for entry in os.scandir(self.folder) if entry.is_file()
            )
            if len(entries) > MAX_ENTRIES:
                for _, path in entries[: len(entries) - MAX_ENTRIES // 2]:
                    with suppress(OSError):
                        os.unlink(path)

    def _key(self, found: Found) -> str:
        assert found.data is not None
        folder = folder_of(found.path)
        known = (self.options, found.path, folder, str(found.in_folder), hashlib.sha256(found.data).hexdigest())
        return hashlib.sha256("\0".join(known).encode("utf-8", "surrogateescape")).hexdigest()[:40]

    def _content(self, path: str) -> bytes | None:
        """Read once in a run: many specs import the same files."""
        if path not in self._contents:
            self._contents[path] = content_of(path)
        return self._contents[path]

    def _write(self, name: str, data: bytes) -> None:
        """Whole or not at all, whoever else writes it. Raises OSError."""
        assert self.folder is not None
        put(self.folder / name, data, durable=False, private=True)


def decided(report: FileReport) -> bool:
    """Whether every verdict of the file is final: not one that more time, or another file, could change."""
    return all(
        spec.verdict in _DECIDED and not any(finding.code.startswith(_DOUBTFUL) for finding in spec.findings)
        for spec in report.specs
    )


@cache
def _entries() -> Decoder[Entry]:
    return Decoder(Entry)


def _sha(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
