"""The emitter of textual LLVM IR: one table from op class to a small function.

    text = emit_module(module, EmitOptions(opt_level=3))

Reads `arith`, `scf`, `func`, `rt` and `ad` ops. Structured control flow becomes basic blocks with phis here; values
keep their SSA name hints. A function becomes

    define i32 @f(ptr %context, ptr %bound, <arguments>, ptr %out.0, ...)

which returns a status (`library/statuses.py`). Each file beside this one brings a part of the table:
`scalar_ops` (arith), `memory_ops` (rt, ad), `control_ops` (scf, func, checks, calls), `primitives` (rt.math).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, Float32Type, Float64Type, IndexType, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from ulam.dialects import rt, trace
from ulam.dialects.kept_buffers import keeps_buffer
from ulam.dialects.walk import operand_tuple, ops_within
from ulam.emit.alias import AliasScopes, MetadataTable, RootTable, find_all_roots
from ulam.emit.errors import EmissionError
from ulam.emit.function_attributes import GROUPS, HOT, LONG_VECTORS, PART, PLAIN, SMALL
from ulam.emit.loop_metadata import has_longest_vectors
from ulam.emit.outlined_code import LONG_MODULE_OPS
from ulam.emit.target import Vectors
from ulam.library.records import record

Emit = Callable[[Any, Operation], None]
"""Writes one op; the first argument is the FunctionEmitter."""

TYPES: dict[type[Attribute], str] = {
    Float64Type: "double",
    Float32Type: "float",
    IndexType: "i64",
    rt.BufferType: "ptr",
    rt.MarkType: "ptr",
    trace.RecordType: "ptr",
}

LIKELY = '!{!"branch_weights", i32 1048575, i32 1}'
STACK_BYTES = 16 << 10
"""How much of the stack an entry point may take for small buffers."""
STACK_BYTES_OF_PART = 2 << 10
"""The same of a part of another function (`rt.part`), of which some call each other."""

PLAIN_SYMBOL = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*\Z")

_value_type: Callable[[SSAValue], Attribute] = operator.attrgetter("_type")


@record(frozen=True)
class EmitOptions:
    """`opt_level`: 0 to 2 leave floating point as written; 3 and 4 allow contraction, and re-association where marked.

    `fused`: the target has a fused multiply-add instruction; without, our math functions use separate operations.
    `vectors`: of the target.
    `inline_math`: exp, log, ... are inlined within loops, which can then be widened; without (for code that runs once)
    they are called, which compiles much faster. The bits are the same.
    `lines`: debug information says which instructions belong to which line (see `debug_info`); `unit` is then what
    debuggers call the module.
    `exact_blocks`: each buffer is asked of the runtime alone and with its exact size, and so is what may be read behind
    it, for a runtime with guard pages (runtime/c/guard_pages.c).
    """

    opt_level: int = 3
    fused: bool = True
    inline_math: bool = True
    lines: bool = False
    unit: str = ""
    exact_blocks: bool = False
    vectors: Vectors = Vectors()


def symbol(name: str) -> str:
    """`@name`, quoted where LLVM asks for it."""
    return f"@{name}" if PLAIN_SYMBOL.match(name) else f'@"{name}"'


def llvm_type(attribute: Attribute) -> str:
    """The LLVM type of a value of type `attribute`."""
    if type(attribute) is IntegerType:
        return f"i{attribute.width.data}"
    name = TYPES.get(type(attribute))
    if name is None:
        raise EmissionError(f"values of type {attribute} have no LLVM form")
    return name


class ModuleEmitter:
    """State of one module: functions, declarations, constants, metadata."""

    def __init__(self, module: ModuleOp, options: EmitOptions, table: Mapping[type[Operation], Emit]) -> None:
        self.module = module
        self.options = options
        self.table = table
        self.metadata = MetadataTable()
        self.math_functions: set[str] = set()
        self.helpers: dict[str, str] = {}
        """Definitions of what long modules do not have in place (`outlined_code`)."""
        self.is_long = False
        self.returning_records: set[str] = set()
        """Functions that return all results in one piece of memory, 8 bytes for each."""
        self._declarations: dict[str, str] = {}
        self._strings: dict[str, str] = {}
        self._constants: dict[DenseArrayBase, str] = {}
        self._constants_text: list[str] = []
        self.roots: dict[str, RootTable] = {}
        self.keeping: set[str] = set()
        """Functions in which buffers are put where they are found later, by themselves or by what they call."""

    def run(self) -> str:
        functions = [op for op in self.module.body.block.ops if type(op) is func.FuncOp]
        if len(functions) != sum(1 for _ in self.module.body.block.ops):
            other = next(op for op in self.module.body.block.ops if type(op) is not func.FuncOp)
            raise EmissionError("only functions can be emitted at the top level", other)
        if (declared := next((f for f in functions if f.is_declaration), None)) is not None:
            raise EmissionError(f"function '{declared.sym_name.data}' has no body", declared)
        flat = {f.sym_name.data: list(ops_within(f.body)) for f in functions}
        self.is_long = sum(map(len, flat.values())) > LONG_MODULE_OPS
        self.returning_records = {f.sym_name.data for f in functions if _returns_record(f)}
        unstable = functions_with_changing_bound(flat)
        self.keeping = _with_callers(flat, {name for name, ops in flat.items() if any(map(keeps_buffer, ops))})
        self.roots = find_all_roots({f.sym_name.data: (f, flat[f.sym_name.data]) for f in functions}, unstable)
        bodies = [
            self.function_emitter(f, flat[f.sym_name.data], f.sym_name.data not in unstable).run() for f in functions
        ]
        from ulam.emit.primitives import definitions

        math = definitions(self.math_functions, self.options.fused, self.declare)
        constants = [*self._strings_text(), "\n".join(self._constants_text)]
        parts = [*constants, "\n".join(self._declarations.values()), *bodies, *self.helpers.values(), *math]
        parts += [GROUPS, self.flags_text()]
        parts += ["\n".join(self.metadata.lines)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def function_emitter(self, function: func.FuncOp, ops: list[Operation], bound_is_constant: bool) -> FunctionEmitter:
        """What writes a function of this module."""
        return FunctionEmitter(self, function, ops, bound_is_constant)

    def flags_text(self) -> str:
        """Named metadata."""
        return ""

    def declare(self, name: str, text: str) -> None:
        """Notes that the module needs the declaration `text` of `name`."""
        known = self._declarations.setdefault(name, text)
        if known is not text and known != text:
            raise EmissionError(f"'{name}' is called with two different types: {known} and {text}")

    def string(self, value: str) -> str:
        """The address of a zero-terminated constant."""
        name = self._strings.get(value)
        if name is None:
            name = self._strings[value] = f"@.text.{len(self._strings)}"
        return name

    def constants(self, values: DenseArrayBase, t: str) -> str:
        """The address of constant elements of type `t`."""
        name = self._constants.get(values)
        if name is None:
            from ulam.emit.scalar_ops import float_literal

            name = self._constants[values] = f"@.constants.{len(self._constants)}"
            numbers = cast("DenseArrayBase[IntegerType]", values).get_values()
            elements = ", ".join([f"{t} {float_literal(x) if t == 'double' else x}" for x in numbers])
            self._constants_text.append(
                f"{name} = private unnamed_addr constant [{len(values)} x {t}] [{elements}], align 8"
            )
        return name

    def _strings_text(self) -> list[str]:
        lines: list[str] = []
        for value, name in self._strings.items():
            data = value.encode() + b"\0"
            text = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
            lines.append(f'{name} = private unnamed_addr constant [{len(data)} x i8] c"{text}"')
        return ["\n".join(lines)]

    def unlikely_else(self) -> str:
        """Branch weights for a test that all but never fails."""
        return f", !prof !{self.metadata.node(LIKELY)}"


def terminator_of(body: Region) -> Operation:
    """What ends a function."""
    last = body.block.last_op
    if last is None:
        raise EmissionError("a region without a terminator cannot be emitted", body.parent)
    if type(last) is not func.ReturnOp:
        raise EmissionError("a function must end in func.return", last)
    return last


_MOST_OUTPUTS = 6
"""Results that a function returns by an address for each; more addresses than registers would be stored themselves."""


def _returns_record(function: func.FuncOp) -> bool:
    """Whether a function returns all its results in one piece of memory. Nobody outside calls it."""
    return not rt.EntryAttr.marks(function) and len(function.function_type.outputs.data) > _MOST_OUTPUTS


def functions_with_changing_bound(functions: dict[str, list[Operation]]) -> set[str]:
    """Functions during whose run the bound table may change: writers, what calls them, and what all these call."""
    bound = (rt.SetBoundOp, rt.AllocBoundOp)
    writers = _with_callers(functions, {name for name, ops in functions.items() if any(type(o) in bound for o in ops)})
    calls = _callees(functions) if writers else {}
    changed = bool(writers)
    while changed:
        called = set().union(*(calls.get(name, ()) for name in writers)) - writers
        writers |= called
        changed = bool(called)
    return writers


def _with_callers(functions: dict[str, list[Operation]], names: set[str]) -> set[str]:
    """Those functions and what calls them, directly or not."""
    found, added = set(names), set(names)
    calls = _callees(functions) if names else {}
    while added:
        added = {name for name, callees in calls.items() if name not in found and callees & found}
        found |= added
    return found


def _callees(functions: dict[str, list[Operation]]) -> dict[str, set[str]]:
    return {name: {callee_name(op) for op in ops if type(op) is func.CallOp} for name, ops in functions.items()}


def callee_name(op: Operation) -> str:
    """The symbol a `func.call` refers to."""
    callee: Any = op.properties["callee"]
    return callee.root_reference.data


class FunctionEmitter:
    """State of one function: names of values, the block being written, lines so far."""

    def __init__(
        self, module: ModuleEmitter, function: func.FuncOp, ops: list[Operation], bound_is_constant: bool
    ) -> None:
        self.module = module
        self.function = function
        self.bound_is_constant = bound_is_constant
        self.contract = module.options.opt_level >= 3
        self.vectors, self._long_vectors = module.options.vectors, ""
        if self.contract and self.vectors.lanes < self.vectors.longest and has_longest_vectors(ops):
            self.vectors, self._long_vectors = replace(self.vectors, lanes=self.vectors.longest), LONG_VECTORS
        self.exact_blocks = module.options.exact_blocks
        self.names: dict[SSAValue, str] = {}
        self.block = "entry"
        """Label of the block being written."""
        self.lines: list[str] = []
        self.allocas: list[str] = []
        """Stack slots; they belong into the entry block."""
        self.cold: list[str] = []
        """Blocks for errors, put behind all others."""
        self.failures: dict[tuple[object, ...], str] = {}
        """Those that others may share, by what they do."""
        self.outputs: list[str] = []
        self.loop_depth = 0
        self.may_inline_math = module.options.inline_math and bound_is_constant
        self.is_entry = rt.EntryAttr.marks(function)
        name = function.sym_name.data
        returns_buffers = any(type(t) is rt.BufferType for t in function.function_type.outputs.data)
        self.stack_bytes_left = STACK_BYTES if self.is_entry and bound_is_constant and not returns_buffers else 0
        if rt.PartAttr.marks(function) and not returns_buffers and name not in module.keeping:
            self.stack_bytes_left = STACK_BYTES_OF_PART
        """For small buffers of constant size. They must not outlive the function."""
        self.inline_math = False
        """Within a loop worth widening."""
        self.serial = False
        """Within a loop marked `serial` (and levels 3, 4): exp and log come from libm."""
        self.scopes = AliasScopes(name, module.roots[name], module.metadata, bound_is_constant)
        self.access_suffixes: dict[SSAValue, str] = {}
        self._used: dict[str, int] = {"context": 0, "bound": 0, "entry": 0}
        self._counter = 0
        self._table = module.table

    # names

    def define(self, value: SSAValue) -> str:
        """Gives `value` its name: its hint made unique, or a number."""
        hint = value.name_hint
        if hint is None:
            self._counter += 1
            name = f"%.{self._counter}"
        else:
            name = "%" + self.fresh(hint)
        self.names[value] = name
        return name

    def temporary(self) -> str:
        """The name of a value that has no counterpart in the module."""
        self._counter += 1
        return f"%.{self._counter}"

    def fresh(self, hint: str) -> str:
        """`hint`, or `hint.1`, `hint.2`, ...: values and blocks share one name space."""
        used = self._used
        number = used.get(hint)
        if number is None:
            used[hint] = 0
            return hint
        while True:
            number += 1
            name = f"{hint}.{number}"
            if name not in used:
                break
        used[hint] = number
        used[name] = 0
        return name

    # writing

    def line(self, text: str) -> None:
        """One instruction."""
        self.lines.append("  " + text)

    def begin_block(self, label: str) -> None:
        """Ends the layout of the present block (its terminator is written) and begins another."""
        self.lines.append(f"{label}:")
        self.block = label

    def operands(self, op: Operation) -> tuple[SSAValue, ...]:
        """The operands, all of which must have a name by now."""
        return operand_tuple(op)

    def type(self, value: SSAValue) -> str:
        """LLVM type of a value."""
        return llvm_type(_value_type(value))

    def fast_math(self, op: Operation) -> str:
        """Flags of a floating-point op at levels 3 and 4: `contract`, and `reassoc` where the op allows it."""
        flags: Any = op.properties.get("fastmath")
        if flags is not None and flags.data and any(f.value in ("reassoc", "fast") for f in flags.data):
            return "reassoc contract "
        return "contract "

    # structure

    def region(self, region: Region, then: Callable[[Operation], None] | None = None) -> Operation:
        """Writes the ops of a single-block region; returns its terminator, which is left to the caller.

        `then` is called behind each op.
        """
        table = self._table
        block = region.block
        last = block.last_op
        if last is None:
            raise EmissionError("a region without a terminator cannot be emitted", region.parent)
        for op in block.ops:
            if op is last:
                break
            emit = table.get(type(op))
            if emit is None:
                raise EmissionError("this op has no LLVM form; it should have been lowered before", op)
            try:
                emit(self, op)
            except KeyError as error:
                if isinstance(error.args[0], SSAValue):
                    raise EmissionError(f"a value is used before it is defined: {error.args[0]}", op) from None
                raise
            if then is not None:
                then(op)
        return last

    def run(self) -> str:
        """The function's definition."""
        function = self.function
        entry = self.is_entry
        outputs = function.function_type.outputs.data
        parameters = ["ptr noalias %context", "ptr noalias %bound"]
        for argument in function.args:
            t = self.type(argument)
            parameters.append(f"{t} {'noalias ' if entry and t == 'ptr' else ''}{self.define(argument)}")
        in_record = function.sym_name.data in self.module.returning_records
        for i in range(1 if in_record else len(outputs)):
            name = "%" + self.fresh("record" if in_record else f"out.{i}")
            self.outputs.append(name)
            parameters.append(f"ptr noalias {name}")
        returned = terminator_of(function.body)
        if in_record:
            self._return_in_record(function.body, returned)
        else:
            self.region(function.body)
            for value, out in zip(self.operands(returned), self.outputs, strict=True):
                self.line(f"store {self.type(value)} {self.names[value]}, ptr {out}, align 8")
        self.line("ret i32 0")
        linkage = "" if entry else "internal "
        name = symbol(function.sym_name.data)
        head = f"define {linkage}i32 {name}({', '.join(parameters)}) {self.attributes_text()} {{"
        return "\n".join([head, "entry:", *self.allocas, *self.lines, *self.cold, "}"])

    def _return_in_record(self, body: Region, returned: Operation) -> None:
        """Writes the function; each result is stored where it is computed, so that not all are alive at the end."""
        places: dict[SSAValue, list[int]] = {}
        for n, value in enumerate(self.operands(returned)):
            places.setdefault(value, []).append(n)

        def store(values: Iterable[SSAValue]) -> None:
            for value in values:
                for n in places.pop(value, ()):
                    place = self.in_record(self.outputs[0], n)
                    self.line(f"store {self.type(value)} {self.names[value]}, ptr {place}, align 8")

        self.region(body, lambda op: store(op.results) if op.results else None)
        store(list(places))

    def in_record(self, record: str, number: int) -> str:
        """The address of one of the results of a function in the memory that it returns all in."""
        if not number:
            return record
        address = self.temporary()
        self.line(f"{address} = getelementptr inbounds i8, ptr {record}, i64 {8 * number}")
        return address

    def attributes_text(self) -> str:
        """What follows the parameters of the function."""
        if self._computes_little():
            return PLAIN
        if rt.PartAttr.marks(self.function):
            return PART + self._long_vectors
        # what binds data runs once
        return HOT + self._long_vectors if self.bound_is_constant else SMALL

    def _computes_little(self) -> bool:
        """Whether the function runs once, and what it does is not worth the time of LLVM's passes."""
        name = self.function.sym_name.data
        return name in ONCE_THROUGH_DATA or (name == PREPARE and not any(map(_ARITHMETIC, _in_loops(self.lines))))


def _in_loops(lines: Sequence[str]) -> Iterator[str]:
    """The lines inside of loops, the last first."""
    heads: list[str] = []
    for line in reversed(lines):
        if (end := _LOOP_END(line)) is not None:
            heads.append(end[1])
        elif heads and line == f"{heads[-1]}:":
            heads.pop()
        elif heads:
            yield line


_LOOP_END = re.compile(r"\s*br label %([\w.]+), !llvm\.loop ").match
ONCE_THROUGH_DATA = frozenset({"data_dims", "bind"})
"""Entries that go through the data a few times, which takes less time than to read them; what is costly is called."""
PREPARE = "prepare"
"""Computes once whatever a program says."""
_ARITHMETIC = re.compile(r" (?:f(?:add|sub|mul|div|rem)|call double) ").search
