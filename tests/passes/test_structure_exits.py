"""structure-exits and promote-variables do not change what a function does."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from stan_interpreter import Interpreter, _OutOfFuel
from stan_programs import build, programs
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr

from ulam.dialects import stan
from ulam.passes import verify_dominance
from ulam.passes.value_form import promote_variables, structure_exits

_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
_EXITS = (stan.BreakOp, stan.ContinueOp, stan.ScopeOp)


def run(module: ModuleOp, fuel: int = 100_000) -> tuple[Any, list[Any]]:
    function = next(op for op in module.walk() if isinstance(op, stan.FuncOp))
    interpreter = Interpreter(fuel)
    result = interpreter.call(function, [5, 0, 2], [7, 8, 9])
    return result, interpreter.printed


def expect(program: list[Any]) -> tuple[ModuleOp, tuple[Any, list[Any]]]:
    module = build(program)
    try:
        return module, run(module, 5_000)
    except _OutOfFuel:
        assume(False)
        raise


@settings(max_examples=80, suppress_health_check=_SLOW)
@given(programs)
def test_structured_program_does_the_same(program: list[Any]) -> None:
    module, expected = expect(program)
    structure_exits.run_on(module)
    module.verify()
    verify_dominance.run_on(module)
    assert not any(isinstance(op, _EXITS) for op in module.walk())
    function = module.body.block.first_op
    assert isinstance(function, stan.FuncOp)
    returns = [op for op in module.walk() if isinstance(op, stan.ReturnOp)]
    assert returns == [function.body.block.last_op]
    assert run(module) == expected


@settings(max_examples=80, suppress_health_check=_SLOW)
@given(programs)
def test_promoted_program_does_the_same(program: list[Any]) -> None:
    module, expected = expect(program)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    module.verify()
    verify_dominance.run_on(module)
    left = {op.var_name.data for op in module.walk() if isinstance(op, stan.DeclareOp)}
    assert left <= {"part"}
    assert run(module) == expected


def test_loop_to_the_largest_int_ends() -> None:
    """`for (i in 2147483646:2147483647)` with a break that is not taken: two iterations."""
    largest = 2**31 - 1
    body = [("if", ("constant", 0), [("break",)], []), ("assign", "b", ("add", "b", 1))]
    program = [("for", ("constant", largest - 1), ("constant", largest), body)]
    module, expected = expect(program)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    assert any(isinstance(op, stan.WhileOp) for op in module.walk())
    assert run(module) == expected
    assert expected[1][:2] == [(largest - 1,), (largest,)]


def test_guards_of_library_densities_stay() -> None:
    """`if (c) return v;` at the top level of a library density is left to the lowering of densities."""
    program = [
        ("if", ("less", "b", 0), [("return", ("constant", 7))], []),
        ("assign", "a", ("add", "b", 1)),
        ("if", ("less", "a", 1), [("return", ("read", "a"))], []),
        ("return", ("add", "a", 3)),
    ]
    module = build(program)
    function = module.body.block.first_op
    assert isinstance(function, stan.FuncOp)
    function.properties["library"] = UnitAttr()
    function.properties["stan_name"] = StringAttr("f_lpdf")
    expected = run(module)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    module.verify()
    verify_dominance.run_on(module)
    guards = [op for op in function.body.block.ops if isinstance(op, stan.IfOp)]
    assert [type(guard.then.block.last_op) for guard in guards] == [stan.ReturnOp, stan.ReturnOp]
    assert run(module) == expected


def test_deep_chains_of_returns() -> None:
    """Hundreds of early returns, one after the other."""
    program: list[Any] = [("if", ("less", "b", -i), [("return", ("constant", i))], []) for i in range(150)]
    module, expected = expect(program)
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    assert run(module) == expected
