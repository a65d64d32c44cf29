"""Blocks that differ in one operation, or in one option of it: part of flips.py."""

from __future__ import annotations

HEAD = """
mesh dp, tp, cp
let h, L
weights w { }
weights v { kind vector }
weights e { kind embedding }
weights x { kind expert }
weights r { kind router }
"""
DIMS = "dims batch, sequence, hidden = h, hidden2 = h, heads, head, ffn, vocab, expert\n"
USES = """block uses {
input x(batch, sequence, hidden)
n = norm x with v over hidden
q = linear n with w from hidden to ffn
p = linear q with w from ffn to hidden
s = router p with r from hidden to expert top 2
t = dispatch p by s
u = grouped linear t with x from hidden to hidden2
o = combine u by s
i = embedding o with e from vocab to head
z = gelu i
}
"""
"""A last block that uses all weights, so that none needs a size."""

ONE = f"{HEAD}{DIMS}"
FRAME = f"block b {{\ninput x(batch, sequence, hidden)\n@\n}}\n{USES}"
FUNCTIONS = ("gelu", "silu", "relu", "sigmoid", "tanh", "softplus", "nonlinear", "dropout", "gelu")
HEADS = "q = linear x with w from hidden to heads, head\nk = linear x with w from hidden to heads, head\n"
BACK = "\ny = linear c with w from heads, head to hidden"
WORDS = (
    "",
    "causal",
    "fused",
    "dropout",
    "positions",
    "causal fused",
    "causal fused dropout",
    "fused positions",
    "causal",
)
ROUTED = "s = router x with r from hidden to expert top 2\nt = dispatch x by s\n"

Q, R, S = (f"{name} = linear x with w from hidden to {dims}\n" for name, dims in
           (("q", "heads, nope"), ("r", "heads, rope"), ("s", "rope")))  # fmt: skip
T = "t = linear x with w from hidden to free\n"
JOINS = tuple(
    f"dims {into} = {size}\nblock b {{\ninput x(batch, sequence, hidden)\n{made}k = concat {names} to {into}\n"
    f"{more}\n}}"
    for made, names, into, size in (
        (Q + S, "q, s", "whole", "nope + rope"), (Q + R, "q, r", "whole", "nope + rope"),
        (Q + R, "r, q", "whole", "nope + rope"), (Q + R, "q, r", "other", "nope + rope"),
        (Q + S + T, "q, s, t", "third", "nope + rope + free"), (Q + R + T, "q, r, t", "third", "nope + rope + free"),
    )
    for more in (f"y = linear k with w from heads, {into} to hidden",
                 f"l = concat {names} to {into}\nm = add k, l\ny = linear m with w from heads, {into} to hidden")
)  # fmt: skip

