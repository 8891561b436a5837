"""What `stan-opt` verifies of a module: each op, dominance, facts, and what no op can tell alone.

Errors know the op that they are about; ops that were read from MLIR know their line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from ulam.dialects import ad, rt, stan
from ulam.dialects.plain_operation import PlainOperation
from ulam.dialects.walk import ops_within
from ulam.library.externals import external_function, is_external
from ulam.passes import verify_dominance, verify_facts

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class InvalidModuleError(DiagnosticException):
    """A module breaks a rule; `location` is that of the op that does."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.location = op.location


def verify(module: ModuleOp) -> None:
    """Raises InvalidModuleError, with the op, for the first rule that is broken."""
    for op in _inner_first(module):
        _verify_op(op)
    _told(verify_dominance.run_on, module)
    for op in ops_within(module):
        _told(verify_facts.verify_op, op)
    for op in ops_within(module):
        if (rule := _RULES.get(type(op))) is not None:
            _told(rule, op)


def _told(rule: Callable[[Operation], None], op: Operation) -> None:
    """Applies a rule; its error gets the op."""
    try:
        rule(op)
    except InvalidModuleError:
        raise
    except verify_dominance.DominanceError as error:
        raise InvalidModuleError(str(error), error.op) from None
    except VerifyException as error:
        raise InvalidModuleError(str(error), op) from None


