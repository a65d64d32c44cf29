"""Who wins where placements overlap."""

from __future__ import annotations

from placelogic.report.sentences import Sentence
from tests.elaborate.helpers import SMALL, layout, one, program

HEAD = """
mesh edp, ep, tp, pp
axis dp = edp * ep
weights attn { size 64, dims in out }
weights norm { size 8, kind vector }
weights expert { size 64, kind expert, routed over ep }
"""


def lies(text: str, weights: str, state: str = "params") -> str:
    group = program(HEAD + text).group(weights)
    return layout(getattr(group, "optimizer_state" if state == "optimizer" else state))


def test_what_is_not_placed_is_replicated() -> None:
    group = program(SMALL).weights[0]
    assert {layout(s) for s in (group.params, group.optimizer_state, group.gradients, group.activations)} == {"R"}


def test_tuple_and_words_say_the_same() -> None:
    text = "place attn over tp = (S*, O(S(out)), S, R)"
    words = "place attn over tp { params gathered, optimizer sharded on out offloaded, gradients sharded, activations replicated }"
    for state, expected in [
        ("params", "S*@tp"),
        ("optimizer", "S(out)@tp O"),
        ("gradients", "S@tp"),
        ("activations", "R"),
    ]:
        assert lies(text, "attn", state) == lies(words, "attn", state) == expected


def test_name_over_kind_over_star() -> None:
    text = "place * over tp { params sharded on flat }\nplace vector over tp { params sharded on param }"
    assert lies(text, "attn") == "S(flat)@tp"
    assert lies(text, "norm") == "S(param)@tp"
    assert lies(text + "\nplace norm over tp { params replicated }", "norm") == "R"
    assert program(HEAD + text).conflicts == ()


def test_a_name_that_is_also_a_kind_means_the_weights() -> None:
    text = HEAD + "weights shared { size 4, kind expert }\nplace expert over tp { params sharded }"
    assert layout(program(text).group("expert").params) == "S@tp"
    assert layout(program(text).group("shared").params) == "R"
    library = HEAD + "weights shared { size 4, kind expert }\nuse tensor_parallel(tp)"
    assert layout(program(library).group("shared").params) == "S@tp"


def test_equally_specific_and_different_is_a_conflict() -> None:
    conflicts = program(HEAD + "use zero1(dp) * data_parallel(dp)").conflicts
    assert {(c.weights, c.state, c.axis) for c in conflicts} == {
        (w, "optimizer", "edp") for w in ("attn", "norm", "expert")
    }
    one_conflict = conflicts[0]
    sentence = Sentence("CC01", "conflict", one_conflict.weights, (one_conflict.axis,), one_conflict.words)
    assert sentence.text("message") == (
        "the optimizer states of `attn` are placed twice along edp: sharded over dp (line 7) and replicated over dp (line 7)"
    )
    assert conflicts[0].first.span.column < conflicts[0].second.span.column
    assert conflicts[0].first.library is not None and conflicts[0].first.library.path.endswith("std/zero1.place")


def test_the_same_twice_is_no_conflict() -> None:
    both = program(HEAD + "use zero1(dp) * distributed_optimizer(dp)")
    assert both.conflicts == () and layout(both.group("attn").optimizer_state) == "S@edp*ep"


def test_partial_overlap_is_a_conflict_by_atoms() -> None:
    conflicts = program(HEAD + "place * over dp { params sharded }\nplace * over edp { params sharded }").conflicts
    assert {c.axis for c in conflicts} == {"edp"}


def test_named_and_unnamed_cuts_differ() -> None:
    assert program(
        HEAD + "place attn over tp { params sharded }\nplace attn over tp { params sharded on out }"
    ).conflicts


def test_replicated_over_a_product_and_its_factor_agree() -> None:
    assert not program(HEAD + "place * over dp { params replicated }\nplace * over ep { params replicated }").conflicts


