"""Free values, in the order of first use."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from ulam.passes.analysis.free_values import free_values, free_values_of_op

PROGRAM = """
func.func @f(%n: i64, %x: f64, %y: f64, %c: i1) -> f64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (f64) : i64 {
    %t = scf.if %c -> (f64) {
      %a = arith.addf %s, %y : f64
      scf.yield %a : f64
    } else {
      %b = arith.mulf %x, %y : f64
      scf.yield %b : f64
    }
    scf.yield %t : f64
  }
  func.return %r : f64
}
"""


def test_free_values() -> None:
    context = Context()
    for dialect in (Builtin, arith.Arith, func.Func, scf.Scf):
        context.load_dialect(dialect)
    module = Parser(context, PROGRAM).parse_module()
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    n, x, y, c = function.body.block.args
    zero, one, loop, _ = function.body.block.ops
    assert isinstance(loop, scf.ForOp)
    assert free_values(loop.body) == [c, y, x]
    assert free_values_of_op(loop) == [zero.results[0], n, one.results[0], x, c, y]
    assert free_values(function.body) == []
    branch = loop.body.block.first_op
    assert branch is not None
    assert free_values(*branch.regions) == [loop.body.block.args[1], y, x]
