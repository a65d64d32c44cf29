"""Arguments of a training program: a shell script or launch line, a file of arguments, or YAML of them.

The result is flat: `--tensor-model-parallel-size 2` is the setting `tensor-model-parallel-size`. Shell is not run
(`shell.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from placelogic.files import whole
from placelogic.frontends.readers.expansions import Word
from placelogic.frontends.readers.shell import Script
from placelogic.frontends.values import Value
from placelogic.problem import Problem, SpecError

_OPTION = re.compile(r"--[A-Za-z][\w.-]*")


def read_arguments(text: str, path: str) -> Value:
    """The settings of a file of arguments. Raises SpecError PL500, PL506 or PL507."""
    if re.search(r"^[ \t]*(?:MODEL_ARGS\s*:|['\"]?--[\w-]+['\"]?\s*:|[a-z_]+:\s*(?:$|\S))", text, re.MULTILINE) and (
        path.endswith((".yaml", ".yml")) or "MODEL_ARGS:" in text
    ):
        return _from_yaml(text, path)
    return _from_shell(text, path)


def _from_yaml(text: str, path: str) -> Value:
    from placelogic.frontends.readers.yaml_file import read_yaml

    root = read_yaml(text, path)
    arguments = root.at("MODEL_ARGS") or root
    if isinstance(arguments.data, tuple):  # a list of words, as on a command line
        words = [Word(str(one.data), one.span) for one in arguments.data]
        return Value(_options(words, path, branches=False), root.span)
    if not isinstance(arguments.data, Mapping):
        raise SpecError(Problem("PL507", "arguments are a mapping or a list of them", arguments.span))
    found: dict[str, Value] = {}
    for name, value in arguments.data.items():
        if isinstance(value.data, Mapping) and not name.startswith("--"):  # --yaml-cfg: settings in sections
            found |= {_name(inner): one for inner, one in value.data.items()}
        else:
            found[_name(name)] = value
    if root.at("MODEL_ARGS") is None and not any(name.startswith("--") for name in arguments.data) and not found:
        raise SpecError(Problem("PL507", "there are no arguments in this file", whole(path)))
    return Value(found, root.span)


def _from_shell(text: str, path: str) -> Value:
    script = Script(text, path)
    found = _options(script.words, path, branches=script.branches)
    if not found:
        raise SpecError(Problem("PL507", "there are no arguments such as `--num-layers 12` in this file", whole(path)))
    return Value(found, whole(path))


def _name(text: str) -> str:
    return text.removeprefix("--").replace("_", "-")


def _options(words: Iterable[Word], path: str, *, branches: bool) -> dict[str, Value]:
    found: dict[str, Value] = {}
    name, place, values, maybe = "", whole(path), list[str](), False

    def close() -> None:
        if not name:
            return
        data: bool | str = " ".join(values) if values else True
        before = found.get(name)
        differs = before is not None and before.data != data
        # The last one counts, as in argparse; but who knows which of two branches a script takes?
        found[name] = Value(data, place, place, before if differs else None, unsure=maybe or differs and branches)

    for word, span, perhaps in words:
        if _OPTION.match(word):
            close()
            head, equals, value = word.partition("=")
            name, place, values, maybe = _name(head), span, [value] if equals else [], perhaps
            if equals:
                close()
                name = ""
        elif word == "" or word.endswith(".py") or "[@]" in word:  # the end of a command, or what it starts
            close()
            name, values = "", []
        elif name:
            values.append(word)
            maybe = maybe or perhaps
    close()
    return found
