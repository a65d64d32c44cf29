"""The operations of layers in PyTorch: what the verdicts say happens, forward and backward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

torch = pytest.importorskip("torch")

from placelogic.elaborate import elaborate_file
from placelogic.elaborate.complete import complete
from placelogic.program import block as bl
from placelogic.program.ops import Origin
from placelogic.replay.blocks.held import arranged
from placelogic.replay.blocks.matrices import Matrices
from placelogic.replay.blocks.real import Loss, Numbers, Real
from placelogic.replay.cases import Case
from placelogic.replay.judge import Choice, replay
from placelogic.run.grid import Grid
from placelogic.run.group import Group
from placelogic.run.layers.algebra import Site
from placelogic.run.layers.lay import Lay, Tensor, joined, piece
from placelogic.run.layers.operations import operate
from placelogic.run.layers.setting import Setting
from placelogic.run.stop import GroupStop
from placelogic.run.work import Work
from placelogic.source import Span
from placelogic.syntax.parse import parse
from tests.layers.draw import draw
from tests.replay.helpers import ROOT, cases_of
from tests.replay.test_agreement import told

QUICK = Choice(optimizers=("sgd",))
PATH = ROOT / "tests" / "replay" / "cases" / "blocks.place"
REPORTS = ROOT / "tests" / "layers" / "cases" / "reports.place"
NOWHERE = Origin(Span("a.place", 1, 1, 1, 1), stated=False)


def test_every_operation_and_every_code() -> None:
    outcomes = list(replay(list(cases_of(PATH.read_text(), str(PATH))), Choice(optimizers=("sgd",), steps=2)))
    assert [told(one) for one in outcomes if not one.agrees] == []
    codes = Counter(one.case.code for one in outcomes if one.result == "different")
    assert {"FW03", "FW04", "FW05", "FW06", "FW08", "GI01", "GI04"} <= codes.keys()
    assert codes["FW08"] == 4
    assert sum(one.case.verdict == "proved" for one in outcomes) >= 8
    # By what the gradient is multiplied, as the counterexample says.
    (summed,) = (
        one for one in outcomes if "summed_on_the_way_back" in one.case.name and one.case.weights == "up, down"
    )
    assert summed.factor == pytest.approx((2.0, 2.0))


def test_random_specs_with_blocks() -> None:
    """scripts/replay_many.py does many more."""
    every: list[Case] = []
    seed = 0
    while len(every) < 10:
        every += [case for case in cases_of(draw(seed), f"seed {seed}.place") if 2 <= case.meeting.ranks <= 4][:1]
        seed += 1
    outcomes = list(replay(every, QUICK))
    assert [told(one) for one in outcomes if not one.agrees] == []
    assert {one.case.verdict for one in outcomes} == {"proved", "refuted"}


@pytest.mark.slow
def test_reported_faults_of_real_implementations() -> None:
    outcomes = list(replay(list(cases_of(REPORTS.read_text(), str(REPORTS)))))
    assert [told(one) for one in outcomes if not one.agrees] == []
    assert sum(one.factor is not None for one in outcomes) >= 5


# --- pieces -------------------------------------------------------------------------------------


def test_pieces_are_put_together_as_they_were_cut() -> None:
    whole = Lay(("batch", "hidden"), ((0, 1), (0, 1, 2, 3)))
    pieces = [piece(whole, "hidden", 2, i) for i in range(2)]
    assert [one.along("hidden") for one in pieces] == [(0, 1), (2, 3)]
    assert joined(pieces, "hidden") == whole
    with pytest.raises(GroupStop, match="overlap"):
        joined([pieces[0], pieces[0]], "hidden")
    with pytest.raises(GroupStop, match="do not divide"):
        piece(whole, "hidden", 3, 0)


def test_missing_places_are_zeros() -> None:
    have, want = Lay(("s",), ((2, 3),)), Lay(("s",), ((0, 1, 2, 3),))
    assert arranged(torch.tensor([5.0, 7.0]), have, want).tolist() == [0, 0, 5, 7]
    assert arranged(torch.tensor([1.0, 2.0, 5.0, 7.0]), want, have).tolist() == [5, 7]


# --- functions ----------------------------------------------------------------------------------


class Given(Real):
    """One device that multiplies by these numbers."""

    def __init__(self, w: torch.Tensor | None, stream: tuple[object, ...] = ()) -> None:
        numbers = Numbers({}, {}, stream, lambda expr: 1.0)
        super().__init__(Grid(("one",), {"one": 1}), None, numbers, True)  # type: ignore[arg-type]
        self.w = w

    def weights(self, s: Site[torch.Tensor], lays: Sequence[Lay]) -> Tensor[torch.Tensor]:
        assert self.w is not None
        return Tensor(tuple(lays), self.w)


def site(op: bl.Operation, sizes: dict[str, int], *ins: Tensor[torch.Tensor]) -> Site[torch.Tensor]:
    block = bl.Block("layer", None, "x", "y", {}, (op,), (), Span("a.place", 1, 1, 1, 1))
    return Site(block, 0, 0, op, Grid(("one",), {"one": 1}), sizes, ins, None, [{}], [()], [int], {}, ())


def test_a_matrix_takes_the_place_of_what_it_contracts() -> None:
    op = bl.Linear("o", "x", "w", ("heads", "head"), ("hidden",), False, NOWHERE)
    a, w = torch.randn(2, 2, 3), torch.randn(2, 3, 4)
    x = Tensor((Lay(("batch", "heads", "head"), ((0, 1), (0, 1), (0, 1, 2))),), a)
    made = operate(Given(w), site(op, {"batch": 2, "heads": 2, "head": 3, "hidden": 4}, x))
    assert torch.allclose(made.data, a.reshape(2, 6) @ w.reshape(6, 4), atol=1e-6)
    assert made.lays == (Lay(("batch", "hidden"), ((0, 1), (0, 1, 2, 3))),)


def test_attention_is_softmax_attention_with_a_sink() -> None:
    op = bl.Attention("c", "q", "k", "v", True, True, False, False, NOWHERE, kv_heads="kv_heads")
    sizes = {"batch": 2, "sequence": 4, "heads": 4, "kv_heads": 2, "head": 3}
    query = Lay(("batch", "sequence", "heads", "head"), ((0, 1), (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2)))
    keys = Lay(("batch", "sequence", "kv_heads", "head"), ((0, 1), (0, 1, 2, 3), (0, 1), (0, 1, 2)))
    q, k, v = torch.randn(2, 4, 4, 3), torch.randn(2, 4, 2, 3), torch.randn(2, 4, 2, 3)

    def attended(lays: list[Lay], *data: torch.Tensor) -> torch.Tensor:
        ins = [Tensor((lay,), values) for lay, values in zip(lays, data)]
        return operate(Given(None), site(op, sizes, *ins)).data

    whole = attended([query, keys, keys], q, k, v)
    # A key of zeros with a value of zeros is a sink.
    wide = [torch.cat([t.new_zeros(2, 1, 2, 3), t], 1).repeat_interleave(2, 2).transpose(1, 2) for t in (k, v)]
    mask = torch.cat([torch.ones(4, 1), torch.tril(torch.ones(4, 4))], 1).bool()
    expected = torch.nn.functional.scaled_dot_product_attention(q.transpose(1, 2), *wide, attn_mask=mask)
    assert torch.allclose(whole, expected.transpose(1, 2), atol=1e-6)
    # A device with the later half of the queries and heads 2 and 3 makes its piece of the same.
    mine = Lay(query.dims, ((0, 1), (2, 3), (2, 3), (0, 1, 2)))
    own = Lay(keys.dims, ((0, 1), (0, 1, 2, 3), (1,), (0, 1, 2)))
    some = attended([mine, own, own], q[:, 2:, 2:], k[:, :, 1:], v[:, :, 1:])
    assert torch.allclose(some, whole[:, 2:, 2:], atol=1e-6)


def test_dropout_is_drawn_by_place() -> None:
    op = bl.Elementwise("d", "x", "dropout", None, NOWHERE)
    whole = Lay(("sequence", "hidden"), ((0, 1, 2, 3), (0, 1)))

    def drawn(lay: Lay, number: int) -> torch.Tensor:
        x = Tensor((lay,), torch.ones(lay.shape))
        return operate(Given(None, ("seed", number)), site(op, {"sequence": 4, "hidden": 2}, x)).data

    assert torch.equal(drawn(piece(whole, "sequence", 2, 1), 1), drawn(whole, 1)[2:])
    assert not torch.allclose(drawn(whole, 2), drawn(whole, 1))
    assert bool((drawn(whole, 1) > 0.5).all())


def test_the_loss_is_cross_entropy() -> None:
    logits, wanted = torch.randn(3, 4), torch.tensor([1, 3, 0])
    arrived = torch.tensor([1.0, -2.0, 3.0])
    found = []
    for loss in (
        lambda x: Loss.apply(x, torch.nn.functional.one_hot(wanted, 4).to(x.dtype), None),
        lambda x: torch.nn.functional.cross_entropy(x, wanted, reduction="none"),
    ):
        leaf = logits.clone().requires_grad_()
        made = loss(leaf)
        found.append((made, *torch.autograd.grad(made, [leaf], arrived)))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*found))


# --- weights ------------------------------------------------------------------------------------


def groups_of(text: str, sizes: dict[str, int]) -> dict[str, Group]:
    (spec,) = elaborate_file(parse(text, "a.place"))
    program = complete(spec)
    grid = Grid(program.mesh.axes, sizes)
    setting = Setting(program, grid, Work(program, grid, {let.name: 2 for let in program.lets}, None, 1))
    found = {}
    for number, weights in enumerate(program.weights):
        group = Group(
            number, weights, grid, program.work.split_axes, lambda w, size, shifted: Matrices(setting, w, size, shifted)
        )
        group.geometry.group = group  # type: ignore[attr-defined]
        found[weights.name] = group
    return found


MLP = """
mesh dp, tp
weights embed { kind embedding }
weights up    { kind matrix }
weights down  { kind matrix }
dims batch, sequence, hidden, ffn, vocab
block start {
  input ids(batch, sequence)
  x = embedding ids with embed from vocab to hidden
}
block layer repeat 2 {
  input x(batch, sequence, hidden)
  u = linear x with up from hidden to ffn
  d = linear u with down from ffn to hidden
}
block finish {
  input x(batch, sequence, hidden)
  logits = linear x with embed from hidden to vocab
  loss = cross_entropy logits over vocab parallel
}
use zero1(dp) * tensor_parallel(tp)
"""


def test_each_device_has_the_elements_that_it_computes_with() -> None:
    groups = groups_of(MLP, {"dp": 2, "tp": 2})
    up, down = groups["up"], groups["down"]
    assert len(up.geometry.matrices) == len(down.geometry.matrices) == 2  # one of each layer
    rows = up.geometry.elements(1, 0, ("hidden", "ffn"))
    half = rows.shape[1] // 2
    assert set(rows[:, half:].flatten().tolist()) <= set(up.home_local[1])  # dp = 0, tp = 1
    columns = down.geometry.elements(1, 1, ("ffn", "hidden"))
    assert set(columns[half:].flatten().tolist()) <= set(down.home_local[1])
    assert len(up.home_local[1]) * 2 == up.count
    # Optimizer state of a shard only, without a gap.
    assert sum(len(elements) for elements in up.optimizer_local) == up.count


def test_tied_embeddings_are_one_table() -> None:
    embed = groups_of(MLP, {"dp": 2, "tp": 2})["embed"].geometry
    (table,) = embed.matrices.values()
    assert embed.count == table.count
    looked_up = embed.elements(0, 0, ("vocab", "hidden"))
    assert torch.equal(embed.elements(3, 0, ("hidden", "vocab")), looked_up.T)
