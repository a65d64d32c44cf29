"""`--emit-smt2`: a folder with every question as a file, and a manifest that says what is what.

The folder depends on nothing but the input, the options and the versions: two runs write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placelogic import __version__
from placelogic.files import whole
from placelogic.io.reading import Unreadable, read_file
from placelogic.io.writing import put_all, unwritable
from placelogic.problem import Problem, SpecError

if TYPE_CHECKING:
    from placelogic.prove.queries import Basis, Question
    from placelogic.prove.recheck import Checked

SCHEMA = "placelogic/smt2/2"
MANIFEST = "manifest.json"
MOST_MANIFEST = 100_000_000
"""Bytes."""


class Export:
    """Gathers questions, and writes them at the end. Only a folder that is missing, empty or of this
    program's making is written into: raises SpecError PL016 for any other, before anything is proved."""

    def __init__(self, folder: str, at: Mapping[str, int]) -> None:
        self._folder = Path(folder)
        self._files: dict[str, str] = {}
        self._specs: list[dict[str, Any]] = []
        self._at = dict(at)
        self._cvc5: str | None = None
        self._taken: set[str] = set()
        self._old = _ours(self._folder)

    def add(
        self, path: str, text: str, spec: str, verdict: str, basis: Basis, seconds: Sequence[Checked] | None
    ) -> None:
        """The questions of one spec. `text`: the file that it stands in. `seconds`: after a recheck."""
        folder = self._unused(_stem(path), spec)
        if seconds is not None:
            from placelogic.prove.second import version

            self._cvc5 = version()
        questions = []
        for index, question in enumerate(basis.questions):
            name = f"{folder}/{index:03d}-{slug(question.name)}.smt2"
            self._files[name] = basis.explained(question, spec)
            checked = seconds[index] if seconds is not None else None
            said = {"z3": None, "cvc5": None} if checked is None else _said(checked)
            questions.append({**_entry(question, name, self._files[name]), **said})
        self._specs.append(
            {"path": path, "sha256": sha256(text), "spec": spec, "verdict": verdict, "questions": questions}
        )

    def write(self) -> None:
        """Raises SpecError PL012. The manifest comes first, so that a folder left halfway is known as ours."""
        manifest = json.dumps(self._manifest(), indent=2) + "\n"
        try:
            put_all(self._folder, {MANIFEST: manifest, **self._files}, filter(_named_by_us, self._old))
        except OSError as error:
            raise unwritable(str(self._folder), error) from None

    def _manifest(self) -> dict[str, Any]:
        from placelogic.prove.solver import version

        return {
            "schema": SCHEMA,
            "placelogic": __version__,
            "solvers": {"z3": version(), "cvc5": self._cvc5},
            "at": self._at,
            "specs": self._specs,
        }

    def _unused(self, stem: str, spec: str) -> str:
        """A folder name of its own; some file systems do not tell upper from lower case."""
        name = slug(stem) if spec == stem else f"{slug(stem)}.{slug(spec)}"
        candidate, number = name, 2
        while candidate.lower() in self._taken:
            candidate, number = f"{name}-{number}", number + 1
        self._taken.add(candidate.lower())
        return candidate


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def slug(text: str) -> str:
    """Safe in a file name everywhere, and still readable."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:80] or "_"


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _entry(question: Question, name: str, text: str) -> dict[str, Any]:
    return {
        "file": name,
        "sha256": sha256(text),
        "kind": question.kind,
        "name": question.name,
        "code": question.code,
        "weights": question.weights,
        "says": question.status,
        "settled": question.settled,
    }


def _said(checked: Checked) -> dict[str, str | None]:
    return {"z3": checked.z3.status, "cvc5": None if checked.cvc5 is None else checked.cvc5.status}


def _ours(folder: Path) -> tuple[str, ...]:
    """The files that an earlier run wrote here. Raises SpecError PL016."""
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return ()
        if not folder.is_dir():
            raise _not_ours(folder, "it is a file")
        manifest = json.loads(read_file(folder / MANIFEST, MOST_MANIFEST))
        if manifest["schema"] in (SCHEMA, "placelogic/smt2/1"):
            return tuple(str(entry["file"]) for spec in manifest["specs"] for entry in spec["questions"])
    except Unreadable as error:
        raise _not_ours(folder, "it is not empty" if error.kind == "missing" else str(error)) from None
    except OSError as error:
        raise _not_ours(folder, (error.strerror or "unreadable").lower()) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise _not_ours(folder, f"its {MANIFEST} is not of this program")


def _not_ours(folder: Path, reason: str) -> SpecError:
    message = f"nothing is written into `{folder}`, which placelogic did not make: {reason}"
    return SpecError(Problem("PL016", message, whole(str(folder)), "name a folder that is new or empty"))


def _named_by_us(name: str) -> bool:
    """Whatever else a manifest names is left alone."""
    return re.fullmatch(r"[\w.-]+/\d+-\w+\.smt2", name) is not None and not name.startswith(".")
