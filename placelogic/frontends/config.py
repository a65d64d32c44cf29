"""A configuration as importers read it: by name, by type, and with a record of what was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.files import whole
from placelogic.frontends.values import WHOLE_DIGITS, Value, told
from placelogic.io.quoting import shell
from placelogic.problem import Problem, SpecError, closest
from placelogic.source import Span

FROM_COMMAND_LINE = "--set"
"""What takes the place of a file for values that were given on the command line."""


class Setting(Struct, frozen=True):
    """A setting, given or not. `value` is the default where it is not given."""

    name: str
    value: Any
    given: bool
    span: Span

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def origin(self) -> str:
        """Where the setting comes from, as a comment of a spec says it."""
        if not self.given:
            return f"{self.name} is not given" + ("" if self.value is None else f": {_short(self.value)}")
        if self.span.path == FROM_COMMAND_LINE:
            return f"--set {self.name}={_short(self.value)}"
        return f"line {self.span.line}: {self.name} {_short(self.value)}"


def _short(value: Any) -> str:
    match value:
        case True | False | None:
            return {True: "true", False: "false", None: "nothing"}[value]
        case Value():
            return told(value)
        case str() | int() | float():
            return " ".join(str(value).split())[:60]
    return "..."


_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", dict: "a mapping", list: "a list",
          object: "one value"}  # fmt: skip


class Config(Struct):
    """One configuration file. `auto`: what stands for "given elsewhere" in it. `loose`: everything is text in it.
    `problems`: what the importer could not do. `others`: further files it led to, with their frameworks."""

    path: str
    root: Value
    auto: tuple[str, ...] = ()
    loose: bool = False
    used: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    others: list[tuple[Config, str]] = field(default_factory=list)

    def get(
        self, name: str, kind: type, default: Any = None, *, also: Iterable[str] = (), least: int | None = None
    ) -> Setting:
        """A setting by its path (`also`: other names for it, the first one given counts). A value of
        another type is an error (PL501), and so is a number below `least`; a word of `auto` counts as not given."""
        for one in (name, *also):
            self._sections(one)
            value = self.root.find(one)
            if value is None:
                continue
            self.used.add(one)
            if value.unsure:
                raise SpecError(_two_values(one, value))
            if value.data is None or (isinstance(value.data, str) and value.data in self.auto):
                continue
            return Setting(one, self._typed(one, value, kind, least), True, value.span)
        return Setting(name, default, False, whole(self.path))

    def peek(self, name: str, kind: type, default: Any = None) -> Any:
        """The value of a setting, without counting it as read: for facts, which write nothing."""
        before = set(self.used)
        value = self.get(name, kind, default).value
        self.used.intersection_update(before)
        return value

    def _sections(self, name: str) -> None:
        """What a setting lies in must be sections. Raises SpecError PL501."""
        value: Value | None = self.root
        parts = name.split(".")
        for count, part in enumerate(parts[:-1], 1):
            value = value.at(part) if value is not None else None
            if value is not None and value.data is not None and not isinstance(value.data, Mapping):
                head = ".".join(parts[:count])
                raise SpecError(Problem("PL501", f"`{head}` must be a mapping, not `{told(value)}`", value.span))

    def is_auto(self, name: str) -> bool:
        """Whether the setting is left to whoever reads the file."""
        value = self.root.find(name)
        return value is not None and isinstance(value.data, str) and value.data in self.auto

    def use(self, *patterns: str) -> None:
        """Count settings as read, by pattern."""
        for name, _ in self.root.leaves():
            if any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for pattern in patterns):
                self.used.add(name)

    def unread(self) -> Iterator[tuple[str, Value]]:
        """What nothing asked for, in the order of the file. Reading a mapping reads what is in it."""
        for name, value in self.root.leaves():
            parts = name.split(".")
            if not any(".".join(parts[:n]) in self.used for n in range(1, len(parts) + 1)):
                yield name, value

    def wrong(self, code: str, setting: Setting | Value, message: str, hint: str | None = None) -> SpecError:
        """An error about a setting."""
        return SpecError(Problem(code, message, setting.span, hint))

    def _typed(self, name: str, value: Value, kind: type, least: int | None) -> Any:
        data = value.data
        if self.loose and isinstance(data, str) and kind in (int, float, bool):
            data = _loose(data, kind)
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            data = float(data)
        if kind is int and isinstance(data, float) and data.is_integer():
            data = int(data)
        fits = {
            dict: isinstance(data, Mapping),
            list: isinstance(data, tuple),
            bool: isinstance(data, bool),
            int: isinstance(data, int) and not isinstance(data, bool),
            object: True,
        }.get(kind, isinstance(data, kind) and not isinstance(data, bool))
        if kind is object and isinstance(data, Mapping | tuple):
            fits = False
        if not fits:
            raise SpecError(Problem("PL501", f"`{name}` must be {_KINDS[kind]}, not `{told(value)}`", value.span,
                                    _hint(name, value)))  # fmt: skip
        if kind is int and abs(data) >= 10**WHOLE_DIGITS:
            message = f"`{name}` has more than {WHOLE_DIGITS} digits"
            raise SpecError(Problem("PL501", message, value.span, "no mesh and no model is that large"))
        if least is not None and data < least:
            raise SpecError(Problem("PL501", f"`{name}` must be at least {least}, not {data}", value.span))
        return value if kind in (dict, list) else data


def _two_values(name: str, value: Value) -> Problem:
    if value.over is None:
        message = f"`{name}` is given in one branch of this script, which is not run, and not in another"
        return Problem("PL506", message, value.span, f"say it: `--set {name}={shell(told(value))}`, or `--set {name}=null`")
    first = f"{told(value.over)} in line {value.over.span.line}" if value.over else "another"
    message = f"`{name}` has two values in this script, which is not run: {first}, and {told(value)}"
    return Problem("PL506", message, value.span, f"say which with `--set {name}={shell(told(value))}`")


def _hint(name: str, value: Value) -> str | None:
    if value.data == "auto":
        return f"this value is filled in by the program that reads the file: give it with `--set {name}=...`"
    if isinstance(value.data, str) and value.data.startswith("$"):
        return f"this is filled in by a shell: give it with `--set {name}=...`"
    return None


def _loose(text: str, kind: type) -> Any:
    """Text as a value of this kind, where a file has everything as text; the text itself where it is none."""
    if kind is bool:
        return {"true": True, "false": False, "yes": True, "no": False}.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def override(root: Value, given: Mapping[str, str], known: Iterable[str] = ()) -> Value:
    """The configuration with the values of `--set NAME=VALUE` in it, which are read like YAML."""
    for name, text in given.items():
        root = _with(root, name.split("."), _value(name, text))
    return root


def _value(name: str, text: str) -> Value:
    from placelogic.frontends.readers.yaml_file import read_yaml

    span = Span(FROM_COMMAND_LINE, 1, 1, 1, 1)
    if name == "trainer_version":  # 5.10 is no number
        return Value(text.strip(), span)
    if not text.strip() or text.strip() in ("null", "none", "~"):
        return Value(None, span)
    try:
        return _moved(read_yaml(text, FROM_COMMAND_LINE), span)
    except SpecError as error:
        raise SpecError(replace(error.problems[0], message=f"--set {name}: {error.problems[0].message}")) from None


def _moved(value: Value, span: Span) -> Value:
    if isinstance(value.data, Mapping):
        return Value({name: _moved(one, span) for name, one in value.data.items()}, span)
    if isinstance(value.data, tuple):
        return Value(tuple(_moved(one, span) for one in value.data), span)
    return Value(value.data, span)


def _with(root: Value, path: list[str], new: Value) -> Value:
    entries = dict(root.data) if isinstance(root.data, Mapping) else {}
    first, *rest = path
    entries[first] = _with(entries.get(first, Value({}, new.span)), rest, new) if rest else new
    return Value(entries, root.span, root.key)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """A hint for a name that nobody knows."""
    return closest(name, known)
