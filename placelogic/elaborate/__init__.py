"""From syntax to step programs: strategies and models written out, names and overlaps settled.

Codes of the problems found here (PL0 files, PL2 names, PL3 meaning, PL4 arithmetic):

    PL020  an import that does not exist or cannot be read      PL021  an import outside the folder of the spec
    PL022  imports in a circle                                  PL023  an imported file with errors

    PL200  unknown axis                       PL201  unknown name in an expression
    PL202  unknown weights or kind            PL203  unknown strategy
    PL204  unknown model                      PL205  unknown parameter
    PL206  too many arguments                 PL207  missing argument
    PL208  parameter given twice              PL210  declared or defined twice
    PL211  a reserved word as a name          PL213  unknown kind of weights
    PL214  unknown optimizer                  PL215  unknown pipeline schedule
    PL216  unknown dtype                      PL217  unknown state
    PL218  unknown dimension                  PL219  unknown loss
    PL220  unknown finding in `expect`        PL221  unknown size in --at
    PL222  unknown way of clipping            PL223  unknown tensor
    PL224  unknown dimension of tensors       PL225  unknown block

    PL300  nothing to check                   PL301  a statement that cannot stand there
    PL302  definitions in a circle            PL303  expansion too deep or too long
    PL304  an argument of the wrong sort      PL305  no mesh
    PL306  no weights                         PL307  weights without a size
    PL309  a whole-spec statement twice, differing
    PL310  one axis splits two dimensions     PL311  one axis fed same and different samples
    PL312  stages over a product              PL313  stages over an axis that splits the work
    PL314  an axis twice in one list          PL315  activations cut along another dimension than the work
    PL316  weights without that dimension     PL317  reshard_after_forward over axes without a gather
    PL318  a parameter that nothing uses      PL319  a cut over the axis of one's own stages
    PL320  sync over a product with a routed factor             PL321  sync by none over a routed axis
    PL322  equally specific statements differ                   PL323  a step, and sync or scale lines as specific
    PL324  frozen weights named               PL325  `tokens` where it is not one number
    PL330  loops and accumulation             PL331  scaling a loss when its gradient is not fresh
    PL332  clip without a clip statement      PL333  a skip not in all steps
    PL334  a skip in a loop                   PL335  a buffer read and never written
    PL336  refresh without a master copy      PL337  host moves with nothing on the host
    PL338  optimizer on the host, gradients not moved           PL339  gradients on the host, optimizer not
    PL340  a root over a product of open sizes                  PL341  a broadcast among several init lines
    PL342  the start said to be both the same and different     PL343  the fresh gradient or the buffer?
    PL345  micro-batches combined by nothing  PL346  used on the end stages of no axis
    PL347  routed experts not dealt out whole               PL348  a skip with nothing to look at
    PL350  a size given by an axis            PL351  attention over no split sequence
    PL349  an elementwise optimizer gathers                    PL352  what an optimizer needs is not clear
    PL353  a buffer that is not flat has a name
    PL370  shapes that do not fit
    PL371  experts and no router              PL372  an operation with weights of another kind
    PL373  a block that does not read         PL374  a tensor that nothing uses
    PL375  blocks that do not follow          PL376  dimensions and no block
    PL377  checkpoints that overlap           PL378  a boundary that is not there, or not one
    PL379  weights of another size, or other layers, than their operations
    PL391  `used on` against the blocks       PL392  a block that lies on any stage
    PL393  weights of layers that stages share out             PL394  a V with other than two chunks
    PL395  a boundary over an axis of stages  PL396  an operation that mixes samples

    PL400  a size that is no positive whole number              PL401  division by zero
    PL402  a remainder of a fraction          PL403  sizes defined by each other
    PL404  a root that does not exist         PL405  --at against the spec
    PL406  a number too large
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from placelogic.elaborate.expand import expand
from placelogic.elaborate.library import Reader, Scope, Scoped
from placelogic.elaborate.log import Item, Log
from placelogic.elaborate.resolve import expectations, resolve
from placelogic.elaborate.stated import Stated, SyncLine
from placelogic.problem import Problem
from placelogic.program.program import Expectation, Program
from placelogic.source import Span
from placelogic.syntax import ast

__all__ = ["ElaboratedSpec", "Stated", "SyncLine", "elaborate_file", "spec_name"]


class ElaboratedSpec(Struct, frozen=True):
    """One spec of a file: its problems, or a program (with the stated steps only) and what was
    stated beside it. Expectations are there in both cases, so that `expect error` can be met."""

    name: str
    span: Span
    problems: tuple[Problem, ...]
    program: Program | None
    stated: Stated | None
    expectations: tuple[Expectation, ...]


def elaborate_file(file: ast.File, fixed: Mapping[str, int] = MappingProxyType({})) -> tuple[ElaboratedSpec, ...]:
    """Every spec of a file, in written order; without `spec` blocks the file is one spec, named
    after the file. `fixed`: sizes given from outside (`--at dp=64`). Never raises for what is
    wrong with the file: that is in `problems`, and what concerns the whole file in every spec's."""
    log = Log()
    reader = Reader.of(file.path, log)
    folder = reader.root
    scope = Scope()
    included: set[Path] = set()
    outer = reader.statements(file.statements, folder, scope, included)
    shared = [scoped for scoped in outer if not isinstance(scoped.statement, ast.SpecDef)]
    specs = [scoped.statement for scoped in outer if isinstance(scoped.statement, ast.SpecDef)]
    _check_specs(file, shared, specs, log)
    if not specs:
        return (_one(spec_name(file.path), file.span, shared, fixed, log),)
    result = []
    for spec in specs:
        inner = Scope(outer=scope)
        mine = Log(list(log.problems))
        body = Reader.of(file.path, mine).statements(spec.body, folder, inner, set(included))
        for scoped in body:
            if isinstance(scoped.statement, ast.SpecDef):
                mine.add(
                    "PL301", "a spec cannot stand inside a spec", scoped.statement.span, "write one after the other"
                )
        body = [scoped for scoped in body if not isinstance(scoped.statement, ast.SpecDef)]
        result.append(_one(spec.name, spec.span, [*_inside(shared, scope, inner), *body], fixed, mine))
    return tuple(result)


