"""Loops over all elements of a matrix that is filled ahead, as nests over its columns and rows.

    mu = X * B                                             mu = X * B
    for r: target += f(y[r], mu[r])          →             for k: for n: target += f(y[k * N + n], mu[k * N + n])

`to_vector(Y) ~ normal(to_vector(X * B), s)` is such a loop. As a nest its rows are those of several components
(`component_rows`), of which each reads a row of the matrix.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.ragged_rows import is_flag
from ulam.passes.loops.row_elements import shape_of
from ulam.passes.rewriting import copies


def by_columns(loop: scf.ForOp, bound: dict[int, SSAValue]) -> scf.ForOp | None:
    """A nest in front of a loop over the elements of a matrix that does the same; None if it is no such loop. `bound`:
    what `bind` puts into slots.
    """
    shape = _shape(loop, bound)
    if shape is None:
        return None
    rows, columns = shape
    write = OpWriter(loop)
    column, inside = new_loop(write, write.whole(0), columns, loop.iter_args)
    nest = inside.anchor.parent_op()
    assert isinstance(nest, scf.ForOp)
    start = inside.put(integer(arith.MuliOp, column, rows))
    zero = inside.whole(0)
    row, innermost = new_loop(inside, zero, rows, [zero] * len(loop.results))
    inner = innermost.anchor.parent_op()
    assert isinstance(inner, scf.ForOp)
    nest.location = inner.location = loop.location
    body = loop.body.block
    known: dict[SSAValue, SSAValue] = {body.args[0]: innermost.put(integer(arith.AddiOp, start, row))}
    known.update(zip(body.args[1:], inner.body.block.args[1:], strict=True))
    for op in copies(list(ops_of(body))[:-1], known):
        innermost.before(op)
    innermost.anchor.operands = [known.get(value, value) for value in terminator(body).operands]
    flags = zip(nest.body.block.args[1:], inner.results, strict=True)
    inside.anchor.operands = [inside.put(arith.OrIOp.create(operands=pair, result_types=(i64,))) for pair in flags]
    return nest


def _shape(loop: scf.ForOp, bound: dict[int, SSAValue]) -> tuple[SSAValue, SSAValue] | None:
    """The rows and columns of a matrix of which each iteration of a loop reads its element."""
    if constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1:
        return None
    if not all(is_flag(loop, position) for position in range(len(loop.results))):
        return None
    for load in ops_of(loop.body.block):
        if not isinstance(load, rt.LoadOp) or load.index is not loop.body.block.args[0] or load.res.type != f64:
            continue
        memory = load.buffer.owner
        if isinstance(memory, rt.AllocOp) and not_clamped(memory.count) is not_clamped(loop.ub):
            if (shape := shape_of(memory, bound)) is not None:
                return shape
    return None
