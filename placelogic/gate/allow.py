"""Comments that let a finding pass:

    sync experts over ep by sum        # placelogic: allow GI03 factor="ep" reason="scaled back, issue 41"

on the line of the finding, or on lines of their own above it. A factor is written as the finding tells it; what is wrong
by another one does not pass.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from placelogic.problem import closest
from placelogic.report.diagnostic import Finding
from placelogic.source import Span

_COMMENT = re.compile(r'^((?:[^"#]|"[^"]*")*)#')
_DIRECTIVE = re.compile(r"#\s*placelogic:\s*(?:(allow)\b|([a-z-]+)[\s:]+(?=[A-Z]{2}\d))(.*)$")
_BODY = re.compile(
    r"^\s*([A-Za-z]{2}\d+(?:(?:\s*,\s*|\s+)[A-Za-z]{2}\d+)*)\s*"
    r'(?:factor\s*=\s*"([^"]*)"\s*)?(?:reason\s*=\s*("[^"]*"|\S*)\s*)?$'
)
UNDECIDED_CLAIM = "CL02"
_INPUT_ERROR = re.compile(r"PL\d\d\d")
_FORM = 'write it as `# placelogic: allow GI03 reason="..."`'


class Allowed(Struct, frozen=True):
    """`line`: the line whose findings of these codes may pass. `factor`: by what they may be wrong; None: by any.
    `span`: the comment."""

    line: int
    codes: tuple[str, ...]
    factor: str | None
    reason: str
    span: Span

    def fits(self, finding: Finding) -> bool:
        """Whether it is by this factor that the finding is wrong, where it is by one."""
        return None in (self.factor, finding.factor) or _packed(self.factor) == _packed(finding.factor)


def allowances(text: str, path: str) -> tuple[list[Allowed], list[Finding]]:
    """Every such comment of a file, and what is wrong with those that say it wrongly (PL030 to PL033);
    they let nothing pass."""
    if "placelogic:" not in text:
        return [], []
    found: list[Allowed] = []
    wrong: list[Finding] = []
    lines = text.split("\n")
    below = _code_below(lines)
    for number, line in enumerate(lines, 1):
        comment = _COMMENT.match(line)
        directive = _DIRECTIVE.search(line, comment.end() - 1) if comment else None
        if comment is None or directive is None:
            continue
        span = Span(path, number, directive.start() + 1, number, len(line.rstrip()) + 1)
        code_before = comment[1].strip()
        target = number if code_before else below[number]
        one = _read(directive, target, span)
        if isinstance(one, Allowed):
            found.append(one)
        else:
            wrong.append(one)
    return found, wrong


def _code_below(lines: list[str]) -> list[int]:
    """For each line (from 1) the first below it that is no comment and not empty; 0, which is no line, where there
    is none."""
    found = [0] * (len(lines) + 1)
    for number in range(len(lines) - 1, 0, -1):
        line = lines[number].strip()
        found[number] = number + 1 if line and not line.startswith("#") else found[number + 1]
    return found


def _read(directive: re.Match[str], line: int, span: Span) -> Allowed | Finding:
    if directive[1] is None:
        return _wrong("PL030", f"`{directive[2]}` is no word that placelogic knows in a comment", span, _FORM)
    body = _BODY.match(directive[3])
    if body is None:
        return _wrong("PL030", "this comment does not say what it allows", span, _FORM)
    codes = tuple(dict.fromkeys(re.split(r"[\s,]+", body[1])))
    if not (body[3] or "").strip('" \t'):
        return _wrong("PL031", f"the reason why {_listed(codes)} may pass is missing", span, _FORM)
    if not (len(body[3]) > 1 and body[3][0] == body[3][-1] == '"'):
        return _wrong("PL030", "the reason stands in quotes", span, _FORM)
    for code in codes:
        if code not in known_codes() and not _INPUT_ERROR.fullmatch(code):
            hint = closest(code, known_codes()) or "`placelogic explain` lists all codes"
            return _wrong("PL032", f"there is no finding `{code}`", span, hint)
        if not acceptable(code):
            return _wrong("PL033", f"`{code}` cannot be accepted: {_why_not(code)}", span, "mend the spec instead")
    return Allowed(line, codes, body[2], body[3][1:-1].strip(), span)


def _packed(factor: str | None) -> str:
    return "".join((factor or "").split())


@cache
def known_codes() -> frozenset[str]:
    """Codes of findings that have a page of their own."""
    from placelogic.explain.entries import codes

    return frozenset(codes())


def acceptable(code: str) -> bool:
    """Whether a person may let it pass: what is known to be wrong, or costly. Not what nobody knows, what
    cannot be read, or what the person has asked for."""
    return code != UNDECIDED_CLAIM and code[:2] not in ("PL", "UN", "VA", "EX")


def _why_not(code: str) -> str:
    if code == UNDECIDED_CLAIM:
        return "nobody knows whether the claim is true"
    match code[:2]:
        case "UN":
            return "nobody knows whether the spec is right"
        case "VA":
            return "there is nothing to prove"
        case "EX":
            return "it is about what somebody asked for"
        case _:
            return "it is an error, with which the spec has no meaning yet"


def _listed(codes: tuple[str, ...]) -> str:
    return ", ".join(codes)


def _wrong(code: str, message: str, span: Span, hint: str) -> Finding:
    return Finding(code, "error", message, span, help=hint)
