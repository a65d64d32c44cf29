"""Configuration files are read with places, and hostile ones end with a coded error and a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from placelogic.frontends.config import Config
from placelogic.frontends.readers.arguments import read_arguments
from placelogic.frontends.readers.json_file import read_json
from placelogic.frontends.readers.toml_file import read_toml
from placelogic.frontends.readers.yaml_file import read_yaml
from placelogic.frontends.values import plain
from placelogic.problem import SpecError


def test_json_with_comments_and_places() -> None:
    text = '{\n  // a comment\n  "a": {"b": 3,}, # another\n  /* and\n one */ "c": [1e3, true, null],\n}'
    value = read_json(text, "a.json")
    assert plain(value) == {"a": {"b": 3}, "c": [1000.0, True, None]}
    inner = value.find("a.b")
    assert inner is not None and (inner.span.line, inner.span.column) == (3, 14)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"a": 1\n "b": 2}', 2, "a comma or `}` is expected"),
        ('{"a": BATCH}', 1, "`BATCH` is no value of JSON"),
        ('{"a": 1,\n"a": 2}', 2, "`a` is given twice"),
        ("{a: 1}", 1, "a name in double quotes"),
        ('{"a": 1} x', 1, "nothing may follow"),
        ('{"a": "\\q"}', 1, "an escape that JSON does not know"),
        ("", 1, "a value is expected"),
        ('{"a": ' + "9" * 400 + "}", 1, "too long"),
    ],
)
def test_broken_json(text: str, line: int, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_json(text, "a.json")
    (problem,) = caught.value.problems
    assert problem.code == "PL500" and problem.span.line == line and said in problem.message


@pytest.mark.parametrize("text", ["[" * 2000, '{"a":' * 2000, "[" + "1," * 60_000])
def test_json_beyond_the_bounds(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_json(text, "a.json")
    assert caught.value.problems[0].code == "PL502"


def test_yaml_anchors_merges_and_numbers() -> None:
    text = "base: &b\n  lr: 1e-5\n  n: 3\nother:\n  <<: *b\n  n: 4\nagain: *b\n"
    assert plain(read_yaml(text, "a.yaml")) == {
        "base": {"lr": 1e-5, "n": 3},
        "other": {"lr": 1e-5, "n": 4},
        "again": {"lr": 1e-5, "n": 3},
    }


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("a: !!python/object/apply:os.system ['x']", "PL500", 1, "only plain data is read"),
        ("a: 1\nb: !thing {}", "PL500", 2, "asks for an object"),
        ("a: 1\n b: [", "PL500", 2, "this is not YAML"),
        ("a: 1\n---\nb: 2", "PL500", 3, "a second document"),
        ("", "PL500", 1, "empty"),
        ("a: &x\n  b: *x", "PL500", 1, "an alias stands for something that contains it|this alias"),
        ("a: \x07", "PL500", 1, "not YAML"),
    ],
)
def test_hostile_yaml(text: str, code: str, line: int, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_yaml(text, "a.yaml")
    (problem,) = caught.value.problems
    assert problem.code == code
    assert any(one in problem.message for one in said.split("|"))


def test_aliases_that_multiply_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(SpecError) as caught:
        read_yaml("\n".join(lines), "a.yaml")
    assert caught.value.problems[0].code == "PL502"


def test_the_last_of_two_values_counts_and_is_told() -> None:
    value = read_yaml("a: 1\na: 2\n", "a.yaml")
    again = value.at("a")
    assert again is not None and again.data == 2 and again.over is not None and again.over.span.line == 1


def test_toml() -> None:
    text = '# one\n[a]\nb = 3 # three\nc.d = "x"\n[a.e]\nlist = [\n  1, # and\n  2,\n]\ninline = {f = true, g = 1e-5}\n'
    value = read_toml(text, "a.toml")
    assert plain(value) == {"a": {"b": 3, "c": {"d": "x"}, "e": {"list": [1, 2], "inline": {"f": True, "g": 1e-5}}}}
    inner = value.find("a.e.list")
    assert inner is not None and inner.span.line == 6


def test_toml_strings_and_numbers_as_the_library_reads_them() -> None:
    text = r"""a = "one\ntwo \u00e9 \"q\""
