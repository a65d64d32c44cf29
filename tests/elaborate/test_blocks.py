"""Blocks of operations: what they mean, what is refused, and that what is printed reads back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from placelogic.elaborate.derive import derive
from placelogic.elaborate.show import show
from placelogic.program import block as bl
from placelogic.program.expr import evaluate, number
from placelogic.program.expr import show as text_of
from tests.elaborate.helpers import bare, one, program

HEAD = """
mesh tp, cp
let h, L
weights a { size 8 }
weights v { size 8, kind vector }
weights e { size 8, kind embedding }
weights x { size 8, kind expert }
weights r { size 8, kind router }
dims batch, sequence, hidden = h, heads, head, ffn, vocab, expert, both
"""
SIZELESS = HEAD.replace("size 8, ", "").replace("size 8", "")
"""The operations that use the weights say how many elements they have."""


def block(*lines: str, head: str = SIZELESS, name: str = "b", repeat: str = "") -> str:
    """A block over (batch, sequence, hidden); in SIZELESS the weights that it does not use get a size."""
    body = "".join(f"  {line}\n" for line in lines)
    if head is SIZELESS:
        used = {name for name in "avexr" if f"with {name} " in body}
        lines_ = zip(HEAD.split("\n"), SIZELESS.split("\n"), strict=True)
        head = "\n".join(bare_ if sized[8:9] in used else sized for sized, bare_ in lines_)
    return f"{head}block {name}{repeat} {{\n  input i(batch, sequence, hidden)\n{body}}}\n"


JOINED = (
    "q = linear i with a from hidden to heads, head",
    "s = linear i with a from hidden to ffn",
    "t = linear i with a from hidden to vocab",
)

ATTENTION = (
    "q = linear i with a from hidden to heads, head",
    "c = attention q, q, q",
    "o = linear c with a from heads, head to hidden",
)

STAGED = block("y = gelu i", repeat=" repeat L") + "freeze *\nstages over tp\n"

PROBLEMS = [
    ("PL202", block("y = norm i with w over hidden"), "there are no weights `w`"),
    ("PL202", HEAD.replace("dims", "#") + "backward w over tp by none", "there are no weights `w`"),
    ("PL210", block("y = gelu i", "y = gelu y"), "tensor `y` is made twice"),
    ("PL210", block("y = gelu i") + block("y = gelu i", head=""), "block `b` stands twice, first in line 10"),
    ("PL223", block("y = gelu j"), "there is no tensor `j` before this line"),
    ("PL223", block("y = gelu i") + "checkpoint z of b", "no operation of block `b` makes `z`"),
    ("PL223", block("y = gelu i") + "backward z over tp by none", "there is no tensor `z`"),
    ("PL224", block("y = norm i over hiddn"), "there is no dimension `hiddn`"),
    ("PL224", block("y = linear i with a from hidden to hats"), "there is no dimension `hats`"),
    ("PL224", HEAD + "block b {\n input i(bach, hidden)\n y = gelu i\n}", "there is no dimension `bach`"),
    ("PL224", block("y = gelu i") + "dims sequnce = 8", "no tensor of a block has the dimension `sequnce`"),
    ("PL225", block("y = gelu i") + "checkpoint c", "there is no block `c`"),
    ("PL225", block("y = gelu i") + "backward y of c over tp by none", "there is no block `c`"),
    ("PL303", block(*[f"y{n} = gelu {f'y{n - 1}' if n else 'i'}" for n in range(501)]), "more than 500 operations"),
    ("PL309", block("y = gelu i") + "dims hidden = 7", "dimension `hidden` has another size in line 9"),
    ("PL322", block("y = gelu i") + "backward y over tp by none\nbackward y of b over cp, tp by sum",
     "what happens backward to `y` over tp is stated in line 14 already"),
    ("PL325", block("y = scale i by 1/tokens"), "`tokens`, the number of loss tokens"),
    ("PL370", block("y = norm i over ffn"), "`i` has no dimension `ffn`: it is (batch, sequence, hidden)"),
    ("PL370", block("y = linear i with a from ffn to hidden"), "`i` has no dimension `ffn`"),
    ("PL370", block("y = linear i with a from sequence, batch to ffn"), "do not stand together in this order"),
    ("PL370", block("y = linear i with a from hidden to batch"), "would have the dimension `batch` twice"),
    ("PL370", block("y = linear i with a from hidden to ffn", "z = add i, y"), "these have different dimensions: i("),
    ("PL370", block("y = linear i with a from hidden to ffn", "z = multiply y, i"), "these have different dimensions: y("),
    ("PL370", block("c = attention i, i, i"), "the last dimensions of what attention reads"),
    ("PL370", block("q = linear i with a from hidden to heads, head", "k = linear i with a from hidden to head, heads",
                    "c = attention q, k, k"), "these do not fit for attention"),
    ("PL370", block("y = concat i to ffn"), "one tensor is nothing to put together"),
    ("PL370", block(*JOINED, "k = concat q, q to both"), "each last dimension is to be another one than the rest"),
    ("PL370", block(*JOINED, "k = concat s, q to both"), "`q` has other dimensions before its last one than `s`"),
    ("PL370", block(*JOINED, "k = concat q, s to both"), "`both` has both places, and head, ffn together head + ffn"),
    ("PL224", block(*JOINED, "k = concat q, s to nowhere"), "there is no dimension `nowhere`"),
    ("PL370", block(*JOINED, "k = concat q, s to both", "l = concat q, s, t to both").replace("dims", "dims both = head + ffn,"),
     "`both` is put together of head, ffn before, and of head, ffn, vocab here"),
    ("PL370", block("y = gather i over tp on ffn"), "`i` has no dimension `ffn`"),
    ("PL377", block("y = gelu i", repeat=" repeat 2") + "checkpoint b every 3\n", "has 2 layers, which are not run again by 3"),
    ("PL377", block("y = gelu i") + "checkpoint b every 2\n", "block `b` has 1 layers"),
    ("PL377", block("y = gelu i", repeat=" repeat L") + "checkpoint b every 2\ncheckpoint y of b\n", "share operations"),
    ("PL371", block("y = dispatch i by i"), "`i` is made by no router"),
    ("PL371", block("s = router i with r from hidden to expert top 2", "y = combine i by s"), "does not lie with experts"),
    ("PL371", block("y = grouped linear i with x from hidden to ffn"), "`i` does not lie with experts"),
    ("PL372", block("y = linear i with v from hidden to ffn"), "multiplies by `v`, which is of kind vector"),
    ("PL372", block("y = norm i with a over hidden"), "scales by `a`, which is of kind matrix"),
    ("PL372", block("y = grouped linear i with a from hidden to ffn"), "`a`, which is of kind matrix"),
    ("PL372", block("y = router i with a from hidden to expert top 2"), "routes by `a`"),
    ("PL372", block("y = embedding i with a from vocab to ffn"), "takes rows of `a`"),
    ("PL373", HEAD + "block b {\n y = gelu i\n}", "must say once, in its first line, what it reads"),
    ("PL373", block("y = gelu i", "input j(batch)"), "must say once, in its first line, what it reads"),
    ("PL373", HEAD + "block b {\n input i(batch)\n}", "block `b` does nothing with what it reads"),
    ("PL374", block("y = gelu i", "z = gelu i"), "nothing uses `y`: a block leaves what its last line makes, `z`"),
    ("PL374", block("y = gelu i").replace("gelu i", "gelu i\n y2 = gelu i"), "nothing uses `y`"),
    ("PL375", block("y = linear i with a from hidden to ffn", repeat=" repeat L"), "is repeated, and leaves"),
    ("PL375", block("y = linear i with a from hidden to ffn") + block("y = gelu i", head="", name="c"),
     "block `b` before it leaves y(batch, sequence, ffn)"),
    ("PL375", block("y = cross_entropy i over hidden", "z = gelu y"), "the loss stands at the very end"),
    ("PL376", HEAD, "dimensions are declared, and there is no block"),
    ("PL378", block("y = gelu i") + "random y of b over tp same", "nothing random happens where `y` is made"),
    ("PL378", block(*ATTENTION) + "positions c of b over tp local", "no positions are used where `c` is made"),
    ("PL223", block("y = dropout i") + "random z of b over tp same", "no operation of block `b` makes `z`"),
    ("PL225", "mesh tp\nweights w { size 4 }\nrandom z of b over tp same", "there is no block `b`"),
    ("PL225", block("y = dropout i") + "positions y of c over tp local", "there is no block `c`"),
    ("PL322", block("y = dropout i") + "random y of b over tp same\nrandom y of b over tp, cp different",
     "stated differently for `y` over tp in line 14"),
    ("PL376", block("y = gelu i") + "attention over cp by ring", "no block of this spec has attention"),
    ("PL322", block(*ATTENTION) + "sequence over cp\nattention over cp by ring\nattention over tp, cp by gather",
     "attention over cp is stated differently in line 17"),
    ("PL351", block(*ATTENTION) + "attention over cp by ring", "axis `cp` does not split the sequence"),
    ("PL377", block("y = gelu i", "z = gelu y") + "checkpoint z to y of b", "`y` is made before `z`"),
    ("PL377", block("y = gelu i", "z = gelu y") + "checkpoint y of b\ncheckpoint b", "share operations"),
    ("PL377", block("y = gelu i", "checkpoint {\n z = gelu y\n}") + "checkpoint b", "share operations"),
    ("PL378", HEAD.replace("dims", "#") + "forward a over tp by none", "can only be said of the tensors of a block"),
    ("PL378", block("y = gelu i") + block("z = gelu i", head="", name="c") + "backward i over tp by sum",
     "there is a tensor `i` in `b` and `c`"),
    ("PL379", block("y = norm i with v over hidden", head=HEAD.replace("h, L", "h = 4, L")),
     "`v` is declared with 8 elements, and the operations of the blocks use h"),
    ("PL379", block("y = linear i with a from hidden to hidden", repeat=" repeat 4").replace("a {  }", "a { layers 7 }"),
     "`a` is declared with 7 layers, and the blocks that use it have 4"),
    ("PL379", block("y = linear i with a from hidden to hidden").replace("a {  }", "a { layers 2 }"),
     "`a` is declared with 2 layers, and the blocks that use it have 1"),
    ("PL393", block("y = linear i with a from hidden to hidden", repeat=" repeat L") + "place a over tp { params sharded on layer }",
     "each device along tp has some layers of `a` only, and nothing says that stages lie there: it is not known which device "
     "computes what"),
    ("PL393", block("y = linear i with a from hidden to hidden", repeat=" repeat L") + "place a over tp { params sharded on param }",
     "each device along tp has some tensors of `a` only"),
    ("PL395", STAGED + "backward y of b over cp, tp by mean",
     "the devices along tp are stages (line 15): each layer of block `b` has its `y` on one of them only"),
    ("PL395", STAGED.replace("gelu i", "broadcast i over tp"), "each layer of block `b` has its `i` on one of them only"),
    ("PL395", STAGED + block("z = gelu i", head="", name="c") + "forward z over tp by none",
     "the devices along tp are stages (line 15): block `c` has its `z` on one of them only"),
    ("PL395", STAGED.replace("gelu i", "norm i with v over hidden").replace("v { size 8,", "v {") + "place v over tp { activations sharded "
     "on sequence }",
     "the devices along tp are stages (line 15): each layer with weights of `v` has its activations on one of them only"),
    ("PL395", block("y = dropout i").replace("a { size 8 }", "a { size 8, used on last of tp }") + "random y of b over tp same",
     "the devices along tp are stages (line 4): block `b` has its `y` on one of them only"),
    ("PL396", block("y = norm i over batch, sequence"), "`y` normalises over `batch`: what a sample comes to would depend on the "
     "others of its micro-batch, which is not modelled"),
    ("PL396", block("y = linear i with a from batch to ffn"), "`y` adds up over `batch`: "),
    ("PL396", block("y = router i with r from batch to expert top 2"), "`y` adds up over `batch`: "),
    ("PL396", block("y = cross_entropy i over batch"), "`y` takes a softmax over `batch`: "),
    ("PL396", block("y = bias i with v over batch"), "`y` has weights with a place for each sample (`batch`): what a sample comes "
     "to would depend on its place in a micro-batch"),
    ("PL400", block("y = gelu i", repeat=" repeat 0"), "the number of layers of block `b` is 0"),
    ("PL400", block("y = gelu i") + "dims batch = 0", "dimension `batch` is 0"),
    ("PL400", block("y = router i with r from hidden to expert top 1/2"), "the number of experts of a token is 1/2"),
    ("PL401", block("y = scale i by 1/(h - h)", head=SIZELESS.replace("h, L", "h = 3, L")), "is zero, and divides"),
    ("PL307", HEAD + "weights w { }\n" + block("y = gelu i", head=""), "weights `w` have no size"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "message"), PROBLEMS, ids=[f"{p[0]}-{n}" for n, p in enumerate(PROBLEMS)])
def test_problem(code: str, text: str, message: str) -> None:
    spec = one(text)
    assert spec.program is None
    found = [problem for problem in spec.problems if problem.code == code and message in problem.message]
    assert found, spec.problems
    assert found[0].help


def layers(text: str) -> bl.Layers:
    found = program(text).layers
    assert found is not None
    return found


def test_a_spec_without_blocks_has_no_layers() -> None:
    assert program("mesh N\nweights w { size 4 }").layers is None


def test_dimensions_of_tensors() -> None:
    (found,) = layers(block(
        "q = linear i with a from hidden to heads, head", "c = attention q, q, q causal", "o = linear c with a from heads, head to hidden",
        "s = router o with r from hidden to expert top 2", "t = dispatch o by s", "g = grouped linear t with x from hidden to ffn",
        "d = grouped linear g with x from ffn to hidden", "z = combine d by s", "loss = cross_entropy z over hidden",
    )).blocks  # fmt: skip
    assert found.tensors == {
        "i": ("batch", "sequence", "hidden"),
        "q": ("batch", "sequence", "heads", "head"),
        "c": ("batch", "sequence", "heads", "head"),
        "o": ("batch", "sequence", "hidden"),
        "s": ("batch", "sequence", "expert"),
        "t": ("expert", "batch", "sequence", "hidden"),
        "g": ("expert", "batch", "sequence", "ffn"),
        "d": ("expert", "batch", "sequence", "hidden"),
        "z": ("batch", "sequence", "hidden"),
        "loss": ("batch", "sequence"),
    }
    assert (found.input, found.result, found.repeat) == ("i", "loss", None)
    attention = next(op for op in found.operations if isinstance(op, bl.Attention))
    assert (attention.sequence, attention.heads, attention.kv_heads) == ("sequence", "heads", "heads")
    assert (attention.causal, attention.fused, attention.dropout, attention.positions) == (True, False, False, False)


def test_what_functions_keep_for_their_backward() -> None:
    functions = ("gelu", "silu", "relu", "sigmoid", "tanh", "softplus", "nonlinear", "dropout")
    (found,) = layers(block(*[f"y{n} = {f} {f'y{n - 1}' if n else 'i'}" for n, f in enumerate(functions)])).blocks
    kept = {op.function: (op.saves, op.linear, op.random) for op in found.operations if isinstance(op, bl.Elementwise)}
    assert kept["gelu"] == ("input", False, False)
    assert kept["relu"] == ("output", False, False)
    assert kept["dropout"] == ("mask", True, True)


def test_a_dimension_without_a_size_is_an_open_size_of_its_name() -> None:
    found = program(block("y = gelu i"))
    assert found.layers is not None
    assert text_of(found.layers.sizes["batch"]) == "batch"
    assert [let.name for let in found.lets if let.value is None] == [
        "h",
        "L",
        "batch",
        "sequence",
        "heads",
        "head",
        "ffn",
        "vocab",
        "expert",
        "both",
    ]
    # A later line may give it a size, also one of a model.
    assert (
        layers(block("y = gelu i") + "dims batch = 4*tp").sizes["batch"] != layers(block("y = gelu i")).sizes["batch"]
    )
    fixed = program(
        "mesh N\nmodel llama { layers 2, hidden 8, heads 2, ffn 8, vocab 16 }\nlet sequence = 4096\ndims batch = 2"
    )
    assert fixed.layers is not None
    assert evaluate(fixed.layers.sizes["sequence"], {"sequence": 4096}) == 4096
    assert fixed.layers.sizes["batch"] == number(2)
    # The name of an axis is taken.
    axis = program(
        "mesh batch\nweights v { kind vector }\ndims batch, d\nblock b {\n input i(batch, d)\n y = norm i with v over d\n}"
    )
    assert axis.layers is not None and text_of(axis.layers.sizes["batch"]) == "batch_size"


def test_sizes_of_weights_follow_from_their_operations() -> None:
    found = program(block(
        "n = norm i with v over hidden", "m = bias n with v over hidden", "q = linear m with a from hidden to heads, head",
        "o = linear q with a from heads, head to hidden", "s = router o with r from hidden to expert top 2", "t = dispatch o by s",
        "g = grouped linear t with x from hidden to ffn", "d = grouped linear g with x from ffn to hidden",
        "z = combine d by s", "w = embedding z with e from vocab to ffn", "u = linear w with e from ffn to vocab",
        "out = cross_entropy u over vocab",
    ))  # fmt: skip
    at = {"h": 3, "heads": 5, "head": 7, "expert": 11, "ffn": 13, "vocab": 17}
    sizes = {group.name: evaluate(group.size, at) for group in found.weights if group.size is not None}
    assert sizes == {"v": 2 * 3, "a": 2 * 3 * 35, "r": 3 * 11, "x": 2 * 11 * 3 * 13, "e": 17 * 13}


def test_declared_sizes_are_compared_with_the_operations_under_the_assumptions() -> None:
    text = "mesh N\nlet h, f\nassume f == 2*h\nweights v { size 2*h, kind vector }\ndims t, d = f\n"
    body = "block b {\n input i(t, d)\n y = norm i with v over d\n}"
    assert one(text + body).problems == ()
    (problem,) = one(text.replace("size 2*h", "size 3*h").replace("let h, f", "let h = 2, f = 4") + body).problems
    assert (problem.code, problem.help) == ("PL379", "leave the size out, or say what the operations are")
    assert one(text.replace("assume f == 2*h\n", "") + body).problems[0].code == "PL379"


def test_checkpoints_are_regions() -> None:
    text = block("y = gelu i", "checkpoint {\n z = gelu y\n w = gelu z\n}", "u = gelu w", "t = gelu u", name="layer")
    (found,) = layers(text + "checkpoint u to t of layer\ncheckpoint y of layer").blocks
    assert [(region.first, region.last) for region in found.regions] == [(1, 2), (3, 4), (0, 0)]
    (found,) = layers(block("y = gelu i", "z = gelu y") + "checkpoint b").blocks
    assert [(region.first, region.last) for region in found.regions] == [(0, 1)]


def test_layers_that_run_again_together() -> None:
    layers = program(block("y = gelu i", repeat=" repeat L") + "checkpoint b every 4\n").layers
    assert layers is not None
    (region,) = layers.blocks[0].regions
    assert (region.first, region.last, region.every) == (0, 0, number(4))


def test_overrides_name_a_tensor_of_a_block_or_weights() -> None:
    found = layers(
        block("y = gelu i") + "forward y over tp, cp by sum scale 1/tp\nbackward y of b over tp by slice"
    ).overrides
    assert [(o.direction, o.block, o.tensor, o.axes, o.by) for o in found] == [
        ("forward", "b", "y", ("tp", "cp"), "sum"),
        ("backward", "b", "y", ("tp",), "slice"),
    ]
    (only,) = layers("mesh tp\nweights w { size 4 }\nbackward w over tp by mean").overrides
    assert (only.block, only.tensor) == (None, "w")
    assert program("mesh tp\nweights w { size 4 }\nbackward w over none by mean").layers is None


def test_how_attention_meets_a_split_sequence() -> None:
    found = layers(block(*ATTENTION) + "sequence over cp\nattention over cp by all_to_all").attention
    assert [(way.axis, way.by) for way in found] == [("cp", "all_to_all")]
    assert [way.by for way in layers(block(*ATTENTION) + "use context_parallel(cp)").attention] == ["ring"]
    assert [way.by for way in layers(block(*ATTENTION) + "use ulysses(cp)").attention] == ["all_to_all"]
    assert layers(block("y = gelu i") + "use ulysses(cp)").attention == ()
    assert program("mesh cp\nweights w { size 4 }\nuse ulysses(cp)").layers is None


MODEL = """
mesh tp
model m { b %s, t %s, x %s, n %s }
model m(b, t, x, n) {
  weights v { size 4*n, kind vector }
  weights e { size b, kind vector }
  weights w { size 8*x, kind matrix }
  dims batch, hidden = 4, width = x
  block first repeat n {
    input i(batch, hidden)
    y = norm i with v over hidden
  }
  block second {
    input i(batch, hidden)
    y = bias i with e over hidden
    c = linear y with w from hidden to width
    g = gelu c
    d = linear g with w from width to hidden
    s = add d, y
    o = reduce s over t by sum
    z = gelu o
  }
}
"""


def operations(b: str, t: str, x: str, n: str) -> list[str]:
    found = layers(MODEL % (b, t, x, n))
    return [type(op).__name__ for block in found.blocks for op in block.operations]


def test_what_is_none_vanishes_from_the_blocks_of_a_model() -> None:
    whole = ["Norm", "Bias", "Linear", "Elementwise", "Linear", "Add", "Collective", "Elementwise"]
    assert operations("4", "tp", "32/8", "2") == whole
    assert operations("none", "tp", "4", "2") == [name for name in whole if name != "Bias"]
    assert operations("4", "none", "4", "2") == [name for name in whole if name != "Collective"]
    assert operations("4", "tp", "none", "2") == ["Norm", "Bias", "Collective", "Elementwise"]
    assert operations("4", "tp", "4", "none") == whole[1:]
    assert operations("none", "none", "none", "2") == ["Norm", "Elementwise"]
    assert operations("4", "tp", "4", "1 + 1") == whole


@pytest.mark.parametrize("model", [
    "gpt { layers 2, hidden 8, heads 2, vocab 16, positions 4 }",
    "gpt { layers L, hidden h, heads 2, vocab 16 }",
    "llama { layers 2, hidden 8, heads 4, kv_heads 2, ffn 16, vocab 16 }",
    "moe { layers 2, hidden 8, heads 4, ffn 16, vocab 16, experts 4, experts_over ep, shared_ffn 4 }",
    "moe { layers 2, hidden 8, heads 4, ffn 16, vocab 16, experts 4 }",
    "deepseek_moe { moe_layers 2, hidden 8, heads 4, ffn 16, expert_ffn 4, vocab 16, experts 4, top 2 }",
])  # fmt: skip
def test_models_print_their_blocks_and_read_back(model: str) -> None:
    before = program(f"mesh ep, tp\nlet L, h\nassume h % 2 == 0\nmodel {model}\nuse tensor_parallel(tp)")
    spec = one(f"mesh ep, tp\nlet L, h\nassume h % 2 == 0\nmodel {model}\nuse tensor_parallel(tp)")
    assert before.layers is not None and spec.stated is not None
    complete = derive(before, spec.stated)
    printed = show(complete)
    again = program(printed)
    assert bare(again.layers) == bare(complete.layers)
    assert show(replace(again, name=complete.name)) == printed
