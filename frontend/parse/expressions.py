"""Expressions: operator precedence by binding powers (Pratt), and everything an operand can be.

From loosest to tightest: `?:`, `||`, `&&`, equality, comparison, `+ -`, `* / % .* ./`, `%/% \\`, prefix operators,
`^ .^` (to the right), transposition, then calls, indexes and tuple components.
Source: Stan Reference Manual, "Expressions", table of operator precedence.
"""

from __future__ import annotations

from typing import NoReturn

from ulam.frontend.diagnostics import shortened
from ulam.frontend.parse.core import MAX_BRANCHES, MAX_NESTING, TokenCursor
from ulam.frontend.parse.lexer import DOT_INT, IDENTIFIER, IMAGINARY, INT, KEYWORDS, REAL, STRING, TYPE_KEYWORDS
from ulam.frontend.syntax import (
    ArrayLiteral,
    Binary,
    Call,
    Conditional,
    Expression,
    ImaginaryLiteral,
    Index,
    Indexed,
    IndexKind,
    IntLiteral,
    Parenthesized,
    RealLiteral,
    RowVectorLiteral,
    Span,
    TupleLiteral,
    TupleProjection,
    Unary,
    Variable,
)

# Operator → (its binding power, the least power of operators in its right operand; `^` collects those to the right).
INFIX_POWERS: dict[str, tuple[int, int]] = {
    "?": (1, 1),
    "||": (2, 3),
    "&&": (3, 4),
    "==": (4, 5), "!=": (4, 5),
    "<": (5, 6), "<=": (5, 6), ">": (5, 6), ">=": (5, 6),
    "+": (6, 7), "-": (6, 7),
    "*": (7, 8), "/": (7, 8), "%": (7, 8), ".*": (7, 8), "./": (7, 8),
    "%/%": (8, 9), "\\": (8, 9),
    "^": (10, 11), ".^": (10, 11),
    "'": (11, 11),
}  # fmt: skip
PREFIX_POWER = 9
POWER_OPERATORS = frozenset(("^", ".^"))
PREFIX_OPERATORS = frozenset("-+!")
MAX_COMPONENT = 10**6  # more elements than any tuple has
ADDITIVE_POWER = 6  # bounds, offsets and multipliers have no looser operators, so that `>` ends the constraint

_TYPES = frozenset(TYPE_KEYWORDS)


