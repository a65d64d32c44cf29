"""Which framework a file belongs to: the first of data/signatures.json that it fits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from msgspec import Struct, convert

from placelogic.frontends.known import read_data
from placelogic.frontends.values import Value
from placelogic.problem import SpecError

Form = Literal["json", "yaml", "toml", "python", "shell"]

_ENDINGS: Mapping[str, Form] = {
    ".json": "json", ".json5": "json", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".py": "python", ".sh": "shell",
    ".args": "shell", ".bash": "shell", ".slurm": "shell", ".sbatch": "shell",
}  # fmt: skip


class Signature(Struct, frozen=True):
    """What tells files of one framework. `looks`: its name in sentences; `name`: on the command line, where there is an
    importer; `kind`: forms of files. `all`, `any`, `none`: settings that are there, `text`: a pattern that is met."""

    looks: str
    kind: str
    name: str | None = None
    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    text: str | None = None

    def fits(self, text: str, form: Form, root: Value | None) -> bool:
        """Whether a file of this form has what the signature asks for."""
        if form not in self.kind.split():
            return False
        if self.text is not None:
            return re.search(self.text, text) is not None
        if root is None or any(root.find(name) for name in self.none):
            return False
        wanted = all(root.find(name) is not None for name in self.all)
        return wanted and (not self.any or any(root.find(name) is not None for name in self.any))


def recognise(text: str, path: str) -> Signature | None:
    """The signature that a file fits first; None where it fits none."""
    form = form_of(text, path)
    root = _read(text, path, form)
    return next((one for one in _signatures() if one.fits(text, form, root)), None)


def form_of(text: str, path: str) -> Form:
    """By the ending of the name, or by how the text begins."""
    ending = os.path.splitext(path)[1].lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if text.lstrip().startswith("{"):
        return "json"
    if text.startswith("#!") or re.search(r"(?:^|\s)--[a-z][\w-]+", text):
        return "shell"
    return "toml" if re.search(r"^\[[\w.]+\]\s*$", text, re.MULTILINE) else "yaml"


def _read(text: str, path: str, form: Form) -> Value | None:
    """What stands in the file; None where it cannot be read so."""
    from placelogic.frontends.readers.json_file import read_json
    from placelogic.frontends.readers.toml_file import read_toml
    from placelogic.frontends.readers.yaml_file import read_yaml

    readers = {"json": read_json, "toml": read_toml, "yaml": read_yaml}
    try:
        root = readers[form](text, path) if form in readers else None
    except (SpecError, RecursionError):
        return None
    return root if root is not None and isinstance(root.data, Mapping) else None


@cache
def _signatures() -> tuple[Signature, ...]:
    return convert(read_data("signatures.json"), tuple[Signature, ...])


def names() -> Iterator[str]:
    """The frameworks that files can be told of, in words."""
    yield from dict.fromkeys(one.looks for one in _signatures())
