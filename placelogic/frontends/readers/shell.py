"""The words of the commands of a shell script, as far as they can be known without running it.

Assignments, arrays, defaults, arithmetic, `source`, and branches on values that are known are followed. What is not known
stays as it is written, such as `$NODES`; a variable that has one value or another keeps all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from placelogic.files import whole
from placelogic.frontends.readers.conditions import UNKNOWN, compared
from placelogic.frontends.readers.expansions import Node, Values, Word, is_known, text_of
from placelogic.frontends.values import MAX_VALUES
from placelogic.io.reading import Unreadable, read_file
from placelogic.problem import Problem, SpecError

MAX_DEPTH = 100
"""Of statements in statements, functions and files that source each other."""
MAX_SCRIPT = 300_000
"""Bytes of a script, and of each file that it sources."""
MAX_NODES = 100_000
"""Parts of the syntax tree of a script."""
MOST_ALTERNATIVES = 16
SETS_UP = ("activate", "conda.sh", ".bashrc", ".profile", "profile", "setvars.sh")
"""Files that are sourced for the environment: no arguments come from them."""


class Script(Values):
    """`words`: those of all commands, with an empty one between them. `branches`: some commands may not be run."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__(path)
        self.words: list[Word] = []
        self.branches = False
        self._functions: dict[str, Node] = {}
        self._depth = 0
        self._file(text, path)
        for name, values in self.variables.items():  # for somebody else, who sources this
            if name not in self.used and any(word.text.startswith("--") for value in values for word in value):
                self._emit(self.every(values))

    def _file(self, text: str, path: str) -> None:
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        source = text.encode("utf-8", "replace")
        self.files.append((path, source))
        if len(source) > MAX_SCRIPT:
            raise self.too_large(f"this script has more than {MAX_SCRIPT} bytes")
        root = Parser(Language(tree_sitter_bash.language())).parse(source).root_node
        if root.descendant_count > MAX_NODES:
            raise self.too_large(f"this script has more than {MAX_NODES} parts")
        if root.has_error:
            message = "this cannot be read as a shell script"
            hint = "mend the quotes and brackets, or put the arguments into a file of their own"
            raise SpecError(Problem("PL500", message, self.span(_first_error(root)), hint))
        self._statements(root.children)
        self.files.pop()

    # --- statements ---------------------------------------------------------------------------

    def _statements(self, nodes: Iterable[Node]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.too_large(f"statements of this script are nested more than {MAX_DEPTH} deep")
        for node in nodes:
            self._statement(node)
        self._depth -= 1

    def _statement(self, node: Node) -> None:
        match node.type:
            case "variable_assignment":
                self.assign(node)
            case "command":
                self._command(node)
            case "if_statement":
                self._if(node)
            case "case_statement":
                self._case(node)
            case "for_statement" | "c_style_for_statement":
                name = node.child_by_field_name("variable")
                if name is not None:
                    self.variables.pop(text_of(name), None)
                self._branch([node.child_by_field_name("body").children], sure=False)
            case "while_statement":
                self._branch([node.child_by_field_name("body").children], sure=False)
            case "function_definition":
                self._functions[text_of(node.child_by_field_name("name"))] = node.child_by_field_name("body")
            case "list":
                left, right = node.named_children[0], node.named_children[-1]
                met = self._condition(left)
                if met is UNKNOWN:
                    self._statement(left)
                wanted = any(child.type == "&&" for child in node.children)
                if met is UNKNOWN and (
                    left.type in ("test_command", "negated_command") or text_of(left).startswith("((")
                ):
                    self._branch([[right]], sure=False)
                elif met is UNKNOWN or met == wanted:
                    self._statement(right)
            case "compound_statement" if text_of(node).startswith("(("):
                pass
            case "test_command" | "comment" | "heredoc_redirect" | "file_redirect" | "herestring_redirect":
                pass
            case "array" | "string" | "word" if node.parent.type == "ERROR":
                self._emit(self.expanded(node))
            case _:
                self._statements(node.named_children)

    def _command(self, node: Node) -> None:
        for child in node.named_children:
            if child.type == "variable_assignment":  # NAME=VALUE before a command
                self.assign(child)
        words = [
            word
            for child in node.named_children
            if child.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
            for word in self.expanded(child)
        ]
        if not words:
            return
        if words[0].text in ("source", ".") and len(words) > 1:
            self._source(words[1])
        elif words[0].text in self._functions:
            body = self._functions[words[0].text]
            outer = {name: self.variables.get(name) for name in map(str, range(1, len(words)))}
            self.variables |= {str(at): ((word,),) for at, word in enumerate(words[1:], 1)}
            self._statements(body.children)
            for name, value in outer.items():
                self.variables.pop(name, None)
                if value is not None:
                    self.variables[name] = value
        else:
            self._emit(words)

    def _source(self, word: Word) -> None:
        if not is_known(word.text) or os.path.basename(word.text) in SETS_UP or word.text.startswith("/etc/"):
            return
        path = os.path.join(os.path.dirname(self.files[-1][0]), word.text)
        if any(path == known for known, _ in self.files):
            raise SpecError(Problem("PL506", f"`{word.text}` sources itself", word.span))
        try:
            self._file(read_file(path, MAX_SCRIPT).decode("utf-8", "replace"), path)
        except (OSError, Unreadable):
            message = f"`{word.text}`, which this script sources, is not there"
            raise SpecError(
                Problem("PL506", message, word.span, "put it beside the script, or delete the line")
            ) from None

    def _emit(self, words: Iterable[Word]) -> None:
        end = Word("", whole(self.path))
        self.words += [end, *words, end]
        if len(self.words) > 4 * MAX_VALUES:
            raise self.too_large(f"this file holds more than {MAX_VALUES} words")

    # --- branches -----------------------------------------------------------------------------

    def _if(self, node: Node) -> None:
        bodies: list[Sequence[Node]] = []
        rest = node.named_children
        clauses = [child for child in rest if child.type in ("elif_clause", "else_clause")]
        parts = [(node, [child for child in rest if child not in clauses]), *((c, c.named_children) for c in clauses)]
        for clause, inner in parts:
            if clause.type == "else_clause":
                bodies.append(inner)
                return self._branch(bodies, sure=True)
            met = self._condition(inner[0]) if inner else UNKNOWN
            if met is True:
                bodies.append(inner[1:])
                return self._branch(bodies, sure=True)
            if met is UNKNOWN:
                bodies.append(inner[1:])
        return self._branch(bodies, sure=False)

    def _case(self, node: Node) -> None:
        value = self.written(node.child_by_field_name("value"))
        bodies: list[Sequence[Node]] = []
        for item in (child for child in node.named_children if child.type == "case_item"):
            patterns = item.children_by_field_name("value")
            body = [child for child in item.named_children if child not in patterns]
            if not is_known(value):
                bodies.append(body)
            elif any(fnmatchcase(value, self.written(pattern)) for pattern in patterns):
                return self._branch([body], sure=True)
        return self._branch(bodies, sure=False)

    def _branch(self, bodies: Sequence[Sequence[Node]], *, sure: bool) -> None:
        """One of these is run; `sure`: or else none."""
        if sure and len(bodies) == 1:
            return self._statements(bodies[0])
        if not bodies:
            return None
        self.branches = True
        before = self.variables
        after = [] if sure else [dict(before)]
        for body in bodies:
            self.variables = dict(before)
            self._statements(body)
            after.append(self.variables)
        names = dict.fromkeys(name for one in after for name in one)
        self.variables = {
            name: tuple(dict.fromkeys(value for one in after for value in one.get(name, ((),))))[:MOST_ALTERNATIVES]
            for name in names
        }
        return None

    def _condition(self, node: Node) -> bool | None:
        return compared(node, self.written, self.number)


def _first_error(node: Node) -> Node:
    """The first part that does not fit."""
    while node.type != "ERROR" and not node.is_missing:
        node = next((child for child in node.children if child.has_error or child.is_missing), None) or node.children[0]
    return node
