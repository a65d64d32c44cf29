"""Damaged and hostile configurations: every one is imported or refused with a code and a line, never a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from placelogic.frontends import Request, import_text
from placelogic.problem import SpecError

CONFIGS = sorted((Path(__file__).parents[2] / "examples" / "configs").iterdir())
VALUES = [
    "-1",
    "0",
    "1e999",
    "null",
    "true",
    '"auto"',
    "[]",
    "{}",
    "99999999999999999999",
    "3.5",
    "'x'",
    "!!python/none",
    "*a",
    "$X",
    "NaN",
]
JUNK = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ":",
    ",",
    "\\",
    "&a ",
    "*a",
    "<<:",
    "---",
    "\t",
    "#",
    "\x00",
    "é",
    "$(",
    "=",
    "--x",
    "\n",
]


def imports(framework: str, text: str, name: str) -> str:
    """The code of the first problem, or nothing."""
    try:
        import_text(framework, text, name, Request(world=16))
    except SpecError as error:
        for problem in error.problems:
            assert problem.code.startswith("PL") and not problem.code.startswith("PL9"), problem
            assert problem.message and problem.span.line >= 1
        return error.problems[0].code
    return ""


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_damaged_files(path: Path) -> None:
    draw = random.Random(path.name)
    text = path.read_text()
    framework = path.name.split("_")[0]
    for _ in range(30):
        lines = text.split("\n")
        match draw.randrange(4):
            case 0:
                n = draw.randrange(len(lines))
                head, colon, _ = lines[n].partition(":" if ":" in lines[n] else "=")
                lines[n] = f"{head}{colon} {draw.choice(VALUES)}"
            case 1:
                n = draw.randrange(len(lines))
                cut = draw.randrange(len(lines[n]) + 1)
                lines[n] = lines[n][:cut] + draw.choice(JUNK) + lines[n][cut:]
            case 2:
                del lines[draw.randrange(len(lines))]
            case _:
                lines = lines[: draw.randrange(len(lines))]
        imports(framework, "\n".join(lines), path.name)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_one_framework_reads_the_file_of_another(path: Path) -> None:
    for framework in ("deepspeed", "megatron", "torchtitan", "accelerate", "axolotl", "nanotron"):
        imports(framework, path.read_text(), path.name)


@pytest.mark.parametrize("framework", ["deepspeed", "accelerate", "axolotl", "nanotron"])
@pytest.mark.parametrize("value", ["1", '"x"', "[1, 2]", "null", "true"])
def test_no_mapping(framework: str, value: str) -> None:
    name = "a.json" if framework == "deepspeed" else "a.yaml"
    assert imports(framework, value, name) in ("PL507", "PL500")


@pytest.mark.parametrize(
    ("framework", "name", "text"),
    [
        ("deepspeed", "a.json", '{"zero_optimization": 3}'),
        ("deepspeed", "a.json", '{"zero_optimization": {"offload_optimizer": "cpu"}}'),
        ("nanotron", "a.yaml", "parallelism: [1, 2]\n"),
        ("nanotron", "a.yaml", "parallelism: {dp: {a: 1}}\n"),
        ("axolotl", "a.yaml", "base_model: x\nfsdp_config: 7\n"),
        ("axolotl", "a.yaml", "base_model: x\nfsdp: {a: 1}\n"),
        ("accelerate", "a.yaml", "distributed_type: FSDP\nfsdp_config: yes please\n"),
        ("torchtitan", "a.toml", "parallelism = 3\ntraining = 4\n"),
        ("megatron", "a.yaml", "MODEL_ARGS: 3\n"),
    ],
)
def test_a_section_that_is_none(framework: str, name: str, text: str) -> None:
    """A value where a mapping belongs is told, not passed over."""
    assert imports(framework, text, name) in ("PL501", "PL507")
