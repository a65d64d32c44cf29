"""The words of the commands of a shell script, as far as they can be known without running it.

Assignments, arrays, defaults, arithmetic, `source`, and branches on values that are known are followed. What is not known
stays as it is written, such as `$NODES`; a variable that has one value or another keeps all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from placelogic.files import whole
from placelogic.frontends.readers.conditions import UNKNOWN, compared
from placelogic.frontends.readers.expansions import Node, Values, Word, Words, is_known, text_of
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
NO_LAUNCH = frozenset(
    "echo printf : true false cat ls rm mkdir cp mv cd pushd popd grep sed awk kill pkill sleep date nvidia-smi pip pip3 apt "
    "apt-get git wget curl tee set shift trap wait ulimit tar ln find du df test hostname module make".split()
)
"""Commands whose arguments are no settings of a training."""
_CHANGES = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
"""In arithmetic."""
_SETS = re.compile(r"(?:^|[\s;(])([A-Za-z_]\w*)(?=$|[\s;=\[]|[-+*/%]=|\+\+|--)")
"""Names in the arguments of commands that set variables."""
SETS_UP = ("activate", "conda.sh", ".bashrc", ".profile", "profile", "setvars.sh")
"""Files that are sourced for the environment: no arguments come from them."""


class Script(Values):
    """`words`: those of all commands, with an empty one between them. `branches`: some commands may not be run."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__(path)
        self.words: list[Word] = []
        self.branches = False
        self._functions: dict[str, Node] = {}
        self._locals: list[dict[str, tuple[Words, ...] | None]] = []
        self._ended = False
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
            if self._ended:
                break
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
            case "for_statement" | "c_style_for_statement" | "while_statement":
                self._unfollowed(node)
                self._branch([node.child_by_field_name("body").children], sure=False)
            case "function_definition":
                self._functions[text_of(node.child_by_field_name("name"))] = node.child_by_field_name("body")
            case "list":
                self._list(node)
            case "subshell" | "pipeline":
                self._apart(node.named_children, one_by_one=node.type == "pipeline")
            case "declaration_command":
                self._declare(node)
            case "unset_command":
                for child in node.named_children:
                    self.variables.pop(text_of(child), None)
            case "compound_statement" if text_of(node).startswith("(("):
                self._counted(node)
            case "program" | "compound_statement" | "do_group" | "redirected_statement":
                self._statements(node.named_children)
            case "test_command" | "comment" | "heredoc_redirect" | "file_redirect" | "herestring_redirect":
                pass
            case _:
                self._branch([node.named_children], sure=False)

    def _list(self, node: Node) -> None:
        """`left && right` or `left || right`."""
        left, right = node.named_children[0], node.named_children[-1]
        met = self._condition(left)
        if met is UNKNOWN or text_of(left).startswith("(("):
            self._statement(left)
        if met is UNKNOWN:
            self._branch([[right]], sure=False)
        elif met == any(child.type == "&&" for child in node.children):
            self._statement(right)

    def _apart(self, nodes: Sequence[Node], *, one_by_one: bool) -> None:
        """In processes of their own: what they assign is theirs."""
        before = dict(self.variables)
        for several in [[node] for node in nodes] if one_by_one else [nodes]:
            self._statements(several)
            self.variables, self._ended = dict(before), False

    def _declare(self, node: Node) -> None:
        """`export`, `declare`, `local` and their like."""
        for child in node.named_children:
            if child.type == "variable_assignment":
                name = child.child_by_field_name("name")
                if node.children[0].type == "local" and name is not None and self._locals:
                    self._locals[-1].setdefault(text_of(name), self.variables.get(text_of(name)))
                self.assign(child)

    def _counted(self, node: Node) -> None:
        """`((...))`: what it changes is not followed."""
        if _CHANGES.search(text_of(node)):
            self._unfollowed(node)

    def _unfollowed(self, node: Node) -> None:
        """The variables that stand in a statement have values that are not followed, where it may change them."""
        header = [child for child in node.named_children if child != node.child_by_field_name("body")]
        for child in header:
            for name in [child, *child.named_children]:
                if name.type in ("variable_name", "word") and name.parent.type != "test_command":
                    self.unknown(text_of(name))

    def _command(self, node: Node) -> None:
        words = [
            word
            for child in node.named_children
            if child.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
            for word in self.expanded(child)
        ]
        match [word.text for word in words]:
            case []:
                pass
            case ["set", "--", *_]:
                self.variables["@"] = (tuple(words[2:]),)
            case ["source" | ".", _, *_]:
                self._source(words[1])
            case [("exit" | "return") as name, *_]:
                self._ended = name == "exit" or bool(self._locals)
            case [name, *_] if name in self._functions:
                self._call(self._functions[name], words[1:])
            case ["read" | "mapfile" | "readarray" | "getopts" | "let" | "eval" | "printf" as name, *rest]:
                for text in rest:
                    for variable in _SETS.findall(text):
                        self.unknown(variable)
                if name == "eval":
                    self._emit(words[1:])
            case [name, *_] if os.path.basename(name) not in NO_LAUNCH:
                self._emit(words)

    def _call(self, body: Node, words: Sequence[Word]) -> None:
        given = {str(at): ((word,),) for at, word in enumerate(words, 1)} | {"@": (tuple(words),)}
        self._locals.append({name: self.variables.get(name) for name in given})
        self.variables |= given
        self._statements([body])
        self._ended = False
        for name, value in self._locals.pop().items():
            self.variables.pop(name, None)
            if value is not None:
                self.variables[name] = value

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
            self._ended = False
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
