"""The claims and budgets of specs, judged: what they add to a report. Loads sympy only where there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from placelogic.problem import Problem, SpecError
from placelogic.program.catalog import BYTES
from placelogic.program.expr import Compare, Expr, Name, number, show
from placelogic.program.program import Budget, Claim, Program
from placelogic.report.diagnostic import Finding, SpecReport, Verdict
from placelogic.requirements.budgets import be, largest, ways, where
from placelogic.session.session import unknown_spec

if TYPE_CHECKING:
    from placelogic.cost.budget import Box
    from placelogic.cost.claims import Sides
    from placelogic.cost.totals import Cost
    from placelogic.prove import Options
    from placelogic.prove.claims import Case, Decision
    from placelogic.prove.solver import Limits
    from placelogic.session.session import Spec


class Judge(Struct, frozen=True):
    """Of one file. `specs`: all of it, by name."""

    specs: Mapping[str, Spec]
    limits: Limits

    @classmethod
    def of(cls, specs: Sequence[Spec], options: Options) -> Judge:
        from placelogic.prove.solver import Limits

        return cls({spec.name: spec for spec in specs}, Limits(options.rlimit, options.timeout_s))

    def judge(self, report: SpecReport, spec: Spec) -> SpecReport:
        """The report with what its claims and budgets come to. A claim that several specs share is judged
        in the report of the first one that it names, whatever else comes out of that. A spec that is wrong or
        trains nothing has costs all the same; a budget is about one that trains."""
        findings: list[Finding] = []
        program = spec.program
        for claim in program.claims:
            if self._home(claim) in (None, spec.name):
                findings += self._claim(claim)
        for budget in program.budgets if report.verdict not in ("error", "vacuous") else ():
            findings += self._budget(budget, spec)
        if not findings:
            return report
        codes = {finding.code for finding in findings if finding.severity == "error"}
        count = Counter(finding.code for finding in findings)
        obligations = replace(
            report.obligations,
            proved=report.obligations.proved + count["NT30"] + count["NT31"],
            refuted=report.obligations.refuted + count["CL01"] + count["BU01"],
            undecided=report.obligations.undecided + count["CL02"],
        )
        verdict: Verdict = report.verdict
        if codes & {"CL01", "BU01"} and verdict != "error":
            verdict = "refuted"
        elif any(code.startswith("PL") for code in codes) and verdict != "refuted":
            verdict = "error"  # what is known to be wrong stays so, whatever could not be measured
        elif "CL02" in codes and verdict == "proved":
            verdict = "undecided"
        return replace(report, verdict=verdict, obligations=obligations, findings=(*report.findings, *findings))

    def _home(self, claim: Claim) -> str | None:
        """The spec that a claim is reported with: the one it stands in, or the first one that it names."""
        from placelogic.cost.claims import measured

        holders = [name for name, spec in self.specs.items() if spec.has_program and claim in spec.program.claims]
        if len(holders) == 1:
            return holders[0]
        return next((name for name in measured(claim.condition) if name in holders), holders[0])

    # --- claims ---

    def _claim(self, claim: Claim) -> Iterator[Finding]:
        from placelogic.cost.claims import comparison, measured, sides
        from placelogic.cost.plain import NotArithmetic
        from placelogic.prove.claims import decide

        text = show(claim.condition)
        try:
            named = measured(claim.condition)
            self._check_names(claim, named)
            costs = {name: self.specs[name].cost for name in named}
            found = sides(claim.condition, costs, claim.span)
            assumptions = [
                comparison(a.condition, costs[name]) for name in named for a in self.specs[name].program.assumptions
            ]
            fixed = {name: int(value) for name, value in found.values.items()}
            used = sorted({one for name in named for one in costs[name].size_names})
            decision = self._decision(found, assumptions, used, fixed)
            for written, divisor in found.divisors:
                zero = decide(found.nonzero(divisor), assumptions, used, fixed, self.limits)
                if zero.status in ("fails", "unknown"):
                    inside = {one.name for one in divisor.free_symbols}
                    at_sizes = {name: size for name, size in (zero.sizes or {}).items() if name in inside}
                    raise SpecError(_divides_by_zero(claim, written, at_sizes))
        except NotArithmetic as error:
            yield Finding("CL02", "error", f"the claim `{text}` cannot be decided: {error}", claim.span,
                          help="claim it at sizes that are fixed, or about other costs")  # fmt: skip
            return
        except SpecError as error:
            for p in error.problems:  # about a formula, which stands nowhere, or about what is written
                yield Finding(p.code, "error", p.message, p.span if p.span.line else claim.span, help=p.help)
            return
        for one in self._decided(claim, text, found, decision):
            yield replace(one, help=_rounded(claim, costs, found)) if one.code == "NT30" else one

    def _decision(
        self, found: Sides, assumptions: Sequence[Compare], used: Sequence[str], fixed: Mapping[str, int]
    ) -> Decision:
        """Raises NotArithmetic where there are too many cases, SpecError for arithmetic without meaning."""
        from placelogic.cost.plain import NotArithmetic
        from placelogic.prove.claims import decide

        stronger = None
        if found.many:
            with suppress(NotArithmetic):
                stronger = decide(found.stronger(), assumptions, used, fixed, self.limits)
                # Where the stronger one fails, this one may hold.
                fails = stronger.status == "fails" and not found.holds_at(stronger.sizes or {})
                if fails or stronger.status in ("holds", "empty"):
                    return stronger
        try:
            return decide(found.parts(), assumptions, used, fixed, self.limits)
        except NotArithmetic:
            if stronger is not None and stronger.status == "unknown":
                return stronger  # whose limit is the reason: there are fewer cases in it
            raise

    def _check_names(self, claim: Claim, named: tuple[str, ...]) -> None:
        if not named:
            raise SpecError(Problem("PL364", "this claim speaks of no cost", claim.span,
                                    "compare costs of specs: `claim memory(a) <= memory(b)`"))  # fmt: skip
        for name in named:
            if name not in self.specs:
                raise SpecError(unknown_spec(name, self.specs, claim.span))
            if not self.specs[name].has_program:
                raise SpecError(
                    Problem("PL365", f"spec `{name}` has errors, and so no costs", claim.span, "mend it first")
                )

    def _decided(self, claim: Claim, text: str, found: Sides, decision: Decision) -> Iterator[Finding]:
        from placelogic.cost.text import told_apart

        match decision.status:
            case "holds":
                open_ = [name for name in found.names if name not in found.values]
                every = f" for every {', '.join(open_)}" if open_ else ""
                yield Finding("NT30", "note", f"the claim `{text}` is proved{every}", claim.span)
            case "fails":
                sizes = decision.sizes or {}
                left, right = found.numbers(sizes)
                at = ", ".join(f"{name} = {sizes[name]}" for name in found.names if name in sizes)
                numbers = " against ".join(told_apart(left, right))
                place = f" at {at}" if at else ""
                yield Finding("CL01", "error", f"the claim `{text}` is false{place}: {numbers}", claim.span, label=numbers,
                              help="`placelogic compare` puts the formulas side by side")  # fmt: skip
            case "empty":
                yield Finding("CL02", "error", f"the claim `{text}` says nothing: its specs have no sizes in common",
                              claim.span, help="look at their `assume` lines and at --at")  # fmt: skip
            case _:
                yield Finding("CL02", "error", f"the claim `{text}` cannot be decided: {decision.reason}", claim.span,
                              help="claim it at sizes that are fixed")  # fmt: skip

    # --- budgets ---

    def _budget(self, budget: Budget, spec: Spec) -> Iterator[Finding]:
        from placelogic.cost.budget import Unclear, fit
        from placelogic.cost.text import told_apart

        program = spec.program
        try:
            cost = spec.cost
            limit = cost.sizes.read(budget.amount) * BYTES[budget.unit]
            assumed = [one.condition for one in program.assumptions]
            found = fit(cost, limit, assumed, self._bounded(cost, program), self._possible(cost, program))
        except SpecError as error:
            yield from (Finding.of(p) for p in error.problems)
            return
        except Unclear:
            yield Finding("PL366", "error", "the budget cannot be checked: whether the assumptions allow sizes at which it is "
                          "enough could not be told", budget.span, help="fix the sizes that they relate, in the spec or with --at")  # fmt: skip
            return
        bound = cost.known(limit)
        if found.unknown:
            names = ", ".join(found.unknown)
            yield Finding("PL366", "error", f"the budget cannot be checked while {names} {be(found.unknown)} open",
                          budget.span, help=ways(names, budget.span.path != program.span.path))  # fmt: skip
        elif found.peak is not None and bound is not None:
            against = "the peak of one device is {}, the budget {}".format(*told_apart(found.peak, bound))
            if found.peak > bound:
                yield Finding("BU01", "error", f"the budget is exceeded: {against}", budget.span, label=largest(cost),
                              help="`placelogic cost` shows every term")  # fmt: skip
            else:
                yield Finding("NT31", "note", f"within the budget: {against}", budget.span)
        elif found.ranges or found.fewest:
            yield Finding(
                "NT31",
                "note",
                f"the budget of {show(budget.amount)} {budget.unit} is enough {where(found)}",
                budget.span,
            )
        elif found.never:
            names = ", ".join(found.open)
            yield Finding("BU01", "error", f"the budget is exceeded at every {names}", budget.span, label=largest(cost),
                          help="`placelogic cost` shows every term")  # fmt: skip
        else:
            names = ", ".join(found.open)
            message = f"the budget cannot be checked while {names} {be(found.open)} open: of those tried, no sizes fit"
            yield Finding("PL366", "error", message, budget.span,
                          help=f"fix {names} in the spec or with --at, or assume upper bounds")  # fmt: skip

    def _bounded(self, cost: Cost, program: Program) -> Callable[[Sequence[str], int], bool]:
        """Whether the assumptions of a spec keep sizes below a bound."""

        def bounded(names: Sequence[str], most: int) -> bool:
            within = [((), Compare("<=", Name(name), number(most))) for name in names]
            return self._assuming(within, cost, program).status == "holds"

        return bounded

    def _possible(self, cost: Cost, program: Program) -> Callable[[Box], bool]:
        """Whether the assumptions of a spec allow any sizes in a box."""
        from placelogic.cost.budget import Unclear

        def possible(box: Box) -> bool:
            inside = [Compare(">=", Name(name), number(low)) for name, (low, _) in box.items()]
            inside += [Compare("<=", Name(name), number(high)) for name, (_, high) in box.items() if high is not None]
            answer = self._assuming([(tuple(inside), Compare("<", number(1), number(1)))], cost, program).status
            if answer == "unknown":
                raise Unclear
            return answer == "fails"

        return possible

    def _assuming(self, cases: Sequence[Case], cost: Cost, program: Program) -> Decision:
        from placelogic.cost.claims import comparison
        from placelogic.prove.claims import decide

        fixed = {name: int(value) for name, value in cost.values.items()}
        assumed = [comparison(one.condition, cost) for one in program.assumptions]
        return decide(cases, assumed, sorted(cost.size_names), fixed, self.limits)


def _rounded(claim: Claim, costs: Mapping[str, Cost], found: Sides) -> str | None:
    """What is told beside a claim that holds at given sizes over shards that divide evenly, where they do not."""
    from placelogic.cost.claims import rounded, sides
    from placelogic.cost.text import told_apart

    if not set(found.names) <= set(found.values):
        return None
    whole = sides(claim.condition, {name: rounded(cost) for name, cost in costs.items()}, claim.span)
    left, right = whole.numbers({})
    if (left, right) == found.numbers({}):
        return None
    comes = "holds too" if whole.holds_at({}) else "is false"
    return f"shards do not divide evenly at these sizes: rounded up, it {comes}, {' against '.join(told_apart(left, right))}"


def _divides_by_zero(claim: Claim, divisor: Expr, sizes: Mapping[str, int]) -> Problem:
    at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    found = f"is zero at {at}" if at else "may be zero"
    hint = "rule these sizes out with `assume`, or multiply instead of dividing"
    message = f"`{show(divisor)}` {found}, and divides in the claim `{show(claim.condition)}`"
    return Problem("PL401", message, claim.span, hint)
