"""Forward-mode differentiation of a gradient function: products of a Hessian with a direction.

    evaluate(theta, gradient, ...) -> target    →    evaluate(theta, direction, gradient, product, ...) -> target

Every real becomes a dual number, that is, gets a *tangent* beside it: its derivative along the direction. Every buffer
gets a buffer of tangents. The gradient function is ordinary IR, so this is done op by op, in program order; what does
not vary (`variation`) is left alone. The original computation keeps its bits.
Source: A. Griewank, A. Walther, "Evaluating Derivatives", sections 3.1 and 5.1 (forward over reverse).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr, f64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import known_constant
from ulam.library.records import record
from ulam.passes.analysis.nesting import functions_of, terminator
from ulam.passes.autodiff.tangent_rules import TANGENT
from ulam.passes.autodiff.variation import Variation, has_tangent_type
from ulam.passes.builder import BUFFER_REAL, Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.rewriting import cloned, rebuild


class ForwardModePass(ModulePass):
    """Makes Hessian-vector products, one for every `ad.hessian_vector`. Runs after `reverse-mode`."""

    name = "forward-mode"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_of(op)
        tangents = TangentFunctions()
        for request in [o for o in op.body.block.ops if isinstance(o, ad.HessianVectorOp)]:
            _hessian_vector(functions[request.function.root_reference.data], tangents)
            request.detach()
            request.erase()
        tangents.write(op)


def forward_in_place(
    block: Block, known: dict[SSAValue, int | float], direction: SSAValue, functions: TangentFunctions
) -> None:
    """Makes the last addition of `block` to the target one of its derivative along `direction`.

    `block` stands alone, before it becomes part of a function: what it takes from outside is constant. `known`: which
    of that are numbers. `direction` is one of its independent variables, as the buffer of these. What it calls gets
    versions in `functions`, which are to be written when the functions are complete.
    """
    function = func.FuncOp.create(
        properties={"sym_name": StringAttr(""), "function_type": FunctionType.from_lists([], [])},
        regions=[Region(block)],
    )
    independent = next(op for op in block.ops if isinstance(op, ad.IndependentOp))
    mode = ForwardMode(function, Variation(block, (independent.buffer,)), functions, direction)
    mode.builder.known.update(known)
    mode.differentiate(block)
    function.body.detach_block(block)
    target = block.last_op
    assert isinstance(target, ad.TargetAddOp)
    derivative = mode.tangents.get(target.value)
    if derivative is None:
        zero = arith.ConstantOp(FloatAttr(0.0, f64))
        block.insert_op_before(zero, target)
        derivative = zero.result
    target.operands = (derivative,)


@record
class TangentFunctions:
    """Functions that are to get a version with tangents: `f` → `f.tangent`.

    `reverse_follows`: all these are differentiated in reverse mode then, so kernels are needed that have pullbacks.
    """

    reverse_follows: bool = False
    pending: list[str] = field(default_factory=list[str])
    known: set[str] = field(default_factory=set[str])

    def of(self, name: str) -> SymbolRefAttr:
        """The version of function `name` that takes and returns tangents of all reals, behind the rest."""
        if name not in self.known:
            self.known.add(name)
            self.pending.append(name)
        return SymbolRefAttr(f"{name}.tangent")

    def write(self, module: ModuleOp) -> None:
        """Writes all that was asked for of the module's functions, and what that asks for."""
        functions = functions_of(module)
        while self.pending:
            name = self.pending.pop(0)  # tangents of a version with tangents are asked for later than that
            version = f"{name}.tangent"
            if version in functions:
                continue
            function = functions[version] = cloned(functions[name])
            function.properties["sym_name"] = StringAttr(version)
            _with_tangents(function, self)
            module.body.block.add_op(function)


def _hessian_vector(function: func.FuncOp, functions: TangentFunctions) -> None:
    entry = function.body.block
    theta, gradient = entry.args[0], entry.args[1]
    mode = ForwardMode(function, Variation(entry, (theta, gradient)), functions)
    product = entry.insert_arg(BUFFER_REAL, 2)
    direction = entry.insert_arg(BUFFER_REAL, 1)
    direction.name_hint, product.name_hint = "direction", "product"
    mode.tangents[theta] = direction
    mode.tangents[gradient] = product
    mode.run()


