"""Decides a program: every obligation, for every allowed size at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placelogic.problem import Problem, SpecError
from placelogic.program.program import BroadcastParams, Origin, Program, flat
from placelogic.prove.collect import Collected, collect
from placelogic.prove.confirm import Confirmation, complete, confirmer
from placelogic.prove.findings import arrange, finding
from placelogic.prove.formula import FALSE, Formula, either, test
from placelogic.prove.notes import notes
from placelogic.prove.obligations import Obligation
from placelogic.prove.ratio import ONE, TooLarge, const
from placelogic.prove.sizes import Sizes, sizes_of
from placelogic.prove.smallest import Found, GaveUp, smallest
from placelogic.prove.solver import RLIMIT, TIMEOUT_S, Limits, Named, Solver
from placelogic.prove.start import ambiguous_streams
from placelogic.prove.values import members
from placelogic.report.diagnostic import Finding, Obligations, SpecReport

ADDITIVE = "each loss term is a sum over work items"


@dataclass(frozen=True, slots=True)
class Options:
    """Bounds on one query. `require_stated` is judged by the caller. Without `explain` only the
    verdict matters: a refutation is not searched, shrunk, simulated or told."""

    require_stated: bool = False
    explain: bool = True
    rlimit: int = RLIMIT
    timeout_s: float = TIMEOUT_S


def prove(program: Program, options: Options = Options()) -> SpecReport:
    """The report on a complete program (every trained group has its step).

    Raises SpecError where arithmetic has no meaning at some allowed size, or is too large."""
    try:
        return _prove(program, options)
    except TooLarge:
        message = "the factors of this step multiply out to more than can be handled"
        raise SpecError(Problem("PL406", message, program.span, "use fewer of them, or fix sizes with --at")) from None


def _prove(program: Program, options: Options) -> SpecReport:
    sizes, named = sizes_of(program)
    printed = _assumptions(program, named)
    trained = [weights for weights in program.weights if not weights.frozen]
    if not trained:
        return _vacuous(program, printed, "nothing is trained: every weight group is frozen")
    collected = collect(program, sizes)
    solver = Solver(sizes.background, named, Limits(options.rlimit, options.timeout_s))
    possible = solver.check()
    if possible.status == "unsat":
        clash = ", ".join(f"`{name}`" for name in possible.core)
        return _vacuous(
            program,
            printed,
            f"no mesh at all satisfies the assumptions {clash}" if clash else "no mesh at all is allowed",
        )
    if possible.status == "unknown":
        return _gave_up(program, printed, f"whether any mesh satisfies the assumptions: {possible.reason}")
    doubtful = _check_divisors(program, sizes, solver)
    if doubtful is not None:
        return _gave_up(program, printed, doubtful)
    return _decide(program, sizes, solver, collected, printed, options.explain)


def _decide(
    program: Program, sizes: Sizes, solver: Solver, collected: Collected, printed: tuple[str, ...], explain: bool
) -> SpecReport:
    obligations = collected.obligations
    pending = [one for one in obligations if one.violation != FALSE]
    together = solver.check(either(*(one.violation for one in pending)))
    findings: list[Finding] = []
    refuted = undecided = 0
    used = set(together.core)
    if together.status != "unsat" and not explain:
        return SpecReport(program.name, "refuted" if together.status == "sat" else "undecided", printed)
    if together.status != "unsat":
        results: dict[tuple[Formula, str | None], Found | GaveUp | None] = {}
        for one in pending:
            key = (one.violation, one.weights)
            if key not in results:
                results[key] = _search(program, sizes, solver, one)
            result = results[key]
            match result:
                case None:
                    continue
                case Found(sizes=env, confirmation=Confirmation(wrong=True, at=at)):
                    refuted += not one.warning
                    findings.append(finding(program, sizes, one, env, at))
                case Found(sizes=env, confirmation=confirmation):
                    undecided += 1
                    findings.append(_unconfirmed(one, complete(sizes, env), confirmation))
                case GaveUp(reason=reason):
                    undecided += 1
                    findings.append(_unknown(one, reason))
    stated = sum(one.stated for one in obligations)
    counts = Obligations(len(obligations) - refuted - undecided, refuted, undecided, stated)
    told = [*arrange(findings), *notes(program, sizes, solver, collected.traces, stated)]
    verdict = "refuted" if refuted else "undecided" if undecided else "proved"
    return SpecReport(
        name=program.name,
        verdict=verdict,
        assumptions=printed,
        assumptions_used=tuple(text for text in printed if text in used),
        obligations=counts,
        findings=tuple(told),
    )


def _search(program: Program, sizes: Sizes, solver: Solver, one: Obligation) -> Found | GaveUp | None:
    if one.warning:  # tells of a habit, not of wrong training: nothing to simulate
        return smallest(solver, sizes, one.violation, lambda env: Confirmation(True))
    return smallest(solver, sizes, one.violation, confirmer(program, sizes, one.weights))


# --- reports that are no decision -----------------------------------------------------------


def _assumptions(program: Program, named: Iterable[Named]) -> tuple[str, ...]:
    printed = [assumption.name for assumption in named]
    printed.append("tokens even" if program.work.tokens_even else "tokens uneven")
    return tuple(dict.fromkeys([*printed, ADDITIVE]))


def _vacuous(program: Program, printed: tuple[str, ...], message: str) -> SpecReport:
    told = Finding(
        "VA01", "error", message, program.span, help="nothing is proved: drop or weaken what rules everything out"
    )
    return SpecReport(program.name, "vacuous", printed, findings=(told,))


def _gave_up(program: Program, printed: tuple[str, ...], reason: str) -> SpecReport:
    told = Finding(
        "UN01",
        "error",
        f"the solver could not tell {reason}",
        program.span,
        help="fix some sizes with --at, or raise --rlimit and --timeout",
    )
    return SpecReport(program.name, "undecided", printed, findings=(told,))


def _unknown(one: Obligation, reason: str) -> Finding:
    return Finding(
        "UN01",
        "error",
        f"undecided: {one.name} ({reason})",
        one.span,
        weights=one.weights,
        axes=one.axes,
        help="fix some sizes with --at, or raise --rlimit and --timeout",
    )


def _unconfirmed(one: Obligation, env: Mapping[str, int], confirmation: Confirmation) -> Finding:
    if confirmation.at is not None:
        return Finding(
            "UN03",
            "error",
            f"undecided: {one.name} fails in the calculus, but only on meshes too large to simulate",
            one.span,
            weights=one.weights,
            axes=one.axes,
            help="leave sizes open, so that a small mesh can show the fault",
        )
    shown = ", ".join(f"{name} = {value}" for name, value in env.items() if "." not in name)
    return Finding(
        "UN02",
        "error",
        f"undecided: {one.name} fails in the calculus at {shown}, but not in the exact simulation",
        one.span,
        weights=one.weights,
        axes=one.axes,
        help="this is a bug in placelogic: please report it with this file",
    )


# --- arithmetic that must make sense --------------------------------------------------------


def _check_divisors(program: Program, sizes: Sizes, solver: Solver) -> str | None:
    """Raises SpecError where a divisor can be zero, or a broadcast has no root, at an allowed size.
    Returns what the solver could not tell, if anything."""
    problems = []
    doubtful = None
    for divisor in sizes.divisors:
        answer = solver.check(test("=", divisor.value), model=True)
        if answer.status == "sat":
            model = complete(sizes, answer.model or {})
            where = ", ".join(f"{name} = {value}" for name, value in model.items() if "." not in name)
            problems.append(
                Problem(
                    "PL401",
                    f"`{divisor.text}` can be zero (at {where}), and something is divided by it",
                    divisor.span,
                    "rule that out with `assume`, or divide by something else",
                )
            )
        elif answer.status == "unknown":
            doubtful = f"whether `{divisor.text}` can be zero, and something is divided by it: {answer.reason}"
    problems += _missing_roots(program, sizes, solver)
    problems += ambiguous_streams(program)
    if problems:
        raise SpecError(*problems)
    return doubtful


def _missing_roots(program: Program, sizes: Sizes, solver: Solver) -> Iterable[Problem]:
    broadcasts: list[tuple[str, tuple[str, ...], int, Origin]] = []
    for weights in program.weights:
        broadcasts += [(weights.name, op.axes, op.root, op.origin) for op in weights.init if op.kind == "broadcast"]
    for step in program.steps:
        broadcasts += [
            (step.weights, op.axes, op.root, op.origin) for op in flat(step.ops) if isinstance(op, BroadcastParams)
        ]
    seen = set()
    for name, axes, root, origin in broadcasts:
        size = ONE
        for axis in axes:
            size = size * members(program.group(name), sizes, axis)
        if (origin.span, size) in seen or solver.check(test("<=", size, const(root))).status == "unsat":
            continue
        seen.add((origin.span, size))
        label = program.mesh.label(axes)
        yield Problem(
            "PL404",
            f"device {root} of {label} does not exist at every allowed size",
            origin.span,
            f"broadcast from 0, or `assume {label} > {root}`",
        )
