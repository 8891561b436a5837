"""Variables of the `stan` dialect: declaring, reading, assigning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    ParamAttrConstraint,
    VarConstraint,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.attributes import Text, segments, string, strings, units
from ulam.dialects.op_making import give_parts
from ulam.dialects.plain_operation import PlainOperation, plain_operation
from ulam.dialects.stan import syntax
from ulam.dialects.stan.effects import (
    ChecksSizes,
    DeclaresVariable,
    DefinesVariable,
    ReadsVariable,
    Throws,
    WritesVariable,
)
from ulam.dialects.stan.type_attributes import INT, ArrayType, TupleType, VarType, array_of, dimensions, indexed, var_of

if TYPE_CHECKING:
    from typing import Self

    from xdsl.parser import Parser
    from xdsl.printer import Printer

INDEX_OPERANDS = {"single": 1, "multiple": 1, "between": 2, "from": 1, "to": 1, "all": 0}
"""Kind of an index → how many operands it takes. That of `multiple` is an array of int, the others are ints."""

CONSTRAINED_TYPES = {
    "simplex": 1, "ordered": 1, "positive_ordered": 1, "unit_vector": 1, "sum_to_zero_vector": 1,
    "sum_to_zero_matrix": 2, "cholesky_factor_corr": 1, "cholesky_factor_cov": 2, "corr_matrix": 1, "cov_matrix": 1,
    "column_stochastic_matrix": 2, "row_stochastic_matrix": 2,
}  # fmt: skip
"""Constraints that are written as types → number of sizes in their brackets."""

MEMORY_PATTERNS = ("static", "dynamic")

CONSTRAINTS = ("none", "bounds", "offset_multiplier", *CONSTRAINED_TYPES)


NO_BOUNDS = (None, None, None, None)

Kinds = ArrayAttr[StringAttr] | tuple[str, ...]
"""The kinds of indices (INDEX_OPERANDS)."""


def _kinds(kinds: Kinds) -> ArrayAttr[StringAttr]:
    return strings(kinds) if isinstance(kinds, tuple) else kinds


def _verify_constraint(op: PlainOperation) -> str:
    """The constraint's name, after checking that `op` has only the operands that go with it."""
    constraint = cast(StringAttr, op.properties["constraint"]).data
    if constraint not in CONSTRAINTS:
        raise VerifyException(f"unknown constraint {constraint}")
    allowed = {"bounds": ("lower", "upper"), "offset_multiplier": ("offset", "multiplier")}.get(constraint, ())
    for name in ("lower", "upper", "offset", "multiplier"):
        if name not in allowed and getattr(op, name, None) is not None:
            raise VerifyException(f"constraint {constraint} has no {name}")
    return constraint


def _verify_indices(kinds: Sequence[StringAttr], operands: Sequence[SSAValue]) -> list[str]:
    """The kinds as text, after checking that the operands are those that the kinds take."""
    names = [kind.data for kind in kinds]
    expected: list[Attribute] = []
    for name in names:
        if name not in INDEX_OPERANDS:
            raise VerifyException(f"unknown kind of index {name}")
        expected += [array_of(INT, 1) if name == "multiple" else INT] * INDEX_OPERANDS[name]
    if [o.type for o in operands] != expected:
        raise VerifyException(f"indices of kinds {names} take operands of types {[str(t) for t in expected]}")
    return names


def _assigns_whole(op: Operation) -> bool:
    return isinstance(op, AssignOp) and not op.kinds.data


def kind_of_block(op: Operation) -> str | None:
    """The kind of the `stan.block` that `op` is in; None outside of blocks."""
    parent = op.parent_op()
    while parent is not None and parent.name != "stan.block":
        parent = parent.parent_op()
    kind = None if parent is None else parent.properties.get("kind")
    return kind.data if isinstance(kind, StringAttr) else None