def _with_tangents(function: func.FuncOp, functions: TangentFunctions) -> None:
    """Tangents of all reals as further arguments, `rt.null` for data; tangents of real results as further results."""
    entry = function.body.block
    varied = [argument for argument in entry.args if has_tangent_type(argument.type)]
    end = terminator(entry)
    results = [value for value in end.operands if has_tangent_type(value.type)]
    variation = Variation(entry, [*varied, *results])
    mode = ForwardMode(function, variation, functions)
    for argument in varied:
        mode.tangents[argument] = entry.insert_arg(argument.type, len(entry.args))
        variation.let_lack_memory(argument)
    mode.run()


class ForwardMode:
    """The differentiation of one function, in place."""

    def __init__(
        self,
        function: func.FuncOp,
        variation: Variation,
        functions: TangentFunctions,
        direction: SSAValue | None = None,
    ) -> None:
        """`direction`: the tangents of independent variables, where `ad.independent` says which these are."""
        self.function = function
        self.variation = variation
        self.functions = functions
        self.builder = Builder(function.body.block)
        self.tangents: dict[SSAValue, SSAValue] = {}
        self.direction = direction

    def run(self) -> None:
        """Rewrites the body and the type of the function."""
        entry = self.function.body.block
        self.differentiate(entry)
        results = [o.type for o in terminator(entry).operands]
        self.function.properties["function_type"] = FunctionType.from_lists([a.type for a in entry.args], results)

    def differentiate(self, block: Block) -> None:
        """Writes the tangents of all that varies in a block."""
        self._block(block)
        self.builder.finish()

    # ------------------------------------------------------------ for the rules

    def tangent(self, value: SSAValue) -> SSAValue | None:
        """The tangent of a value; None if it does not vary."""
        found = self.tangents.get(value)
        if found is None and isinstance(value.type, rt.BufferType) and self.variation.is_varied(value):
            return self.null(value.type)  # data, in a class that varies
        return found

    def tangent_or_zero(self, value: SSAValue) -> SSAValue:
        """The same with 0, or `rt.null`, for what does not vary."""
        if (found := self.tangent(value)) is not None:
            return found
        return self.builder.f64(0.0) if value.type == f64 else self.null(value.type)

    def null(self, type_: Attribute) -> SSAValue:
        """The tangent of a buffer that does not vary."""
        return self.builder.insert(rt.NullOp(type_)).res

    def need(self, value: SSAValue, frame: object = None) -> SSAValue:
        """A value of the original computation (as the rules of reverse mode ask for it)."""
        return value

    def load(self, buffer: SSAValue, index: SSAValue, *, ahead: bool = False) -> SSAValue | None:
        """The tangent of an element; None if it does not vary. `ahead`: as `rt.AheadAttr` tells of the element."""
        tangent = self.tangent(buffer)
        if tangent is None:
            return None
        builder = self.builder

        def load() -> SSAValue:
            op = builder.insert(rt.LoadOp(tangent, index))
            if ahead:
                rt.AheadAttr().put(op)
            return op.res

        if not self.variation.may_lack_memory(buffer):
            return load()
        assert isinstance(buffer.type, rt.BufferType)
        element = buffer.type.element
        return builder.if_else(
            builder.insert(rt.IsNullOp(tangent)).res,
            lambda: [builder.f64(0.0) if element == f64 else self.null(element)],
            lambda: [load()],
        )[0]

    def unless_null(self, buffer: SSAValue, tangent: SSAValue) -> SSAValue | None:
        """A condition that holds if a tangent buffer is there; None if it surely is."""
        if not self.variation.may_lack_memory(buffer):
            return None
        is_null = self.builder.insert(rt.IsNullOp(tangent)).res
        return self.builder.invert(is_null)

    def unsupported(self, what: str, op: Operation) -> NotSupportedError:
        return NotSupportedError(f"second derivatives of {what} are not there yet", op.location)

    # ------------------------------------------------------------ the walk

    def _block(self, block: Block) -> None:
        """Puts the ops of a block back one by one, each with its tangents behind it."""
        ops = list(block.ops)
        for op in ops:
            op.detach()
        with self.builder.inside(block):
            for op in ops:
                self.builder.location = op.location
                block.add_op(op)
                self._op(op)

    def _op(self, op: Operation) -> None:
        if isinstance(op, arith.ConstantOp):
            if (known := known_constant(op.result)) is not None:
                self.builder.known[op.result] = known
        elif isinstance(op, scf.ForOp):
            self._for(op)
        elif isinstance(op, scf.IfOp):
            self._if(op)
        elif isinstance(op, scf.WhileOp):
            self._while(op)
        elif isinstance(op, func.CallOp):
            self._call(op)
        elif isinstance(op, func.ReturnOp):
            self._return(op)
        elif (rule := TANGENT.get(type(op))) is not None:
            rule(self, op)
        elif any(self.variation.is_varied(result) for result in op.results):
            raise self.unsupported(f"'{op.name}'", op)

    def _varied(self, values: Sequence[SSAValue]) -> list[int]:
        return [n for n, value in enumerate(values) if self.variation.is_varied(value)]

    def _new_arguments(self, block: Block, positions: Iterable[int], skip: int) -> None:
        for n in positions:
            primal = block.args[n + skip]
            self.tangents[primal] = block.insert_arg(primal.type, len(block.args))

    def _hand_on(self, block: Block, positions: Iterable[int], skip: int = 0) -> None:
        """The terminator of a block passes on the tangents of some of its operands, too."""
        end = terminator(block)
        end.detach()
        with self.builder.inside(block):
            tangents = [self.tangent_or_zero(end.operands[n + skip]) for n in positions]
        end.operands = [*end.operands, *tangents]
        block.add_op(end)

    def _before(self, op: Operation, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Tangents of operands of an op that stands last in its block."""
        block = op.parent
        assert block is not None
        op.detach()
        tangents = [self.tangent_or_zero(value) for value in values]
        block.add_op(op)
        return tangents

    def _for(self, op: scf.ForOp) -> None:
        positions = self._varied(op.results)
        block = op.body.block
        self._new_arguments(block, positions, 1)
        self._block(block)
        if positions:
            self._hand_on(block, positions)
            initial = self._before(op, [op.iter_args[n] for n in positions])
            self._replace(op, [*op.operands, *initial], positions)

    def _if(self, op: scf.IfOp) -> None:
        positions = self._varied(op.results)
        for region in op.regions:
            if region.blocks:
                self._block(region.block)
                if positions:
                    self._hand_on(region.block, positions)
        if positions:
            self._replace(op, list(op.operands), positions)

    def _while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        carried, passed = self._varied(before.args), self._varied(op.results)
        self._new_arguments(before, carried, 0)
        self._block(before)
        self._hand_on(before, passed, 1)
        self._new_arguments(after, passed, 0)
        self._block(after)
        self._hand_on(after, carried)
        if carried or passed:
            initial = self._before(op, [op.operands[n] for n in carried])
            self._replace(op, [*op.operands, *initial], passed)

    def _replace(self, op: Operation, operands: Sequence[SSAValue], positions: Sequence[int]) -> None:
        """The op with other operands, and with the tangents of some results as further results."""
        old = list(op.results)
        new = rebuild(op, operands, [*(r.type for r in old), *(old[n].type for n in positions)])
        for result, replacement in zip(old, new.results, strict=False):
            self.variation.declare_like(replacement, result)
        for result, n in zip(new.results[len(old) :], positions, strict=True):
            self.tangents[new.results[n]] = result

    # ------------------------------------------------------------ functions

    def _call(self, op: func.CallOp) -> None:
        """A call of the version with tangents, unless nothing that is handed over varies."""
        reals = [value for value in op.operands if has_tangent_type(value.type)]
        results = [n for n, value in enumerate(op.results) if has_tangent_type(value.type)]
        if not any(self.variation.is_varied(value) for value in (*reals, *op.results)):
            return
        tangents = self._before(op, reals)
        op.properties = {**op.properties, "callee": cast(Attribute, self.functions.of(op.callee.root_reference.data))}
        self._replace(op, [*op.operands, *tangents], results)

    def _return(self, op: func.ReturnOp) -> None:
        if rt.EntryAttr.marks(self.function):
            return
        op.operands = [*op.operands, *self._before(op, [v for v in op.operands if has_tangent_type(v.type)])]
