"""The configuration of a repository: `placelogic.toml`, or `[tool.placelogic]` in `pyproject.toml`.

Codes of the problems found here: PL035 a file that cannot be read, PL036 an unknown or impossible setting,
PL037 two configurations side by side.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.files import whole
from placelogic.gate.allow import known_codes
from placelogic.gate.policy import WARNINGS
from placelogic.problem import Problem, SpecError, closest
from placelogic.source import Span

OWN = "placelogic.toml"
PROJECT = "pyproject.toml"
DEFAULT = "default"


class Config(Struct, frozen=True):
    """Every setting has a default. Paths and patterns are relative to `root`, the folder of the configuration.

    `minimum_sizes`: a spec that has these sizes must allow a mesh that reaches them all. `budget`: memory
    per device, for every spec. `fail_on`: codes of warnings and notes that fail, or `warnings`."""

    paths: tuple[str, ...] = (".",)
    exclude: tuple[str, ...] = ()
    minimum_sizes: Mapping[str, int] = field(default_factory=dict)
    budget: str | None = None
    fail_on: tuple[str, ...] = ()
    require_stated: bool = False
    rlimit: int | None = None
    timeout: float | None = None
    recheck: bool = False
    baseline: str | None = None


class Loaded(Struct, frozen=True):
    """A configuration, and where each value comes from: `default`, a file with a line, or an option.
    `path`: the file, None where there is none."""

    config: Config
    root: str
    path: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_options(self, options: Mapping[str, Any]) -> Loaded:
        """What the command line says goes first; None and empty values say nothing."""
        said = {name: value for name, value in options.items() if value not in (None, False, ())}
        origins = {**self.origins, **{name: f"--{_key(name)}" for name in said}}
        return replace(self, config=replace(self.config, **said), origins=origins)

    def origin(self, name: str) -> str:
        return self.origins.get(name, DEFAULT)

    def place(self, name: str) -> Span:
        """Where the setting is written: its line in the file, or the file as such."""
        line = self.origin(name).rpartition(":")[2]
        at = int(line) if line.isdigit() else 1
        return Span(self.path or f"--{_key(name)}", at, 1, at, 2)

    def shown(self) -> str:
        """Every setting as a line of TOML, with where it comes from."""
        rows = [(_shown(name, getattr(self.config, name)), name) for name in Config.__struct_fields__]
        width = max(len(text) for text, _ in rows)
        head = f"# root: {os.path.relpath(self.root)}\n" + (f"# file: {self.path}\n" if self.path else "# file: none\n")
        return head + "".join(f"{text:<{width}}  # {self.origin(name)}\n" for text, name in rows)


def load(named: str | None = None) -> Loaded:
    """The configuration in the file named, or else in the nearest folder around this one, up to the root of the
    repository. Without any: the defaults. Raises SpecError."""
    path = named if named is not None else _search()
    if path is None:
        return Loaded(Config(), os.getcwd())
    text = _text(path)
    table, prefix = _table(path, text)
    if table is None:
        hint = "name a file with a table [tool.placelogic]"
        raise SpecError(Problem("PL035", "there is no table [tool.placelogic] in this file", whole(path), hint))
    lines = {key: _line_of(key, text, prefix) for key in table}
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    shown = os.path.relpath(path)
    for key, value in table.items():
        span = Span(path, lines[key], 1, lines[key], 2)
        name = key.replace("-", "_")
        if name not in _READ or "_" in key:
            known = [_key(name) for name in Config.__struct_fields__]
            hint = closest(key.replace("_", "-"), known) or f"there are {', '.join(known)}"
            problems.append(Problem("PL036", f"there is no setting `{key}`", span, hint))
            continue
        try:
            values[name] = _READ[name](value)
            origins[name] = f"{shown}:{lines[key]}"
        except ValueError as error:
            problems.append(Problem("PL036", f"`{key}` {error}", span))
    if problems:
        raise SpecError(*problems)
    return Loaded(Config(**values), os.path.dirname(os.path.abspath(path)), path, origins)


def configured(folder: str) -> str | None:
    """The file in this very folder that configures placelogic. Raises SpecError where two do."""
    own, project = os.path.join(folder, OWN), os.path.join(folder, PROJECT)
    told = os.path.isfile(project) and "placelogic" in _text(project) and _table(project, _text(project))[0] is not None
    if not os.path.isfile(own):
        return project if told else None
    if told:
        message = f"`{OWN}` and `{PROJECT}` beside it both configure placelogic"
        raise SpecError(Problem("PL037", message, whole(os.path.relpath(own)), "keep one of the two"))
    return own


def _search() -> str | None:
    here = os.getcwd()
    while True:
        if found := configured(here):
            return os.path.relpath(found)
        parent = os.path.dirname(here)
        if os.path.exists(os.path.join(here, ".git")) or parent == here:
            return None
        here = parent


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SpecError(Problem("PL035", f"the configuration cannot be read: {reason}", whole(path))) from None


def _table(path: str, text: str) -> tuple[dict[str, Any] | None, str]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        form = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (text.rstrip("\n").count("\n") + 1, 1)
        said = str(error).split(" (at ")[0]
        message = f"this is not TOML: {said[:1].lower()}{said[1:]}"
        raise SpecError(Problem("PL035", message, Span(path, line, column, line, column + 1))) from None
    if os.path.basename(path) != PROJECT:
        return form, ""
    tool = form.get("tool")
    table = tool.get("placelogic") if isinstance(tool, dict) else None
    return (table, "tool.placelogic") if isinstance(table, dict) else (None, "")


def _line_of(key: str, text: str, prefix: str) -> int:
    """Where the key is written, as far as a look at the lines tells; TOML readers do not say."""
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]", line):
            table = header[1].replace(" ", "")
            if table == ".".join(filter(None, (prefix, key))):
                return number
        elif table == prefix and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]", line):
            return number
    return 1


# --- what a value may be ---------------------------------------------------------------------


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("is a list of texts")
    return tuple(value)


def _paths(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    if not found:
        raise ValueError("names no path, so there would be nothing to check")
    return found


def _sizes(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not all(_is_count(one) for one in value.values()):
        raise ValueError("is a table of names and positive whole numbers, as in { dp = 64 }")
    return dict(value)


def _budget(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('is a text with a unit, as in "80 GiB"')
    budget_statement(value, whole(""))
    return value


def _codes(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    for code in found:
        if code != WARNINGS and code not in known_codes():
            near = closest(code, known_codes())
            raise ValueError(f"names `{code}`, which is no code of a finding" + (f": {near}" if near else ""))
    return found


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is true or false")
    return value


def _count(value: Any) -> int:
    if not _is_count(value):
        raise ValueError("is a positive whole number")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError("is a number of seconds, more than 0")
    return float(value)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is the name of a file")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_READ = {
    "paths": _paths,
    "exclude": _texts,
    "minimum_sizes": _sizes,
    "budget": _budget,
    "fail_on": _codes,
    "require_stated": _flag,
    "rlimit": _count,
    "timeout": _seconds,
    "recheck": _flag,
    "baseline": _name,
}


def budget_statement(text: str, place: Span) -> Any:
    """The budget as a statement of the language that stands at this place. Raises ValueError."""
    from placelogic.syntax import ast
    from placelogic.syntax.parse import parse

    try:
        statements = parse(f"budget {text}\n", "").statements
    except SpecError:
        statements = ()
    if len(statements) != 1 or not isinstance(statements[0], ast.BudgetStmt) or "\n" in text:
        raise ValueError('is a size with a unit, as in "80 GiB"')
    return replace(statements[0], span=place)


# --- as TOML ------------------------------------------------------------------------------------


def _key(name: str) -> str:
    return name.replace("_", "-")


def _shown(name: str, value: Any) -> str:
    return f"# {_key(name)} is not set" if value is None else f"{_key(name)} = {_toml(value)}"


def _toml(value: Any) -> str:
    import json

    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case tuple():
            return "[" + ", ".join(_toml(one) for one in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{name} = {size}" for name, size in value.items()) + " }" if value else "{}"
        case _:
            return str(value)
