"""Programs: their blocks in order, and functions. The entry points of the parser.

Source: Stan Reference Manual, "Program blocks", "User-defined functions".
"""

from __future__ import annotations

from ulam.frontend.diagnostics import Note
from ulam.frontend.parse.core import SyntaxProblem, parse_all
from ulam.frontend.parse.lexer import BLOCK_KEYWORDS, END, IDENTIFIER, TYPE_KEYWORDS
from ulam.frontend.parse.statements import StatementParser
from ulam.frontend.source import Source
from ulam.frontend.stan_types import VOID
from ulam.frontend.syntax import BlockStatement, Empty, FormalArgument, FunctionDefinition, Program, Span, Statement

_TYPES = frozenset(TYPE_KEYWORDS)
_BLOCK_ORDER = {keyword: place for place, keyword in enumerate(BLOCK_KEYWORDS)}
_DECLARATIONS_ONLY = ("data", "parameters")
# `model` has no variables that others see: its declarations are local.
_CONSTRAINED = ("transformed data", "transformed parameters", "generated quantities")


def parse_program(source: Source) -> Program:
    """The tree of a program; raises `DiagnosticError` with all syntax errors found."""
    parser = ProgramParser(source)
    return parse_all(source, parser, parser.program)


def parse_functions(source: Source) -> list[FunctionDefinition]:
    """The functions of a `.stanfunctions` file or of the library: definitions without a block around them."""
    parser = ProgramParser(source)
    return parse_all(source, parser, parser.bare_functions)


