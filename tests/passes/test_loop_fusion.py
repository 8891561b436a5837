"""Loop fusion, and unrolling of small loops, do not change what a function computes, stores and adds to the target.

On random runs of loops.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from low_interpreter import Interpreter
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from ulam.dialects.ad import AD
from ulam.dialects.rt import RT
from ulam.passes import verify_dominance
from ulam.passes.loops import loop_fusion, unroll_small

SIZE = 8
SEEDS = 60


class Writer:
    """MLIR text of a function of loops over the same range. All numbers are small integers: sums are exact."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.sums: list[str] = ["%v"]

    def name(self) -> str:
        self.count += 1
        return f"%a{self.count}"

    def emit(self, text: str, result: bool = True) -> str:
        name = self.name()
        self.lines.append(f"{name} = {text}" if result else text)
        return name

    def index(self, variable: str | None) -> str:
        if variable is None or self.random.random() < 0.1:
            return self.random.choice(("%one", "%two"))
        if self.random.random() < 0.7:
            return variable
        return self.emit(f"arith.{self.random.choice(('addi', 'subi'))} {variable}, %one : i64")

    def buffer(self) -> str:
        return self.random.choice(("%x", "%y", "%t", "%u"))

    def access(self, variable: str | None) -> None:
        """Reads an element, and does something with it."""
        loaded = self.emit(f"rt.load {self.buffer()}[{self.index(variable)}] : f64")
        value = self.emit(f"arith.addf {loaded}, {self.random.choice(self.sums)} : f64")
        kind = self.random.choice(("store", "store", "accumulate", "accumulate", "target"))
        buffer, index = self.buffer(), self.index(variable)
        if kind == "store":
            self.emit(f"rt.store {value}, {buffer}[{index}] : f64", False)
        elif kind == "accumulate":
            self.emit(f"ad.accumulate {buffer}[{index}], {value}", False)
        else:
            self.emit(f"ad.target_add {value}", False)

    def loop(self) -> None:
        variable, result = self.name(), self.name()
        head = f"scf.for {variable} = %one to %n step %one"
        if self.random.random() < 0.5:
            self.lines.append(f"{head} : i64 {{")
            for _ in range(self.random.randint(1, 3)):
                self.access(variable)
            self.lines.append("}")
            return
        carried = self.name()
        start = self.sums[-1]
        self.lines.append(f"{result} = {head} iter_args({carried} = {start}) -> (f64) : i64 {{")
        loaded = self.emit(f"rt.load {self.buffer()}[{variable}] : f64")
        fast = self.random.choice(("", " fastmath<reassoc>"))
        total = self.emit(f"arith.addf {carried}, {loaded}{fast} : f64")
        self.access(variable)
        self.lines.append(f"scf.yield {total} : f64\n}}")
        self.sums.append(result)

    def function(self) -> str:
        self.lines += ["%one = arith.constant 1 : i64", "%two = arith.constant 2 : i64"]
        for name in ("%t", "%u"):
            self.lines.append(f"{name} = rt.alloc %size : !rt.buf<f64>")
        for _ in range(self.random.randint(3, 7)):
            if self.random.random() < 0.75:
                self.loop()
            else:
                self.access(None)
        body = "\n".join(self.lines)
        arguments = "%x: !rt.buf<f64>, %y: !rt.buf<f64>, %size: i64, %n: i64, %v: f64"
        body += f"\nfunc.return {self.sums[-1]} : f64"
        return f"func.func @f({arguments}) -> f64 attributes {{rt.entry = #rt.entry}} {{\n{body}\n}}"


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, scf.Scf, func.Func, RT, AD):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def run(module: ModuleOp, n: int) -> tuple[Any, ...]:
    function = module.body.block.first_op
    assert isinstance(function, func.FuncOp)
    x, y = [float(k) for k in range(SIZE)], [float(3 * k % 7) for k in range(SIZE)]
    interpreter = Interpreter()
    return x, y, interpreter.call(function, (x, 0), (y, 0), SIZE, n, 2.0), interpreter.added


def loops(module: ModuleOp) -> int:
    return sum(isinstance(op, scf.ForOp) for op in module.walk())


@pytest.mark.parametrize("before_reverse_mode", (False, True))
@pytest.mark.parametrize("reassociate", (False, True))
def test_results_stay_the_same(before_reverse_mode: bool, reassociate: bool) -> None:
    before = after = 0
    for seed in range(SEEDS):
        text = Writer(seed).function()
        module = parse(text)
        before += loops(module)
        expected = [run(module, n) for n in (0, 2, SIZE - 1)]
        changed = loop_fusion.run_on(module, before_reverse_mode, reassociate)
        module.verify()
        verify_dominance.run_on(module)
        found = [run(module, n) for n in (0, 2, SIZE - 1)]
        after += loops(module)
        assert changed or found == expected
        for one, other in zip(found, expected, strict=True):
            assert one[:3] == other[:3], f"seed {seed}\n{text}"
            if reassociate:
                assert sum(one[3]) == sum(other[3]), f"seed {seed}\n{text}"
            else:
                assert one[3] == other[3], f"seed {seed}\n{text}"
    assert after < before  # it finds something to do


def test_unrolled_loops_compute_the_same() -> None:
    for seed in range(SEEDS):
        bound = "%k = arith.constant 4 : i64\n"
        text = Writer(seed).function().replace("to %n", "to %k").replace("%one = arith", f"{bound}%one = arith", 1)
        module = parse(text)
        before, expected = loops(module), run(module, 4)
        unroll_small.run_on(module)
        module.verify()
        verify_dominance.run_on(module)
        assert loops(module) < before or before == 0
        assert run(module, 4) == expected, f"seed {seed}\n{text}"