class ExpressionParser(TokenCursor):
    def expression(self, minimum: int = 0) -> Expression:
        """Reads an expression whose operators outside of parentheses bind at least as tightly as `minimum`."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail_nesting()
        kinds = self.kinds
        start = self.starts[self.at]
        left = self.operand()
        # Operators in a row are read in a loop, however many: the tree may be as deep as the row is long.
        while True:
            operator = kinds[self.at]
            powers = INFIX_POWERS.get(operator)
            if powers is None or powers[0] < minimum:
                break
            self.at += 1
            if operator == "'":
                left = Unary(operator, left, span=Span(start, self.ends[self.at - 1]))
                if kinds[self.at] == "[" or kinds[self.at] == DOT_INT:
                    self.fail("a transposed expression must be in parentheses to be indexed", help="write `(x')[i]`")
            elif operator == "?":
                left = self._conditionals(left)
            elif operator in POWER_OPERATORS:
                left = self._powers(operator, left, powers[1])
            else:
                right = self.expression(powers[1])
                left = Binary(operator, left, right, span=Span(start, right.span.end))
        self.depth -= 1
        return left

    def _conditionals(self, condition: Expression) -> Expression:
        """`c ? a : d ? b : e`, which is `c ? a : (d ? b : e)`, behind the first `?`."""
        heads: list[tuple[Expression, Expression]] = []
        while True:
            then = self.expression()
            self.expect(":", "and the value for a false condition")
            heads.append((condition, then))
            if len(heads) > MAX_BRANCHES:
                self.fail_branches()
            otherwise = self.expression(INFIX_POWERS["?"][1] + 1)
            if not self.accept("?"):
                break
            condition = otherwise
        for condition, then in reversed(heads):
            otherwise = Conditional(condition, then, otherwise, span=Span(condition.span.start, otherwise.span.end))
        return otherwise

    def _powers(self, operator: str, left: Expression, minimum: int) -> Expression:
        """`a ^ b ^ c`, which is `a ^ (b ^ c)`, behind the first operator."""
        bases = [(left, operator)]
        right = self.expression(minimum)
        while self.kinds[self.at] in POWER_OPERATORS:
            bases.append((right, self.kinds[self.at]))
            self.at += 1
            right = self.expression(minimum)
        for base, between in reversed(bases):
            right = Binary(between, base, right, span=Span(base.span.start, right.span.end))
        return right

    def operand(self) -> Expression:
        """Reads a literal, name, call, parenthesis or prefix operation, with the indexes and components taken of it."""
        at = self.at
        kind = self.kinds[at]
        start = self.starts[at]
        base: Expression
        if kind == IDENTIFIER:
            self.at = at + 1
            if self.kinds[at + 1] == "(":
                base = self._call(self.texts[at], Span(start, self.ends[at]))
            else:
                base = Variable(self.texts[at], span=Span(start, self.ends[at]))
        elif kind == INT:
            self.at = at + 1
            base = IntLiteral(self.texts[at].replace("_", ""), span=Span(start, self.ends[at]))
        elif kind == REAL or kind == DOT_INT:
            self.at = at + 1
            base = RealLiteral(self.texts[at].replace("_", ""), span=Span(start, self.ends[at]))
        elif kind in PREFIX_OPERATORS:
            while self.kinds[self.at] in PREFIX_OPERATORS:
                self.at += 1
            signs = range(at, self.at)
            operand = self.expression(PREFIX_POWER)
            for sign in reversed(signs):
                operand = Unary(self.kinds[sign], operand, span=Span(self.starts[sign], operand.span.end))
            return operand
        elif kind == "(":
            base = self._parenthesis()
        elif kind == "[" or kind == "{":
            base = self._literal_container(kind)
        elif kind == "target" and self.kinds[at + 1] == "(":
            self.at = at + 2
            self.expect(")", "after `target(`")
            base = Call("target", [], Span(start, self.ends[at]), span=self.span_from(start))
        elif kind == IMAGINARY:
            self.at = at + 1
            base = ImaginaryLiteral(self.texts[at][:-1].replace("_", ""), span=Span(start, self.ends[at]))
        else:
            self._fail_operand(kind)
        following = self.kinds[self.at]
        while following == "[" or following == DOT_INT:
            if following == "[":
                indices = self._indices()
                base = Indexed(base, indices, span=self.span_from(start))
            else:
                digits = self.texts[self.at][1:].replace("_", "").lstrip("0") or "0"
                if len(digits) > len(str(MAX_COMPONENT)):
                    self.fail(f"a tuple has no element {shortened(digits)}", "tuple-index")
                self.at += 1
                base = TupleProjection(base, int(digits), span=self.span_from(start))
            following = self.kinds[self.at]
        return base

    def expressions(self, closing: str, after: str) -> list[Expression]:
        """Reads expressions between commas, none or more, and the closing bracket."""
        result: list[Expression] = []
        if self.accept(closing):
            return result
        while True:
            result.append(self.expression())
            kind = self.kinds[self.at]
            if kind == closing:
                self.at += 1
                return result
            if kind != ",":
                self.fail_expected(f"',' or '{closing}' {after}")
            self.at += 1

    def _call(self, name: str, name_span: Span) -> Call:
        """`f(a, b)` or `f(y | a, b)`, at the parenthesis."""
        self.at += 1
        if self.kinds[self.at] == ")":
            self.at += 1
            return Call(name, [], name_span, span=self.span_from(name_span.start))
        first = self.expression()
        if self.accept("|"):
            arguments = [first, *self.expressions(")", f"in the arguments of '{name}'")]
            return Call(name, arguments, name_span, True, span=self.span_from(name_span.start))
        if self.accept(","):
            arguments = [first, *self._at_least_one(")", f"in the arguments of '{name}'")]
        else:
            if self.kinds[self.at] != ")":
                self.fail_expected(f"',', '|' or ')' in the arguments of '{name}'")
            self.at += 1
            arguments = [first]
        return Call(name, arguments, name_span, span=self.span_from(name_span.start))

    def _at_least_one(self, closing: str, after: str) -> list[Expression]:
        if self.kinds[self.at] == closing:
            self.fail(f"expected an expression after ',' {after}, found '{closing}'")
        return self.expressions(closing, after)

    def _parenthesis(self) -> Expression:
        """`(e)`, or a tuple `(a, b)`, `(a,)`."""
        start = self.starts[self.at]
        self.at += 1
        inner = self.expression()
        if self.accept(","):
            elements = [inner, *self.expressions(")", "in the tuple")]
            return TupleLiteral(elements, span=self.span_from(start))
        self.expect(")", "to close the parenthesis")
        return Parenthesized(inner, span=self.span_from(start))

    def _literal_container(self, kind: str) -> Expression:
        start = self.starts[self.at]
        self.at += 1
        if kind == "[":
            elements = self.expressions("]", "in the row vector or matrix")
            return RowVectorLiteral(elements, span=self.span_from(start))
        if self.kinds[self.at] == "}":
            self.fail("an array cannot be written without elements: its type would be unknown")
        elements = self.expressions("}", "in the array")
        return ArrayLiteral(elements, span=self.span_from(start))

    def _indices(self) -> list[Index]:
        """`[i, a:b, a:, :b, :, ]`, at the bracket."""
        self.at += 1
        result: list[Index] = []
        kinds = self.kinds
        while True:
            start = self.starts[self.at]
            lower = upper = None
            kind = kinds[self.at]
            if kind == "," or kind == "]":
                result.append(Index(Span(start, start), IndexKind.ALL))
            else:
                if kind != ":":
                    lower = self.expression()
                index_kind = IndexKind.SINGLE
                if self.accept(":"):
                    if kinds[self.at] not in (",", "]"):
                        upper = self.expression()
                    if lower is None:
                        index_kind = IndexKind.ALL if upper is None else IndexKind.TO
                    else:
                        index_kind = IndexKind.FROM if upper is None else IndexKind.BETWEEN
                result.append(Index(self.span_from(start), index_kind, lower, upper))
            kind = kinds[self.at]
            if kind == "]":
                self.at += 1
                return result
            if kind != ",":
                self.fail_expected("',', ':' or ']' in the index")
            self.at += 1

    def _fail_operand(self, kind: str) -> NoReturn:
        before = self.kinds[self.at - 1] if self.at > 0 else ""
        if kind == STRING:
            self.fail("a string is allowed only in print, reject, fatal_error and profile")
        if kind == "'":
            text = self.source.text[self.ends[self.at] :].partition("\n")[0]
            if "'" in text:
                self.fail_expected("an expression", f'strings are in double quotes: "{text.partition(chr(39))[0]}"')
        if kind == "=" and before in ("=", "!", "<", ">"):
            self.fail_expected("an expression")
        if kind == ";" and before in ("+", "-") and self.kinds[self.at - 2] == before:
            sign = before
            self.fail_expected("an expression", f"add to a variable with `x {sign}= 1;`")
        if kind == "target":
            self.fail("'target' is not a variable", "reserved-word", "its value so far is `target()`")
        if kind in _TYPES:
            self.fail(
                f"expected an expression, found the type '{kind}'",
                help="a conversion is a function, as in `to_vector(x)`; a declaration is a statement of its own",
            )
        if kind in KEYWORDS:
            self.fail(f"expected an expression, found '{kind}', a reserved word of Stan", "reserved-word")
        self.fail_expected("an expression")
