"""Configurations that hand everything over to DeepSpeed, in a file of its own or in a section."""

from __future__ import annotations

import os
from collections.abc import Mapping

from placelogic.frontends import deepspeed
from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.request import Request
from placelogic.frontends.values import Value
from placelogic.io.quoting import shell
from placelogic.problem import Problem, SpecError


def through_deepspeed(
    config: Config, request: Request, name: Setting, more: Mapping[str, Value]
) -> tuple[Draft, dict[str, object]]:
    """The spec of the DeepSpeed file that a setting names. `more`: settings that this file gives instead of it.
    Where the file cannot be found this is a problem (PL506), and the spec says nothing about ZeRO."""
    from placelogic.frontends.readers.json_file import read_json
    from placelogic.syntax.read import read_source

    folder = os.path.dirname(config.path)
    candidates = [os.path.join(folder, str(name.value)), os.path.join(folder, os.path.basename(str(name.value)))]
    path = next((one for one in candidates if os.path.isfile(one)), None)
    if path is None:
        hint = f"put it beside this file, or import it by itself: `placelogic import deepspeed {shell(os.path.basename(str(name.value)))}`"
        config.problems.append(
            Problem(
                "PL506", f"the DeepSpeed file `{name.value}` is not there, and says what ZeRO does", name.span, hint
            )
        )
        return section(config, request, more)
    text = read_source(path)
    root = read_json(text, path)
    if not isinstance(root.data, Mapping):
        raise SpecError(Problem("PL507", "a DeepSpeed configuration is a mapping of names to values", root.span))
    inner = Config(path, _laid_over(root, more), auto=("auto",))
    spec, facts = deepspeed.draft(inner, request)
    config.others.append((inner, "deepspeed"))
    return spec, facts


def section(config: Config, request: Request, settings: Mapping[str, Value]) -> tuple[Draft, dict[str, object]]:
    """The spec of DeepSpeed settings that another file gives by itself."""
    root = Value({}, config.root.span)
    inner = Config(config.path, _laid_over(root, settings), auto=("auto",))
    return deepspeed.draft(inner, request)


def _laid_over(root: Value, more: Mapping[str, Value]) -> Value:
    """Settings by dotted name put where the file leaves them out or says "auto"."""
    for dotted, value in more.items():
        have = root.find(dotted)
        if have is None or have.data in (None, "auto"):
            root = _with(root, dotted.split("."), value)
    return root


def _with(root: Value, path: list[str], new: Value) -> Value:
    entries = dict(root.data) if isinstance(root.data, Mapping) else {}
    first, *rest = path
    entries[first] = _with(entries.get(first, Value({}, new.span)), rest, new) if rest else new
    return Value(entries, root.span, root.key)