"b\tc" = 'raw\n'
d = """ + '"""\nlong\\\n   line"""' + """
e = 0x1F
f = [1_000, -inf, 6.5e-3, +7]
"""
    assert plain(read_toml(text, "a.toml")) == {
        "a": 'one\ntwo é "q"', "b\tc": "raw\\n", "d": "longline", "e": 31, "f": [1000, float("-inf"), 6.5e-3, 7],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a = 1\na = 2", 2, "given twice"),
        ("a = 012", 1, "neither a number nor a text"),
        ('a = 1\n"" = 2', 2, "an empty name"),
        ("[[a]]", 1, "a list of tables"),
        ("a = 1979-05-27", 1, ""),
        ("a 1", 1, "`=` is expected"),
        ("a = ", 1, "a value is expected"),
        ("a = 1 b = 2", 1, "the end of the line"),
        ('a = 1\nb = "c:\\data"', 2, "is a backslash meant to stand alone"),
    ],
)
def test_broken_toml(text: str, line: int, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_toml(text, "a.toml")
    (problem,) = caught.value.problems
    assert problem.code == "PL500" and problem.span.line == line and said in problem.message


def test_texts_of_toml() -> None:
    text = 'a = "one\\ttwo\\n\\u00e9"\nb = \'c:\\data\'\n"c d" = """x\ny"""\n'
    assert plain(read_toml(text, "a.toml")) == {"a": "one\ttwo\n\u00e9", "b": "c:\\data", "c d": "x\ny"}


SCRIPT = """\
#!/bin/bash
TP=2  # tensor
export CP=${CP:-4}
MODEL_ARGS=(
    --num-layers 12   # layers
    --data-path "a b" c
    --sequence-parallel
)
torchrun --nproc_per_node 8 --nnodes=2 pretrain_gpt.py "${MODEL_ARGS[@]}" \\
    --tensor-model-parallel-size $TP --context-parallel-size ${CP} \\
    --lr 1e-5
echo done --not-an-option-of-it
"""


def test_a_shell_script() -> None:
    value = read_arguments(SCRIPT, "run.sh")
    found = plain(value)
    assert isinstance(found, dict)
    assert found["num-layers"] == "12" and found["sequence-parallel"] is True and found["data-path"] == "a b c"
    assert found["tensor-model-parallel-size"] == "2" and found["context-parallel-size"] == "4"
    assert found["nproc-per-node"] == "8" and found["nnodes"] == "2" and found["lr"] == "1e-5"
    assert value.data["num-layers"].span.line == 5  # type: ignore[index, call-overload]


def test_a_script_with_branches_is_not_run() -> None:
    text = "if [ $BIG = 1 ]; then\n  A='--num-layers 96'\nelse\n  A='--num-layers 12'\nfi\npython t.py $A\n"
    config = Config("run.sh", read_arguments(text, "run.sh"), loose=True)
    with pytest.raises(SpecError) as caught:
        config.get("num-layers", int)
    (problem,) = caught.value.problems
    assert problem.code == "PL506" and "has two values" in problem.message and "96 in line 2" in problem.message


def test_text_over_several_lines() -> None:
    text = 'OPTIONS=" \\\n  --num-layers 12 \\\n  --hidden-size 64 \\\n"\npython t.py $OPTIONS\n'
    assert plain(read_arguments(text, "run.sh")) == {"num-layers": "12", "hidden-size": "64"}


@pytest.mark.parametrize("text", ["", "echo hello\n", "\n\n# nothing"])
def test_a_script_without_arguments(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_arguments(text, "run.sh")
    assert caught.value.problems[0].code == "PL507"


def settings(text: str, path: str = "run.sh") -> dict[str, object]:
    found = plain(read_arguments(text, path))
    assert isinstance(found, dict)
    return found


def test_what_a_shell_makes_of_variables() -> None:
    text = """\
NODES=2
GPUS=$((NODES * 8))
TP=${TENSOR:-4}
NAME=${NODES:+many}
ARGS=(--num-layers "$((GPUS / 2))" --lr 1e-4)
ARGS+=(--sequence-parallel)
EXTRA="--hidden-size 64"
EXTRA+=" --seed 1"
python t.py "${ARGS[@]}" $EXTRA --tensor-model-parallel-size $TP --name ${NAME} --rank ${10} --host $HOST
"""
    assert settings(text) == {
        "num-layers": "8", "lr": "1e-4", "sequence-parallel": True, "hidden-size": "64", "seed": "1",
        "tensor-model-parallel-size": "4", "name": "many", "rank": "${10}", "host": "$HOST",
    }  # fmt: skip


def test_branches_on_values_that_are_known() -> None:
    text = """\
SIZE=7b
case $SIZE in
  7b|8b) LAYERS=32 ;;
  *) LAYERS=80 ;;
