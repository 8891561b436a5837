"""Complex numbers become pairs of reals: the first thing that is done to a program in the `stan` dialect.

Of a complex variable `z` become two, `z.real` and `z.imag`, of the same sizes; of a complex value two values; of a
complex argument two arguments. A result of a function, and the field of a tuple, is a tuple of two. All that follows
knows reals only, so that loops over complex numbers are optimised, differentiated and widened as any others.
`library/complex_functions.py` says what becomes of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FunctionType, ModuleOp, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.attributes import string
from ulam.dialects.walk import blocks_of, ops_of, ops_within
from ulam.library.complex_functions import EACH_PART, OF_PARTS, OF_SIZES, OPERATORS
from ulam.passes.complex_calls import result_of_parts, written_over_elements
from ulam.passes.complex_types import PARTS, has_complex, in_reals, is_complex, part_of, sizes_in_reals
from ulam.passes.errors import NotSupportedError

Pair = tuple[SSAValue, SSAValue]

def split_complex(module: ModuleOp, *, shown: bool = False) -> None:
    """Replaces complex values and variables of a program, in place.

    `shown`: for readers. What an op of complex numbers gives is also there as one value (`stan.ComplexPairAttr`).
    """
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    if any(map(has_complex, _types(program))):
        Splitting(program, shown).run()


def _types(program: Operation) -> Iterable[Attribute]:
    """The types of the values of a program. Most are the same objects: each comes once."""
    found: dict[int, Attribute] = {}
    for op in ops_within(program):
        for result in op.results:
            found[id(result.type)] = result.type
        if op.regions:
            for block in blocks_of(op):
                for argument in block.args:
                    found[id(argument.type)] = argument.type
    return found.values()


class Splitting:
    """One program being rewritten, op by op in program order: operands come before their users."""

    def __init__(self, program: stan.ProgramOp, shown: bool = False) -> None:
        self.program = program
        self.shown = shown
        self.functions = {op.sym_name.data: op for op in program.body.block.ops if isinstance(op, stan.FuncOp)}
        self.inputs = {name: tuple(f.function_type.inputs) for name, f in self.functions.items()}
        self.pairs: dict[SSAValue, Pair] = {}
        self.wholes: dict[SSAValue, SSAValue] = {}  # of those that are shown
        self.replaced: dict[SSAValue, SSAValue] = {}
        self.vectorized: dict[tuple[str, tuple[Attribute, ...]], stan.FuncOp] = {}
        self.at: Operation | None = None  # what is written goes before it
        self.end: Block | None = None  # ... or to the end of this block
        self.location: Any = None

    def run(self) -> None:
        for op in ops_of(self.program.body.block):
            if isinstance(op, stan.FuncOp):
                try:
                    self.function(op)
                except NotSupportedError:
                    if op in self.called():
                        raise
                    op.detach()  # the checker has let it pass, since nothing calls it
            elif isinstance(op, stan.BlockOp):
                self.block(op.body.block)

    def called(self) -> set[Operation]:
        """The functions that a block calls, or a function that it calls, and so on."""
        found: set[Operation] = set()
        pending: list[Operation] = [op for op in self.program.body.block.ops if isinstance(op, stan.BlockOp)]
        while pending:
            for op in ops_within(pending.pop()):
                if not isinstance(op, stan.CallOp):
                    continue
                for name in (op.callee, op.definition, op.callback):
                    function = None if name is None else self.functions.get(name.data)
                    if function is not None and function not in found:
                        found.add(function)
                        pending.append(function)
        return found

    # ------------------------------------------------------------ writing

    def insert(self, op: Operation) -> Operation:
        """Puts an op before the one that is being rewritten."""
        op.location = self.location
        if self.end is not None:
            self.end.add_op(op)
        else:
            assert self.at is not None and self.at.parent is not None
            self.at.parent.insert_op_before(op, self.at)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Like `insert`, for an op with one result."""
        return self.insert(op).results[0]

    def call(self, name: str, arguments: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """A call of a function of reals that the lowering makes itself, or a primitive."""
        return self.value(stan.CallOp(name, arguments, type_, [1] * len(arguments)))

    def binary(self, symbol: str, a: SSAValue, b: SSAValue, type_: Attribute | None = None) -> SSAValue:
        return self.value(stan.BINARY_OPERATORS[symbol](a, b, type_ or a.type))

    def negative(self, a: SSAValue) -> SSAValue:
        return self.value(stan.UNARY_OPERATORS["-"](a, a.type))

    def real(self, number: float) -> SSAValue:
        return self.value(stan.ConstantOp(number))

    def int(self, number: int) -> SSAValue:
        return self.value(stan.ConstantOp(number))

    def parts(self, value: SSAValue) -> Pair:
        """Both parts of a value, which may be real."""
        found = self.pairs.get(value)
        return (value, self.zeros(value)) if found is None else found

    def zeros(self, like: SSAValue) -> SSAValue:
        """As many zeros, in a container of the same type."""
        return self.real(0.0) if like.type == stan.REAL else self.call("fill_like", [like, self.real(0.0)], like.type)

    def whole(self, pair: Pair) -> SSAValue:
        """The pair as a tuple: what functions return, and fields of tuples."""
        type_ = stan.TupleType(ArrayAttr([part.type for part in pair]))
        made = stan.TupleOp(pair, type_)
        if self.shown:
            stan.ComplexPairAttr().put(made)
        return self.value(made)

    def taken_apart(self, value: SSAValue) -> Pair:
        return self.value(stan.FieldOp(value, 1)), self.value(stan.FieldOp(value, 2))

    def in_one(self, value: SSAValue) -> SSAValue:
        """A value as one of a type without complex numbers."""
        if value in self.wholes:
            return self.wholes[value]
        return self.whole(self.pairs[value]) if value in self.pairs else value

    def result(self, value: SSAValue, made: SSAValue) -> None:
        """`made`, of type `in_reals`, is what becomes of `value`."""
        if is_complex(value.type):
            self.pairs[value] = self.taken_apart(made)
        else:
            self.replaced[value] = made

    # ------------------------------------------------------------ functions and blocks

    def function(self, op: stan.FuncOp) -> None:
        signature = op.function_type
        if not op.body.blocks:
            return
        block = op.body.block
        names: list[Any] = []
        marks: list[int] = []
        inputs: list[Attribute] = []
        obsolete: list[Any] = []
        written = zip(list(block.args), op.argument_names, op.data_only.get_values(), strict=True)
        for argument, name, mark in written:
            types = [part_of(argument.type)] * 2 if is_complex(argument.type) else [in_reals(argument.type)]
            if has_complex(argument.type):
                made = [block.insert_arg(type_, argument.index) for type_ in types]
                for one in made:
                    one.name_hint = argument.name_hint
                if len(made) == 2:
                    self.pairs[argument] = (made[0], made[1])
                else:
                    self.replaced[argument] = made[0]
                obsolete.append(argument)
            names += [name] if len(types) == 1 else [string(f"{name.data}.{part}") for part in PARTS]
            marks += [int(mark)] * len(types)
            inputs += types
        if self.shown:
            self.show(block, [argument for argument in obsolete if argument in self.pairs])
        self.block(block)
        for argument in obsolete:
            block.erase_arg(argument)
        op.properties["function_type"] = FunctionType.from_lists(inputs, [in_reals(t) for t in signature.outputs])
        op.properties["argument_names"] = ArrayAttr(names)
        op.properties["data_only"] = DenseArrayBase.from_list(i8, marks)

    def block(self, block: Block) -> None:
        """Rewrites the ops of a block."""
        obsolete: list[Operation] = []
        for op in ops_of(block):
            outer = self.at, self.end, self.location
            self.at, self.end, self.location = op, None, op.location
            if self.rewritten(op):
                obsolete.append(op)
            self.at, self.end, self.location = outer
        for op in reversed(obsolete):
            op.detach()
            op.erase()

    def rewritten(self, op: Operation) -> bool:
        """Whether an op has been replaced by others."""
        operands = list(op.operands)
        if any(o in self.replaced for o in operands):
            op.operands = operands = [self.replaced.get(o, o) for o in operands]
        involved = any(o in self.pairs for o in operands) or any(has_complex(r.type) for r in op.results)
        if isinstance(op, stan.ForEachOp) and operands[0] in self.pairs:
            self.for_each(op)
            return True
        for region in op.regions:
            for block in region.blocks:
                self.block(block)
        if not involved:
            return False
        handler = _HANDLERS.get(type(op))
        if handler is None:
            raise NotSupportedError(f"complex numbers are not supported yet in '{op.name}'", op.location)
        handler(self, op)
        if self.shown and isinstance(op, _SHOWN) and op.results and op.results[0] in self.pairs:
            self.wholes[op.results[0]] = self.whole(self.pairs[op.results[0]])
        return True

    def show(self, block: Block, values: Iterable[SSAValue]) -> None:
        """Makes complex numbers that come into a block one value each."""
        first = block.first_op
        assert first is not None
        outer = self.at, self.end, self.location
        self.at, self.end, self.location = first, None, first.location
        for value in values:
            self.wholes[value] = self.whole(self.pairs[value])
        self.at, self.end, self.location = outer

    # ------------------------------------------------------------ variables

    def declaration(self, op: stan.DeclareOp | stan.ParameterOp) -> None:
        type_ = op.res.type.element
        sizes = [*op.sizes]
        declares_parts = is_complex(type_)
        types = [part_of(type_)] * 2 if declares_parts else [in_reals(type_)]
        sizes = sizes if declares_parts else list(sizes_in_reals(type_, iter(sizes)))
        made = [type(op)(name, t, sizes) for name, t in zip(self.names(op.var_name.data, types), types, strict=True)]
        for one in made:
            for name in ("local", "data_only", "field_ranks"):
                if name in op.properties:
                    one.properties[name] = op.properties[name]
            if declares_parts and isinstance(op, stan.DeclareOp):
                one.properties["source_name"] = op.properties.get("source_name", op.var_name)
        self.variable(op.res, made)
        if self.shown and declares_parts and isinstance(op, stan.ParameterOp):
            real, imag = (self.value(stan.ReadOp(part)) for part in self.pairs[op.res])
            self.whole((real, imag))

    def names(self, name: str, types: Sequence[Attribute]) -> list[str]:
        return [name] if len(types) == 1 else [f"{name}.{part}" for part in PARTS]

    def variable(self, old: SSAValue, made: Sequence[Operation]) -> None:
        values = [self.value(op) for op in made]
        if len(values) == 2:
            self.pairs[old] = (values[0], values[1])
        else:
            self.replaced[old] = values[0]

    def global_(self, op: stan.GlobalOp) -> None:
        type_ = op.res.type.element
        types = [part_of(type_)] * 2 if is_complex(type_) else [in_reals(type_)]
        names = self.names(op.var_name.data, types)
        made = [stan.GlobalOp(name, stan.var_of(t)) for name, t in zip(names, types, strict=True)]
        self.variable(op.res, made)

    def read(self, op: stan.ReadOp) -> None:
        parts = [self.value(stan.ReadOp(part)) for part in self.pairs[op.var]]
        self.pairs[op.res] = (parts[0], parts[1])

    def read_whole(self, op: stan.ReadOp) -> None:
        if op.var in self.pairs:
            self.read(op)
        else:
            self.replaced[op.res] = self.value(stan.ReadOp(op.var))

    def assign(self, op: stan.AssignOp) -> None:
        if op.var not in self.pairs:
            self.insert(stan.AssignOp(op.var, self.in_one(op.value), op.kinds, op.indices))
            return
        # Both parts are computed before one is assigned: the value may have been read from the variable.
        for variable, part in zip(self.pairs[op.var], self.parts(op.value), strict=True):
            self.insert(stan.AssignOp(variable, part, op.kinds, op.indices))

    def index(self, op: stan.IndexOp) -> None:
        if op.value not in self.pairs:
            self.result(op.res, self.value(stan.IndexOp(op.value, op.kinds, op.indices, in_reals(op.res.type))))
            return
        type_ = part_of(op.res.type)
        parts = [self.value(stan.IndexOp(part, op.kinds, op.indices, type_)) for part in self.pairs[op.value]]
        self.pairs[op.res] = (parts[0], parts[1])

    def uninitialized(self, op: stan.UninitializedOp) -> None:
        if not is_complex(op.res.type):
            sizes = list(sizes_in_reals(op.res.type, iter(op.sizes)))
            self.replaced[op.res] = self.value(stan.UninitializedOp(in_reals(op.res.type), sizes, op.var_name))
            return
        type_ = part_of(op.res.type)
        parts = [self.value(stan.UninitializedOp(type_, op.sizes, op.var_name)) for _ in PARTS]
        self.pairs[op.res] = (parts[0], parts[1])

    # ------------------------------------------------------------ operators

    def promote(self, op: stan.PromoteOp) -> None:
        value, type_ = op.operands[0], op.results[0].type
        if isinstance(type_, stan.TupleType):
            self.replaced[op.results[0]] = self.promoted_tuple(value, type_)
        elif is_complex(type_):
            self.pairs[op.results[0]] = self.promoted(value, type_)
        else:
            raise NotSupportedError("tuples of complex numbers are not promoted in arrays yet", op.location)

    def promoted(self, value: SSAValue, type_: Attribute) -> Pair:
        """A value of any type that becomes complex."""
        if value in self.pairs:
            return self.pairs[value]
        part = part_of(type_)
        real = value if value.type == part else self.value(stan.PromoteOp(value, part))
        return real, self.zeros(real)

    def promoted_tuple(self, value: SSAValue, type_: stan.TupleType) -> SSAValue:
        """A tuple, field by field; those of `value` are as after this pass."""
        assert isinstance(value.type, stan.TupleType)
        fields: list[SSAValue] = []
        for number, wanted in enumerate(type_.elements, 1):
            field = self.value(stan.FieldOp(value, number))
            if field.type == in_reals(wanted):
                fields.append(field)
            elif isinstance(wanted, stan.TupleType):
                fields.append(self.promoted_tuple(field, wanted))
            elif is_complex(wanted):
                fields.append(self.whole(self.promoted(field, wanted)))
            else:
                fields.append(self.value(stan.PromoteOp(field, wanted)))
        return self.value(stan.TupleOp(fields, in_reals(type_)))

    def operator(self, op: Any) -> None:
        symbol = op.SYMBOL
        self.pairs_of_operator(symbol, op.operands[0], op.operands[1], op.results[0])

    def pairs_of_operator(self, symbol: str, left: SSAValue, right: SSAValue, result: SSAValue) -> None:
        (a, b), (c, d) = self.parts(left), self.parts(right)
        if symbol in ("==", "!="):
            self.replaced[result] = self.compared(symbol, (a, b), (c, d))
            return
        type_ = part_of(result.type)
        if symbol in ("+", "-"):
            self.pairs[result] = self.binary(symbol, a, c, type_), self.binary(symbol, b, d, type_)
        elif symbol in ("*", ".*"):
            real = self.binary("-", self.binary(symbol, a, c, type_), self.binary(symbol, b, d, type_))
            imag = self.binary("+", self.binary(symbol, a, d, type_), self.binary(symbol, b, c, type_))
            self.pairs[result] = real, imag
        else:
            raise NotSupportedError(f"'{symbol}' of complex numbers is not supported yet", self.location)

    def compared(self, symbol: str, left: Pair, right: Pair) -> SSAValue:
        """Complex numbers are equal if both parts are."""
        same = [self.binary("==", x, y, stan.INT) for x, y in zip(left, right, strict=True)]
        both = self.binary("*", same[0], same[1])
        return both if symbol == "==" else self.value(stan.UNARY_OPERATORS["!"](both, stan.INT))

    def unary(self, op: Any) -> None:
        value, result = op.operands[0], op.results[0]
        type_ = part_of(result.type)
        real, imag = self.pairs[value]
        operator = stan.UNARY_OPERATORS[op.SYMBOL]
        self.pairs[result] = self.value(operator(real, type_)), self.value(operator(imag, type_))

    # ------------------------------------------------------------ containers and tuples

    def literal(self, op: stan.ArrayOp | stan.RowVectorOp) -> None:
        if not is_complex(op.res.type):
            elements = [self.in_one(e) for e in op.elements]
            self.replaced[op.res] = self.value(type(op)(elements, in_reals(op.res.type)))
            return
        pairs = [self.parts(element) for element in op.elements]
        type_ = part_of(op.res.type)
        parts = [self.value(type(op)([pair[n] for pair in pairs], type_)) for n in range(2)]
        self.pairs[op.res] = (parts[0], parts[1])

    def tuple_(self, op: stan.TupleOp) -> None:
        elements = [self.in_one(e) for e in op.elements]
        self.replaced[op.res] = self.value(stan.TupleOp(elements, in_reals(op.res.type)))

    def field(self, op: stan.FieldOp) -> None:
        self.result(op.res, self.value(stan.FieldOp(op.value, op.field.value.data)))

    # ------------------------------------------------------------ control flow

    def select(self, op: stan.SelectOp) -> None:
        regions = [op.detach_region(region) for region in (op.then, op.otherwise)]
        made = stan.SelectOp(op.condition, regions[0], regions[1], in_reals(op.res.type))
        self.result(op.res, self.value(made))

    def yield_(self, op: stan.YieldOp) -> None:
        self.insert(stan.YieldOp(*[self.in_one(value) for value in op.arguments]))

    def return_(self, op: stan.ReturnOp) -> None:
        assert op.value is not None
        self.insert(stan.ReturnOp(self.in_one(op.value)))

    def for_each(self, op: stan.ForEachOp) -> None:
        """A loop over the positions of both containers, which do not change meanwhile."""
        real, imag = self.pairs[op.container]
        body = op.body.block
        element = body.args[0]
        if real.type == stan.MATRIX:
            real, imag = (self.call("to_vector", [part], stan.VECTOR) for part in (real, imag))
        count = self.call("size", [real], stan.INT)
        position = body.insert_arg(stan.INT, 0)
        first = body.first_op
        assert first is not None
        outer = self.at, self.end, self.location
        self.at, self.end = first, None
        type_ = part_of(element.type)
        parts = [self.value(stan.IndexOp(part, ("single",), (position,), type_)) for part in (real, imag)]
        self.pairs[element] = (parts[0], parts[1])
        self.at, self.end, self.location = outer
        self.block(body)
        body.erase_arg(element)
        region = op.detach_region(op.body)
        self.insert(stan.ForOp(op.variable, self.int(1), count, region))

    def print_(self, op: stan.PrintOp) -> None:
        arguments: list[SSAValue] = []
        pairs: list[int] = []
        for value in op.arguments:
            pair = self.pairs.get(value)
            arguments += [value] if pair is None else pair
            pairs += [0] if pair is None else [1, 0]
        layouts = "" if op.layouts is None else op.layouts.data
        self.insert(stan.PrintOp(op.kind, arguments, pairs=pairs, layouts=layouts))

    # ------------------------------------------------------------ calls

    def call_op(self, op: stan.CallOp) -> None:
        name = op.callee.data
        symbol = name if op.user is not None else None if op.definition is None else op.definition.data
        if op.user is None and name in OPERATORS and op.res is not None and symbol is None:
            self.pairs_of_operator(OPERATORS[name], op.arguments[0], op.arguments[1], op.res)
        elif op.user is None and name in EACH_PART:
            self.each_part(op)
        elif op.user is None and name in OF_SIZES:
            (value,) = op.arguments
            self.forward(op, [self.pairs[value][0]], op.res)
        elif op.user is None and name in OF_PARTS:
            assert op.res is not None
            made = result_of_parts(self, name, op.arguments, op.res.type)
            if isinstance(made, tuple):
                self.pairs[op.res] = made
            else:
                self.replaced[op.res] = made
        elif symbol is None and op.callback is None:
            raise NotSupportedError(f"'{name}' of complex numbers is not supported yet", op.location)
        else:
            self.call_function(op, symbol)

    def each_part(self, op: stan.CallOp) -> None:
        """The same of both parts; what is an int is a size or a position."""
        assert op.res is not None
        made: list[SSAValue] = []
        for n in range(2):
            arguments = [a if stan.scalar_of(a.type) == stan.INT else self.parts(a)[n] for a in op.arguments]
            flags = [*op.autodiff.get_values()]
            definition = None if op.definition is None else op.definition.data
            call = stan.CallOp(op.callee, arguments, part_of(op.res.type), flags, definition=definition)
            made.append(self.value(call))
        self.pairs[op.res] = (made[0], made[1])

    def forward(self, op: stan.CallOp, arguments: Sequence[SSAValue], result: SSAValue | None) -> None:
        assert result is not None
        call = stan.CallOp(op.callee, arguments, result.type, [0] * len(arguments))
        self.replaced[result] = self.value(call)

    def call_function(self, op: stan.CallOp, symbol: str | None) -> None:
        """A function with a body: of the program, or of the library, perhaps of each element of containers.

        Without a symbol: one that calls a function of the program, and has no definition (`reduce_sum`).
        """
        of_library = op.user is None and op.callback is None and op.res is not None
        if of_library and symbol is not None and self.is_over_elements(op, symbol):
            assert op.res is not None
            symbol = self.over_elements(symbol, [a.type for a in op.arguments], op.res.type)
        arguments: list[SSAValue] = []
        flags: list[int] = []
        captured: list[int] = []
        marks = None if op.captured is None else [int(c) for c in op.captured.get_values()]
        for n, (argument, flag) in enumerate(zip(op.arguments, op.autodiff.get_values(), strict=True)):
            pair = self.pairs.get(argument)
            arguments += [argument] if pair is None else pair
            flags += [int(flag)] * (1 if pair is None else 2)
            if marks is not None:
                captured += [marks[n]] * (1 if pair is None else 2)
                if pair is not None and not marks[n]:
                    message = f"complex arguments of '{op.callee.data}' are not supported yet, but for its function"
                    raise NotSupportedError(message, op.location)
        call = stan.CallOp(
            op.callee,
            arguments,
            None if op.res is None else in_reals(op.res.type),
            flags,
            user=op.user is not None,
            unnormalized=op.unnormalized is not None,
            unchecked=op.unchecked is not None,
            callback=op.callback,
            captured=None if marks is None else captured,
            definition=None if op.user is not None else symbol,
        )
        self.insert(call)
        if op.res is not None:
            assert call.res is not None
            self.result(op.res, call.res)

    def is_over_elements(self, op: stan.CallOp, symbol: str) -> bool:
        """Whether a function of scalars is called with containers."""
        formals = self.inputs[symbol]
        return not any(map(stan.dimensions, formals)) and any(stan.dimensions(a.type) for a in op.arguments)

    def over_elements(self, symbol: str, types: Sequence[Attribute], result: Attribute) -> str:
        """A function that calls one of scalars for each element of containers; its symbol."""
        key = symbol, tuple(types)
        found = self.vectorized.get(key)
        if found is None:
            found = self.vectorized[key] = written_over_elements(self, symbol, types, result)
        return found.sym_name.data


_SHOWN = (
    stan.IndexOp, stan.FieldOp, stan.ArrayOp, stan.RowVectorOp, stan.CallOp,
    *stan.BINARY_OPERATORS.values(), *stan.UNARY_OPERATORS.values(),
)  # fmt: skip
"""The ops whose results are shown to readers as one value."""

_HANDLERS: dict[type[Operation], Callable[[Splitting, Any], None]] = {
    stan.DeclareOp: Splitting.declaration,
    stan.ParameterOp: Splitting.declaration,
    stan.GlobalOp: Splitting.global_,
    stan.ReadOp: Splitting.read_whole,
    stan.AssignOp: Splitting.assign,
    stan.IndexOp: Splitting.index,
    stan.UninitializedOp: Splitting.uninitialized,
    stan.PromoteOp: Splitting.promote,
    stan.ArrayOp: Splitting.literal,
    stan.RowVectorOp: Splitting.literal,
    stan.TupleOp: Splitting.tuple_,
    stan.FieldOp: Splitting.field,
    stan.SelectOp: Splitting.select,
    stan.YieldOp: Splitting.yield_,
    stan.ReturnOp: Splitting.return_,
    stan.PrintOp: Splitting.print_,
    stan.CallOp: Splitting.call_op,
    **dict.fromkeys(
        [stan.BINARY_OPERATORS[s] for s in ("+", "-", "*", ".*", "==", "!=")], Splitting.operator
    ),
    **dict.fromkeys([stan.UNARY_OPERATORS[s] for s in ("-", "+", "'")], Splitting.unary),
}