def _inner_first(op: Operation) -> Iterator[Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _inner_first(inner)
    yield op


def _verify_op(op: Operation) -> None:
    """The op's own rules, and that the blocks of its regions are not empty."""
    try:
        op.verify(verify_nested_ops=False)
    except (VerifyException, DiagnosticException) as error:
        raise InvalidModuleError(str(error), op) from None
    except Exception as error:
        if isinstance(op, PlainOperation):
            raise
        raise InvalidModuleError(f"{op.name}: {error}", op) from None  # xDSL's verifiers raise anything
    if not op.has_trait(NoTerminator):
        for region in op.regions:
            if len(region.blocks) == 1 and region.block.is_empty:
                raise InvalidModuleError(f"{op.name} has an empty block where a terminator is expected", op)


# ---------------------------------------------------------------- symbols and types


def _functions(program: stan.ProgramOp) -> dict[str, stan.FuncOp]:
    return {op.sym_name.data: op for op in program.body.block.ops if isinstance(op, stan.FuncOp)}


def _verify_program(op: Operation) -> None:
    """Calls and uses of globals name what is there, of the types that it has."""
    assert isinstance(op, stan.ProgramOp)
    functions = _functions(op)
    declared: dict[str, set[Attribute]] = {}
    for block in op.body.block.ops:
        if isinstance(block, stan.BlockOp):
            for inner in ops_within(block):
                if isinstance(inner, stan.GlobalOp):
                    _told(lambda inner: _verify_global(inner, declared), inner)
            _declare(block, declared)
        for inner in ops_within(block):
            if isinstance(inner, stan.CallOp):
                _told(lambda inner: _verify_call(inner, functions), inner)


def _declare(block: stan.BlockOp, declared: dict[str, set[Attribute]]) -> None:
    """Notes the global variables of a block."""
    own: dict[str, set[Attribute]] = {}
    for op in block.body.block.ops:
        if isinstance(op, stan.DeclareOp | stan.ParameterOp):
            if isinstance(op, stan.DeclareOp) and (op.local is not None or block.kind.data == "model"):
                continue
            if isinstance(op, stan.DeclareOp) and block.kind.data == "parameters":
                raise InvalidModuleError(f"'{op.var_name.data}' is declared among parameters, and is none", op)
            name, type_ = op.var_name.data, op.res.type
            if name in own or name in declared:
                raise InvalidModuleError(f"a second variable '{name}' is declared", op)
            assert isinstance(type_, stan.VarType)
            own[name] = {type_.element}
    for op in ops_within(block):
        if isinstance(op, stan.DefineOp):
            if op.var_name.data not in own:
                raise InvalidModuleError(f"'{op.var_name.data}' is not declared in this block", op)
            own[op.var_name.data].add(op.value.type)
    declared.update(own)


def _verify_global(op: Operation, declared: dict[str, set[Attribute]]) -> None:
    assert isinstance(op, stan.GlobalOp) and isinstance(op.res.type, stan.VarType)
    name = op.var_name.data
    if (types := declared.get(name)) is None:
        raise VerifyException(f"no block before this one declares a global variable '{name}'")
    if op.res.type.element not in types:
        raise VerifyException(f"'{name}' is a {_texts(types)}, not a {op.res.type.element}")


def _verify_call(op: Operation, functions: dict[str, stan.FuncOp]) -> None:
    assert isinstance(op, stan.CallOp)
    name = op.callee.data
    for what in (op.callback, op.definition):
        if isinstance(what, StringAttr) and what.data not in functions:
            raise VerifyException(f"the program has no function '{what.data}'")
    symbol = name if op.user is not None else op.definition.data if op.definition is not None else None
    if symbol is not None:
        _verify_signature(op, functions, symbol)
    elif is_external(name):
        _verify_external_call(op)
    elif op.callback is None:
        _verify_library_call(op)


def _verify_signature(op: stan.CallOp, functions: dict[str, stan.FuncOp], symbol: str) -> None:
    """A call of a function of the module has the types of its arguments and of its result."""
    if (function := functions.get(symbol)) is None:
        raise VerifyException(f"the program has no function '{symbol}'")
    formals, results = function.function_type.inputs.data, function.function_type.outputs.data
    if op.definition is not None:  # it may be for a scalar what the call applies to each element
        if op.callback is None and len(formals) != len(op.operands):
            arguments = f"{len(formals)} arguments, called with {len(op.operands)}"
            raise VerifyException(f"'{symbol}' is a function of {arguments}")
        return
    actuals, found = [o.type for o in op.operands], [r.type for r in op.results]
    if list(formals) != actuals or list(results) != found:
        raise VerifyException(
            f"'{symbol}' is a function ({_texts(formals)}) -> ({_texts(results)}), "
            f"called as ({_texts(actuals)}) -> ({_texts(found)})"
        )


def _verify_external_call(op: stan.CallOp) -> None:
    """A call of an external function has the types that the kernel's name tells."""
    from ulam.frontend.functions.type_codes import type_of
    from ulam.frontend.lower.builder import dialect_type

    function = external_function(op.callee.data)
    formals = [dialect_type(type_of(a.code)) for a in function.arguments]
    result = [dialect_type(type_of(function.result.code))]
    actuals, found = [o.type for o in op.operands], [r.type for r in op.results]
    if formals != actuals or result != found:
        raise VerifyException(
            f"'{function.name}' is an external function ({_texts(formals)}) -> {_texts(result)}, "
            f"called as ({_texts(actuals)}) -> ({_texts(found)})"
        )


def _verify_library_call(op: stan.CallOp) -> None:
    """A call of a function that the lowering knows has the result that its signatures give."""
    from ulam.frontend.functions import signatures
    from ulam.frontend.functions.library_calls import call_types
    from ulam.library.catalog import definitions
    from ulam.library.derivatives import has_primitive
    from ulam.library.functions import FunctionKind, kind_of
    from ulam.passes.to_loops.intrinsics import INTRINSICS

    name = op.callee.data
    if not signatures.exists(name):
        is_made = has_primitive(name) or name in INTRINSICS or definitions(name)
        if not is_made and kind_of(name) is not FunctionKind.REQUIREMENT:
            raise VerifyException(f"the library has no function '{name}'")
        if op.results and kind_of(name) is FunctionKind.REQUIREMENT:
            raise VerifyException(f"'{name}' gives nothing")
        return
    types = call_types(name, tuple(o.type for o in op.operands))
    if types is not None and [r.type for r in op.results] not in ([types[1]], []):
        raise VerifyException(f"'{name}' of ({_texts(o.type for o in op.operands)}) gives a {types[1]}")


def _verify_operator(op: Operation) -> None:
    """An operator's result is of the type that the language says."""
    from ulam.frontend.functions.library_calls import binary_types, unary_type

    symbol: str = getattr(op, "SYMBOL")  # noqa: B009
    operands = [o.type for o in op.operands]
    if len(operands) == 2:
        found = binary_types(symbol, *operands)
        result = None if found is None else found[1]
    else:
        result = unary_type(symbol, operands[0])
    if result is None:
        raise VerifyException(f"there is no operator `{symbol}` for {_texts(operands)}")
    if op.results[0].type != result:
        raise VerifyException(f"`{symbol}` of {_texts(operands)} gives a {result}, not a {op.results[0].type}")


def _texts(types: object) -> str:
    return ", ".join(sorted(map(str, types)) if isinstance(types, set) else map(str, types))  # pyright: ignore


def _verify_math(op: Operation) -> None:
    from ulam.emit.primitives import PRIMITIVES

    assert isinstance(op, rt.MathOp)
    if (form := PRIMITIVES.get(op.function.data)) is None:
        raise VerifyException(f"there is no primitive '{op.function.data}'")
    if len(op.operands) != form.arity:
        raise VerifyException(f"'{op.function.data}' takes {form.arity} arguments, not {len(op.operands)}")


def _verify_low_call(op: Operation) -> None:
    """A call of a function of the module has its types."""
    assert isinstance(op, func.CallOp)
    name = op.callee.string_value()
    for function in _top(op):
        if isinstance(function, func.FuncOp) and function.sym_name.data == name:
            wanted = function.function_type
            if [o.type for o in op.operands] != list(wanted.inputs) or [r.type for r in op.results] != list(
                wanted.outputs
            ):
                raise VerifyException(f"'{name}' is a function {wanted}")
            return
    raise VerifyException(f"the module has no function '{name}'")


def _verify_asked(op: Operation) -> None:
    """What reverse and forward mode are asked of is a function of the module, with a body."""
    assert isinstance(op, ad.GradientOp | ad.HessianVectorOp)
    name = op.function.string_value()
    if not any(isinstance(f, func.FuncOp) and f.sym_name.data == name and f.body.blocks for f in _top(op)):
        raise VerifyException(f"the module has no function '{name}'")


def _top(op: Operation) -> list[Operation]:
    """The ops of the module."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return list(op.regions[0].block.ops)


def _verify_yields(op: Operation) -> None:
    """The regions of an `scf` op give what its results are."""
    results = [r.type for r in op.results]
    for region in op.regions:
        if not region.blocks:
            if results:
                raise VerifyException(f"{op.name} has results, but not both regions")
            continue
        last = region.block.last_op
        if isinstance(last, scf.YieldOp) and [o.type for o in last.operands] != results and op.name != "scf.while":
            raise VerifyException(
                f"{op.name} gives ({_texts(results)}), its region ({_texts(o.type for o in last.operands)})"
            )


def _verify_for(op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    _verify_yields(op)
    step = op.step.owner
    if isinstance(step, arith.ConstantOp) and isinstance(step.value, IntegerAttr) and step.value.value.data < 1:
        raise VerifyException("the step of a loop is positive")


_RULES: dict[type[Operation], Callable[[Operation], None]] = {
    stan.ProgramOp: _verify_program,
    rt.MathOp: _verify_math,
    func.CallOp: _verify_low_call,
    scf.IfOp: _verify_yields,
    scf.ForOp: _verify_for,
    ad.GradientOp: _verify_asked,
    ad.HessianVectorOp: _verify_asked,
    **dict.fromkeys([*stan.BINARY_OPERATORS.values(), *stan.UNARY_OPERATORS.values()], _verify_operator),
}
"""What is verified besides each op's own rules."""