class ProgramParser(StatementParser):
    def program(self) -> Program:
        program = Program(Span(0, len(self.source.text)))
        seen: dict[str, int] = {}  # block → token of its keyword
        while self.kinds[self.at] != END:
            keyword = self.kinds[self.at]
            try:
                if keyword not in _BLOCK_ORDER:
                    self._fail_no_block()
                self._check_order(keyword, seen)
                self._block_of_program(keyword, program)
            except SyntaxProblem:
                self.depth = 0
                self._skip_to_block()
        return program

    def bare_functions(self) -> list[FunctionDefinition]:
        result: list[FunctionDefinition] = []
        while self.kinds[self.at] != END:
            began = self.at
            try:
                if self.kinds[began] in _BLOCK_ORDER and self.kinds[began + 1] == "{":
                    self.fail(
                        f"found the block '{self.kinds[began]}' in a file of functions",
                        help="such a file has function definitions only, without a block around them",
                    )
                result.append(self._function())
            except SyntaxProblem:
                self.depth = 0
                self.recover(began)
                if self.at == began or self.kinds[self.at] == "}" or self.kinds[self.at] in _BLOCK_ORDER:
                    self.at += self.kinds[self.at] != END
        return result

    # -------------------------------------------------------------- blocks

    def _check_order(self, keyword: str, seen: dict[str, int]) -> None:
        place = _BLOCK_ORDER[keyword]
        at = self.at
        if keyword in seen:
            first = seen[keyword]
            note = Note("the first one is here", Span(self.starts[first], self.ends[first]))
            self.report(self.token_span(), f"a program has one {keyword} block only", "block-order", None, (note,))
        else:
            later = [other for other in seen if _BLOCK_ORDER[other] > place]
            if later:
                order = ", ".join(BLOCK_KEYWORDS)
                self.report(
                    self.token_span(), f"the {keyword} block must stand before the {later[0]} block", "block-order",
                    f"the order is {order}",
                )  # fmt: skip
        seen.setdefault(keyword, at)

    def _block_of_program(self, keyword: str, program: Program) -> None:
        start = self.starts[self.at]
        self.at += 1
        opening = self.at
        what = f"the {keyword} block"
        self.expect("{", f"after '{keyword}'")
        if keyword == "functions":
            self._functions(opening, program)
            return
        if keyword in _DECLARATIONS_ONLY:
            statements = self._declarations(opening, keyword)
        else:
            statements = self.statements_until_brace(opening, what, keyword in _CONSTRAINED)
        setattr(program, keyword.replace(" ", "_"), BlockStatement(statements, span=self.span_from(start)))

    def _functions(self, opening: int, program: Program) -> None:
        while not self.closes_block(opening, "the functions block"):
            began = self.at
            try:
                program.functions.append(self._function())
            except SyntaxProblem:
                self.depth = 0
                self.recover(began)

    def _declarations(self, opening: int, block: str) -> list[Statement]:
        result: list[Statement] = []
        while not self.closes_block(opening, f"the {block} block"):
            began = self.at
            try:
                kind = self.kinds[began]
                if kind in _TYPES:
                    result += self.declaration(True, block)
                elif kind == ";":
                    self.at += 1
                    result.append(Empty(span=Span(self.starts[began], self.ends[began])))
                else:
                    self._fail_no_declaration(block)
            except SyntaxProblem:
                self.depth = 0
                self.recover(began)
        return result

    def _fail_no_declaration(self, block: str) -> None:
        at = self.at
        if self.kinds[at] == IDENTIFIER and self.kinds[at + 1] == IDENTIFIER:
            self._fail_unknown_type()
        if self.kinds[at] == "data":
            self._check_beginning("data")
        self.fail(
            f"expected a declaration in the {block} block, found {self.found()}",
            help=f"statements belong to the transformed {block} block or the model block",
        )

    def _fail_no_block(self) -> None:
        at = self.at
        kind = self.kinds[at]
        help = "blocks are " + ", ".join(BLOCK_KEYWORDS)
        if kind == "}":
            help = "there is one closing brace too many here or above"
        elif kind in _TYPES or kind == "void":
            help = "declarations and functions stand inside of a block, as in `data { ... }`"
        elif kind == IDENTIFIER and self.texts[at] in ("transformed", "generated"):
            following = self.texts[at + 1] if self.kinds[at + 1] in (IDENTIFIER, "data", "parameters") else "..."
            help = f"write `{self.texts[at]} {following}` on one line"
        self.fail(f"expected a block of a program, found {self.found()}", "syntax", help)

    def _skip_to_block(self) -> None:
        """Moves to the next block of the program."""
        kinds = self.kinds
        while kinds[self.at] != END and not (kinds[self.at] in _BLOCK_ORDER and kinds[self.at + 1] == "{"):
            self.at += 1

    # -------------------------------------------------------------- functions

    def _function(self) -> FunctionDefinition:
        """`type name(arguments) { ... }`, or with `;` a declaration ahead of the definition."""
        at = self.at
        start = self.starts[at]
        if self.kinds[at] == "void":
            self.at += 1
            result = VOID
        else:
            self._check_function_beginning()
            result = self.unsized_type("the result")
        name, name_span = self.name("a function")
        self.expect("(", f"after the name of the function '{name}'")
        arguments: list[FormalArgument] = []
        if not self.accept(")"):
            while True:
                arguments.append(self._argument())
                if self.accept(")"):
                    break
                if self.kinds[self.at] != ",":
                    self.fail_expected(f"',' or ')' in the arguments of '{name}'")
                self.at += 1
        if self.accept(";"):
            return FunctionDefinition(self.span_from(start), name, name_span, result, arguments, None)
        if self.kinds[self.at] != "{":
            self.fail_expected(f"'{{' and the body of the function '{name}', or ';' to declare it only")
        body = self.block(f"the function '{name}'")
        return FunctionDefinition(self.span_from(start), name, name_span, result, arguments, body)

    def _check_function_beginning(self) -> None:
        kind = self.kinds[self.at]
        if kind in _TYPES:
            return
        if kind == IDENTIFIER and self.kinds[self.at + 1] == "(":
            self.fail(
                f"the function '{self.texts[self.at]}' has no result type", help="one that returns nothing is `void`"
            )
        if kind == IDENTIFIER and self.kinds[self.at + 1] == IDENTIFIER:
            self._fail_unknown_type()
        self.fail_expected("the definition of a function: its result type, name and arguments")

    def _argument(self) -> FormalArgument:
        start = self.starts[self.at]
        data_only = self.accept("data")
        type_ = self.unsized_type("an argument")
        name, _ = self.name("an argument")
        if self.kinds[self.at] == "[":
            self.fail(
                f"the dimensions of the argument '{name}' stand after its name", "old-array-syntax",
                f"write `array[] {type_} {name}`",
            )  # fmt: skip
        return FormalArgument(self.span_from(start), name, type_, data_only)
