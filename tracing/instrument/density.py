"""The blocks of a model as functions, to be traced like any other.

    parameters { real<lower=0> s; } model { s ~ normal(0, 1); }

becomes

    real log_prob(data ..., real s) { jacobian term of s; s' = constrain(s); s' ~ normal(0, 1); return target(); }

Parameters of the function are the data and transformed data, in the order of their declarations, a tuple field by
field (`t.1`), then the model's parameters on the unconstrained scale: a real for a scalar, a vector for a container.
In the body each parameter has its `trace.jacobian`, unless it has no transform or the adjustment is not asked for, and
its `trace.constrain`; the other statements are those of the blocks. What a block calls a global variable is an
argument, a value or a local variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import stan, trace
from ulam.dialects.walk import ops_within
from ulam.passes.errors import NotSupportedError
from ulam.passes.to_loops.values import rank_of

TransformT = TypeVar("TransformT", trace.ConstrainOp, trace.JacobianOp)

ROOTS: dict[str, tuple[str, ...]] = {
    "log_prob": ("parameters", "transformed_parameters", "model"),
    "transformed_parameters": ("parameters", "transformed_parameters"),
    "generated_quantities": ("parameters", "transformed_parameters", "generated_quantities"),
    "transformed_data": ("transformed_data",),
}
"""Function → the blocks that it runs."""

_GIVEN = ("data", "transformed_data")
_NO_TRANSFORM = "none"


def model_function(module: ModuleOp, root: str = "log_prob", *, jacobian: bool = True) -> stan.FuncOp:
    """Adds one of `ROOTS` to a program in variable form. `jacobian`: with the parameters' adjustments."""
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    return _Writer(program, root, jacobian and root == "log_prob").run()


@dataclass
class _Formal:
    name: str
    type: Attribute
    data: bool


class _Writer:
    def __init__(self, program: stan.ProgramOp, root: str, jacobian: bool) -> None:
        self.program = program
        self.root = root
        self.jacobian = jacobian
        self.blocks = {op.kind.data: op for op in program.body.block.ops if isinstance(op, stan.BlockOp)}
        self.block = Block()
        self.values: dict[str, SSAValue] = {}  # of data and parameters
        self.variables: dict[str, SSAValue] = {}
        self.unconstrained: dict[str, SSAValue] = {}
        self.copies: dict[SSAValue, SSAValue] = {}

    def run(self) -> stan.FuncOp:
        formals = self._formals()
        for formal in formals:
            value = self.block.insert_arg(formal.type, len(self.block.args))
            value.name_hint = formal.name.replace(".", "_")
            (self.values if formal.data else self.unconstrained)[formal.name] = value
        for op in self._given():
            if isinstance(type_ := op.res.type.element, stan.TupleType):
                self._tuple(op.var_name.data, type_)
        last: stan.BlockOp | None = None
        for kind in ROOTS[self.root]:
            if (source := self.blocks.get(kind)) is not None:
                last = source
                self._copy(source)
        location = (last or self.program).location
        outputs: list[Attribute] = []
        result: list[SSAValue] = []
        if self.root == "log_prob":
            target = stan.TargetOp(location=location)
            self.block.add_op(target)
            outputs, result = [stan.REAL], [target.res]
        self.block.add_op(stan.ReturnOp(*result, location=location))
        self._resolve()
        function = stan.FuncOp(
            f"{self.root}.model",
            [f.name for f in formals],
            [f.type for f in formals],
            outputs,
            Region(self.block),
            stan_name=self.root,
            data_only=[int(f.data) for f in formals],
            model=True,
            location=location,
        )
        self.program.body.block.add_op(function)
        return function

    def _formals(self) -> list[_Formal]:
        """Data, transformed data where they are not what is computed, and parameters where they are needed."""
        found = [formal for op in self._given() for formal in _fields(op.var_name.data, op.res.type.element)]
        for op in self._declared("parameters") if "parameters" in ROOTS[self.root] else ():
            type_ = op.res.type.element
            if isinstance(type_, stan.TupleType):
                raise NotSupportedError("parameters of tuple type are not supported yet", op.location)
            found.append(_Formal(op.var_name.data, stan.VECTOR if rank_of(type_) else stan.REAL, False))
        return found

    def _given(self) -> list[stan.DeclareOp | stan.ParameterOp]:
        """The variables that are computed before."""
        return [op for kind in _GIVEN if kind not in ROOTS[self.root] for op in self._declared(kind)]

    def _tuple(self, name: str, type_: stan.TupleType) -> SSAValue:
        """A tuple, put together from its fields."""
        fields: list[SSAValue] = []
        for number, element in enumerate(type_.elements, 1):
            field = f"{name}.{number}"
            fields.append(self._tuple(field, element) if isinstance(element, stan.TupleType) else self.values[field])
        made = stan.TupleOp(fields, type_, location=self.program.location)
        self.block.add_op(made)
        self.values[name] = made.res
        return made.res

    def _declared(self, kind: str) -> list[stan.DeclareOp | stan.ParameterOp]:
        """The global variables of a block."""
        block = self.blocks.get(kind)
        ops = [] if block is None else list(block.body.block.ops)
        return [op for op in ops if isinstance(op, stan.DeclareOp | stan.ParameterOp) and "local" not in op.properties]

    # ------------------------------------------------------------ bodies

    def _copy(self, source: stan.BlockOp) -> None:
        for op in source.body.block.ops:
            if isinstance(op, stan.ParameterOp):
                self._parameter(op)
                continue
            copy = op.clone(self.copies)
            self.block.add_op(copy)
            if isinstance(copy, stan.DeclareOp) and "local" not in copy.properties and source.kind.data != "model":
                self.variables[copy.var_name.data] = copy.res

    def _parameter(self, op: stan.ParameterOp) -> None:
        name = op.var_name.data
        bounds = [None if v is None else self.copies[v] for v in (op.lower, op.upper, op.offset, op.multiplier)]
        sizes = [self.copies[v] for v in op.sizes]

        def transform(op_class: type[TransformT]) -> TransformT:
            declared = op.res.type.element
            place = op.location
            return op_class(self.unconstrained[name], name, op.constraint, declared, bounds, sizes, location=place)

        if self.jacobian and op.constraint.data != _NO_TRANSFORM:
            self.block.add_op(transform(trace.JacobianOp))
        value = transform(trace.ConstrainOp)
        value.res.name_hint = name
        self.block.add_op(value)
        self.values[name] = value.res
        # what the block itself says of it is found by its name, as in others
        stand_in = stan.GlobalOp(op.var_name, op.res.type, location=op.location)
        self.block.add_op(stand_in)
        self.copies[op.res] = stand_in.res

    def _resolve(self) -> None:
        """Global variables become what they are here."""
        for op in [op for op in self._ops() if isinstance(op, stan.GlobalOp)]:
            name = op.var_name.data
            if name in self.variables:
                op.res.replace_all_uses_with(self.variables[name])
            else:
                for use in list(op.res.uses):
                    read = use.operation
                    assert isinstance(read, stan.ReadOp)
                    read.res.replace_all_uses_with(self.values[name])
                    read.detach()
                    read.erase()
            op.detach()
            op.erase()

    def _ops(self) -> list[Operation]:
        return [inner for op in self.block.ops for inner in ops_within(op)]


def _fields(name: str, type_: Attribute) -> list[_Formal]:
    """A variable of data as parameters."""
    if not isinstance(type_, stan.TupleType):
        return [_Formal(name, type_, True)]
    return [formal for n, element in enumerate(type_.elements, 1) for formal in _fields(f"{name}.{n}", element)]
