"""Types as written: with sizes and constraints in declarations, without them for arguments and results of functions.

Source: Stan Reference Manual, "Data types and declarations", "Argument types and qualifiers".
"""

from __future__ import annotations

from ulam.frontend.parse.expressions import ADDITIVE_POWER, ExpressionParser
from ulam.frontend.parse.lexer import IDENTIFIER, TYPE_KEYWORDS
from ulam.frontend.stan_types import (
    COMPLEX,
    COMPLEX_MATRIX,
    COMPLEX_ROW_VECTOR,
    COMPLEX_VECTOR,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    VECTOR,
    StanType,
    TupleType,
    array_of,
)
from ulam.frontend.syntax import Constraint, ConstraintKind, Declaration, Expression, SizedType, Span
from ulam.library.records import record


@record(frozen=True, slots=True)
class TypeForm:
    """How a basic type is written: how many sizes, and what it means."""

    type: StanType
    fewest_sizes: int
    most_sizes: int
    constraint: ConstraintKind = ConstraintKind.NONE  # that the keyword itself stands for

    def example(self, keyword: str) -> str:
        return keyword + ("", "[N]", "[M, N]")[self.fewest_sizes]


TYPE_FORMS: dict[str, TypeForm] = {
    "int": TypeForm(INT, 0, 0),
    "real": TypeForm(REAL, 0, 0),
    "complex": TypeForm(COMPLEX, 0, 0),
    "vector": TypeForm(VECTOR, 1, 1),
    "row_vector": TypeForm(ROW_VECTOR, 1, 1),
    "matrix": TypeForm(MATRIX, 2, 2),
    "complex_vector": TypeForm(COMPLEX_VECTOR, 1, 1),
    "complex_row_vector": TypeForm(COMPLEX_ROW_VECTOR, 1, 1),
    "complex_matrix": TypeForm(COMPLEX_MATRIX, 2, 2),
    "simplex": TypeForm(VECTOR, 1, 1, ConstraintKind.SIMPLEX),
    "ordered": TypeForm(VECTOR, 1, 1, ConstraintKind.ORDERED),
    "positive_ordered": TypeForm(VECTOR, 1, 1, ConstraintKind.POSITIVE_ORDERED),
    "unit_vector": TypeForm(VECTOR, 1, 1, ConstraintKind.UNIT_VECTOR),
    "sum_to_zero_vector": TypeForm(VECTOR, 1, 1, ConstraintKind.SUM_TO_ZERO_VECTOR),
    "sum_to_zero_matrix": TypeForm(MATRIX, 2, 2, ConstraintKind.SUM_TO_ZERO_MATRIX),
    "cholesky_factor_corr": TypeForm(MATRIX, 1, 1, ConstraintKind.CHOLESKY_FACTOR_CORR),
    "cholesky_factor_cov": TypeForm(MATRIX, 1, 2, ConstraintKind.CHOLESKY_FACTOR_COV),
    "corr_matrix": TypeForm(MATRIX, 1, 1, ConstraintKind.CORR_MATRIX),
    "cov_matrix": TypeForm(MATRIX, 1, 1, ConstraintKind.COV_MATRIX),
    "column_stochastic_matrix": TypeForm(MATRIX, 2, 2, ConstraintKind.COLUMN_STOCHASTIC_MATRIX),
    "row_stochastic_matrix": TypeForm(MATRIX, 2, 2, ConstraintKind.ROW_STOCHASTIC_MATRIX),
}

_TYPES = frozenset(TYPE_KEYWORDS)
# Words of a constraint → the word that may follow after a comma, and the constraint they make.
_CONSTRAINT_WORDS = {
    "lower": ("upper", ConstraintKind.BOUNDS),
    "upper": ("lower", ConstraintKind.BOUNDS),
    "offset": ("multiplier", ConstraintKind.OFFSET_MULTIPLIER),
    "multiplier": ("offset", ConstraintKind.OFFSET_MULTIPLIER),
}
# Operators that cannot begin a statement: on a new line they continue an expression that went wrong.
INFIX_ON_NEXT_LINE = frozenset(("=", "*", "/", "^", "<", ">", "~", ")", "]", ",", "|", "?", ":"))
_OLD_ARRAY_HELP = "since Stan 2.33, array sizes come first: "