def spec_name(path: str) -> str:
    """What a file without spec blocks is called."""
    return "stdin" if path in ("-", "") else Path(path).stem


def _inside(shared: list[Scoped], outer: Scope, inner: Scope) -> list[Scoped]:
    """Shared statements see the definitions of the spec block they end up in."""
    return [Scoped(s.statement, inner if s.scope is outer else s.scope, s.via, s.file) for s in shared]


def _check_specs(file: ast.File, shared: list[Scoped], specs: list[ast.SpecDef], log: Log) -> None:
    seen: dict[str, ast.SpecDef] = {}
    for spec in specs:
        if spec.name in seen:
            log.add("PL210", f"spec `{spec.name}` stands twice, first in line {seen[spec.name].span.line}", spec.span,
                    "rename one of them")  # fmt: skip
        seen.setdefault(spec.name, spec)
    own = [s for s in file.statements if not isinstance(s, ast.StrategyDef | ast.ModelDef | ast.ImportStmt)]
    if not own and not log.problems:
        what = "it only defines and imports" if file.statements else "it is empty"
        log.add("PL300", f"there is nothing to check in this file: {what}", file.span,
                "declare a mesh and weights, or check a file that imports it")  # fmt: skip


def _one(name: str, span: Span, statements: list[Scoped], fixed: Mapping[str, int], log: Log) -> ElaboratedSpec:
    items: list[Item] = []
    if any(problem.code == "PL300" for problem in log.problems):
        return ElaboratedSpec(name, span, tuple(log.problems), None, None, ())
    items = expand(statements, log)
    if log.problems:
        # What is not expanded would only be missed again below.
        return ElaboratedSpec(name, span, tuple(log.problems), None, None, expectations(items, None, log))
    program, stated = resolve(name, items, span, fixed, log)
    if problems := log.problems or log.doubts:
        return ElaboratedSpec(name, span, tuple(problems), None, None, program.expectations)
    return ElaboratedSpec(name, span, (), program, stated, program.expectations)
