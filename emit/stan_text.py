"""Prints a module of the `stan` dialect as Stan-like text (`stan-opt -t stan`): expressions nested again, names kept.

Takes both forms. Of the variable form the text is a Stan program; in the value form, carried variables are declared
before their loop or branch and shown as assignments.

    stan.target_add (stan.call "normal_lpdf" (%y, %mu, %sigma) unnormalized) tilde   →   y ~ normal(mu, sigma);
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect, effects_within
from ulam.emit.errors import EmissionError
from ulam.emit.stan_text_complex import joined
from ulam.emit.stan_text_declarations import (
    DECLARATIONS,
    LocalScopes,
    can_declare_first,
    declared_tuples,
    definition_of,
    hands_on,
    is_global,
    is_output,
)
from ulam.emit.stan_text_expressions import EXPRESSIONS, ExpressionPrinter, NotAnExpression
from ulam.emit.stan_text_syntax import (
    ADDITIVE,
    COMPLEX_PARTS,
    OR,
    Text,
    field_text,
    size_count,
    sized_text,
    sizes_of,
    tuple_of_fields,
    type_text,
)

_WORD = re.compile(r"[A-Za-z_]\w*")
_BOUNDS = ("lower", "upper", "offset", "multiplier")


def print_module(module: ModuleOp, *, library: bool = False) -> str:
    """The text of all programs of a module; functions of the library only if asked for."""
    texts: list[str] = []
    for program in module.body.block.ops:
        if not isinstance(program, stan.ProgramOp):
            raise EmissionError(f"only a stan.program has a Stan text, not {program.name}")
        texts.append(print_program(program, library=library))
    return "\n".join(texts)


def print_program(program: stan.ProgramOp, *, library: bool = False) -> str:
    """The text of one program."""
    functions = [op for op in program.body.block.ops if isinstance(op, stan.FuncOp)]
    by_symbol = {f.sym_name.data: f for f in functions}
    calls = CallEffects(functions)
    lines: list[str] = []
    shown = [f for f in functions if library or f.library is None]
    if shown:
        lines.append("functions {")
        for function in shown:
            lines += BodyPrinter(by_symbol, calls).function(function)
        lines.append("}")
    reserved: frozenset[str] = frozenset()
    for op in program.body.block.ops:
        if isinstance(op, stan.BlockOp):
            reserved |= global_names(op)
            lines.append(f"{op.kind.data.replace('_', ' ')} {{")
            printer = BodyPrinter(by_symbol, calls, reserved)
            printed = printer.program_block(op)
            if printer.strays and can_declare_first(op):
                printed = BodyPrinter(by_symbol, calls, reserved).declarations_first(op)
            lines += printed
            lines.append("}")
    return "\n".join(lines) + "\n"


def global_names(block: stan.BlockOp) -> frozenset[str]:
    """Names of the variables of a block that it and later blocks can see."""
    names: set[str] = set()
    for op in block.body.block.ops:
        if isinstance(op, DECLARATIONS) and "local" not in op.properties:
            names.add(op.var_name.data.partition(".")[0])
    return frozenset(names)


class BodyPrinter(ExpressionPrinter):
    """Statements of the body of one function or block."""

    statements: ClassVar[dict[type[Operation], Callable[[Any, Any], None]]]  # how ops are written: STATEMENTS

    def __init__(
        self,
        functions: Mapping[str, stan.FuncOp],
        calls: CallEffects,
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(functions, calls, reserved)
        self._merged: dict[Operation, str] = {}  # an assignment → the declaration it is written with
        self._sized_by_value: dict[Operation, Callable[[Sequence[str]], str]] = {}  # the same, given its sizes
        self._checks: dict[str, stan.CheckOp] = {}
        self._tuples: dict[Operation, list[stan.DeclareOp | stan.ParameterOp]] = {}  # by their first fields
        self._places: dict[Block, dict[Operation, int]] = {}  # the ops of a block by their number
        self._declares_first = False

    # ------------------------------------------------------------ whole bodies

    def function(self, function: stan.FuncOp) -> list[str]:
        types = function.function_type
        result = type_text(types.outputs.data[0]) if types.outputs.data else "void"
        blocks = function.body.blocks
        arguments: Sequence[SSAValue] = blocks[0].args if blocks else ()
        data_only = cast("DenseArrayBase[IntegerType]", function.data_only).get_values()
        formals: list[str] = []
        for number, (name, type_) in enumerate(zip(function.argument_names, types.inputs, strict=True)):
            unique = self.new_name(self.written(name.data))
            formals.append(f"{'data ' if data_only[number] else ''}{type_text(type_)} {unique}")
            if arguments:
                self.names[arguments[number]] = unique
        header = f"  {result} {function.stan_name.data}({', '.join(formals)})"
        if not blocks or hands_on(blocks[0]):
            return [f"{header};"]
        self.depth = 2
        self.block(blocks[0])
        return [f"{header} {{", *self.lines, "  }"]

    def program_block(self, block: stan.BlockOp) -> list[str]:
        ops = block.body.block.ops
        declared = {op.var_name.data for op in ops if isinstance(op, DECLARATIONS)}
        self._checks = {op.var_name.data: op for op in ops if isinstance(op, stan.CheckOp)}
        self._tuples = declared_tuples(ops)
        self.hidden = {op for name, op in self._checks.items() if name in declared}
        self.hidden.update(field for fields in self._tuples.values() for field in fields)
        self.puts_out = block.kind.data != "model"
        if block.kind.data not in ("data", "parameters"):
            self.block(block.body.block)
            return self.lines
        self._declares_first = True  # nothing else may stand there, also no variables for values that are used twice
        for op in ops:
            if isinstance(op, (stan.GlobalOp, *DECLARATIONS)) and (op not in self.hidden or op in self._tuples):
                self.operation(op)
        return self.lines

    def declarations_first(self, block: stan.BlockOp) -> list[str]:
        """A block whose global variables are declared before a scope that has everything else."""
        ops = list(block.body.block.ops)
        first = [op for op in ops if isinstance(op, stan.GlobalOp) or is_global(op)]
        self._checks = {op.var_name.data: op for op in ops if isinstance(op, stan.CheckOp)}
        self._tuples = declared_tuples(ops)
        self.hidden = {*first, *self._checks.values()}
        self._declares_first = True
        for op in first:
            self.operation(op)
        self._open("{")
        self.block(block.body.block)
        self._close()
        return self.lines

    def block(self, block: Block, end: Callable[[Operation], None] | None = None) -> None:
        """All ops of a block; `end` prints its terminator if that is a yield or a condition."""
        outer, self.pending = self.pending, {}
        scopes = LocalScopes(block, self.needs_braces, is_needed=not self._declares_first)
        for op in block.ops:
            if op in scopes.first:
                self._open("{")
            if isinstance(op, (stan.YieldOp, stan.ConditionOp)):
                if end is not None:
                    end(op)
            elif op not in self.hidden or op in self._tuples:
                self.operation(op)
            if op in scopes.last:
                self._close()
        self.flush(lambda text: True)
        self.pending = outer

    def operation(self, op: Operation) -> None:
        handler = self.expressions.get(type(op)) if op.results else None
        handler = handler or self.statements.get(type(op))
        if handler is None:
            raise ValueError(f"{op.name} has no Stan text")
        handler(self, op)

    # ------------------------------------------------------------ lines

    def _open(self, text: str) -> None:
        self.line(text)
        self.depth += 1
        self.scopes.append(set())

    def _close(self, text: str = "}") -> None:
        self._leave_scope()
        self.line(text)

    def _leave_scope(self) -> None:
        self.depth -= 1
        self.scopes.pop()

    @contextmanager
    def _braces(self, header: str) -> Iterator[None]:
        self._open(f"{header} {{" if header else "{")
        yield
        self._close()

    def statement(self, op: Operation, text: str) -> None:
        """Prints an op whose operands were taken, after what it would disturb."""
        self.flush_before(self.calls.of(op))
        self.line(text)

    @staticmethod
    def needs_braces(op: Operation) -> bool:
        """Whether an op at the top level of a block declares what must not be seen outside."""
        return "local" in op.properties

    @staticmethod
    def header(word: str, inside: str) -> str:
        """What stands before the brace of a statement that has a body."""
        return f"{word} ({inside})"

    # ------------------------------------------------------------ variables

    def global_variable(self, op: stan.GlobalOp) -> None:
        name = op.var_name.data
        path = name.split(".")
        is_part = len(path) == 2 and path[1] in COMPLEX_PARTS  # of a complex variable; fields have numbers
        self.names[op.results[0]] = self.written(name) if is_part else field_text(name)

    def _declare_tuple(self, fields: Sequence[stan.DeclareOp | stan.ParameterOp]) -> None:
        """One variable for the fields of a tuple."""
        texts: dict[str, str] = {}
        for op in fields:
            sizes = [self.inline(s).text for s in op.sizes]
            check = self._checks.get(op.var_name.data)
            bounds = {k: v for k in _BOUNDS if (v := getattr(op, k)) is not None or (v := getattr(check, k, None))}
            written = {k: self.inline(v).within(ADDITIVE) for k, v in bounds.items()}
            type_ = cast("stan.VarType", op.results[0].type).element
            field = field_text(op.var_name.data)
            texts[field] = sized_text(type_, op.constraint.data, sizes, written)
            self.names[op.results[0]] = field
        name = fields[0].var_name.data.partition(".")[0]
        self.new_name(name, is_global=True)
        self.line(f"{tuple_of_fields(name, texts)} {name};")

    def declare(self, op: stan.DeclareOp | stan.ParameterOp) -> None:
        if op.field_ranks is not None and is_output(op):
            if (fields := self._tuples.pop(op, None)) is not None:
                self._declare_tuple(fields)
            return
        in_block = isinstance(op.parent_op(), stan.BlockOp)
        name = self.declared_name(op)
        early = self._declares_first and is_global(op)
        read = self.inline if early else self.take
        sizes = [read(s).text for s in op.sizes]
        bounds = {k: read(v).within(ADDITIVE) for k in _BOUNDS if (v := getattr(op, k)) is not None}
        check = self._checks.get(op.var_name.data) if in_block and not bounds else None
        if check is not None:
            values = (("lower", check.lower), ("upper", check.upper))
            bounds = {k: self.inline(v).within(ADDITIVE) for k, v in values if v is not None}
        self.names[op.results[0]] = name
        prefix = "/* data */ " if "data_only" in op.properties else ""  # in Stan a word for formals only
        type_ = cast("stan.VarType", op.results[0].type).element

        def text(sizes: Sequence[str]) -> str:
            return f"{prefix}{sized_text(type_, op.constraint.data, sizes, bounds)} {name}"

        if early:
            self.line(f"{text(sizes)};")
            return
        if in_block and self.puts_out and not is_global(op):
            self.strays |= self.depth == 1
        if sizes or not size_count(type_) or (definition := self._first_value_of(op)) is None:
            self.declaration(op, text(sizes))
        else:
            self._sized_by_value[definition] = text

    def declared_name(self, op: stan.DeclareOp | stan.ParameterOp) -> str:
        in_block = isinstance(op.parent_op(), stan.BlockOp)
        return self.new_name(self.written(op.var_name.data), is_global=in_block and "local" not in op.properties)

    @staticmethod
    def written(name: str) -> str:
        """The name of a variable as Stan has it: two underscores at the end are reserved."""
        name = name.replace(".", "_")  # a local field of a tuple
        return name[:-1] if name.endswith("__") else name

    def _first_value_of(self, op: stan.DeclareOp | stan.ParameterOp) -> stan.AssignOp | None:
        """The whole assignment that comes before all else about a variable, in a block that has all of it."""
        users = [use.operation for use in op.results[0].uses]
        for first in users:
            if isinstance(first, stan.AssignOp) and first.var is op.results[0] and not first.kinds.data:
                if all(user is first or self._follows(user, first) for user in users):
                    return first
        return None

    def _follows(self, op: Operation, first: Operation) -> bool:
        """Whether an op, or one around it, stands behind `first` in the same block."""
        block = first.parent
        assert block is not None
        if block not in self._places:
            self._places[block] = {op: number for number, op in enumerate(block.ops)}
        places = self._places[block]
        around: Operation | None = op
        while around is not None and around not in places:
            around = around.parent_op()
        return around is not None and places[around] > places[first]

    def declaration(self, op: stan.DeclareOp | stan.ParameterOp, text: str) -> None:
        """Prints a declaration, or keeps it for the assignment that it is written with."""
        definition = definition_of(op)
        if definition is not None:
            self._merged[definition] = text
            return
        # What was evaluated before cannot be about this variable: only the check of sizes comes between.
        self.flush_before(self.calls.of(op) & ~Effect.WRITES_VAR)
        self.line(f"{text};")

    def uninitialized(self, op: stan.UninitializedOp) -> None:
        sizes = [t.text for t in self.take_all(op.operands)]
        name = self.new_name(op.results[0].name_hint or "t")
        self.line(f"{sized_text(op.results[0].type, 'none', sizes)} {name};")
        self.names[op.results[0]] = name

    def assert_shape(self, op: stan.AssertShapeOp) -> None:
        value, *sizes = self.take_all(op.operands)
        self.flush_before(Effect.THROWS)
        name = self.new_name(self.written(op.var_name.data))
        self.line(f"{sized_text(op.results[0].type, 'none', [s.text for s in sizes])} {name} = {value.text};")
        self.names[op.results[0]] = name

    def check(self, op: stan.CheckOp) -> None:
        operands = self.take_all(op.operands)
        self.statement(op, f"check_{op.constraint.data}({', '.join(o.text for o in operands)});")

    def assign(self, op: stan.AssignOp) -> None:
        variable, value, *indices = op.operands
        *written, right = self.take_all([*indices, value])
        target = self.take(variable).text + (self.index_text(op.kinds.data, written) if op.kinds.data else "")
        declaration = self._merged.pop(op, None)
        if (sized := self._sized_by_value.pop(op, None)) is not None:
            declaration = sized(sizes_of(value.type, right))
        effects = self.calls.of(op)
        self.flush_before(effects if declaration is None else effects & ~Effect.WRITES_VAR)
        self.line(f"{declaration or target} = {right.text};")

    def define_global(self, op: stan.DefineOp) -> None:
        (value,) = self.take_all(op.operands)
        self.statement(op, f"{op.var_name.data} = {value.text};")

    # ------------------------------------------------------------ effects

    def call_statement(self, op: stan.CallOp) -> None:
        text, _ = self.call_expression(op)
        self.statement(op, f"{text.text};")

    def target_add(self, op: stan.TargetAddOp) -> None:
        (value,) = self.take_all(op.operands)
        as_tilde = op.tilde is not None and value.tilde is not None
        self.statement(op, f"{value.tilde};" if as_tilde else f"target += {value.text};")

    def jacobian_add(self, op: stan.JacobianAddOp) -> None:
        (value,) = self.take_all(op.operands)
        self.statement(op, f"jacobian += {value.text};")

    def print_(self, op: stan.PrintOp) -> None:
        operands = self.take_all(op.operands)
        whole = list(operands)
        if op.pairs is not None:
            for n in reversed([n for n, begins in enumerate(op.pairs.get_values()) if begins]):
                whole[n : n + 2] = [joined(*operands[n : n + 2])]
        self.statement(op, f"{op.kind.data}({', '.join(o.text for o in whole)});")

    def leave(self, op: Operation) -> None:
        operands = self.take_all(op.operands)
        word = op.name.removeprefix("stan.")
        if word == "return" and not operands and isinstance(op.parent_op(), stan.FuncOp):
            return
        self.statement(op, " ".join([word, *(o.text for o in operands)]) + ";")

    # ------------------------------------------------------------ what regions pass on

    def _declare_result(self, value: SSAValue, initial: str | None = None) -> str:
        name = self.new_name(value.name_hint or "v")
        self.line(f"{type_text(value.type)} {name}{'' if initial is None else f' = {initial}'};")
        self.names[value] = name
        return name

    def _assign_yield(self, names: Sequence[str]) -> Callable[[Operation], None]:
        """Prints a yield as assignments to the variables that carry its values."""

        def end(op: Operation) -> None:
            self._assign_all(names, op.operands, self.take_all(op.operands))

        return end

    def _assign_all(self, names: Sequence[str], values: Sequence[SSAValue], texts: Sequence[Text]) -> None:
        """Assignments that happen at once: a value that an earlier one would change gets a name first."""
        written = [text.text for text in texts]
        for number, name in enumerate(names):
            for later in range(number + 1, len(names)):
                if written[number] != name and written[later] != names[later] and name in _WORD.findall(written[later]):
                    temporary = self.new_name(f"{names[later]}_next")
                    self.line(f"{type_text(values[later].type)} {temporary} = {written[later]};")
                    written[later] = temporary
        for name, text in zip(names, written, strict=True):
            if text != name:
                self.line(f"{name} = {text};")

    def lazy_statement(self, op: Operation) -> None:
        name = self._declare_result(op.results[0])
        (first,) = self.take_all(op.operands)
        self.flush_before(effects_within(op, self.calls))
        assign = self._assign_yield([name])
        if isinstance(op, stan.SelectOp):
            self._branches(self.header("if", first.text), op.regions, assign)
            return
        is_and = isinstance(op, stan.AndOp)
        self.line(f"{name} = {0 if is_and else 1};")
        with self._braces(self.header("if", first.text if is_and else self.unary_text("!", first).text)):
            self.block(op.regions[0].block, assign)

    # ------------------------------------------------------------ control flow

    def if_(self, op: stan.IfOp) -> None:
        (condition,) = self.take_all(op.operands)
        self.flush_before(effects_within(op, self.calls))
        names = [self._declare_result(r) for r in op.results]
        self._branches(self.header("if", condition.text), op.regions, self._assign_yield(names))

    def _branches(self, header: str, regions: Sequence[Region], end: Callable[[Operation], None]) -> None:
        then, otherwise = (region.block for region in regions)
        self._open(f"{header} {{")
        self.block(then, end)
        if isinstance(otherwise.first_op, stan.YieldOp) and not otherwise.first_op.operands:
            self._close()
            return
        self._leave_scope()
        inner, condition = self._only_if(otherwise)
        if inner is not None:
            self._branches(f"}} else {self.header('if', condition)}", inner.regions, self._assign_yield(()))
            return
        with self._braces("} else"):
            self.block(otherwise, end)

    def _only_if(self, block: Block) -> tuple[stan.IfOp | None, str]:
        """The `stan.if` that is all there is in a block, with the text of its condition."""
        last = block.last_op
        inner = last.prev_op if isinstance(last, stan.YieldOp) else None
        if not isinstance(inner, stan.IfOp) or inner.results:
            return None, ""
        op = block.first_op
        while op is not None and op is not inner:
            if type(op) not in EXPRESSIONS or not op.results:
                return None, ""
            op = op.next_op
        outer, self.pending, self.operand_only = self.pending, {}, True
        try:
            op = block.first_op
            while op is not None and op is not inner:
                self.operation(op)
                op = op.next_op
            return inner, self.take(inner.operands[0]).text
        except NotAnExpression:
            return None, ""
        finally:
            self.pending, self.operand_only = outer, False

    def _carried(self, op: Operation, initial: Sequence[SSAValue], texts: Sequence[Text]) -> list[str]:
        """Declares the variables that a loop carries."""
        names: list[str] = []
        for result, value, text in zip(op.results, initial, texts, strict=True):
            name = self.new_name(result.name_hint or value.name_hint or "v")
            self.line(f"{type_text(result.type)} {name} = {text.text};")
            self.names[result] = name
            names.append(name)
        return names

    def for_(self, op: stan.ForOp) -> None:
        lower, upper, *initial = self.take_all(op.operands)
        self.flush_before(effects_within(op, self.calls))
        names = self._carried(op, op.operands[2:], initial)
        self._loop_body(op.body, op.variable.data, names, f"{lower.within(OR)}:{upper.within(OR)}")

    def foreach(self, op: stan.ForEachOp) -> None:
        container, *initial = self.take_all(op.operands)
        self.flush_before(effects_within(op, self.calls))
        names = self._carried(op, op.operands[1:], initial)
        self._loop_body(op.body, op.variable.data, names, container.text)

    def _loop_body(self, body: Region, variable: str, names: Sequence[str], over: str) -> None:
        self.scopes.append(set())
        loop_variable = self.new_name(variable)
        self.names[body.block.args[0]] = loop_variable
        for argument, name in zip(body.block.args[1:], names, strict=True):
            self.names[argument] = name
        with self._braces(self.header("for", f"{loop_variable} in {over}")):
            self.block(body.block, self._assign_yield(names))
        self.scopes.pop()

    def while_(self, op: stan.WhileOp) -> None:
        initial = self.take_all(op.operands)
        self.flush_before(effects_within(op, self.calls))
        names = self._carried(op, op.operands, initial)
        for region in op.regions:
            for argument, name in zip(region.block.args, names, strict=True):
                self.names[argument] = name
        header = self._while_header(op)
        if header is not None:
            with self._braces(header):
                self.block(op.body.block, self._assign_yield(names))
            return
        with self._braces(self.header("while", "1")):
            self.block(op.condition.block, self._leave_unless(names))
            self.block(op.body.block, self._assign_yield(names))

    def _while_header(self, op: stan.WhileOp) -> str | None:
        """`while (c)`, if the condition is an expression that passes the carried values on unchanged."""
        last = op.condition.block.last_op
        if last is None or list(last.operands[1:]) != list(op.condition.block.args):
            return None
        try:
            return self.header("while", self.operand_region(op.condition).text)
        except NotAnExpression:
            return None

    def _leave_unless(self, names: Sequence[str]) -> Callable[[Operation], None]:
        """The end of a condition that is not one expression."""

        def end(op: Operation) -> None:
            condition, *values = self.take_all(op.operands)
            if any(n != v.text for n, v in zip(names, values, strict=True)):
                name = self.new_name("go_on")
                self.line(f"int {name} = {condition.text};")
                condition = Text(name)
                self._assign_all(names, op.operands[1:], values)
            with self._braces(self.header("if", self.unary_text("!", condition).text)):
                self.line("break;")

        return end

    def profile(self, op: stan.ProfileOp) -> None:
        self.flush(lambda text: True)
        names = [self._declare_result(r) for r in op.results]
        with self._braces(f'profile("{op.profile_name.data}")'):
            self.block(op.body.block, self._assign_yield(names))

    def scope(self, op: stan.ScopeOp) -> None:
        self.flush_before(effects_within(op, self.calls))
        with self._braces(""):
            self.block(op.body.block)


STATEMENTS: dict[type[Operation], Callable[[Any, Any], None]] = {
    stan.GlobalOp: BodyPrinter.global_variable,
    stan.DeclareOp: BodyPrinter.declare,
    stan.ParameterOp: BodyPrinter.declare,
    stan.UninitializedOp: BodyPrinter.uninitialized,
    stan.AssertShapeOp: BodyPrinter.assert_shape,
    stan.CheckOp: BodyPrinter.check,
    stan.AssignOp: BodyPrinter.assign,
    stan.DefineOp: BodyPrinter.define_global,
    stan.CallOp: BodyPrinter.call_statement,
    stan.TargetAddOp: BodyPrinter.target_add,
    stan.JacobianAddOp: BodyPrinter.jacobian_add,
    stan.PrintOp: BodyPrinter.print_,
    stan.BreakOp: BodyPrinter.leave,
    stan.ContinueOp: BodyPrinter.leave,
    stan.ReturnOp: BodyPrinter.leave,
    stan.IfOp: BodyPrinter.if_,
    stan.ForOp: BodyPrinter.for_,
    stan.ForEachOp: BodyPrinter.foreach,
    stan.WhileOp: BodyPrinter.while_,
    stan.ProfileOp: BodyPrinter.profile,
    stan.ScopeOp: BodyPrinter.scope,
}
"""Ops that are statements, and how they are written."""

BodyPrinter.statements = STATEMENTS