def test_a_product_partly_taken_goes_on_cutting_by_the_rest() -> None:
    text = "use zero3(dp) * expert_parallel(ep)"
    assert lies(text, "attn") == "S*@edp*ep"
    assert lies(text, "expert") == "S*@edp S@ep"


def test_cuts_of_one_dimension_nest_as_written() -> None:
    assert lies("place attn over tp, pp { params sharded on out }", "attn") == "S(out)@tp S(out)@pp"
    assert lies(
        "place attn over pp { params sharded on out }\nplace attn over tp { params sharded on out }", "attn"
    ) == ("S(out)@pp S(out)@tp")
    assert lies("place attn over tp*pp { params sharded on out }", "attn") == "S(out)@tp*pp"


def test_weights_of_the_ends_are_placed_over_stages_only_by_name() -> None:
    text = "weights embed { size 64, kind embedding, used on first and last of pp }\nuse pipeline(pp)"
    assert lies(text, "embed") == "R"
    assert lies(text, "attn") == "S(layer)@pp"
    assert lies(text + "\nplace embed over pp { params gathered }", "embed") == "S*@pp"
    assert lies(text + "\nplace embedding over pp*tp { params sharded }", "embed") == "S@tp"


def test_residency_is_orthogonal_to_cuts() -> None:
    assert lies("use zero1(dp) * offload(dp)", "attn", "optimizer") == "S@edp*ep O"
    assert lies("use zero1(dp) * offload()", "attn", "optimizer") == "S@edp*ep O"
    assert lies("use offload()", "attn", "optimizer") == "O"
    assert lies("use activation_checkpointing()", "attn", "activations") == "M"
    assert program(HEAD + "use zero1(dp) * offload(dp)").conflicts == ()


def test_a_more_specific_residency_wins() -> None:
    assert lies("use offload()\nplace norm { optimizer replicated }", "norm", "optimizer") == "R"
    assert lies("use offload()\nplace norm { optimizer replicated }", "attn", "optimizer") == "O"


def test_frozen_weights_have_neither_optimizer_states_nor_gradients() -> None:
    group = program(HEAD + "freeze attn\nuse zero3(dp) * offload()").group("attn")
    assert group.frozen
    assert (layout(group.params), layout(group.optimizer_state), layout(group.gradients)) == ("S*@edp*ep", "R", "R")


def test_activations_along_the_dimension_of_the_work() -> None:
    assert (
        lies("sequence over tp\nplace norm over tp { activations sharded on sequence }", "norm", "activations")
        == "S(sequence)@tp"
    )
    assert lies("sequence over tp\nplace norm over tp { activations sharded }", "norm", "activations") == "S@tp"
    assert (
        lies("tokens over tp\nplace norm over tp { activations sharded on sequence }", "norm", "activations")
        == "S(sequence)@tp"
    )
    assert (
        lies("batch over tp\nplace norm over tp { activations sharded on tokens }", "norm", "activations")
        == "S(tokens)@tp"
    )


def test_reshard_after_forward() -> None:
    from placelogic.program.expr import Name, number

    assert program(HEAD + "use fsdp(dp)").group("attn").params.reshard == Name("true")
    assert program(HEAD + "use fsdp(dp, reshard_after_forward = 8)").group("attn").params.reshard == number(8)
    text = "use fsdp(dp)\nplace norm { reshard_after_forward false }"
    assert program(HEAD + text).group("norm").params.reshard == Name("false")


def test_origins_point_at_the_use_and_into_the_library() -> None:
    cut = program(SMALL + "use zero1(N)").weights[0].optimizer_state.cuts[0]
    assert (cut.origin.span.line, cut.origin.span.column, cut.origin.stated) == (5, 5, True)
    assert cut.origin.library is not None and cut.origin.library.path == "placelogic/std/zero1.place"
    own = program(SMALL + "place * over N { optimizer sharded }").weights[0].optimizer_state.cuts[0]
    assert own.origin.span.line == 5 and own.origin.library is None


def test_over_none_is_without_axes() -> None:
    assert one(SMALL + "place * over none { optimizer offloaded }").problems == ()
