"""Decides a program: every obligation, for every allowed size at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from placelogic.problem import Problem, SpecError
from placelogic.program.program import Program
from placelogic.prove.arithmetic import check_arithmetic
from placelogic.prove.collect import Collected, collect
from placelogic.prove.confirm import Confirmation, complete, confirmer, dealer
from placelogic.prove.divide import division_assumptions, division_facts, settle
from placelogic.prove.formula import FALSE, TRUE, Formula, both, either, equal, test
from placelogic.prove.granted import Solvers, assumptions, granting, with_facts
from placelogic.prove.notes import notes
from placelogic.prove.obligations import Obligation
from placelogic.prove.queries import Basis, Premises, Question
from placelogic.prove.ratio import TooLarge, const
from placelogic.prove.sizes import Sizes, sizes_of
from placelogic.prove.smallest import Found, GaveUp, smallest
from placelogic.prove.solver import RLIMIT, TIMEOUT_S, Limits, Solver, Status
from placelogic.prove.undecided import as_it_stands, gave_up, unconfirmed, unknown, vacuous
from placelogic.report.diagnostic import Finding, Obligations, Settled, SpecReport
from placelogic.report.sentences import Sentence

if TYPE_CHECKING:
    from placelogic.simulate.outcome import Outcome


class Options(Struct, frozen=True):
    """Bounds on one query. `require_stated` is judged by the caller. Without `explain` only the
    verdict matters: a refutation is not searched, shrunk, simulated or told. `every`: where a fault shows along some
    axes, look for another one that does not need them. `confirm`: nothing is proved unless z3 says the same to every
    question as it stands (raw.py)."""

    require_stated: bool = False
    explain: bool = True
    every: bool = False
    rlimit: int = RLIMIT
    timeout_s: float = TIMEOUT_S
    confirm: bool = True


class Decision(Struct, frozen=True):
    """A report, and what it rests on."""

    report: SpecReport
    basis: Basis = field(default_factory=Basis)


def prove(program: Program, options: Options = Options()) -> SpecReport:
    """The report on a complete program (every trained group has its step).

    Raises SpecError where arithmetic has no meaning at some allowed size, or is too large."""
    return decide(program, options).report


def decide(program: Program, options: Options = Options()) -> Decision:
    """The report, and every question that it rests on with z3's answer. Without `explain`, one that
    is not proved has no questions about obligations. Raises SpecError as `prove` does."""
    try:
        decision = _decision(program, options)
        if not options.confirm:
            return decision
        from placelogic.prove.recheck import confirm

        checked = confirm(decision.basis, options.rlimit, options.timeout_s)
        return replace(decision, report=as_it_stands(decision.report, program.span, checked))
    except TooLarge:
        message = "the factors of this step multiply out to more than can be handled"
        raise SpecError(Problem("PL406", message, program.span, "use fewer of them, or fix sizes with --at")) from None


def _decision(program: Program, options: Options) -> Decision:
    sizes, named = sizes_of(program)
    printed = assumptions(program, named, sizes)
    trained = [weights for weights in program.weights if not weights.frozen]
    if not trained:
        return Decision(vacuous(program, printed, Sentence("VA01", "frozen")))
    collected = collect(program, sizes)
    premises = Premises(tuple(sizes.background), named)
    solver = Solver(premises.facts, named, Limits(options.rlimit, options.timeout_s))
    possible = solver.check()
    basis = Basis(premises, (Question("assumptions", "some mesh is allowed", TRUE, possible.status),))
    if possible.status == "unsat":
        clash = ", ".join(f"`{name}`" for name in possible.core)
        why = Sentence("VA01", "clash" if clash else "no mesh", words={"clash": clash})
        return Decision(vacuous(program, printed, why), basis)
    if possible.status == "unknown":
        message = f"whether any mesh satisfies the assumptions: {possible.reason}"
        return Decision(gave_up(program, printed, message), basis)
    asked, doubtful = check_arithmetic(program, sizes, solver)
    basis = Basis(premises, (*basis.questions, *asked))
    if doubtful is not None:
        return Decision(gave_up(program, printed, doubtful), basis)
    settled, doubtful = settle(collected.obligations, solver)
    if doubtful is not None:
        return Decision(gave_up(program, printed, doubtful), basis)
    collected = replace(collected, obligations=settled)
    denied = frozenset(one.axes for one in settled if one.code == "FW07" and one.violation != FALSE)
    granted = tuple(division_facts(program, sizes, denied))
    divided = granting(sizes, named, granted, Limits(options.rlimit, options.timeout_s))
    solvers = Solvers(solver, divided or solver)
    report, asked = _decide(program, sizes, solvers, collected, printed, options)
    if solvers.granted:  # the answers rest on these too
        premises = Premises(basis.premises.facts, (*named, *granted))
    if report.verdict == "proved":
        sure = _without_doubt(collected, solver)
        if sure is None:
            return Decision(gave_up(program, printed, "whether a `backward` line changes anything"), basis)
        asked = (*asked, *sure)
    left_out = Question("left out", "what was left out on the way holds nowhere", either(*sizes.taken), "unsat")
    questions = (*basis.questions, left_out, *asked)
    report = replace(report, settled=tuple(Settled(one.name, one.settled) for one in questions if one.counts))
    return Decision(report, Basis(with_facts(premises, sizes), questions))


def _without_doubt(collected: Collected, solver: Solver) -> tuple[Question, ...] | None:
    """What makes sure that a proof holds in every reading; None where the solver gave up. Raises SpecError where
    it depends on the reading."""
    asked = []
    for doubt in collected.doubts:
        status = solver.check(doubt.changes).status
        if status == "sat":
            raise SpecError(doubt.problem)
        if status == "unknown":
            return None
        asked.append(Question("obligation", f"line {doubt.problem.span.line} changes nothing", doubt.changes, status))
    return tuple(asked)


def _decide(
    program: Program, sizes: Sizes, solvers: Solvers, collected: Collected, printed: tuple[str, ...], options: Options
) -> tuple[SpecReport, tuple[Question, ...]]:
    obligations = collected.obligations
    pending = [one for one in obligations if one.violation != FALSE]
    together = solvers.plain.check(either(*(one.violation for one in pending)))
    if together.status != "unsat" and solvers.divided is not solvers.plain:
        solvers.granted = True
        if not any(one.code == "FW07" for one in pending):
            together = solvers.divided.check(either(*(one.violation for one in pending)))
    findings: list[Finding] = []
    own: list[Finding] = []
    refuted = undecided = 0
    used = set(together.core)
    if together.status != "unsat" and not options.explain:
        return SpecReport(program.name, "refuted" if together.status == "sat" else "undecided", printed), ()
    results: dict[object, Found | GaveUp | None] = {}
    hopeless: dict[Formula, GaveUp] = {}  # asked once, not once per weight group
    simulated: dict[object, Outcome] = {}  # what layers came to on one mesh decides about all weights
    if together.status != "unsat":
        for one in pending:
            key = _key(one)
            if key not in results:
                results[key] = hopeless.get(one.violation) or _search(program, sizes, solvers.of(one), one, simulated)
            result = results[key]
            if isinstance(result, GaveUp):
                hopeless[one.violation] = result
            match result:
                case None:
                    continue
                case Found(sizes=env, confirmation=Confirmation(wrong=True, at=at)):
                    refuted += not one.warning
                    told_here = _finding(program, sizes, one, env, at)
                    if told_here.code == "GI03":
                        again = partial(_search, program, sizes, simulated=simulated)
                        told_here = _by_turn(program, sizes, solvers.of(one), one, env, again) or told_here
                    findings.append(told_here)
                    if one.own:
                        own.append(told_here)
                    if options.every and not one.warning:
                        from placelogic.prove.others import others

                        search = partial(_search, program, sizes, solvers.divided, simulated=simulated)
                        tell = partial(_finding, program, sizes)
                        findings += others(program, sizes, one, told_here, env, search, tell, unknown)
                case Found(sizes=env, confirmation=confirmation):
                    undecided += 1
                    findings.append(unconfirmed(one, complete(sizes, env), confirmation))
                case GaveUp(reason=reason):
                    undecided += 1
                    findings.append(unknown(one, reason))
    denied = frozenset(told_here.axes for told_here in findings if told_here.code == "FW07")
    gone = {*division_assumptions(program, sizes)} - {*division_assumptions(program, sizes, denied)}
    printed = tuple(text for text in printed if text not in gone)
    stated = sum(one.stated for one in obligations)
    counts = Obligations(len(obligations) - refuted - undecided, refuted, undecided, stated)
    verdict = "refuted" if refuted else "undecided" if undecided else "proved"
    arranged = [
        *(_arranged(program, findings, own) if findings else ()),
        *notes(program, sizes, solvers.divided, collected.traces, stated, verdict == "proved"),
    ]
    report = SpecReport(
        name=program.name,
        verdict=verdict,
        assumptions=printed,
        assumptions_used=tuple(text for text in printed if text in used),
        obligations=counts,
        findings=tuple(arranged),
    )
    return report, tuple(_question(one, results.get(_key(one))) for one in obligations)


def _key(one: Obligation) -> object:
    """Obligations with one answer: the same question, put to the same simulation."""
    layers = one.need is not None or one.through is not None or one.drawn
    return one.violation, one.weights, layers, one.axes if one.code == "FW07" else None


def _question(one: Obligation, result: Found | GaveUp | None) -> Question:
    """The obligation and what came of it; no result: its violation cannot hold."""
    if one.fits is not None and one.violation == FALSE:
        return Question("fitting", one.name, one.fits.where, "sat", one.code, one.weights, one.fits.at)
    status: Status = "unsat" if result is None else "sat" if isinstance(result, Found) else "unknown"
    at = result.sizes if isinstance(result, Found) else None
    return Question("obligation", one.name, one.violation, status, one.code, one.weights, at)


def _search(
    program: Program, sizes: Sizes, solver: Solver, one: Obligation, simulated: dict[object, Outcome]
) -> Found | GaveUp | None:
    if one.warning:  # tells of a habit, not of wrong training: nothing to simulate
        return smallest(solver, sizes, one.violation, lambda env: Confirmation(True))
    # A wrong norm of one group may show on another: clipping is one event.
    weights = None if one.code == "GI07" else one.weights
    if one.code == "FW07":
        return smallest(solver, sizes, one.violation, dealer(program, sizes, one.axes))
    inside = one.need is not None or one.through is not None or one.drawn
    layers = simulated if inside and program.layers is not None and program.layers.blocks else None
    return smallest(solver, sizes, one.violation, confirmer(program, sizes, weights, layers))


def _finding(
    program: Program, sizes: Sizes, one: Obligation, env: Mapping[str, int], at: Mapping[str, int] | None
) -> Finding:
    from placelogic.prove.findings import refuted  # and with it all that tells of faults: a proof needs none

    return refuted(program, sizes, one, env, at)


def _by_turn(
    program: Program, sizes: Sizes, solver: Solver, one: Obligation, env: Mapping[str, int],
    search: Callable[[Solver, Obligation], Found | GaveUp | None],
) -> Finding | None:  # fmt: skip
    """With one micro-batch a factor is the same for all that there are. Where two show that it grows from one to the
    next, that is what is told."""
    count = sizes.microbatches
    if count.constant is not None or count.at(complete(sizes, env)) != 1:
        return None
    mesh = both(*(equal(axis, env[axis]) for axis in sizes.axis_names if axis in env and axis in sizes.open))
    two = replace(one, violation=both(one.violation, mesh, test("=", count, const(2))))
    match search(solver, two):
        case Found(sizes=larger, confirmation=Confirmation(wrong=True, at=at)):
            found = _finding(program, sizes, one, larger, at)
            return found if found.code == "GI04" else None
        case _:
            return None


def _arranged(program: Program, findings: Iterable[Finding], own: Iterable[Finding]) -> tuple[Finding, ...]:
    from placelogic.prove.copies import scattered_biases
    from placelogic.prove.findings import arrange

    return arrange(findings, {id(one) for one in own}, scattered_biases(program))
