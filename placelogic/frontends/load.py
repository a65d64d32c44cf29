"""From a file to a spec: finds the importer of a framework, and settles what it left unread."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from placelogic.files import whole
from placelogic.frontends.config import override
from placelogic.frontends.faults import apply, faults
from placelogic.frontends.known import known, settle
from placelogic.frontends.recognise import recognise
from placelogic.frontends.request import Request
from placelogic.frontends.result import Imported
from placelogic.frontends.values import Value
from placelogic.frontends.versions import before, newest, within
from placelogic.problem import Problem, SpecError, closest
from placelogic.report.diagnostic import Finding

FRAMEWORKS = {
    "deepspeed": "DeepSpeed",
    "megatron": "Megatron-LM",
    "torchtitan": "torchtitan",
    "accelerate": "accelerate",
    "axolotl": "axolotl",
    "nanotron": "nanotron",
}
"""Name on the command line -> name in sentences. Each has a module of its name."""

AUTO = "auto"
"""The framework that a file is recognised to belong to."""


def import_file(framework: str, path: str, request: Request = Request()) -> Imported:
    """Read a configuration file and make a spec of it. Raises SpecError."""
    from placelogic.syntax.read import read_source

    if framework != AUTO:
        importer(framework, path)
    return import_text(framework, read_source(path), path, request)


def import_text(framework: str, text: str, path: str, request: Request = Request()) -> Imported:
    """Make a spec of the text of a configuration. Raises SpecError."""
    from placelogic.syntax.parse import normalised

    text = normalised(text)
    if framework == AUTO:
        framework = _recognised(text, path)
    module = importer(framework, path)
    if request.version is not None and not re.fullmatch(r"\d+(\.\d+){0,3}([.-]?\w+)?", request.version):
        raise SpecError(Problem("PL505", f"`{request.version}` is no version of {FRAMEWORKS[framework]}", whole(path),
                                "versions look like 0.14.2"))  # fmt: skip
    if request.world is not None and request.world < 1:
        raise SpecError(Problem("PL504", f"there must be at least 1 device, not {request.world}", whole(path)))
    _check_whose(framework, text, path)
    config = module.config(_read(framework, text, path), path, request)
    config.root = override(config.root, request.given)
    spec, facts = module.draft(config, request)
    if config.used <= {*known(framework).model}:
        message = f"this is no {FRAMEWORKS[framework]} configuration: no setting in it decides how it trains"
        raise SpecError(Problem("PL507", message, whole(path), "a file that sets nothing is no proof of anything"))
    apply(framework, spec, facts, request.version)
    unread = settle(config, framework, request.unknown)
    for other, name in config.others:
        unread = unread.and_(settle(other, name, request.unknown))
    if request.tokens:
        spec.add("work", f"tokens {request.tokens}", "--tokens")
    version = request.version or module.VERSIONS[1]
    name = os.path.basename(path) if path else "text"
    told = tuple(_unknown_version(framework, request.version, module.VERSIONS, path))
    notes = [f"{one.message[0].upper()}{one.message[1:]}." for one in told]
    spec.head = [f"{name}, as {FRAMEWORKS[framework]} {version} runs it.", *notes, *spec.head]
    problems = (*config.problems, *unread.problems)
    spec.head += [f"NOT IN THIS SPEC, line {one.span.line}: {one.message}" for one in problems]
    findings = (*told, *spec.findings, *unread.findings)
    return Imported(
        framework, version, path, spec.text(f"{path} (spec)"), findings, unread.ignored, problems, facts, text
    )


def _recognised(text: str, path: str) -> str:
    """The importer for this file. Raises SpecError PL507 where there is none."""
    found = recognise(text, path)
    if found is not None and found.name is not None:
        return found.name
    if found is None:
        message, hint = "which framework this file configures cannot be told from it", "say it: `--from FRAMEWORK`"
    else:
        message, hint = f"there is no importer for this file: it looks like {found.looks}", f"there are {', '.join(FRAMEWORKS)}"
    raise SpecError(Problem("PL507", message, whole(path), hint))


def _check_whose(framework: str, text: str, path: str) -> None:
    """Raises SpecError PL507 for a file that looks like one of another program."""
    found = recognise(text, path)
    if found is None or found.name == framework:
        return
    message = f"this is no {FRAMEWORKS[framework]} configuration: it looks like {found.looks}"
    hint = f"`--from {found.name}`" if found.name else f"there is no importer for {found.looks}"
    raise SpecError(Problem("PL507", message, whole(path), hint))


def _unknown_version(framework: str, version: str | None, known: tuple[str, str], path: str) -> Iterator[Finding]:
    """A note where a version is newer or older than all that were looked at; what a fault names was looked at."""
    if version is None:
        return
    named = [one for fault in faults(framework) for one in (fault.since, fault.until) if one is not None]
    last, name = newest((known[1], *named)), FRAMEWORKS[framework]
    if not within(version, last):
        message = f"{name} {version} is not known here, the newest that is known is {last}: it is read as that"
    elif before(version, known[0]):
        message = (
            f"{name} {version} is not known here, the oldest that is known is {known[0]}: it is read as that, "
            "with the faults that were reported for it"
        )
    else:
        return
    yield Finding("NT24", "note", message, whole(path), help="look at the lines of the spec with your version in hand")


def importer(framework: str, path: str) -> Any:
    """The module of a framework. Raises SpecError PL505."""
    if framework not in FRAMEWORKS:
        hint = closest(framework, FRAMEWORKS) or f"there are {', '.join(FRAMEWORKS)}"
        raise SpecError(Problem("PL505", f"there is no importer for `{framework}`", whole(path), hint))
    return import_module(f"placelogic.frontends.{framework}")


def _read(framework: str, text: str, path: str) -> Value:
    from placelogic.frontends.readers.arguments import read_arguments
    from placelogic.frontends.readers.json_file import read_json

    if framework == "deepspeed" or path.endswith(".json"):
        return _mapping(read_json(text, path), path)
    if framework == "megatron":
        return read_arguments(text, path)
    if framework == "torchtitan" and not path.endswith((".sh", ".args")):
        from placelogic.frontends.readers.toml_file import read_toml

        return read_toml(text, path)
    if framework == "torchtitan":
        return _sections(read_arguments(text, path))
    from placelogic.frontends.readers.yaml_file import read_yaml

    return _mapping(read_yaml(text, path), path)


def _sections(flat: Value) -> Value:
    """`parallelism.tensor-parallel-degree` as an entry of the section `parallelism`."""
    found: dict[str, dict[str, Value]] = {}
    for name, value in dict(flat.data).items() if isinstance(flat.data, dict) else ():
        section, _, entry = name.partition(".")
        if entry:
            found.setdefault(section.replace("-", "_"), {})[entry.replace("-", "_")] = value
    return Value({name: Value(entries, flat.span) for name, entries in found.items()}, flat.span)


def _mapping(value: Value, path: str) -> Value:
    if not isinstance(value.data, dict):
        raise SpecError(Problem("PL507", "a configuration is a mapping of names to values", value.span))
    return value
