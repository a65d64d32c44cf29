"""Configurations made to take long, or all memory: read within seconds, or refused at a limit."""

from __future__ import annotations

import time

import pytest

from placelogic.frontends import Request, import_text
from placelogic.frontends.readers.arguments import read_arguments
from placelogic.frontends.values import plain
from placelogic.problem import SpecError

LAUNCH = "python pretrain_gpt.py --num-layers 12 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --micro-batch-size 1 "
WORDS = 'A="--x --y --z"\n'

SHELL = {
    "assignments_of_options_that_double": (WORDS + 'B="$A$A"\nA="$B$B"\n' * 2000 + LAUNCH, "PL502"),
    "a_chain_of_options_that_doubles": (
        'A0="--x --y --z"\n' + "".join(f'A{n}="$A{n - 1}$A{n - 1}"\n' for n in range(1, 2000)) + LAUNCH,
        "PL502",
    ),
    "a_chain_of_values_that_doubles": (
        "A0=xxxxxxx\n" + "".join(f'A{n}="$A{n - 1}$A{n - 1}"\n' for n in range(1, 30_000)) + LAUNCH,
        "PL502",
    ),
    "one_variable_many_times": ("A=" + "x" * 9_000 + "\n" + LAUNCH + "$A" * 300_000, "PL502"),
    "quotes_that_are_escaped": (LAUNCH + '\\"' * 40_000, "PL501"),
    "a_quote_that_is_never_closed": (LAUNCH + '"' + '\\"' * 40_000, "PL500"),
    "single_quotes": (LAUNCH + "'\\'" * 40_001, "PL501"),
    "defaults_that_are_never_closed": (LAUNCH + "${a:-" * 16_000, "PL500"),
    "variables_that_are_never_closed": (LAUNCH + "${a" * 300_000, "PL502"),
    "commands_that_are_never_closed": (LAUNCH + "$(" * 40_000, "PL500"),
    "blank_lines": (LAUNCH + "\n" * 900_000, "PL502"),
    "blank_lines_alone": ("\n" * 900_000, "PL502"),
    "many_words": (LAUNCH + "--x 1 " * 100_000, "PL502"),
}

JSON = {
    "digits_before_a_letter": ('{"train_batch_size": ' + "1" * 900_000 + "x}", "PL500"),
    "a_number_of_299_digits": ('{"train_batch_size": ' + "1" * 299 + "}", "PL501"),
    "a_number_with_an_exponent": ('{"train_batch_size": 1e299}', "PL501"),
    "many_unknown_settings": ("{" + ",".join(f'"k{n}": 1' for n in range(9_000)) + "}", "PL507"),
    "deep": ('{"a":' * 100_000, "PL502"),
    "comments_that_are_never_closed": ("{" + "/*" * 400_000, "PL500"),
}

TOML = {
    "many_settings": ("[parallelism]\n" + "".join(f"k{n} = 1\n" for n in range(9_000)), "PL507"),
    "a_long_dotted_name": ("a." * 200_000 + "a=1", "PL502"),
    "a_long_heading": ("[" + "a." * 200_000 + "a]", "PL502"),
    "deep": ("a=" + "[" * 400_000, "PL502"),
}

YAML = {
    "deep_lists": ("[" * 50_000, "PL502"),
    "deep_mappings": ("{a: " * 50_000, "PL502"),
    "too_large": ("".join(f"k{n}: 1\n" for n in range(90_000)), "PL502"),
    "base_sixty": ("base_model: x\nmicro_batch_size: 1" + ":1" * 50_000, "PL500"),
    "no_int": ('base_model: x\nmicro_batch_size: !!int ""', "PL500"),
    "no_bool": ("base_model: x\nmicro_batch_size: !!bool maybe", "PL500"),
    "no_float": ('base_model: x\nmicro_batch_size: !!float ""', "PL500"),
    "no_bool_either": ("base_model: x\nmicro_batch_size: !!bool ''", "PL500"),
    "aliases_that_multiply": (
        "a: &a [1,1,1,1,1,1,1,1,1]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)),
        "PL502",
    ),
}

CASES = {
    f"{framework} {name}": (framework, f"a.{suffix}", *case)
    for framework, suffix, cases in (
        ("megatron", "sh", SHELL),
        ("deepspeed", "json", JSON),
        ("torchtitan", "toml", TOML),
        ("axolotl", "yaml", YAML),
    )
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", CASES)
def test_a_configuration_ends_within_seconds(case: str) -> None:
    framework, path, text, code = CASES[case]
    before = time.process_time()
    try:
        import_text(framework, text, path, Request(world=16))
        found = None
    except SpecError as error:
        found = error.problems[0].code
    assert found == code
    assert time.process_time() - before < 8


def test_quotes_inside_words() -> None:
    text = LAUNCH + "--a \"x\\\"y\" --b \\\"z\\\" --c 'it'\"'\"'s' --d a\\ b"
    settings = plain(read_arguments(text, "a.sh"))
    assert isinstance(settings, dict)
    assert (settings["b"], settings["c"], settings["d"]) == ('"z"', "it's", "a b")