class _Declaration(PlainOperation):
    """What declarations share.

    `sizes`: sizes of the array dimensions, outermost first, then those of the base type as written (`simplex[K]`
    one, `matrix[R, C]` two, `cholesky_factor_corr[K]` one).
    `constraint` names the constraint (`ConstraintKind` of the frontend's AST); `lower`, `upper`, `offset` and
    `multiplier` are its operands where it has them (scalars or containers of the variable's shape).
    `field_ranks`: of a field `t.1.2` of a tuple, how many dimensions the array of tuples has that each number was taken
    of, as text: "0 1" if `t.1` is an array of tuples. The dimensions of these arrays are the variable's first.
    `memory`: what was found of a container of reals, `static` (only ever assigned whole) or `dynamic` (assigned in
    part, too); set by the memory pattern optimization.
    """

    var_name = prop_def(StringAttr)
    constraint = prop_def(StringAttr)
    sizes = var_operand_def(INT)
    lower = opt_operand_def()
    upper = opt_operand_def()
    offset = opt_operand_def()
    multiplier = opt_operand_def()
    memory = opt_prop_def(StringAttr)
    field_ranks = opt_prop_def(StringAttr)
    res = result_def(VarType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DeclaresVariable())

    def __init__(
        self,
        name: Text,
        element: Attribute,
        sizes: Sequence[SSAValue] = (),
        constraint: Text = "none",
        bounds: Sequence[SSAValue | None] = NO_BOUNDS,
        *,
        field_ranks: Sequence[int] = (),
        location: LocationAttr | None = None,
    ) -> None:
        var_name = string(name)
        properties: dict[str, Attribute] = {
            "var_name": var_name,
            "constraint": string(constraint),
            "operandSegmentSizes": segments(len(sizes), *(bound is not None for bound in bounds)),
        }
        if field_ranks:
            properties["field_ranks"] = string(" ".join(map(str, field_ranks)))
        give_parts(
            self,
            operands=[*sizes, *(bound for bound in bounds if bound is not None)],
            result_types=(var_of(element),),
            properties=properties,
            location=location,
        )
        self.results[0].name_hint = var_name.data

    @property
    def array_ranks(self) -> list[int]:
        """`field_ranks` as numbers; none of what is no field of a tuple."""
        return [] if self.field_ranks is None else [int(rank) for rank in self.field_ranks.data.split()]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_declaration(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_declaration(printer, self)

    def verify_(self) -> None:
        constraint = _verify_constraint(self)
        if self.memory is not None and self.memory.data not in MEMORY_PATTERNS:
            raise VerifyException(f"unknown memory pattern {self.memory.data}")
        type_ = cast(VarType, self.results[0].type).element
        rank, inner = 0, type_
        if isinstance(type_, ArrayType):
            rank, inner = type_.rank.data, type_.element
        if isinstance(inner, TupleType):
            return
        if constraint in CONSTRAINED_TYPES:
            sizes = {CONSTRAINED_TYPES[constraint], 1 if constraint == "cholesky_factor_cov" else -1}
            matches = dimensions(inner) == (2 if "matrix" in constraint or "cholesky" in constraint else 1)
        else:
            sizes, matches = {dimensions(inner)}, True
        if not self.sizes and constraint == "none":
            if dimensions(type_) and not any(_assigns_whole(use.operation) for use in self.res.uses):
                raise VerifyException(f"a {type_} without sizes takes those of what is assigned, but nothing is")
            return  # takes the sizes of what is assigned: the result of a function, until it is promoted
        if not matches or len(self.sizes) - rank not in sizes:
            raise VerifyException(f"{len(self.sizes)} sizes do not declare a {constraint} of type {type_}")


@plain_operation
class DeclareOp(_Declaration):
    """Declares a variable; until it is assigned its reals are NaN and its ints the smallest int.

    In the `data` block: a variable that is bound from data. `local`: declared inside a `{ ... }` of its block, so not
    global although it is at the top level here (the frontend puts what `{ ... }` holds into the region around it).
    A model block has no global variables, marked or not.
    Bounds are operands in the data block only; elsewhere those of the variable's `stan.check` count.
    `data_only`: found to need no gradient (set by the AD-level optimization, printed as `data`).
    `source_name`: its name in the source, which messages say, where a pass has given it another.

    ```mlir
    %z = stan.declare z[%n] : !stan.var<!stan.vector>
    stan.assign %z = %v : !stan.var<!stan.vector>, !stan.vector
    ```
    """

    name = "stan.declare"
    local = opt_prop_def(UnitAttr)
    data_only = opt_prop_def(UnitAttr)
    source_name = opt_prop_def(StringAttr)

    def __init__(
        self,
        name: Text,
        element: Attribute,
        sizes: Sequence[SSAValue] = (),
        constraint: Text = "none",
        bounds: Sequence[SSAValue | None] = NO_BOUNDS,
        *,
        local: bool = False,
        field_ranks: Sequence[int] = (),
        location: LocationAttr | None = None,
    ) -> None:
        super().__init__(name, element, sizes, constraint, bounds, field_ranks=field_ranks, location=location)
        self.properties |= units(local=local)

    @property
    def takes_assigned_sizes(self) -> bool:
        """Whether it is a container without sizes of its own, as the result of a function, until it is promoted."""
        return not self.sizes and dimensions(cast(VarType, self.res.type).element) > 0

    def take_sizes(self, sizes: Sequence[SSAValue]) -> None:
        """Gives sizes to a container that has none."""
        assert self.takes_assigned_sizes and not self.operands
        self.operands = sizes
        self.properties["operandSegmentSizes"] = segments(len(sizes), *(bound is not None for bound in NO_BOUNDS))

    @property
    def told_name(self) -> str:
        """What messages call the variable."""
        name = self.source_name or self.var_name
        return name.data


@plain_operation
class ParameterOp(_Declaration):
    """Declares a parameter: a slice of the unconstrained vector, constrained.

    ```mlir
    stan.block parameters {
      %zero = stan.constant 0.0 : f64
      %sigma = stan.parameter sigma bounds lower(%zero : !stan.real) : !stan.var<!stan.real>
    }
    ```
    """

    name = "stan.parameter"

    def verify_(self) -> None:
        super().verify_()
        if kind_of_block(self) not in ("parameters", None):
            raise VerifyException(f"a parameter is declared in the block {kind_of_block(self)}")

    @property
    def told_name(self) -> str:
        """What messages call the parameter."""
        return self.var_name.data


@plain_operation
class GlobalOp(PlainOperation):
    """The variable `var_name` that another block declares at its top level.

    ```mlir
    stan.block data {
      %N = stan.declare N : !stan.var<!stan.int>
    }
    stan.block model {
      %N = stan.global N : !stan.var<!stan.int>
    }
    ```
    """

    name = "stan.global"
    var_name = prop_def(StringAttr)
    res = result_def(VarType)
    traits = traits_def(Pure())
    assembly_format = "custom<Word>($var_name) attr-dict `:` type($res)"

    def __init__(self, name: Text, type_: Attribute, *, location: LocationAttr | None = None) -> None:
        name = string(name)
        give_parts(self, result_types=(type_,), properties={"var_name": name}, location=location)
        self.results[0].name_hint = name.data


@plain_operation
class CheckOp(PlainOperation):
    """Checks `value` against the constraint that `var_name` was declared with; throws if it does not hold.

    The frontend puts one after each constrained variable of data (after its declaration), and at the end of
    transformed data, transformed parameters and generated quantities. Operands as in declarations.

    ```mlir
    stan.check sigma %x : !stan.real bounds lower(%y : !stan.real)
    ```
    """

    name = "stan.check"
    var_name = prop_def(StringAttr)
    constraint = prop_def(StringAttr)
    value = operand_def()
    lower = opt_operand_def()
    upper = opt_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Throws())

    def __init__(
        self,
        name: Text,
        constraint: Text,
        value: SSAValue,
        lower: SSAValue | None = None,
        upper: SSAValue | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {
            "var_name": string(name),
            "constraint": string(constraint),
            "operandSegmentSizes": segments(1, lower is not None, upper is not None),
        }
        give_parts(
            self, operands=[v for v in (value, lower, upper) if v is not None], properties=properties, location=location
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_check(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_check(printer, self)

    def verify_(self) -> None:
        if _verify_constraint(self) in ("none", "offset_multiplier"):
            raise VerifyException("there is nothing to check")


@plain_operation
class ReadOp(PlainOperation):
    """The whole value of a variable at this point of the program.

    ```mlir
    %r = stan.read %var : !stan.vector
    ```
    """

    name = "stan.read"
    T: ClassVar = VarConstraint("type", AnyAttr())
    var = operand_def(ParamAttrConstraint(VarType, (T,)))
    res = result_def(T)
    traits = traits_def(ReadsVariable())
    assembly_format = "$var attr-dict `:` type($res)"

    def __init__(self, variable: SSAValue, *, location: LocationAttr | None = None) -> None:
        assert isinstance(variable.type, VarType)
        give_parts(self, operands=(variable,), result_types=(variable.type.element,), location=location)

    def verify_(self) -> None:
        if cast(VarType, self.operands[0].type).element != self.results[0].type:
            raise VerifyException(f"reading {self.operands[0].type} does not give {self.results[0].type}")


@plain_operation
class AssignOp(PlainOperation):
    """`var[indices] = value`; without indices the whole variable. Throws if sizes differ or an index is out of range.

    `kinds` has an entry for each index (see INDEX_OPERANDS); their operands are `indices`, in order.

    ```mlir
    stan.assign %var[%n] = %x : !stan.var<!stan.vector>, !stan.real
    ```
    """

    name = "stan.assign"
    kinds = prop_def(ArrayAttr[StringAttr])
    var = operand_def(VarType)
    value = operand_def()
    indices = var_operand_def()
    traits = traits_def(WritesVariable())

    def __init__(
        self,
        variable: SSAValue,
        value: SSAValue,
        kinds: Kinds = (),
        indices: Sequence[SSAValue] = (),
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self, operands=(variable, value, *indices), properties={"kinds": _kinds(kinds)}, location=location
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_assign(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_assign(printer, self)

    def verify_(self) -> None:
        kinds = cast("ArrayAttr[StringAttr]", self.properties["kinds"]).data
        element = cast(VarType, self.operands[0].type).element
        expected = indexed(element, _verify_indices(kinds, self.operands[2:]))
        if self.operands[1].type != expected:
            raise VerifyException(f"{expected} is assigned here, not {self.operands[1].type}")


@plain_operation
class IndexOp(PlainOperation):
    """`value[indices]`, fewer indices than dimensions allowed. Throws if an index is out of range.

    ```mlir
    %row = stan.index %m[%n, %n to %k] : !stan.matrix -> !stan.row_vector
    ```
    """

    name = "stan.index"
    kinds = prop_def(ArrayAttr[StringAttr])
    value = operand_def()
    indices = var_operand_def()
    res = result_def()
    traits = traits_def(Throws())

    def __init__(
        self,
        value: SSAValue,
        kinds: Kinds,
        indices: Sequence[SSAValue],
        result_type: Attribute,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=(value, *indices),
            result_types=(result_type,),
            properties={"kinds": _kinds(kinds)},
            location=location,
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return syntax.parse_index(cls, parser)

    def print(self, printer: Printer) -> None:
        syntax.print_index(printer, self)

    def verify_(self) -> None:
        kinds = cast("ArrayAttr[StringAttr]", self.properties["kinds"]).data
        expected = indexed(self.operands[0].type, _verify_indices(kinds, self.operands[1:]))
        if self.results[0].type != expected:
            raise VerifyException(f"the result is {expected}, not {self.results[0].type}")


@plain_operation
class UninitializedOp(PlainOperation):
    """The value of a variable that is declared but not yet assigned: NaN, or the smallest int. Value form only.

    `var_name`: of the declaration that this is left of; then it throws unless the sizes are such.

    ```mlir
    %z = stan.uninitialized of "z"[%n] : !stan.vector
    ```
    """

    name = "stan.uninitialized"
    var_name = opt_prop_def(StringAttr)
    sizes = var_operand_def(INT)
    res = result_def()
    traits = traits_def(ChecksSizes())
    assembly_format = "(`of` $var_name^)? (`[` $sizes^ `]`)? attr-dict `:` type($res)"

    def __init__(
        self,
        result_type: Attribute,
        sizes: Sequence[SSAValue] = (),
        name: Text | None = None,
        *,
        location: LocationAttr | None = None,
    ) -> None:
        give_parts(
            self,
            operands=sizes,
            result_types=(result_type,),
            properties={} if name is None else {"var_name": string(name)},
            location=location,
        )


@plain_operation
class AssertShapeOp(PlainOperation):
    """`value`, once its sizes are found to be those that `var_name` was declared with: `sizes`, as in declarations.

    Throws if they differ. What is left of a whole assignment to a sized variable when the variable becomes a value.
    Value form only.

    ```mlir
    %z = stan.assert_shape z %v[%n] : !stan.vector
    ```
    """

    name = "stan.assert_shape"
    T: ClassVar = VarConstraint("type", AnyAttr())
    var_name = prop_def(StringAttr)
    value = operand_def(T)
    sizes = var_operand_def(INT)
    res = result_def(T)
    traits = traits_def(Throws())
    assembly_format = "custom<Word>($var_name) $value (`[` $sizes^ `]`)? attr-dict `:` type($value)"

    def __init__(
        self, name: Text, value: SSAValue, sizes: Sequence[SSAValue], *, location: LocationAttr | None = None
    ) -> None:
        give_parts(
            self,
            operands=(value, *sizes),
            result_types=(value.type,),
            properties={"var_name": string(name)},
            location=location,
        )

    def verify_(self) -> None:
        if self.operands[0].type != self.results[0].type:
            raise VerifyException("the value passes through unchanged")


@plain_operation
class DefineOp(PlainOperation):
    """The final value of the global variable `var_name`, at the end of the block that declares it.

    What other blocks read through `stan.global`. Value form only; a variable that is assigned in part has none.

    ```mlir
    stan.define z = %v : !stan.vector
    ```
    """

    name = "stan.define"
    var_name = prop_def(StringAttr)
    value = operand_def()
    traits = traits_def(DefinesVariable())
    assembly_format = "custom<Word>($var_name) `=` $value attr-dict `:` type($value)"

    def __init__(self, name: Text, value: SSAValue, *, location: LocationAttr | None = None) -> None:
        give_parts(self, operands=(value,), properties={"var_name": string(name)}, location=location)
