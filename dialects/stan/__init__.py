"""The `stan` dialect: reads like the program, strict enough for every pass to trust.

Begin with `program.py` (blocks, functions), then `control_flow.py`, `variables.py`, `statements.py`, `expressions.py`.
"""

from xdsl.ir import Dialect

from ulam.dialects.stan import effects, expressions, program, type_attributes, variables
from ulam.dialects.stan.control_flow import (
    AndOp,
    ForEachOp,
    ForOp,
    IfOp,
    OrOp,
    ProfileOp,
    ScopeOp,
    SelectOp,
    WhileOp,
)
from ulam.dialects.stan.effects import CallEffects, Effect, conflict, effects_of, effects_within
from ulam.dialects.stan.expressions import (
    BINARY_OPERATORS,
    FEW_NUMBERS,
    UNARY_OPERATORS,
    ArrayOp,
    CallOp,
    ConstantOp,
    FieldOp,
    LiteralOp,
    PromoteOp,
    RowVectorOp,
    TupleOp,
)
from ulam.dialects.stan.facts import (
    CallNumberAttr,
    ComplexPairAttr,
    PeeledAttr,
    ProfiledBlocksAttr,
    ProfilesAttr,
    UntracedAttr,
)
from ulam.dialects.stan.program import BlockOp, FuncOp, ProgramOp
from ulam.dialects.stan.statements import JacobianAddOp, PrintOp, TargetAddOp, TargetOp
from ulam.dialects.stan.terminators import BreakOp, ConditionOp, ContinueOp, ReturnOp, YieldOp
from ulam.dialects.stan.type_attributes import (
    COMPLEX,
    COMPLEX_MATRIX,
    COMPLEX_ROW_VECTOR,
    COMPLEX_VECTOR,
    INT,
    MATRIX,
    REAL,
    ROW_VECTOR,
    STRING,
    VECTOR,
    ArrayType,
    ComplexMatrixType,
    ComplexRowVectorType,
    ComplexType,
    ComplexVectorType,
    IntType,
    MatrixType,
    RealType,
    RowVectorType,
    StringType,
    TupleType,
    VarType,
    VectorType,
    array_of,
    dimensions,
    element_of,
    indexed,
    scalar_of,
    var_of,
)
from ulam.dialects.stan.variables import (
    AssertShapeOp,
    AssignOp,
    CheckOp,
    DeclareOp,
    DefineOp,
    GlobalOp,
    IndexOp,
    ParameterOp,
    ReadOp,
    UninitializedOp,
)

STAN = Dialect(
    "stan",
    [
        *BINARY_OPERATORS.values(), *UNARY_OPERATORS.values(), ArrayOp, CallOp, ConstantOp, FieldOp, JacobianAddOp,
        LiteralOp, PrintOp, PromoteOp, RowVectorOp, TargetAddOp, TargetOp, TupleOp, AndOp, BlockOp, BreakOp,
        ConditionOp, ContinueOp, ForEachOp, ForOp, FuncOp, IfOp, OrOp, ProfileOp, ProgramOp, ReturnOp, ScopeOp,
        SelectOp, WhileOp,
        YieldOp, AssertShapeOp, AssignOp, CheckOp, DeclareOp, DefineOp, GlobalOp, IndexOp, ParameterOp, ReadOp,
        UninitializedOp,
    ],
    [
        IntType, RealType, ComplexType, VectorType, RowVectorType, MatrixType, ComplexVectorType, ComplexRowVectorType,
        ComplexMatrixType, StringType, ArrayType, TupleType, VarType, ComplexPairAttr, PeeledAttr, ProfiledBlocksAttr,
        ProfilesAttr, UntracedAttr,
        CallNumberAttr,
    ],
)  # fmt: skip

__all__ = [
    "BINARY_OPERATORS", "COMPLEX", "COMPLEX_MATRIX", "COMPLEX_ROW_VECTOR", "COMPLEX_VECTOR", "FEW_NUMBERS", "INT",
    "MATRIX", "REAL", "ROW_VECTOR", "STAN", "STRING", "UNARY_OPERATORS", "VECTOR", "AndOp", "ArrayOp", "ArrayType",
    "AssertShapeOp", "AssignOp", "BlockOp", "BreakOp", "CallEffects", "CallNumberAttr", "CallOp", "CheckOp",
    "ComplexMatrixType", "ComplexRowVectorType", "ComplexType", "ComplexVectorType", "ConditionOp", "ConstantOp",
    "ContinueOp", "DeclareOp", "DefineOp", "Effect", "FieldOp", "ForEachOp", "ForOp", "FuncOp", "GlobalOp", "IfOp",
    "IndexOp", "IntType", "JacobianAddOp", "LiteralOp", "MatrixType", "OrOp", "ParameterOp", "PeeledAttr", "PrintOp",
    "ProfileOp", "ProfiledBlocksAttr", "ProfilesAttr", "ProgramOp", "PromoteOp", "ReadOp", "RealType", "ReturnOp",
    "RowVectorOp", "RowVectorType", "ScopeOp", "SelectOp", "StringType", "TargetAddOp", "TargetOp", "TupleOp",
    "TupleType", "UninitializedOp", "UntracedAttr", "VarType", "VectorType", "WhileOp", "YieldOp", "array_of",
    "conflict", "dimensions", "effects", "effects_of", "effects_within", "element_of", "expressions", "indexed",
    "program", "scalar_of", "type_attributes", "var_of", "variables",
]  # fmt: skip
