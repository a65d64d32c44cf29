"""How what has one regular form is written: one entry for each rule of the grammar, read and printed by it.

`{field}` is a field of the class, and the child of the rule that stands there; `{field*}` takes all children
that the others leave, as a tuple, printed with `, ` or what follows a `|` in between; `{field?}` is a word that stands there or not.
What is in brackets is left out where its field is None or false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from placelogic.program import block as bl
from placelogic.program import ops
from placelogic.program.expr import Compare, Expr, show
from placelogic.program.table import entries
from placelogic.source import Span
from placelogic.syntax import ast


class Form(Struct, frozen=True):
    """`constants`: fields that the rule itself decides."""

    made: type
    text: str
    constants: Mapping[str, object]

    def fields(self) -> Iterator[tuple[str, str]]:
        """Name and mark of every field that the rule has a child for, in order."""
        return ((piece["field"], piece["mark"]) for piece in _FIELD.finditer(self.text))

    def fits(self, node: object) -> bool:
        return all(getattr(node, name) == value for name, value in self.constants.items())


_FIELD = re.compile(r"\{(?P<field>\w+)(?P<mark>[*?]?)(?:\|(?P<between>[^}]*))?\}")
_OPTIONAL = re.compile(r"\[([^]]*)\]")


def _form(made: type, text: str, **constants: object) -> Form:
    return Form(made, text, constants)


FORMS: dict[str, Form] = {
    # meshes, sizes, work
    "mesh": _form(ast.MeshStmt, "mesh {axes*}"),
    "axis_decl": _form(ast.AxisDecl, "{name}[ = {size}]", bounds=()),
    "axis": _form(ast.AxisStmt, "axis {name} = {factors| * }"),
    "axis_ref": _form(ops.AxisRef, "{names*|*}"),
    "let": _form(ast.LetStmt, "let {items*}"),
    "let_item": _form(ast.LetItem, "{name}[ = {value}]"),
    "assume": _form(ast.AssumeStmt, "assume {conditions*}"),
    "import": _form(ast.ImportStmt, 'import "{path}"'),
    "split": _form(ast.SplitStmt, "{dim} over {axes}"),
    "microbatches": _form(ast.MicrobatchesStmt, "microbatches {count}"),
    "tokens": _form(ast.TokensStmt, "tokens {even}"),
    "objective": _form(ast.ObjectiveStmt, "objective {kind}"),
    "feed": _form(ast.FeedStmt, "feed {kind} over {axes}"),
    "scale": _form(ast.ScaleStmt, "scale {target} by {factor}"),
    # steps
    "step": _form(ast.StepStmt, "step {target} {body*}"),
    "accumulate": _form(ops.Accumulate, "accumulate[ into {buffer}]", replace=False),
    "replace": _form(ops.Accumulate, "replace[ into {buffer}]", replace=True),
    "reduce": _form(ops.Reduce, "reduce[ {buffer}][ {scattered?}] over {axes} by {op}"),
    "gather_gradients": _form(ops.GatherGradients, "gather gradients over {axes}"),
    "gather_params": _form(ops.GatherParams, "gather params over {axes}"),
    "scale_op": _form(ops.Scale, "scale[ {buffer}] by {factor}"),
    "scale_loss": _form(ops.ScaleLoss, "scale loss[ {term}] by {factor}"),
    "clip_op": _form(ops.Clip, "clip"),
    "skip": _form(ops.Skip, "skip on overflow over {axes}"),
    "update": _form(ops.Update, "update[ from {buffer}]"),
    "broadcast_params": _form(ops.BroadcastParams, "broadcast params over {axes} from {root}"),
    "refresh": _form(ops.Refresh, "refresh params from master"),
    "offload_gradients": _form(ops.OffloadGradients, "offload gradients"),
    "fetch_params": _form(ops.FetchParams, "fetch params"),
    # start, clipping, optimizer, random streams, precision
    "init": _form(ast.InitStmt, "init {target} {ops*}", block=False),
    "init_same": _form(ast.InitSame, "same"),
    "init_different": _form(ast.InitDifferent, "different over {axes}"),
    "init_broadcast": _form(ast.InitBroadcast, "broadcast over {axis} from {root}"),
    "init_block": _form(ast.InitStmt, "init {target} {ops*}", block=True),
    "clip": _form(ast.ClipStmt, "clip {norm}", entries=None),
    "clip_listed": _form(ast.ClipStmt, "clip {norm} {entries*}"),
    "clip_entry": _form(ast.ClipEntry, "{target} over {axes}"),
    "optimizer": _form(ast.OptimizerStmt, "optimizer {name}[ needs {needs}][ for {target}][ gathers over {gathers}]"),
    "needs": _form(ast.Need, "{unit}", size=None, along=()),
    "needs_blocks": _form(ast.Need, "blocks of {size}", unit="blocks", along=()),
    "needs_row": _form(ast.Need, "row[ along {along*| }]", unit="row", size=None),
    "random": _form(ast.RandomStmt, "random {target} over {axes} {kind}"),
    "precision_entry": _form(ast.PrecisionEntry, "{state} {dtype}"),
    # weights, models, placements, strategies
    "size": _form(ast.SizeProp, "size {value}"),
    "layers": _form(ast.LayersProp, "layers {value}"),
    "dims": _form(ast.DimsProp, "dims {names*| }"),
    "kind": _form(ast.KindProp, "kind {name}"),
    "used_on": _form(ast.UsedOnProp, "used on {stages*| and }[ of {axis}]"),
    "routed": _form(ast.RoutedProp, "routed over {axis}"),
    "freeze": _form(ast.FreezeStmt, "freeze {target}"),
    "plain_arg": _form(ast.Argument, "{value}", name=None),
    "named_arg": _form(ast.Argument, "{name} = {value}"),
    "model_arg": _form(ast.Argument, "{name} {value}"),
    "param": _form(ast.Param, "{name}[ = {default}]"),
    "replicated": _form(ast.Mode, "replicated", letter="R", dim=None, host=False),
    "materialized": _form(ast.Mode, "materialized", letter="M", dim=None, host=False),
    "offloaded": _form(ast.Mode, "offloaded", letter="R", dim=None, host=True),
    "sharded": _form(ast.Mode, "sharded[ on {dim}][ of {buffer}]", letter="S", host=False),
    "gathered": _form(ast.Mode, "gathered[ on {dim}][ of {buffer}]", letter="S*", host=False),
    "place_entry": _form(ast.PlaceEntry, "{state} {mode}"),
    "use": _form(ast.UseStmt, "use {calls*| * }"),
    "call": _form(ast.StrategyCall, "{name}({arguments*})"),
    "strategy_def": _form(ast.StrategyDef, "strategy {name}({params*}) {body}"),
    "model_def": _form(ast.ModelDef, "model {name}({params*}) {body}"),
    "model": _form(ast.ModelStmt, "model {name} {arguments*}"),
    "weights": _form(ast.WeightsStmt, "weights {name} {props*}"),
    "precision": _form(ast.PrecisionStmt, "precision[ {target}] {entries*}"),
    "spec_def": _form(ast.SpecDef, "spec {name} {body}"),
    # the operations of a layer
    "sizes": _form(ast.DimsStmt, "dims {sizes*}"),
    "dim_size": _form(ast.DimSize, "{name}[ = {size}]"),
    "block": _form(ast.BlockStmt, "block {name}[ repeat {repeat}] {lines*}"),
    "input": _form(ast.InputLine, "input {name}({dims})"),
    "operation": _form(ast.OperationLine, "{output} = {operator}"),
    "checkpoint": _form(ast.CheckpointLine, "checkpoint {lines*}"),
    "checkpoint_block": _form(ast.CheckpointStmt, "checkpoint {block}[ every {every}]", first=None, last=None),
    "checkpoint_part": _form(ast.CheckpointStmt, "checkpoint {first}[ to {last}] of {block}", every=None),
    "override": _form(ast.OverrideStmt, "{direction} {tensor}[ of {block}] over {axes} by {by}[ scale {scale}]"),
    "attention_over": _form(ast.AttentionStmt, "attention over {axes} by {by}"),
    "drawn": _form(ast.DrawnStmt, "random {tensor} of {block} over {axes} {kind}"),
    "positions": _form(ast.PositionsStmt, "positions {tensor} of {block} over {axes} {kind}"),
    # claims, budgets, expectations
    "budget": _form(ast.BudgetStmt, "budget {amount} {unit}"),
    "claim": _form(ast.ClaimStmt, "claim {condition}"),
    "expect": _form(ast.ExpectStmt, "expect {verdict}[ {code}][ {weights}]"),
}
FORMS |= {
    rule: Form(made, written.text, written.constants)
    for made, entry in entries()
    for rule, written in entry.forms.items()
}


# --- reading ----------------------------------------------------------------------------------


@cache
def _children(rule: str) -> tuple[tuple[str, str], ...]:
    return tuple(FORMS[rule].fields())


def node_of(rule: str, children: Iterable[Any], span: Span) -> Any:
    """The node of a rule. What an operation makes is said by the line that it stands in."""
    made, rest = FORMS[rule].made, list(children)
    values = dict(FORMS[rule].constants)
    fields = _children(rule)
    for after, (field, mark) in zip(reversed(range(len(fields))), fields):
        if mark == "*":
            end = len(rest) - after
            values[field], rest = tuple(rest[:end]), rest[end:]
        else:
            child = rest.pop(0)
            values[field] = child is not None if mark == "?" else child
    if not issubclass(made, ops.WithOrigin):
        return made(**values, span=span)
    if issubclass(made, bl.Operation):
        values["output"] = ""
    return made(**values, origin=ops.Origin(span, stated=True))


# --- printing ---------------------------------------------------------------------------------


@cache
def _forms_of(made: type) -> tuple[Form, ...]:
    return tuple(form for form in FORMS.values() if form.made is made)


def text_of(node: Any) -> str:
    """What a person writes for a node that has a form."""
    form = next(form for form in _forms_of(type(node)) if form.fits(node))

    def optional(found: re.Match[str]) -> str:
        absent = any(getattr(node, piece["field"]) in (None, False) for piece in _FIELD.finditer(found[1]))
        return "" if absent else found[1]

    def written(found: re.Match[str]) -> str:
        value = getattr(node, found["field"])
        if value is True or (value == () and found["mark"] == "*"):
            return found["field"] if value else ""
        return value_text(value, found["between"] or ", ")

    return _FIELD.sub(written, _OPTIONAL.sub(optional, form.text))


def words_of(node: object) -> str:
    """The words with which a node begins, whatever its fields are: `used on`."""
    return _forms_of(type(node))[0].text.partition(" {")[0]


def value_text(value: Any, between: str = ", ") -> str:
    """One field: names, axes (`none` where there is none), sizes, or nodes with a form of their own."""
    match value:
        case str() | int():
            return str(value)
        case tuple():
            return between.join(value_text(part) for part in value) or "none"
        case ast.Target(names):
            return ", ".join(names)
        case ops.AxisRef(names):
            return (between if between != ", " else "*").join(names)
        case Compare():
            return show(value)
        case ast.AxisDecl(bounds=(first, *others)):
            return show(first) + "".join(f" {bound.op} {show(bound.right)}" for bound in others)
        case _ if isinstance(value, Expr):
            return show(value)
        case _:
            return text_of(value)
