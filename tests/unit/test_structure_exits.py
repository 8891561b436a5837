"""structure-exits and promote-variables do not change what a function does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.passes import verify_dominance
from ulam.passes.lower import promote_variables, structure_exits

sys.path.insert(0, str(Path(__file__).parent))

from stan_interpreter import Interpreter, _OutOfFuel
from stan_programs import build, programs

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


@settings(max_examples=120, deadline=None, suppress_health_check=_SLOW)
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


@settings(max_examples=120, deadline=None, suppress_health_check=_SLOW)
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
