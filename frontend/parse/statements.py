"""Statements.

Source: Stan Reference Manual, "Statements".
"""

from __future__ import annotations

from typing import NoReturn

from ulam.frontend.diagnostics import Note, shortened
from ulam.frontend.parse.core import MAX_BRANCHES, MAX_NESTING, SyntaxProblem
from ulam.frontend.parse.declared_types import TypeParser
from ulam.frontend.parse.expressions import INFIX_POWERS
from ulam.frontend.parse.lexer import BLOCK_KEYWORDS, END, IDENTIFIER, STRING, TYPE_KEYWORDS
from ulam.frontend.syntax import (
    Assignment,
    BlockStatement,
    Break,
    Call,
    CallStatement,
    Continue,
    Empty,
    Expression,
    For,
    ForEach,
    If,
    Indexed,
    JacobianIncrement,
    Print,
    PrintKind,
    Profile,
    Return,
    Span,
    Statement,
    StringLiteral,
    TargetIncrement,
    Tilde,
    Truncation,
    TupleAssignment,
    TupleLiteral,
    TupleProjection,
    Variable,
    While,
)

ASSIGNMENT_OPERATORS = frozenset(("=", "+=", "-=", "*=", "/=", ".*=", "./="))

_TYPES = frozenset(TYPE_KEYWORDS)
_BLOCKS = frozenset(BLOCK_KEYWORDS)
_PRINTS = {"print": PrintKind.PRINT, "reject": PrintKind.REJECT, "fatal_error": PrintKind.FATAL_ERROR}
# What follows the closing brace of an array literal that begins a statement, but not the brace of a block.
_AFTER_ARRAY = (frozenset(INFIX_POWERS) | ASSIGNMENT_OPERATORS | {"~", "["}) - {"+", "-"}