class TypeParser(ExpressionParser):
    # -------------------------------------------------------------- declarations

    def declaration(self, constraints_allowed: bool, block: str | None = None) -> list[Declaration]:
        """`type a, b = 2;`. `block` names the block if it is one whose variables have no initial value."""
        start = self.starts[self.at]
        type_ = self.sized_type(constraints_allowed)
        result: list[Declaration] = []
        while True:
            if result and self.kinds[self.at] in _TYPES:
                self.fail(
                    f"expected the name of a variable after ',', found the type '{self.kinds[self.at]}'",
                    help="the variables of a declaration have one type; end it with `;` to begin one of another type",
                )
            name, name_span = self.name("a variable")
            of_name = type_
            if self.kinds[self.at] == "[":
                of_name = self._old_array(type_, name)
            initial: Expression | None = None
            if self.kinds[self.at] == "=":
                if block is not None:
                    self.fail(
                        f"'{name}' cannot be given a value: variables of the {block} block get theirs from outside",
                        help=f"declare it in the transformed {block} block",
                    )
                self.at += 1
                initial = self.expression()
            result.append(Declaration(of_name, name, name_span, initial, span=name_span))
            if not self.accept(","):
                break
        self._end_declaration(result)
        span = self.span_from(start)
        for declaration in result:
            declaration.span = span
        return result

    def _end_declaration(self, declared: list[Declaration]) -> None:
        if (
            self.kinds[self.at] == "<"
            and self.kinds[self.at + 1] == "-"
            and self.starts[self.at + 1] == self.ends[self.at]
        ):
            self.fail("`<-` is not an operator of assignment any more", "old-assignment", "write `=`",
                      Span(self.starts[self.at], self.ends[self.at + 1]))  # fmt: skip
        what = f"the declaration of '{declared[-1].name}'"
        if self.kinds[self.at] == ">":
            self.fail_expected(
                f"';' after {what}", "in the expressions of a constraint, put comparisons in parentheses"
            )
        if declared[-1].initial is None and self.kinds[self.at] == IDENTIFIER and not self.starts_line(self.at):
            self.fail_expected(f"';', ',' or '=' after {what}")
        self.semicolon(what)

    def semicolon(self, after: str) -> None:
        """Reads the end of a statement; where it is missing at the end of a line, reports that and goes on."""
        if self.kinds[self.at] == ";":
            self.at += 1
            return
        before = self.at - 1
        if self.starts_line(self.at) or self.kinds[self.at] == "}":
            end = self.ends[before]
            if self.at != self._last_reported:
                self._last_reported = self.at
                help = None if self.kinds[self.at] != "=" else self._typical_mistake()
                self.report(Span(end, end), f"expected ';' after {after}", "missing-semicolon", help)
            if self.kinds[self.at] in INFIX_ON_NEXT_LINE:
                self.fail_expected(f"';' after {after}")
            return
        self.fail_expected(f"';' after {after}")

    def sized_type(self, constraints_allowed: bool) -> SizedType:
        start = self.starts[self.at]
        array_sizes: list[Expression] = []
        if self.accept("array"):
            self.expect("[", "and the sizes of the array")
            if self.kinds[self.at] in ("]", ","):
                self.fail("an array needs its sizes in a declaration", help="write for instance `array[N] real x;`")
            array_sizes = self.expressions("]", "in the sizes of the array")
            if self.kinds[self.at] == "array":
                self.fail("an array has no arrays as elements", help="give all sizes at once: `array[M, N] real x;`")
        keyword = self.kinds[self.at]
        if keyword == "tuple":
            return self._sized_tuple(start, array_sizes, constraints_allowed)
        form = TYPE_FORMS.get(keyword)
        if form is None:
            self.fail_expected("a type" + (" of the array's elements" if array_sizes else ""))
        keyword_span = self.token_span()
        if form.constraint is not ConstraintKind.NONE and not constraints_allowed:
            self.report(
                keyword_span,
                f"a local variable cannot be constrained: '{keyword}' is for the variables of a program's blocks",
                "local-constraint",
                f"write `{form.type}`",
            )
        self.at += 1
        constraint = self._constraint(keyword, form, keyword_span, constraints_allowed)
        sizes = self._sizes(keyword, form)
        type_ = array_of(form.type, len(array_sizes))
        return SizedType(self.span_from(start), keyword, array_sizes, sizes, constraint, [], type_)

    def _sized_tuple(self, start: int, array_sizes: list[Expression], constraints_allowed: bool) -> SizedType:
        self.at += 1
        self.expect("(", "and the types of the tuple's components")
        fields = [self.sized_type(constraints_allowed)]
        self.expect(",", "after the first component of the tuple")
        if self.kinds[self.at] != ")":
            fields.append(self.sized_type(constraints_allowed))
            while self.accept(","):
                fields.append(self.sized_type(constraints_allowed))
        self.expect(")", "to close the tuple type")
        span = self.span_from(start)
        type_ = array_of(TupleType(tuple(f.type for f in fields)), len(array_sizes))
        return SizedType(
            span, "tuple", array_sizes, [], Constraint(Span(span.end, span.end), ConstraintKind.NONE), fields, type_
        )

    def _sizes(self, keyword: str, form: TypeForm) -> list[Expression]:
        """`[M, N]` of a vector or matrix type."""
        if form.most_sizes == 0:
            if self.kinds[self.at] == "[":
                self.fail(
                    f"'{keyword}' has no sizes", "old-array-syntax", f"an array is declared as `array[N] {keyword} x;`"
                )
            return []
        if self.kinds[self.at] != "[":
            self.fail_expected(f"'[' and the size of '{keyword}'", f"write for instance `{form.example(keyword)} x;`")
        opening = self.at
        self.at += 1
        if self.kinds[self.at] == "]":
            self.fail(
                f"'{keyword}' needs its size in a declaration", help=f"write for instance `{form.example(keyword)} x;`"
            )
        sizes = self.expressions("]", f"in the size of '{keyword}'")
        if not form.fewest_sizes <= len(sizes) <= form.most_sizes:
            wanted = {(1, 1): "one size", (2, 2): "two sizes, of rows and columns", (1, 2): "one or two sizes"}
            self.fail(
                f"'{keyword}' has {wanted[form.fewest_sizes, form.most_sizes]}, but {len(sizes)} are given",
                help=f"write for instance `{form.example(keyword)} x;`",
                span=self.span_from(self.starts[opening]),
            )
        return sizes

    def _constraint(self, keyword: str, form: TypeForm, keyword_span: Span, allowed: bool) -> Constraint:
        """What stands in `<...>`, or what the type itself demands."""
        if self.kinds[self.at] != "<":
            span = (
                keyword_span if form.constraint is not ConstraintKind.NONE else Span(keyword_span.end, keyword_span.end)
            )
            return Constraint(span, form.constraint)
        if form.constraint is not ConstraintKind.NONE:
            self.fail(f"'{keyword}' is constrained by itself, it takes no bounds")
        start = self.starts[self.at]
        self.at += 1
        word = self.kinds[self.at]
        follower, kind = _CONSTRAINT_WORDS.get(word, ("", ConstraintKind.NONE))
        if keyword == "int" and kind is not ConstraintKind.BOUNDS:
            self.fail_expected("'lower' or 'upper' in the bounds of an integer")
        if kind is ConstraintKind.NONE:
            self.fail_expected("'lower', 'upper', 'offset' or 'multiplier' in the constraint")
        constraint = Constraint(Span(start, start), kind)
        setattr(constraint, word, self._constraint_value(word))
        if self.accept(","):
            if self.kinds[self.at] != follower:
                self.fail_expected(f"'{follower}' after '{word}' in the constraint")
            setattr(constraint, follower, self._constraint_value(follower))
        if self.kinds[self.at] != ">":
            help = None
            if self.kinds[self.at] in ("<", "<=", ">=", "==", "!=", "&&", "||", "?"):
                help = "put conditions and comparisons in parentheses here"
            self.fail_expected("'>' after the constraint", help)
        self.at += 1
        constraint.span = self.span_from(start)
        if not allowed:
            self.report(
                constraint.span,
                "a local variable cannot be constrained: constraints are for the variables of a program's blocks",
                "local-constraint",
                "leave the constraint out",
            )
        return constraint

    def _constraint_value(self, word: str) -> Expression:
        self.at += 1
        self.expect("=", f"after '{word}'")
        return self.expression(ADDITIVE_POWER)

    def _old_array(self, type_: SizedType, name: str) -> SizedType:
        """`real x[N]`, the array syntax before Stan 2.33: reported, and understood."""
        opening = self.starts[self.at]
        self.at += 1
        sizes: list[Expression] = []
        if self.kinds[self.at] in ("]", ","):
            self.fail_expected(f"';' after the declaration of '{name}'")
        sizes = self.expressions("]", "in the sizes of the array")
        text = self.source.text
        all_sizes = ", ".join(text[e.span.start : e.span.end] for e in (*sizes, *type_.array_sizes))
        element = text[type_.span.start : type_.span.end]
        if type_.array_sizes:  # `array[M] real x[N]`
            element = element[element.index("]", type_.array_sizes[-1].span.end - type_.span.start) + 1 :].strip()
        self.report(
            self.span_from(opening),
            f"the sizes of the array '{name}' stand after its name",
            "old-array-syntax",
            f"{_OLD_ARRAY_HELP}`array[{all_sizes}] {element} {name};`",
        )
        return SizedType(
            type_.span, type_.base, [*sizes, *type_.array_sizes], type_.sizes, type_.constraint, type_.fields,
            array_of(type_.type, len(sizes)),
        )  # fmt: skip

    # -------------------------------------------------------------- types of functions

    def unsized_type(self, what: str) -> StanType:
        """A type without sizes; `what` names its use, as "an argument"."""
        rank = 0
        if self.accept("array"):
            self.expect("[", "after 'array'")
            rank = self._unsized_dimensions()
        keyword = self.kinds[self.at]
        if keyword == "tuple":
            return array_of(self._unsized_tuple(what), rank)
        form = TYPE_FORMS.get(keyword)
        if form is None:
            if keyword == "array":
                self.fail("an array has no arrays as elements", help="give all dimensions at once: `array[,] real`")
            help = "'data' stands before the type" if keyword == "data" else None
            self.fail_expected(f"the type of {what}" if not rank else "the type of the array's elements", help)
        if form.constraint is not ConstraintKind.NONE:
            self.report(
                self.token_span(), f"the type of {what} of a function cannot be constrained", "function-type",
                f"write `{form.type}`",
            )  # fmt: skip
        self.at += 1
        if self.kinds[self.at] == "<":
            self.fail(f"the type of {what} of a function has no constraint", "function-type", f"write `{keyword}`")
        if self.kinds[self.at] == "[":
            return array_of(self._brackets_after(keyword, form, what), rank)
        return array_of(form.type, rank)

    def _unsized_dimensions(self) -> int:
        """`,,]` → 3."""
        rank = 1
        while self.accept(","):
            rank += 1
        if self.kinds[self.at] != "]":
            self.fail_expected(
                "',' or ']' after 'array['", "the type of an argument or result has no sizes: `array[]`, `array[,]`"
            )
        self.at += 1
        return rank

    def _unsized_tuple(self, what: str) -> StanType:
        self.at += 1
        self.expect("(", "and the types of the tuple's components")
        elements = [self.unsized_type(what)]
        self.expect(",", "after the first component of the tuple")
        if self.kinds[self.at] != ")":
            elements.append(self.unsized_type(what))
            while self.accept(","):
                elements.append(self.unsized_type(what))
        self.expect(")", "to close the tuple type")
        return TupleType(tuple(elements))

    def _brackets_after(self, keyword: str, form: TypeForm, what: str) -> StanType:
        """`real[]`, the type syntax before Stan 2.33, and `vector[N]`: reported, and understood."""
        opening = self.starts[self.at]
        self.at += 1
        if self.kinds[self.at] in ("]", ","):
            rank = self._unsized_dimensions()
            self.report(
                self.span_from(opening), "the dimensions of an array type stand after the element type",
                "old-array-syntax", f"write `array[{',' * (rank - 1)}] {form.type}`",
            )  # fmt: skip
            return array_of(form.type, rank)
        self.expressions("]", "in the size")
        self.report(
            self.span_from(opening), f"the type of {what} of a function has no sizes", "function-type",
            f"write `{form.type}`",
        )  # fmt: skip
        return form.type
