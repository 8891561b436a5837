"""`print`, `reject` and `fatal_error`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import SSAValue

from ulam.dialects import rt, stan
from ulam.library.records import record
from ulam.library.statuses import FATAL, REJECTION
from ulam.passes.builder import BUFFER_I64
from ulam.passes.to_loops.indexing import Selection, select
from ulam.passes.to_loops.lowering import Lowering, handles
from ulam.passes.to_loops.values import Container, Tuple, Value, materialize, peel

_PRINT_KINDS = {"print": 0, "reject": 1, "fatal_error": 2}
_INNER_KINDS = {stan.VectorType: 1, stan.RowVectorType: 2, stan.MatrixType: 3}


@handles(stan.PrintOp)
def print_(low: Lowering, op: stan.PrintOp) -> None:
    """Its text, and for all but `print` a check that fails: that alone where another unit tells the text."""
    kind = op.kind.data
    builder = low.builder
    if kind != "print" and low.told_elsewhere:
        low.check(builder.i1(False), REJECTION if kind == "reject" else FATAL, kind, location=op.location)
        return
    _kernel(low, "print_begin", builder.i32(_PRINT_KINDS[kind]))
    pairs = [0] * len(op.arguments) if op.pairs is None else [*op.pairs.get_values()]
    layouts = iter([_PLAIN] * len(op.arguments) if op.layouts is None else _layouts(op.layouts.data))
    for n, argument in enumerate(op.arguments):
        literal = argument.owner
        if n and pairs[n - 1]:
            continue  # printed with the real part
        layout = next(layouts)
        if layout.fields:
            _print_tuple(low, low.value(argument), layout, ())
        elif pairs[n]:
            _print_complex(low, low.value(argument), low.value(op.arguments[n + 1]))
        elif isinstance(literal, stan.ConstantOp) and isinstance(literal.value, StringAttr):
            _print_text(low, literal.value.data)
        else:
            _print_value(low, low.value(argument))
    _kernel(low, "print_end")
    if kind != "print":
        low.check(builder.i1(False), REJECTION if kind == "reject" else FATAL, "{text}", location=op.location)


def _kernel(low: Lowering, function: str, *arguments: SSAValue) -> None:
    low.builder.insert(rt.KernelOp(function, arguments))


def _print_text(low: Lowering, text: str) -> None:
    _kernel(low, "print_string", low.builder.insert(rt.StringOp(text)).res)


def _print_complex(low: Lowering, real: Value, imag: Value) -> None:
    """A complex number as Stan prints it, `(real,imag)`, or a container of them."""
    if isinstance(real, Container) and isinstance(imag, Container):
        _print_container(low, "complex", real, imag)
    else:
        for text, part in (("(", real), (",", imag)):
            _print_text(low, text)
            _print_value(low, part)
        _print_text(low, ")")


def _print_container(low: Lowering, what: str, *values: Container) -> None:
    """A container whose elements lie in one buffer, or in two."""
    builder = low.builder
    buffers = [materialize(builder, value).buffer for value in values]
    sizes, inner = values[0].dims, builder.i32(_INNER_KINDS.get(type(values[0].inner), 0))
    dims = builder.alloc(builder.i64(len(sizes)), BUFFER_I64)
    for n, size in enumerate(sizes):
        builder.store(size, dims, builder.i64(n), initial=True)
    arguments = [buffer for buffer in buffers if buffer is not None]
    _kernel(low, f"print_container_{what}", *arguments, builder.i32(len(sizes)), dims, inner)


def _print_value(low: Lowering, value: Value) -> None:
    if isinstance(value, Container):
        _print_container(low, "int" if value.element_type == i32 else "real", value)
    elif isinstance(value, Tuple):
        for n, field in enumerate(value.fields):
            _print_text(low, "," if n else "(")
            _print_value(low, field)
        _print_text(low, ")")
    else:
        _kernel(low, "print_int" if value.type == i32 else "print_real", value)


# ---------------------------------------------------------------- arrays of tuples


@record(frozen=True)
class _Layout:
    """How a value is shown: a tuple of fields, or an array of such tuples; without fields, as it is."""

    rank: int
    fields: tuple[_Layout, ...]
    is_complex: bool = False


_PLAIN = _Layout(0, ())
_COMPLEX = _Layout(0, (), is_complex=True)
_WITHOUT_FIELDS = {".": _PLAIN, "c": _COMPLEX}


def _layouts(text: str) -> list[_Layout]:
    """Those of the arguments, as `stan.PrintOp` has them."""
    position = 0

    def read() -> _Layout:
        nonlocal position
        if (plain := _WITHOUT_FIELDS.get(text[position])) is not None:
            position += 1
            return plain
        opening = text.index("(", position)
        rank, position = int(text[position:opening]), opening + 1
        fields: list[_Layout] = []
        while text[position] != ")":
            fields.append(read())
        position += 1
        return _Layout(rank, tuple(fields))

    found: list[_Layout] = []
    while position < len(text):
        found.append(read())
    return found


def _print_tuple(low: Lowering, value: Value, layout: _Layout, indices: Sequence[SSAValue]) -> None:
    """The element at `indices` of a value whose containers have dimensions of arrays of tuples around it."""
    builder = low.builder
    if not layout.fields:
        element = _element(low, value, indices)
        if layout.is_complex:
            assert isinstance(element, Tuple)
            _print_complex(low, *element.fields)
        else:
            _print_value(low, element)
        return
    assert isinstance(value, Tuple)
    first: Value = value
    while isinstance(first, Tuple):
        first = first.fields[0]

    def nest(depth: int, indices: Sequence[SSAValue]) -> None:
        if depth == layout.rank:
            for n, (field, inner) in enumerate(zip(value.fields, layout.fields, strict=True)):
                _print_text(low, "," if n else "(")
                _print_tuple(low, field, inner, indices)
            _print_text(low, ")")
            return
        assert isinstance(first, Container)

        def each(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            builder.if_else(builder.cmpi("sgt", k, builder.i64(0)), lambda: (_print_text(low, ","), ())[1])
            nest(depth + 1, (*indices, k))
            return ()

        _print_text(low, "[")
        builder.for_loop(builder.i64(0), first.dims[len(indices)], each)
        _print_text(low, "]")

    nest(0, indices)


def _element(low: Lowering, value: Value, indices: Sequence[SSAValue]) -> Value:
    if not indices:
        return value
    if isinstance(value, Tuple):
        return Tuple(value.type, [_element(low, field, indices) for field in value.fields])
    assert isinstance(value, Container)
    if len(indices) == len(value.dims):
        return value.at(indices)
    return select(low, value, [Selection(i) for i in indices], peel(value.type, len(indices)))
