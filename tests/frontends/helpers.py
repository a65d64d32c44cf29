"""Small configurations, and what becomes of them."""

from __future__ import annotations

from placelogic.frontends import Imported, Request, import_text
from placelogic.frontends.checked import Made, check_imported
from placelogic.problem import Problem, SpecError
from placelogic.report.diagnostic import SpecReport
from placelogic.session.settings import Settings

FILES = {
    "deepspeed": "ds.json",
    "megatron": "run.yaml",
    "torchtitan": "run.toml",
    "accelerate": "accelerate.yaml",
    "axolotl": "sft.yaml",
    "nanotron": "config.yaml",
}


def imported(framework: str, text: str, *, name: str | None = None, **asked: object) -> Imported:
    """The import of a configuration."""
    return import_text(framework, text, name or FILES[framework], Request(**asked))  # type: ignore[arg-type]


def checked(framework: str, text: str, *, name: str | None = None, **asked: object) -> SpecReport:
    """The report on a configuration."""
    made = Made(imported(framework, text, name=name, **asked), None, text)
    (spec,) = check_imported(made, Settings(fixes=None)).specs
    return spec


def problem(framework: str, text: str, *, name: str | None = None, **asked: object) -> Problem:
    """The first problem with a configuration."""
    try:
        imported(framework, text, name=name, **asked)
    except SpecError as error:
        return error.problems[0]
    raise AssertionError("it was imported")


def codes(spec: SpecReport, severity: str = "error") -> set[str]:
    """The codes of what was found."""
    return {finding.code for finding in spec.findings if finding.severity == severity}


def megatron(*settings: str) -> str:
    """Arguments of a small GPT, and more."""
    base = ["--num-layers: 4", "--hidden-size: 64", "--num-attention-heads: 8", "--seq-length: 128", "--micro-batch-size: 1",
            "--global-batch-size: 16", "--bf16: true"]  # fmt: skip
    return "MODEL_ARGS:\n" + "".join(f"  {one}\n" for one in (*base, *settings))
