"""A Cholesky factor of which a normal density alone is computed is one kernel with it.

    rt.kernel cholesky_decompose(A, n, L)
    rt.kernel mdivide_left_tri_low(L, b, n, 1, z)         →   rt.kernel normal_terms(A, b, n, 1, s, l, L, z)
    for k: q = q + z[k] * z[k]                                q = load s[0]
    for k: d = d + log(L[k, k])                               d = load l[0]

With alpha = A^-1 b the adjoint of A then is (d_adj A^-1) / 2 - q_adj alpha alpha': an inverse in place of the pullback
of the factor and of the solve, and no memory for their adjoints. This is so whether the program calls a density of the
library, by the covariance or by its factor, or writes it out. Elements of L and z that are read elsewhere have adjoints
of their own, and prevent it.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.effects import ANYTHING
from ulam.dialects.scalar_ops import constant, constant_integer, is_same_integer, known_constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import BOUND, UNKNOWN, effect_within, functions, root, written_roots_within
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.squares import squares_of
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass


@record(frozen=True)
class NormalTerms(TellingPass):
    """Computes factors with the densities that alone use them, in all functions or in the one that is named."""

    name = "normal-terms"

    function: str = ""

    def changes(self, module: ModuleOp) -> bool:
        changed = False
        for function in functions(named_function(module, self.function, self.name)):
            for op in list(ops_within(function)):
                if isinstance(op, rt.KernelOp) and op.function.data == "cholesky_decompose":
                    found = _density(op)
                    changed = changed or isinstance(found, _Density)
                    if isinstance(found, _Density):
                        found.join()
                    if found is not None:
                        why = found if isinstance(found, str) else "it is computed together with the density of it"
                        remark(self.name, op.location, "Cholesky factor", why, done=isinstance(found, _Density))
        return changed


@record
class _Density:
    """`factor`, `solve`: the two kernels; then the loops that read what they compute."""

    factor: rt.KernelOp
    solve: rt.KernelOp
    squares: scf.ForOp
    logarithms: scf.ForOp

    def join(self) -> None:
        """Writes the one kernel in place of all that."""
        writer = OpWriter(self.solve)
        kind = rt.BufferType(f64)
        one, zero = (writer.put(constant(number, i64)) for number in (1, 0))
        square, log_root = (writer.put(rt.AllocOp(one, kind)) for _ in range(2))
        matrix, n, L = self.factor.arguments
        _, right, _, columns, z = self.solve.arguments
        arguments = (matrix, right, n, columns, square, log_root, L, z)
        kernel = rt.KernelOp(
            "normal_terms", arguments, throws=True, site=self.factor.site, location=self.factor.location
        )
        assert self.solve.parent is not None
        self.solve.parent.insert_op_before(kernel, self.solve)
        for loop, buffer in ((self.squares, square), (self.logarithms, log_root)):
            replace_uses(loop.results[0], writer.put(rt.LoadOp(buffer, zero)))
            discard(loop)
        discard(self.factor)
        discard(self.solve)


def _density(factor: rt.KernelOp) -> _Density | str | None:
    """What uses a factor; why it stays if that is something else; None if no density can be meant."""
    _, n, L = factor.arguments
    users = _users(L, factor)
    solves = [op for op in users if _is_solve(op, L)]
    if not solves:
        return None
    others = [loop for op in users if op not in solves and (loop := _sum_of_logs(op, n)) is not None]
    if len(solves) != 1 or len(others) != 1 or len(users) != 2:
        return "it is read by something else than one density"
    (solve,) = solves
    assert isinstance(solve, rt.KernelOp)
    readers = _users(solve.arguments[4], solve)
    squares = _sum_of_squares(readers[0], n) if len(readers) == 1 else None
    if squares is None or constant_integer(solve.arguments[3]) != 1 or not is_same_integer(solve.arguments[2], n):
        return "the system that it solves is read by something else than one density"
    found = _Density(factor, solve, squares, others[0])
    return found if _may_wait(found) else "what is between it and the density may change its matrix"


def _users(buffer: SSAValue, writer: Operation) -> list[Operation]:
    """All that uses a buffer but for its writer; none if it is no memory of its own."""
    if not isinstance(buffer.owner, rt.AllocOp):
        return []
    return [use.operation for use in buffer.uses if use.operation is not writer]


def _is_solve(op: Operation, L: SSAValue) -> bool:
    return isinstance(op, rt.KernelOp) and op.function.data == "mdivide_left_tri_low" and op.arguments[0] is L


def _may_wait(density: _Density) -> bool:
    """Whether the factor may be computed where the system is solved, and sums where the factor is."""
    source = root(density.factor.arguments[0])
    block = density.factor.parent
    parts = (density.solve, density.squares, density.logarithms)
    if source in (UNKNOWN, BOUND) or any(part.parent is not block for part in parts):
        return False
    op = density.factor.next_op
    while op is not None and op is not density.solve:
        if op is density.logarithms or (not isinstance(op, rt.KernelOp) and effect_within(op) == ANYTHING):
            return False
        if not written_roots_within(op).isdisjoint((source, UNKNOWN)):
            return False
        op = op.next_op
    return op is not None


def _sum(load: Operation, n: SSAValue) -> tuple[scf.ForOp, SSAValue] | None:
    """The loop from 0 to n that adds up, beginning with 0, something of what `load` reads, and nothing else; what it
    adds up.
    """
    loop = load.parent_op()
    if not isinstance(load, rt.LoadOp) or not isinstance(loop, scf.ForOp) or len(loop.results) != 1:
        return None
    if constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1 or not is_same_integer(loop.ub, n):
        return None
    body = loop.body.block
    added = terminator(body).operands[0].owner
    if known_constant(loop.iter_args[0]) != 0 or not isinstance(added, arith.AddfOp):
        return None
    terms = [operand for operand in added.operands if operand is not body.args[1]]
    is_sum = len(terms) == 1 and body.args[1].has_one_use() and added.result.has_one_use()
    return (loop, terms[0]) if is_sum else None


def _sum_of_squares(load: Operation, n: SSAValue) -> scf.ForOp | None:
    """The loop that adds up z[k] * z[k]."""
    if (found := _sum(load, n)) is None:
        return None
    loop, term = found
    assert isinstance(load, rt.LoadOp)
    is_square = term.owner in squares_of(load.res) and load.index is loop.body.block.args[0]
    return loop if is_square and term.has_one_use() and _no_more_than(load.res, term.owner) else None


def _sum_of_logs(load: Operation, n: SSAValue) -> scf.ForOp | None:
    """The loop that adds up log(L[k, k])."""
    if (found := _sum(load, n)) is None:
        return None
    loop, term = found
    log = term.owner
    assert isinstance(load, rt.LoadOp)
    is_log = isinstance(log, rt.MathOp) and log.function.data == "log" and log.operands[0] is load.res
    on_diagonal = _on_diagonal(load.index, loop.body.block.args[0], n)
    return loop if is_log and on_diagonal and term.has_one_use() and _no_more_than(load.res, log) else None


def _no_more_than(value: SSAValue, op: Operation | object) -> bool:
    return all(use.operation is op for use in value.uses)


def _on_diagonal(index: SSAValue, k: SSAValue, n: SSAValue) -> bool:
    """Whether an index is k * n + k."""
    if not isinstance(index.owner, arith.AddiOp):
        return False
    operands = index.owner.operands
    rest = [operand for operand in operands if operand is not k]
    if len(rest) != 1 or not isinstance(product := rest[0].owner, arith.MuliOp):
        return False
    first, second = product.operands
    return (first is k and is_same_integer(second, n)) or (second is k and is_same_integer(first, n))