class StatementParser(TypeParser):
    def statements_until_brace(self, opening: int, what: str, top_level: bool = False) -> list[Statement]:
        """Reads statements and the closing brace of the block that the token `opening` opens. `what` names the block.

        At `top_level` of a program's block declarations may be constrained.
        """
        result: list[Statement] = []
        while not self.closes_block(opening, what):
            began, depth = self.at, self.depth
            try:
                if self.kinds[self.at] in _TYPES:
                    result += self.declaration(top_level)
                else:
                    result.append(self.statement())
            except SyntaxProblem:
                self.depth = depth
                self.recover(began)
        return result

    def closes_block(self, opening: int, what: str) -> bool:
        """Reads a closing brace if there is one; where it is missing, reports that and takes it as read."""
        kind = self.kinds[self.at]
        if kind == "}":
            self.at += 1
            return True
        if kind == END or (kind in _BLOCKS and self.kinds[self.at + 1] == "{"):
            if self.at != self._last_reported:
                self._last_reported = self.at
                note = Note(f"{what} begins here", Span(self.starts[opening], self.ends[opening]))
                help = None
                if (inner := self._unclosed_inside(opening)) is not None:
                    start = self.starts[inner]
                    written = shortened(self.source.line_at(start).strip())
                    help = f"by its indentation, line {self.source.position(start)[0]} is not closed: `{written}`"
                message = f"expected '}}' to close {what}, found {self.found()}"
                self.report(self.token_span(), message, "unclosed", help, (note,))
            return True
        return False

    def _unclosed_inside(self, opening: int) -> int | None:
        """The brace inside of a block that is not closed, by the looks of it.

        That is the first one whose closing brace begins a line further left than the line of the opening one.
        """
        open_braces: list[int] = []
        for at in range(opening + 1, self.at):
            if self.kinds[at] == "{":
                open_braces.append(at)
            elif self.kinds[at] == "}" and open_braces:
                inner = open_braces.pop()
                if self.starts_line(at) and self._indentation(at) < self._indentation(inner):
                    return inner
        return open_braces[-1] if open_braces else None

    def _indentation(self, at: int) -> int:
        """How many blanks the line of a token begins with; a tab counts as eight."""
        line = self.source.line_at(self.starts[at]).expandtabs()
        return len(line) - len(line.lstrip())

    def statement(self) -> Statement:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail_nesting()
        at = self.at
        kind = self.kinds[at]
        if kind == IDENTIFIER:
            result = self._expression_statement()
        elif kind in _TYPES:
            result = self._sole_declaration()
        elif kind in _HEADS:
            result = _HEADS[kind](self)
        elif kind in _PRINTS:
            result = self._print()
        elif kind == "{":
            if self._is_array_literal():
                result = self._expression_statement()
            else:
                result = self.block("the block")
        elif kind == ";":
            self.at = at + 1
            result = Empty(span=Span(self.starts[at], self.ends[at]))
        else:
            self._check_beginning(kind)
            result = self._expression_statement()
        self.depth -= 1
        return result

    def block(self, what: str) -> BlockStatement:
        opening = self.at
        start = self.starts[opening]
        self.expect("{", f"to begin {what}")
        return BlockStatement(self.statements_until_brace(opening, what), span=self.span_from(start))

    def _sole_declaration(self) -> Statement:
        """A declaration as the body of a loop or branch; several names make a block."""
        declared = self.declaration(False)
        if len(declared) == 1:
            return declared[0]
        statements: list[Statement] = list(declared)
        return BlockStatement(statements, span=declared[0].span)

    def _check_beginning(self, kind: str) -> None:
        """Reports keywords that begin no statement."""
        if kind == "else":
            self.fail(
                "'else' has no 'if' before it",
                help="between the branches of an `if` stands no `;` and no second statement",
            )
        if kind == "data":
            self.fail("'data' qualifies arguments of functions only", help="leave it out of the declaration")
        if kind == "void":
            self.fail("'void' is the result type of a function, not the type of a variable")
        if kind in _BLOCKS:
            self.fail_expected("a statement", f"a program's block is written `{kind} {{ ... }}`")
        if kind == "target" and self.kinds[self.at + 1] in ("-=", "=", "*=", "/="):
            self.fail("the target can only be added to", help="write `target += ...;`")
        if kind in (")", "]", "}", ","):
            self.fail_expected("a statement")

    def _is_array_literal(self) -> bool:
        """Whether the brace at the position begins an array literal, as in `{a, b} ~ normal(0, 1);`, not a block."""
        kinds = self.kinds
        at = self.at + 1
        if kinds[at] == "}":
            return False
        open_braces = 1
        while open_braces > 0:
            kind = kinds[at]
            if kind == ";" or kind == END:
                return False  # every block with statements has a semicolon or another block
            if kind == "{":
                open_braces += 1
            elif kind == "}":
                open_braces -= 1
            at += 1
        return kinds[at] in _AFTER_ARRAY

    # -------------------------------------------------------------- control flow

    def _condition(self, keyword: str) -> Expression:
        self.expect("(", f"after '{keyword}'")
        condition = self.expression()
        self.expect(")", f"after the condition of '{keyword}'")
        return condition

    def _if(self) -> Statement:
        """`if` with its `else if`s, which are read in a loop: chains may be long."""
        heads: list[tuple[int, Expression, Statement]] = []
        otherwise: Statement | None = None
        while True:
            start = self.starts[self.at]
            self.at += 1
            condition = self._condition("if")
            heads.append((start, condition, self.statement()))
            if len(heads) > MAX_BRANCHES:
                self.fail_branches()
            if not self.accept("else"):
                break
            if self.kinds[self.at] != "if":
                otherwise = self.statement()
                break
        end = self.ends[self.at - 1]
        for start, condition, then in reversed(heads):
            otherwise = If(condition, then, otherwise, span=Span(start, end))
        assert otherwise is not None  # there was at least one `if`
        return otherwise

    def _while(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        condition = self._condition("while")
        return While(condition, self.statement(), span=self.span_from(start))

    def _for(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        self.expect("(", "after 'for'")
        if self.kinds[self.at] in _TYPES and self.kinds[self.at + 1] == IDENTIFIER:
            self.fail(
                "a loop variable is not declared with a type", help=f"write `for ({self.texts[self.at + 1]} in ...)`"
            )
        variable, variable_span = self.name("a loop variable")
        self.expect("in", f"after the loop variable '{variable}'")
        first = self.expression()
        if self.accept(":"):
            upper = self.expression()
            self.expect(")", "after the range of the loop")
            return For(variable, variable_span, first, upper, self.statement(), span=self.span_from(start))
        if self.kinds[self.at] != ")":
            self.fail_expected("':' or ')' after the first expression of the loop")
        self.at += 1
        return ForEach(variable, variable_span, first, self.statement(), span=self.span_from(start))

    def _break(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        self.semicolon("'break'")
        return Break(span=self.span_from(start))

    def _continue(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        self.semicolon("'continue'")
        return Continue(span=self.span_from(start))

    def _return(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        value: Expression | None = None
        if self.kinds[self.at] not in (";", "}"):
            value = self.expression()
        self.semicolon("the returned value" if value is not None else "'return'")
        return Return(value, span=self.span_from(start))

    def _profile(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        self.expect("(", "after 'profile'")
        if self.kinds[self.at] != STRING:
            self.fail_expected("the name of the profile, a string")
        name = self.texts[self.at][1:-1]
        self.at += 1
        self.expect(")", "after the name of the profile")
        opening = self.at
        self.expect("{", "to begin the profile's statements")
        statements = self.statements_until_brace(opening, f'the profile "{name}"')
        return Profile(name, statements, span=self.span_from(start))

    # -------------------------------------------------------------- simple statements

    def _print(self) -> Statement:
        start = self.starts[self.at]
        keyword = self.kinds[self.at]
        self.at += 1
        self.expect("(", f"after '{keyword}'")
        arguments: list[Expression] = []
        while True:
            if self.kinds[self.at] == STRING:
                text = self.texts[self.at][1:-1]
                arguments.append(StringLiteral(text, span=self.token_span()))
                self.at += 1
            else:
                arguments.append(self.expression())
            if self.accept(")"):
                break
            if self.kinds[self.at] != ",":
                help = "strings and values are separated by commas" if self.kinds[self.at - 1] == STRING else None
                self.fail_expected(f"',' or ')' in the arguments of '{keyword}'", help)
            self.at += 1
        self.semicolon(f"'{keyword}'")
        return Print(_PRINTS[keyword], arguments, span=self.span_from(start))

    def _target(self) -> Statement:
        if self.kinds[self.at + 1] != "+=":
            self._check_beginning("target")
            return self._expression_statement()
        start = self.starts[self.at]
        self.at += 2
        value = self.expression()
        self.semicolon("'target +='")
        return TargetIncrement(value, span=self.span_from(start))

    def _jacobian(self) -> Statement:
        start = self.starts[self.at]
        self.at += 1
        self.expect("+=", "after 'jacobian'")
        value = self.expression()
        self.semicolon("'jacobian +='")
        return JacobianIncrement(value, span=self.span_from(start))

    def _expression_statement(self) -> Statement:
        """A statement that begins with an expression: assignment, distribution statement, or call."""
        began = self.at
        start = self.starts[began]
        if self.kinds[began] == IDENTIFIER and self.kinds[began + 1] == IDENTIFIER:
            self._fail_unknown_type()
        expression = self.expression()
        kind = self.kinds[self.at]
        if kind in ASSIGNMENT_OPERATORS:
            return self._assignment(start, expression, kind)
        if kind == "~":
            return self._tilde(start, expression)
        if isinstance(expression, Call) and self.ends[self.at - 1] == expression.span.end:
            if expression.name == "increment_log_prob" and len(expression.arguments) == 1:
                self.report(
                    expression.name_span, "'increment_log_prob' is not part of Stan any more", "old-increment-log-prob",
                    f"write `target += {self._text_of(expression.arguments[0])};`",
                )  # fmt: skip
            self.semicolon(f"the call of '{expression.name}'")
            return CallStatement(expression, span=self.span_from(start))
        arrow = self._old_arrow(began)
        if arrow is not None:
            return self._old_assignment(began, arrow)
        self._fail_after_expression(expression)

    def _old_arrow(self, began: int) -> int | None:
        """The token of `<-` written without a blank, outside of brackets, in the expression just read."""
        depth = 0
        for at in range(began, self.at):
            kind = self.kinds[at]
            if kind in ("(", "[", "{"):
                depth += 1
            elif kind in (")", "]", "}"):
                depth -= 1
            elif kind == "<" and depth == 0 and self.kinds[at + 1] == "-" and self.starts[at + 1] == self.ends[at]:
                return at
        return None

    def _old_assignment(self, began: int, arrow: int) -> Assignment:
        """`x <- e`, which reads as `x < -e`: reported, and understood."""
        self.at = began
        target = self.expression(INFIX_POWERS["<"][1])
        self.report(
            Span(self.starts[arrow], self.ends[arrow + 1]),
            "`<-` is not an operator of assignment any more",
            "old-assignment",
            "write `=`",
        )
        self.at = arrow + 2
        value = self.expression()
        self.semicolon("the assignment")
        return Assignment(target, "=", value, span=self.span_from(self.starts[began]))

    def _fail_unknown_type(self) -> NoReturn:
        """Two names in a row: a declaration of an unknown type, most likely."""
        name = self.texts[self.at]
        self.fail(
            f"'{name}' is not a type of Stan, and no statement begins with two names",
            "unknown-type",
            "types are int, real, complex, vector, row_vector, matrix, array[...], tuple(...) and the constrained ones",
        )

    def _fail_after_expression(self, expression: Expression) -> NoReturn:
        if self.starts_line(self.at) or self.kinds[self.at] in (";", "}"):
            self.fail(
                "an expression alone is not a statement",
                help="a statement is `x = ...;`, `target += ...;`, `y ~ ...;` or the call of a function",
                span=expression.span,
            )
        self.fail_expected("'=', '~' or ';' after the expression")

    def _text_of(self, expression: Expression) -> str:
        return self.source.text[expression.span.start : expression.span.end]

    def _assignment(self, start: int, target: Expression, operator: str) -> Statement:
        operator_span = self.token_span()
        if isinstance(target, TupleLiteral):
            self._check_tuple_targets(target)
            if operator != "=":
                self.fail(f"a tuple cannot be assigned to with `{operator}`", span=operator_span)
        elif not _is_assignable(target):
            self._fail_not_assignable(target)
        self.at += 1
        value = self.expression()
        self.semicolon("the assignment")
        span = self.span_from(start)
        if isinstance(target, TupleLiteral):
            return TupleAssignment(target, value, span=span)
        return Assignment(target, operator, value, span=span)

    def _check_tuple_targets(self, targets: TupleLiteral) -> None:
        for element in targets.elements:
            if isinstance(element, TupleLiteral):
                self._check_tuple_targets(element)
            elif not _is_assignable(element):
                self._fail_not_assignable(element)

    def _fail_not_assignable(self, expression: Expression) -> NoReturn:
        self.fail(
            "this expression cannot be assigned to",
            "not-assignable",
            "a variable, elements of one (`x[i]`), a component of one (`t.1`) or a tuple of these can",
            expression.span,
        )

    def _tilde(self, start: int, variate: Expression) -> Statement:
        self.at += 1
        distribution, distribution_span = self.name("a distribution")
        self.expect("(", f"after the distribution '{distribution}'")
        arguments = self.expressions(")", f"in the arguments of '{distribution}'")
        truncation: Truncation | None = None
        if self.kinds[self.at] == IDENTIFIER and self.texts[self.at] == "T" and self.kinds[self.at + 1] == "[":
            truncation = self._truncation()
        self.semicolon("the distribution statement")
        return Tilde(variate, distribution, distribution_span, arguments, truncation, span=self.span_from(start))

    def _truncation(self) -> Truncation | None:
        """`T[l, u]`; `T[,]` truncates nothing."""
        start = self.starts[self.at]
        self.at += 2
        lower = upper = None
        if self.kinds[self.at] != ",":
            lower = self.expression()
        self.expect(",", "between the limits of the truncation")
        if self.kinds[self.at] != "]":
            upper = self.expression()
        self.expect("]", "after the limits of the truncation")
        if lower is None and upper is None:
            return None
        return Truncation(self.span_from(start), lower, upper)


def _is_assignable(expression: Expression) -> bool:
    while isinstance(expression, (Indexed, TupleProjection)):
        expression = expression.base
    return isinstance(expression, Variable)


# Keyword → method that reads the statement it begins.
_HEADS = {
    "if": StatementParser._if,  # pyright: ignore[reportPrivateUsage]
    "for": StatementParser._for,  # pyright: ignore[reportPrivateUsage]
    "while": StatementParser._while,  # pyright: ignore[reportPrivateUsage]
    "return": StatementParser._return,  # pyright: ignore[reportPrivateUsage]
    "break": StatementParser._break,  # pyright: ignore[reportPrivateUsage]
    "continue": StatementParser._continue,  # pyright: ignore[reportPrivateUsage]
    "profile": StatementParser._profile,  # pyright: ignore[reportPrivateUsage]
    "target": StatementParser._target,  # pyright: ignore[reportPrivateUsage]
    "jacobian": StatementParser._jacobian,  # pyright: ignore[reportPrivateUsage]
}
