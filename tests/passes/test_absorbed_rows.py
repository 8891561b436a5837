"""Work of letting loops over rows fill what they read: in proportion to the block that the memory stands in."""

from __future__ import annotations

from emission import parse
from work import lines_executed
from xdsl.dialects import scf

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.passes.loops.absorbed_rows import take_rows_of


def _work(count: int) -> int:
    """Of memory with `count` stores beside a loop."""
    stores = "rt.store %x, %m[%zero] : f64\n" * count
    module = parse(
        f"""func.func @f(%n: i64, %zero: i64, %one: i64, %x: f64) {{
          %m = rt.alloc %n : !rt.buf<f64>
          {stores}
          scf.for %i = %zero to %n step %one : i64 {{
            rt.store %x, %m[%i] : f64
          }}
          func.return
        }}"""
    )
    (memory,) = [op for op in ops_within(module) if isinstance(op, rt.AllocOp)]
    (loop,) = [op for op in ops_within(module) if isinstance(op, scf.ForOp)]
    return lines_executed(lambda: take_rows_of(memory, loop, {}))


def test_work_grows_as_the_block() -> None:
    _work(2)
    base, once, twice = (_work(count) for count in (50, 100, 200))
    assert twice - once < 2.05 * (once - base)
