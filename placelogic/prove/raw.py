"""The questions as they stand: what the rules wrote down, for a solver, before any normal form.

Nothing of ratio.py, formula.py or kinds.py that simplifies, folds or decides has a part in the text: factors are
products and quotients as the rules made them, conditions are whole, and what an operation does to a kind is a case
table of functions that the solver works out. Quotients are pairs of integers, multiplied out where two are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from placelogic.io.quoting import visible
from placelogic.prove.formula import And, Formula, Not, Or, Remainder, SumDiffers, Test, symbol
from placelogic.prove.kinds import Kind
from placelogic.prove.ratio import Ratio
from placelogic.prove.written import Written

LEGEND = "A kind: 0 partial, 1 replicated, 2 + r what device r had; cut: each device has its own elements only."
TABLE = """\
(define-fun reduced ((kind Int) (cut Bool)) Int (ite (and (= kind 0) (not cut)) 1 kind))
(define-fun averages ((kind Int) (cut Bool)) Bool (and (= kind 0) (not cut)))
(define-fun repeats ((kind Int) (cut Bool)) Bool (and (distinct kind 0) (not cut)))
(define-fun routed ((kind Int)) Int (ite (= kind 0) 1 kind))
(define-fun holds ((kind Int) (tied Bool) (device Int) (item Int) (piece Int)) Bool
  (and (or (not tied) (= item piece)) (ite (= kind 0) (= device item) (or (= kind 1) (= item (- kind 2))))))"""
"""The transfer rules (docs/semantics.md, "The value calculus"), case by case."""

Fraction = tuple[str, str]
Parts = tuple[str, str, str, str]
"""A kind, as terms: its code, whether it is cut, ruined, tied."""


class Text:
    """One question being written. Everything is written once, under a name of its own, however often it is used."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, None] = {}
        self._known: dict[tuple[int, str], tuple[object, object]] = {}
        self._things: dict[str, int] = {}

    def _once(self, what: object, sort: str, write: Callable[[], object]) -> object:
        key = id(what), sort
        if key not in self._known:
            self._known[key] = what, write()  # kept, so that no other takes its number
        return self._known[key][1]

    def _named(self, text: str, sort: str) -> str:
        if len(text) < 24:
            return text
        name = f"|{sort}.{len(self.lines)}|"
        self.lines.append(f"(define-fun {name} () {sort} {text})")
        return name

    def _variable(self, name: str) -> str:
        self.names[name] = None
        return symbol(name)

    # --- factors ------------------------------------------------------------------------------

    def factor(self, value: Ratio) -> Fraction:
        return self._once(value, "ratio", lambda: self._factor(value))  # type: ignore[return-value]

    def _factor(self, value: Ratio) -> Fraction:
        if value.raw is None:
            constant = value.constant
            if constant is not None:
                return _integer(constant.numerator), str(constant.denominator)
            ((((name, _),), _),) = value.num
            return self._variable(name), "1"
        above, below = self._operation(value.raw)
        return self._named(above, "Int"), self._named(below, "Int")

    def _operation(self, raw: Written) -> Fraction:
        match raw.op, raw.parts:
            case "*", (a, b):
                (n, d), (m, e) = self.factor(a), self.factor(b)
                return _times(n, m), _times(d, e)
            case "/", (a, b):
                (n, d), (m, e) = self.factor(a), self.factor(b)
                return _times(n, e), _times(d, m)
            case "+" | "-" as op, (a, b):
                (n, d), (m, e) = self.factor(a), self.factor(b)
                return (f"({op} {n} {m})", d) if d == e else (f"({op} {_times(n, e)} {_times(m, d)})", _times(d, e))
            case "%", (a, b):
                whole, by = self._whole(a), self._whole(b)
                rest = self._named(f"(mod {whole} {by})", "Int")
                return f"(ite (and (< {by} 0) (distinct {rest} 0)) (+ {rest} {by}) {rest})", "1"
            case "ends", (size,):
                return f"(ite {self._compare('=', size, 1)} 1 2)", "1"
            case "indicator", (condition,):
                return f"(ite {self.formula(condition)} 1 0)", "1"
            case "sum" | "mean" as op, (kind, size):
                (n, d), (value, cut, *_) = self.factor(size), self.kind(kind)
                if op == "mean":
                    n, d = d, n
                acts = f"({'repeats' if op == 'sum' else 'averages'} {value} {cut})"
                return f"(ite {acts} {n} 1)", f"(ite {acts} {d} 1)"
            case "route", (kind, size):
                (n, d), (value, *_) = self.factor(size), self.kind(kind)
                return f"(ite (= {value} 0) 1 {n})", f"(ite (= {value} 0) 1 {d})"
        raise AssertionError(raw.op)

    def _whole(self, value: Ratio) -> str:
        n, d = self.factor(value)
        return n if d == "1" else self._named(f"(div {n} {d})", "Int")

    # --- kinds --------------------------------------------------------------------------------

    def kind(self, kind: Kind) -> Parts:
        return self._once(kind, "kind", lambda: self._kind(kind))  # type: ignore[return-value]

    def _kind(self, kind: Kind) -> Parts:
        if kind.raw is None:
            code = {"partial": 0, "replicated": 1, "root": 2 + kind.root}[kind.value]
            return str(code), _boolean(kind.cut is not None), self.formula(kind.ruined), _boolean(kind.tied)
        before, *more = kind.raw.parts
        value, cut, ruined, tied = self.kind(before)  # type: ignore[arg-type]
        match kind.raw.op, more:
            case "reduce", (size, into):
                spoilt = f"(or {ruined} (and {cut} {self._compare('>=', size, 2)}))"
                value, cut, ruined = f"(reduced {value} {cut})", f"(or {cut} {_boolean(into is not None)})", spoilt
            case "gather", (size,):
                ruined = f"(or {ruined} (and (= {value} 0) {self._compare('>=', size, 2)}))"
                cut = f"(and {cut} (= {value} 0))"
            case "route", ():
                value, cut = f"(routed {value})", "true"
            case "settle", (room,):
                cut = f"(or {cut} (and {_boolean(room is not None)} (distinct {value} 0)))"
            case "spoil", (when,):
                ruined = f"(or {ruined} {self.formula(when)})"
            case "tie", ():
                tied = "true"
            case _:
                raise AssertionError(kind.raw.op)
        return self._named(value, "Int"), self._named(cut, "Bool"), self._named(ruined, "Bool"), tied

    # --- conditions ---------------------------------------------------------------------------

    def formula(self, formula: object) -> str:
        return self._once(formula, "formula", lambda: self._named(self._formula(formula), "Bool"))  # type: ignore[return-value]

    def _formula(self, formula: object) -> str:
        match formula:
            case Written(op, parts):
                return self._condition(op, parts)
            case Remainder():
                return "true"  # a remainder is written where it stands
            case Test(raw=Written(op, parts)) | And(raw=Written(op, parts)) | Or(raw=Written(op, parts)):
                return self._condition(op, parts)
            case Not(raw=Written(op, parts)) | SumDiffers(raw=Written(op, parts)):
                return self._condition(op, parts)
            case And(parts):
                return self._condition("and", parts)
            case Or(parts):
                return self._condition("or", parts)
            case Not(part):
                return self._condition("not", (part,))
            case Test(op, ratio):
                return self._compare(op, ratio, 0)
        raise AssertionError(formula)

    def _condition(self, op: str, parts: tuple) -> str:
        match op, parts:
            case "and" | "or", ():
                return _boolean(op == "and")
            case "and" | "or" | "not", _:
                return f"({op} {' '.join(map(self.formula, parts))})"
            case "same", (one, other):
                return f"(= {self._thing(one)} {self._thing(other)})"
            case "same when", (one, other):
                return f"(= {self.formula(one)} {self.formula(other)})"
            case "whole", (value,):
                n, d = self.factor(value)
                return f"(= (mod {n} {d}) 0)"
            case "differs", (cases, target):
                return self._differs(cases, target)
            case "holds", (kind, axis):
                value, _, _, tied = self.kind(kind)
                return f"(holds {value} {tied} {' '.join(self._variable(f'{letter}.{axis}') for letter in 'xwv')})"
            case "partial", (kind,):
                return f"(= {self.kind(kind)[0]} 0)"
            case "cut", (kind,):
                return self.kind(kind)[1]
            case "ruined", (kind,):
                return self.kind(kind)[2]
            case "miscast", (one, other):
                (a, b, _, c), (d, e, _, f) = self.kind(one), self.kind(other)
                return f"(or (distinct {a} {d}) (distinct {b} {e}) (distinct {c} {f}))"
            case "unlike", (one, other):
                return f"(or {' '.join(f'(distinct {a} {b})' for a, b in zip(self.kind(one), self.kind(other)))})"
            case _, (left, right):
                return self._compare(op, left, right)
        raise AssertionError(op)

    def _thing(self, name: str) -> int:
        return self._things.setdefault(name, len(self._things))

    def _compare(self, op: str, left: Ratio, right: Ratio | int) -> str:
        (n, d), (m, e) = self.factor(left), (str(right), "1") if isinstance(right, int) else self.factor(right)
        one, other = _times(n, e), _times(m, d)
        if op not in ("=", "distinct") and (d, e) != ("1", "1"):
            both = _times(d, e)  # of either sign
            one, other = _times(one, both), _times(other, both)
        return f"({op} {one} {other})"

    def _differs(self, cases: tuple[tuple[object, Ratio], ...], target: Ratio) -> str:
        pairs = [self.factor(value) for _, value in cases] + [self.factor(target)]
        below = list(dict.fromkeys(d for _, d in pairs))
        *scaled, goal = [_times(n, *(other for other in below if other != d)) for n, d in pairs]
        terms = [f"(ite {self.formula(condition)} {term} 0)" for (condition, _), term in zip(cases, scaled)]
        return f"(distinct (+ 0 {' '.join(terms)}) {goal})"


def _times(*factors: str) -> str:
    kept = [factor for factor in factors if factor != "1"]
    return f"(* {' '.join(kept)})" if len(kept) > 1 else kept[0] if kept else "1"


def _integer(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def script(
    premises: Iterable[tuple[str, Formula]], goal: Written, heading: Iterable[str] = (), status: str | None = None
) -> str:
    """A question as a self-contained SMT-LIB 2 text: unsat means that the goal never holds. `premises`: with their
    titles. `heading`: comments for a reader; `status`: the answer to expect."""
    text, heading = Text(), tuple(heading)
    asserted = [(title, text.formula(formula)) for title, formula in (*premises, ("can this hold?", goal))]
    lines = [
        "(set-logic QF_NIA)",
        *([] if status is None else [f"(set-info :status {status})"]),
        _comment(LEGEND),
        TABLE,
        *(f"(declare-const {symbol(name)} Int)" for name in text.names),
        *text.lines,
        *(line for title, term in asserted for line in (_comment(title), f"(assert {term})")),
        "(check-sat)",
        "",
    ]
    return "\n".join([*map(_comment, heading), *(line for line in lines if heading or not line.startswith("; "))])


def _comment(text: str) -> str:
    return f"; {visible(' '.join(text.split()))}"
