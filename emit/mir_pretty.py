"""Prints a module of the `stan` dialect as the documentation of the optimization levels prints programs.

    data { int n; }                          input_vars {
    transformed data {                         int n;
      int x = 0;                             }
      for (i in 1:n) x += i;                 prepare_data {
    }                                          data int n = FnReadData__("n")[1];
                                               data int x = 0;
                                               for(i in 1:n) {
                                                 x = (x + i);
                                               }
                                             }

Blocks are named by what they do: `input_vars` are the data, `prepare_data` reads and transforms them, `log_prob` is
parameters, transformed parameters and model, `generate_quantities` the rest. Every operation has its parentheses,
promotions do not show, what is known to need no gradient is declared `data`. The documentation shows declaration and
first value now together, now apart; here they are together, as in `-t stan`.
Source: Stan's optimization levels documentation; for what it does not show, the output of stanc 2.35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects
from ulam.emit.errors import EmissionError
from ulam.emit.stan_text import STATEMENTS, BodyPrinter, global_names
from ulam.emit.stan_text_expressions import EXPRESSIONS
from ulam.emit.stan_text_syntax import POSTFIX, Text, size_count, type_text
from ulam.library.functions import named

BLOCKS = {
    "prepare_data": ("data", "transformed_data"),
    "log_prob": ("parameters", "transformed_parameters", "model"),
    "generate_quantities": ("generated_quantities",),
}
"""Blocks as printed → the blocks of the program that they hold."""

_WITHOUT_GRADIENT = ("data", "transformed_data", "generated_quantities")
_UNARY = {"-": "PMinus__", "+": "PPlus__", "!": "PNot__", "'": "Transpose__"}
_PRINTS = {"print": "FnPrint__", "reject": "FnReject__", "fatal_error": "FnFatalError__"}
_BOUNDS = ("lower", "upper", "offset", "multiplier")


def print_module(module: ModuleOp) -> str:
    """The text of all programs of a module. Raises EmissionError if it holds something else."""
    texts: list[str] = []
    for program in module.body.block.ops:
        if not isinstance(program, stan.ProgramOp):
            raise EmissionError(f"only a stan.program is printed this way, not {program.name}")
        texts.append("\n".join(_program(program)))
    return "\n".join(texts)


def _program(program: stan.ProgramOp) -> Iterator[str]:
    functions = [op for op in program.body.block.ops if isinstance(op, stan.FuncOp)]
    blocks = {op.kind.data: op for op in program.body.block.ops if isinstance(op, stan.BlockOp)}
    by_symbol = {f.sym_name.data: f for f in functions}
    calls = CallEffects(functions)
    if users := [f for f in functions if f.library is None]:
        lines = [line for f in users for line in MirPrinter(by_symbol, calls).function(f)]
        yield _braces("functions", lines)
    reserved: frozenset[str] = frozenset()
    if data := blocks.get("data"):
        if lines := MirPrinter(by_symbol, calls).input_variables(data):
            yield _braces("input_vars", lines)
    for name, kinds in BLOCKS.items():
        printer = MirPrinter(by_symbol, calls, reserved)
        for block in (blocks[kind] for kind in kinds if kind in blocks):
            printer.reserved |= global_names(block)
            printer.block(block.body.block)
        reserved = printer.reserved
        if printer.lines:
            yield _braces(name, printer.lines)


def _braces(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{name} {{", *lines, "}\n"])


class MirPrinter(BodyPrinter):
    """Statements of one function, or of the blocks that are printed as one."""

    expressions: ClassVar[dict[type[Operation], Callable[[Any, Any], None]]]
    statements: ClassVar[dict[type[Operation], Callable[[Any, Any], None]]]

    # ------------------------------------------------------------ blocks

    def input_variables(self, block: stan.BlockOp) -> list[str]:
        """What the data must have: types and sizes, without constraints."""
        for op in block.body.block.ops:
            if isinstance(op, stan.DeclareOp):
                name = self.declared_name(op)
                self.names[op.results[0]] = name
                self.line(f"{sized_text(op, [self.inline(s).text for s in op.sizes])} {name};")
        return self.lines

    # ------------------------------------------------------------ declarations

    def declare(self, op: stan.DeclareOp | stan.ParameterOp) -> None:
        kind = _block_kind(op)
        sizes = [self.take(s).text for s in op.sizes]
        bounds = {k: self.take(v).text for k in _BOUNDS if (v := getattr(op, k)) is not None}
        name = self.declared_name(op)
        self.names[op.results[0]] = name
        prefix = "data " if "data_only" in op.properties or kind in _WITHOUT_GRADIENT else ""
        text = f"{prefix}{sized_text(op, sizes)} {name}"
        if isinstance(op, stan.ParameterOp):
            arguments = [f'"{name}"', *_constraint(op, bounds)]
            self.statement(op, f"{text} = FnReadParam__({', '.join(arguments)});")
        elif kind == "data":
            element = "[1]" if _declared(op) in (stan.INT, stan.REAL, stan.COMPLEX) else ""
            self.statement(op, f'{text} = FnReadData__("{name}"){element};')
        else:
            self.declaration(op, text)

    def check(self, op: stan.CheckOp) -> None:
        value = self.take(op.value)
        bounds = {k: self.take(v).text for k in ("lower", "upper") if (v := getattr(op, k)) is not None}
        arguments = [f'"{op.var_name.data}"', value.text, *_constraint(op, bounds)]
        self.statement(op, f"FnCheck__({', '.join(arguments)});")

    @staticmethod
    def written(name: str) -> str:
        return name

    @staticmethod
    def temporary(type_: Attribute, value: Text) -> str:
        return type_text(type_)

    @staticmethod
    def needs_braces(op: Operation) -> bool:
        # What a pass has made (`lcm_sym3__`) is named nowhere else.
        return isinstance(op, stan.DeclareOp) and op.local is not None and not op.var_name.data.endswith("__")

    # ------------------------------------------------------------ statements

    def print_(self, op: stan.PrintOp) -> None:
        operands = self.take_all(op.operands)
        self.statement(op, f"{_PRINTS[op.kind.data]}({', '.join(o.text for o in operands)});")

    def target_add(self, op: stan.TargetAddOp) -> None:
        (value,) = self.take_all(op.operands)
        self.statement(op, f"target += {value.text};")

    @staticmethod
    def header(word: str, inside: str) -> str:
        return f"{word}({inside})"

    # ------------------------------------------------------------ expressions

    def promote(self, op: stan.PromoteOp) -> None:
        (operand,) = self.take_all(op.operands)
        self.expression(op, Text(operand.text, operand.precedence, promoted=operand.text.isdigit()), (operand,))

    def array(self, op: stan.ArrayOp) -> None:
        self._made(op, "FnMakeArray__")

    def row_vector(self, op: stan.RowVectorOp) -> None:
        self._made(op, "FnMakeRowVec__")

    def literal(self, op: stan.LiteralOp) -> None:
        text = self.literal_text(op, "FnMakeArray__({})".format, "FnMakeRowVec__({})".format)
        self.expression(op, Text(text, POSTFIX), ())

    def tuple_(self, op: stan.TupleOp) -> None:
        self._made(op, "FnMakeTuple__")

    def _made(self, op: Operation, name: str) -> None:
        operands = self.take_all(op.operands)
        self.expression(op, Text(f"{name}({', '.join(o.text for o in operands)})", POSTFIX), operands)

    @staticmethod
    def binary_text(symbol: str, left: Text, right: Text) -> Text:
        if symbol == "/" and left.promoted and right.promoted:
            left = left.as_real()  # not a division of ints
        return Text(f"({left.text} {symbol} {right.text})")

    @staticmethod
    def unary_text(symbol: str, operand: Text) -> Text:
        return Text(f"{_UNARY[symbol]}({operand.text})")

    @staticmethod
    def lazy_text(op: Operation, first: Text, regions: Sequence[Text]) -> Text:
        if isinstance(op, stan.SelectOp):
            return Text(f"({first.text} ? {regions[0].text} : {regions[1].text})")
        return Text(f"({first.text} {'&&' if isinstance(op, stan.AndOp) else '||'} {regions[0].text})")

    @staticmethod
    def call_text(name: str, unnormalized: bool, callback: str | None, arguments: Sequence[Text]) -> Text:
        if unnormalized:
            name = _unnormalized(name)
            callback = None if callback is None else _unnormalized(callback)
        texts = [*([] if callback is None else [callback]), *(a.text for a in arguments)]
        return Text(f"{name}({', '.join(texts)})", POSTFIX)

    @staticmethod
    def index_text(kinds: Sequence[StringAttr], operands: Sequence[Text]) -> str:
        parts: list[str] = []
        rest = iter(operands)
        for kind in kinds:
            lower = next(rest).text if kind.data in ("single", "multiple", "between", "from") else "1"
            match kind.data:
                case "single" | "multiple":
                    parts.append(lower)
                case "all":
                    parts.append(":")
                case "from":
                    parts.append(f"{lower}:")
                case _:
                    parts.append(f"{lower}:{next(rest).text}")
        return f"[{', '.join(parts)}]"


def _table(entries: Mapping[type[Operation], Callable[[Any, Any], None]]) -> dict[type[Operation], Any]:
    """The same table, with the methods of MirPrinter where it has its own."""
    return {op: getattr(MirPrinter, method.__name__) for op, method in entries.items()}


MirPrinter.expressions = _table(EXPRESSIONS)
MirPrinter.statements = _table(STATEMENTS)


def _unnormalized(name: str) -> str:
    stem, kind, _ = named(name)
    return stem + kind.unnormalized_ending if kind.is_density else name


def _block_kind(op: Operation) -> str | None:
    """The kind of the block that an op is in, None inside of functions."""
    parent: Operation | None = op.parent_op()
    while parent is not None and not isinstance(parent, stan.BlockOp):
        parent = parent.parent_op()
    return parent.kind.data if parent is not None else None


def _constraint(op: stan.DeclareOp | stan.ParameterOp | stan.CheckOp, bounds: Mapping[str, str]) -> list[str]:
    """A constraint as arguments: `lower=0`, `simplex`."""
    if op.constraint.data in stan.variables.CONSTRAINED_TYPES:
        return [op.constraint.data]
    return [f"{name}={bound}" for name, bound in bounds.items()]


# ---------------------------------------------------------------- types


def _declared(op: stan.DeclareOp | stan.ParameterOp) -> Attribute:
    return cast("stan.VarType", cast(SSAValue, op.results[0]).type).element


def sized_text(op: stan.DeclareOp | stan.ParameterOp, sizes: Sequence[str]) -> str:
    """A type as declared: `array[int, 100]`, `array[matrix[2, 3], N]`; of a simplex, `vector[K]`."""
    return _sized(_declared(op), sizes) if sizes else type_text(_declared(op))


def _sized(type_: Attribute, sizes: Sequence[str]) -> str:
    rank = 0
    if isinstance(type_, stan.ArrayType):
        rank, type_ = type_.rank.data, type_.element
    own = list(sizes[rank:])
    if isinstance(type_, stan.TupleType):
        fields: list[str] = []
        for element in type_.elements:
            count = size_count(element)
            fields.append(_sized(element, own[:count]))
            own = own[count:]
        text = f"tuple({', '.join(fields)}{',' if len(fields) == 1 else ''})"
    else:
        if len(own) == 1 and stan.dimensions(type_) == 2:
            own *= 2  # a square matrix, declared by its one size
        text = type_text(type_) + (f"[{', '.join(own)}]" if own else "")
    for size in reversed(sizes[:rank]):
        text = f"array[{text}, {size}]"
    return text