LAYER_TEXTS: list[tuple[tuple[str, ...], str, str]] = [
    (tuple(f"y = {function} x" for function in FUNCTIONS), ONE, FRAME),
    (("y = gelu x", "y = scale x by 2", "y = scale x by 3", "y = bias x with v over hidden",
      "y = bias x with v over sequence", "y = bias x with v over sequence, hidden",
      "y = bias x with v over sequence, hidden scaled by 1/tp", "y = bias x with v over sequence, hidden scaled by 2/tp",
      "y = norm x with v over hidden",
      "y = norm x over hidden", "y = norm x over sequence, hidden", "y = add x, x", "y = add x, x, x", "y = multiply x, x"),
     ONE, FRAME),
    (("y = gelu x", "g = gelu x\ny = gelu g", "checkpoint {\ng = gelu x\n}\ny = gelu g",
      "checkpoint {\ng = gelu x\ny = gelu g\n}",
      "checkpoint { y = gelu x }", "checkpoint {\nf = gelu x\ng = gelu f\ny = gelu g\n}"), ONE, FRAME),
    (("y = broadcast x over tp", "y = reduce x over tp by sum", "y = reduce x over tp by mean", "y = reduce x over tp, cp by mean",
      "y = gather x over tp on sequence", "y = gather x over cp on sequence", "y = slice x over cp on sequence",
      "y = reduce_scatter x over cp on sequence", "y = all_to_all x over cp from sequence to hidden",
      "y = all_to_all x over cp from hidden to sequence", "y = gelu x"), ONE, FRAME),
    (("y = gelu x", "y = convolve x with v over sequence width head for hidden",
      "y = convolve x with v over sequence width heads for hidden"), ONE, FRAME),
    (("", "block b {\ninput x(batch, sequence, hidden)\ny = gelu x\n}"), ONE, f"@\n{USES}"),
    (("c = gelu q", "c = attention q, q, q"), ONE,
     FRAME.replace("@", f"q = linear x with w from hidden to heads, head\n@{BACK}")),
    (WORDS, ONE, FRAME.replace("@", f"{HEADS}c = attention q, k, k @{BACK}")),
    (("q, q, k", "q, k, q", "k, q, q", "k, k, q"), ONE, FRAME.replace("@", f"{HEADS}c = attention @{BACK}")),
    (("y = gelu x", f"{ROUTED}y = combine t by s", f"{ROUTED.replace('top 2', 'top 3')}y = combine t by s",
      f"{ROUTED}g = grouped linear t with x from hidden to hidden2\nd = grouped linear g with x from hidden2 to hidden\n"
      "y = combine d by s",
      f"{ROUTED}g = grouped linear t with x from hidden to hidden2\nd = grouped linear g with x from hidden2 to hidden\n"
      "f = gelu d\ny = combine f by s"), ONE, FRAME),
    (("gelu i", "embedding i with e from vocab to ffn", "embedding i with e from ffn to heads",
      "embedding i with e from ffn to heads, vocab", "linear i with w from head to vocab, ffn, expert",
      "linear i with w from hidden2, head to vocab", "cross_entropy i over head", "cross_entropy i over head parallel",
      "cross_entropy i over hidden2"), ONE, USES.replace("gelu i", "@")),
    (("", " repeat L", " repeat 2*L", " repeat 2"), ONE, FRAME.replace("block b", "block b@").replace("\n@", "\ny = gelu x")),
    (("dims batch, sequence, hidden2 = h", "dims batch, sequence, hidden2", "dims batch = 2, sequence, hidden2",
      "dims batch = 2, sequence = 3, hidden2, more", "dims batch = 2\ndims sequence = 3\ndims hidden2"),
     HEAD + DIMS.replace("batch, sequence,", "").replace("hidden2 = h,", ""), f"@\n{USES}"),
    (("input i(batch)\nz = gelu i", "input i(batch, sequence)\nz = gelu i", "input i(batch, sequence, hidden)\nz = gelu i",
      "input i(batch, hidden, sequence)\nz = gelu i"),
     HEAD.replace("weights w { }", "weights w { size 4 }").split("weights v")[0] + "dims batch, sequence, hidden\n", "block b {\n@\n}"),
    (("", "checkpoint b", "checkpoint y of b", "checkpoint x1 to y of b"), ONE,
     FRAME.replace("@", "x1 = gelu x\ny = gelu x1") + "@"),
    (("", "checkpoint b", "checkpoint b every 2", "checkpoint b every 3", "checkpoint b every h"), ONE,
     FRAME.replace("@", "y = gelu x").replace("block b", "block b repeat L") + "@"),
    (JOINS, ONE + "dims nope, rope, free\n", f"@\n{USES}"),
    (("", "forward x of b over tp by none", "backward x of b over tp by none", "backward x of b over tp by sum",
      "backward x of b over tp by sum scale 1/tp",
      "backward y over tp by mean", "backward y over tp by zero", "backward y over tp, cp by zero",
      "backward y over tp by sum",
      "backward y over tp by sum scale 1/tp", "forward y over tp by sum scale 1/tp", "forward y over none by sum"), ONE,
     FRAME.replace("@", "y = gelu x") + "@"),
    (("", "attention over cp by gather", "attention over cp by ring", "attention over cp by all_to_all"), ONE,
     FRAME.replace("@", f"{HEADS}c = attention q, k, k{BACK}") + "sequence over cp\n@"),
    (("", "random y of b over tp same", "random y of b over tp different", "random y of b over tp, cp different"), ONE,
     FRAME.replace("@", "y = dropout x") + "@"),
    (("", "random c of b over tp same", "positions c of b over tp local", "positions c of b over tp global",
      "positions c of b over tp, cp global"), ONE,
     FRAME.replace("@", f"{HEADS}c = attention q, k, k dropout positions{BACK}") + "@"),
]  # fmt: skip
"""Texts that stand where the frame has an @, each to be flipped with the next; what stands before the frame."""

OVERRIDE = ONE + FRAME.replace("@", "y = gelu x")
MISFITS = ("backward y over tp by slice", "backward y over tp by gather")
"""Refused where nothing is gathered or cut (PL384)."""