esac
if [ "$LAYERS" -gt 40 ]; then TP=8; elif [[ $SIZE == 7b && $LAYERS -eq 32 ]]; then TP=2; else TP=1; fi
[ $TP -gt 1 ] && SP=--sequence-parallel
((TP == 1)) && SP=
run() {
  python t.py --num-layers $1 --tensor-model-parallel-size $TP $SP
}
run $LAYERS
"""
    assert settings(text) == {"num-layers": "32", "tensor-model-parallel-size": "2", "sequence-parallel": True}


def test_text_for_another_program_is_no_argument() -> None:
    text = "cat <<EOF > config.yaml\n--num-layers 96\nEOF\npython t.py --num-layers 12\n"
    assert settings(text) == {"num-layers": "12"}


def test_what_one_branch_gives_has_to_be_said() -> None:
    text = 'ARGS=(--num-layers 12)\nif [ "$LARGE" = 1 ]; then\n  ARGS+=(--sequence-parallel)\nfi\npython t.py "${ARGS[@]}"\n'
    config = Config("run.sh", read_arguments(text, "run.sh"), loose=True)
    assert config.get("num-layers", int).value == 12
    with pytest.raises(SpecError) as caught:
        config.get("sequence-parallel", bool)
    (problem,) = caught.value.problems
    assert (problem.code, problem.span.line) == ("PL506", 3)
    assert problem.message == "`sequence-parallel` is given in one branch of this script, which is not run, and not in another"


def test_what_a_script_sources(tmp_path: Path) -> None:
    (tmp_path / "sizes.sh").write_text("LAYERS=12\nMODEL_ARGS=(--num-layers $LAYERS)\n")
    path = str(tmp_path / "run.sh")
    text = 'source sizes.sh\nsource venv/bin/activate\npython t.py "${MODEL_ARGS[@]}" --seed 1\n'
    assert settings(text, path) == {"num-layers": "12", "seed": "1"}
    with pytest.raises(SpecError) as caught:
        read_arguments("source gone.sh\npython t.py --num-layers 12\n", path)
    (problem,) = caught.value.problems
    assert problem.code == "PL506" and problem.message == "`gone.sh`, which this script sources, is not there"
    (tmp_path / "sizes.sh").write_text("source sizes.sh\n")
    with pytest.raises(SpecError) as caught:
        read_arguments(text, path)
    assert "sources itself" in caught.value.problems[0].message


def test_arguments_that_another_script_sources() -> None:
    assert settings("MODEL_ARGS=(\n  --num-layers 12\n  --hidden-size 64\n)\n") == {"num-layers": "12", "hidden-size": "64"}


TENSOR = "--num-layers 12 --tensor-model-parallel-size $TP"


@pytest.mark.parametrize(
    ("script", "size"),
    [
        ("TP=4\nunset TP\npython t.py --num-layers 12 --tensor-model-parallel-size ${TP:-2}", "2"),
        (f"TP=2\n( TP=4 )\npython t.py {TENSOR}", "2"),
        (f"TP=2\nTP=4 echo hello\npython t.py {TENSOR}", "2"),
        (f"TP=2\necho 1 | TP=4\npython t.py {TENSOR}", "2"),
        (f"TP=2\nf() {{ local TP=4; }}\nf\npython t.py {TENSOR}", "2"),
        (f"TP=2\nf() {{ TP=4; }}\nf\npython t.py {TENSOR}", "4"),
        (f"TP=2\nf() {{ return; TP=4; }}\nf\npython t.py {TENSOR}", "2"),
        (f"TP=2\n((TP++))\npython t.py {TENSOR}", "${TP}"),
        (f"TP=2\nlet TP=4\npython t.py {TENSOR}", "${TP}"),
        (f"TP=2\nprintf -v TP %d 4\npython t.py {TENSOR}", "${TP}"),
        (f'TP=2\neval "TP=4"\npython t.py {TENSOR}', "${TP}"),
        (f"TP=2\nread TP < size\npython t.py {TENSOR}", "${TP}"),
        (f"TP=2\nfor TP in 4 8; do :; done\npython t.py {TENSOR}", "${TP}"),
        (f'TP=2\ntest -n "$BIG" && TP=4\npython t.py {TENSOR}', "$TP"),
        (f"TP=2\nnvidia-smi | grep -q H100 && TP=4\npython t.py {TENSOR}", "$TP"),
        (f"TP=tp4\npython t.py {TENSOR.replace('$TP', '${TP#tp}')}", "${TP#tp}"),
        (f"TP=2\n[ -n \"$BIG\" ] && TP=4\npython t.py {TENSOR.replace('$TP', '${TP:-8}')}", "${TP:-8}"),
        (f"TP=2\npython t.py {TENSOR}\nexit 0\npython t.py --num-layers 24", "2"),
        (f"TP=2\npython t.py {TENSOR}\necho --tensor-model-parallel-size 4", "2"),
        ('set -- --tensor-model-parallel-size 4\npython t.py --num-layers 12 "$@"', "4"),
    ],
)
def test_what_is_not_followed_is_not_guessed(script: str, size: str) -> None:
    found = settings(script)
    assert found["num-layers"] == "12" and found["tensor-model-parallel-size"] == size


@pytest.mark.parametrize("line", ["A[1]=4", "mapfile -t A < sizes"])
def test_an_array_that_is_not_followed_is_asked_for(line: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_arguments(f'A=(--num-layers 2)\n{line}\npython t.py --seed 1 "${{A[@]}}"\n', "run.sh")
    assert caught.value.problems[0].code == "PL506"
