"""A reader of the formulas that are exported to LaTeX, written apart from what prints them: it gives their value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

TOKEN = re.compile(
    r"\s*(?P<token>\\(?:left|right)(?:\\[a-z]+|[(){}])|\\(?:begin|end)\{cases\}|\\text\{[^}]*\}|\\mathrm\{(?:[^{}\\]|\\.)*\}"
    r"|\\\\|\\:|\\[A-Za-z]+|[A-Za-z](?:_\{(?:[^{}\\]|\\.)*\})?|\d+|[-+*/^=<>&,(){}])"
)


class Reader:
    """`sizes`: symbol, as LaTeX, to value; None gives every symbol the value 2."""

    def __init__(self, text: str, sizes: Mapping[str, Fraction] | None) -> None:
        self.sizes = sizes
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"no LaTeX that is known: {text[at:]!r}")
            self.tokens.append(found["token"])
            at = found.end()
        self.tokens.append("")
        self.at = 0

    def value(self) -> Fraction:
        result = self.sum()
        if self.next != "":
            raise self.wrong()
        return result

    # --- tokens ---

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        if wanted and self.next not in wanted:
            raise self.wrong()
        self.at += 1
        return self.tokens[self.at - 1]

    def wrong(self) -> ValueError:
        return ValueError(f"LaTeX is broken at {self.next!r} in {self.text!r}")

    # --- grammar ---

    def sum(self) -> Fraction:
        total = -self.product() if self.next == "-" and self.take() else self.product()
        while self.next in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self) -> Fraction:
        result = self.power()
        while self.next not in (
            "",
            "+",
            "-",
            "=",
            "&",
            ",",
            ")",
            "}",
            r"\\",
            r"\end{cases}",
        ) and not self.next.startswith(r"\right"):
            result *= self.power()
        return result

    def power(self) -> Fraction:
        base = self.factor()
        if self.next == "^":
            self.take()
            return base ** int(self.braced())
        return base

    def braced(self) -> Fraction:
        self.take("{")
        result = self.sum()
        self.take("}")
        return result

    def factor(self) -> Fraction:
        token = self.take()
        if token.isdigit():
            return Fraction(token)
        if token == r"\frac":
            above = self.braced()
            return above / self.braced()
        if token == r"\left(":
            result = self.sum()
            self.take(r"\right)")
            return result
        if token == r"\left\lceil":
            result = self.braced()
            self.take(r"\right\rceil")
            return Fraction(math.ceil(result))
        if token in (r"\max", r"\min"):
            return self.among(max if token == r"\max" else min)
        if token == r"\begin{cases}":
            return self.cases()
        if re.fullmatch(r"[A-Za-z](_{.*})?|\\mathrm{.*}|\\[A-Za-z]+", token) and token not in (r"\left", r"\right"):
            if self.sizes is None and not token.startswith(r"\unknown"):
                return Fraction(2)
            if self.sizes is not None and token in self.sizes:
                return self.sizes[token]
        self.at -= 1
        raise self.wrong()

    def among(self, choose: Callable[[list[Fraction]], Fraction]) -> Fraction:
        self.take(r"\left(")
        values = [self.sum()]
        while self.next == ",":
            self.take()
            values.append(self.sum())
        self.take(r"\right)")
        return choose(values)

    def cases(self) -> Fraction:
        chosen: Fraction | None = None
        while True:
            value = self.sum()
            self.take("&")
            word = self.take(r"\text{for}", r"\text{otherwise}")
            holds = True
            if word == r"\text{for}":
                self.take(r"\:")
                left = self.sum()
                self.take("=")
                holds = left == self.sum()
            if holds and chosen is None:
                chosen = value
            if self.take(r"\\", r"\end{cases}") == r"\end{cases}":
                if chosen is None:
                    raise self.wrong()
                return chosen
