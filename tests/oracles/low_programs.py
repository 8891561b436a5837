"""Random functions over arith, scf, rt and ad.target_add, from a seed: what the low passes are tried on."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, FunctionType, IntegerAttr, ModuleOp, StringAttr, UnitAttr, f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPF, CMPI

REAL_BUFFER = rt.BufferType(f64)
SIZE = 4
_FAST = {"fastmath": arith.FastMathFlagsAttr("none")}
_OVERFLOW = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_FLOATS = (0.0, -0.0, -0.0, 1.0, -1.0, 0.5, 3.0)
_INTEGER_OPS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MinSIOp)
_FLOAT_OPS = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp)


@dataclass
class _Writer:
    """Writes random ops at the end of `block`; the lists are the values in scope, by type."""

    random: random.Random
    block: Block
    integers: list[SSAValue] = field(default_factory=list)
    reals: list[SSAValue] = field(default_factory=list)
    flags: list[SSAValue] = field(default_factory=list)
    buffers: list[SSAValue] = field(default_factory=list)

    def emit(
        self,
        cls: type[Operation],
        operands: tuple[SSAValue, ...] = (),
        types: tuple[Attribute, ...] = (),
        properties: Mapping[str, Attribute] | None = None,
        regions: tuple[Block, ...] = (),
    ) -> Operation:
        op = cls.create(
            operands=operands,
            result_types=types,
            properties=properties or {},
            regions=[Region(block) for block in regions],
        )
        self.block.add_op(op)
        return op

    def constant(self, attribute: IntegerAttr | FloatAttr) -> SSAValue:
        return self.emit(arith.ConstantOp, (), (attribute.type,), {"value": attribute}).results[0]

    def integer(self) -> SSAValue:
        if not self.integers or self.random.random() < 0.2:
            self.integers.append(self.constant(IntegerAttr(self.random.randint(-2, 4), i64)))
        return self.random.choice(self.integers[-8:])

    def real(self) -> SSAValue:
        if not self.reals or self.random.random() < 0.2:
            self.reals.append(self.constant(FloatAttr(self.random.choice(_FLOATS), f64)))
        return self.random.choice(self.reals[-8:])

    def flag(self) -> SSAValue:
        if not self.flags or self.random.random() < 0.2:
            self.flags.append(self.constant(IntegerAttr(self.random.randint(0, 1), i1)))
        return self.random.choice(self.flags[-4:])

    def index(self) -> SSAValue:
        """An index within the buffers: mostly a constant."""
        constant = self.constant(IntegerAttr(self.random.choice((0, 0, 0, 1, SIZE - 1)), i64))
        if self.random.random() < 0.9:
            return constant
        return self.emit(arith.AndIOp, (self.integer(), constant), (i64,)).results[0]

    def inside(self, *arguments: Attribute) -> _Writer:
        block = Block(arg_types=arguments)
        writer = _Writer(self.random, block, [*self.integers], [*self.reals], [*self.flags], [*self.buffers])
        for argument in block.args:
            (writer.integers if argument.type == i64 else writer.reals).append(argument)
        return writer

    def fill(self, depth: int, count: int) -> None:
        for _ in range(count):
            choices = ["int", "float", "float", "compare", "select", "store", "accumulate", "convert"] + ["load"] * 5
            if self.random.random() < 0.05:
                choices = ["check", "view", "alloc"]
            if depth and self.random.random() < 0.2:
                choices = ["for", "if", "while"]
            getattr(self, f"write_{self.random.choice(choices)}")(depth)
        for real in self.reals[-4:] if count else ():
            self.emit(ad.TargetAddOp, (real,))  # makes visible what was computed

    def write_int(self, depth: int) -> None:
        cls = self.random.choice(_INTEGER_OPS)
        properties = _OVERFLOW if cls in _INTEGER_OPS[:3] else None
        self.integers.append(self.emit(cls, (self.integer(), self.integer()), (i64,), properties).results[0])

    def write_float(self, depth: int) -> None:
        if self.random.random() < 0.2:
            self.reals.append(self.emit(arith.NegfOp, (self.real(),), (f64,), _FAST).results[0])
        else:
            operands = (self.real(), self.real())
            self.reals.append(self.emit(self.random.choice(_FLOAT_OPS), operands, (f64,), _FAST).results[0])

    def write_compare(self, depth: int) -> None:
        if self.random.random() < 0.5:
            signed = [name for name in CMPI if name[0] != "u"]
            predicate = {"predicate": CMPI[self.random.choice(signed)]}
            self.flags.append(self.emit(arith.CmpiOp, (self.integer(), self.integer()), (i1,), predicate).results[0])
        else:
            predicate = {"predicate": CMPF[self.random.choice(tuple(CMPF))], **_FAST}
            self.flags.append(self.emit(arith.CmpfOp, (self.real(), self.real()), (i1,), predicate).results[0])

    def write_select(self, depth: int) -> None:
        self.reals.append(self.emit(arith.SelectOp, (self.flag(), self.real(), self.real()), (f64,)).results[0])

    def write_convert(self, depth: int) -> None:
        self.reals.append(self.emit(arith.SIToFPOp, (self.integer(),), (f64,)).results[0])

    def write_load(self, depth: int) -> None:
        operands = (self.random.choice(self.buffers), self.index())
        self.reals.append(self.emit(rt.LoadOp, operands, (f64,)).results[0])

    def write_store(self, depth: int) -> None:
        self.emit(rt.StoreOp, (self.real(), self.random.choice(self.buffers), self.index()))

    def write_accumulate(self, depth: int) -> None:
        self.emit(ad.AccumulateOp, (self.random.choice(self.buffers), self.index(), self.real()))

    def write_check(self, depth: int) -> None:
        self.emit(rt.CheckOp, (self.flag(),), (), {"site": IntegerAttr(self.random.randint(0, 99), i64)})

    def write_view(self, depth: int) -> None:
        # Offset 0: any index stays within the buffer.
        operands = (self.random.choice(self.buffers), self.constant(IntegerAttr(0, i64)))
        self.buffers.append(self.emit(rt.ViewOp, operands, (REAL_BUFFER,)).results[0])

    def write_alloc(self, depth: int) -> None:
        size = self.constant(IntegerAttr(SIZE, i64))
        self.buffers.append(self.emit(rt.AllocOp, (size,), (REAL_BUFFER,), {"zero": UnitAttr()}).results[0])

    def write_if(self, depth: int) -> None:
        condition, branches = self.flag(), []
        for _ in range(2):
            branch = self.inside()
            branch.fill(depth - 1, self.random.randint(0, 6))
            branch.emit(scf.YieldOp, (branch.real(), branch.integer()))
            branches.append(branch.block)
        results = self.emit(scf.IfOp, (condition,), (f64, i64), None, tuple(branches)).results
        self.reals.append(results[0])
        self.integers.append(results[1])

    def write_for(self, depth: int) -> None:
        lower = self.constant(IntegerAttr(self.random.randint(0, 2), i64))
        upper = self.constant(IntegerAttr(self.random.randint(0, 4), i64))
        if self.random.random() < 0.5:
            upper = self.emit(arith.MinSIOp, (self.integer(), upper), (i64,)).results[0]
        step = self.constant(IntegerAttr(self.random.randint(1, 2), i64))
        initial = (self.real(), self.real(), self.integer())
        body = self.inside(i64, f64, f64, i64)
        own = list(body.block.args)
        body.fill(depth - 1, self.random.randint(1, 8))
        carry = self.random.choice((own[1], initial[0], body.real()))
        body.emit(scf.YieldOp, (carry, body.real(), body.integer()))
        results = self.emit(scf.ForOp, (lower, upper, step, *initial), (f64, f64, i64), None, (body.block,)).results
        self.reals += results[:2]
        self.integers.append(results[2])

    def write_while(self, depth: int) -> None:
        """Counts up to a small number, so that it ends."""
        zero, one = (self.constant(IntegerAttr(i, i64)) for i in (0, 1))
        limit = self.constant(IntegerAttr(self.random.randint(0, 3), i64))
        before = self.inside(i64, f64, f64)
        counter, x, y = before.block.args
        before.integers.remove(counter)
        before.fill(0, self.random.randint(0, 3))
        predicate = {"predicate": CMPI["slt"]}
        condition = before.emit(arith.CmpiOp, (counter, limit), (i1,), predicate).results[0]
        passed = (counter, self.random.choice((x, y, before.real())), self.random.choice((y, before.real())))
        before.emit(scf.ConditionOp, (condition, *passed))
        after = self.inside(i64, f64, f64)
        counter, x, y = after.block.args
        after.fill(depth - 1, self.random.randint(0, 6))
        advanced = after.emit(arith.AddiOp, (counter, one), (i64,), _OVERFLOW).results[0]
        x, y = self.random.choice((x, after.real())), self.random.choice((y, after.real()))
        after.emit(scf.YieldOp, (advanced, x, y))
        initial = (zero, self.real(), self.real())
        results = self.emit(scf.WhileOp, initial, (i64, f64, f64), None, (before.block, after.block)).results
        self.integers.append(results[0])
        self.reals += results[1:]


def build(seed: int, *, entry: bool = True, target: bool = False) -> ModuleOp:
    """`f(x: buffer, y: buffer, n: i64, a: f64) -> (f64, i64, f64)`; the last result is the target's placeholder."""
    writer = _Writer(random.Random(seed), Block(arg_types=(REAL_BUFFER, REAL_BUFFER, i64, f64)))
    x, y, n, a = writer.block.args
    writer.buffers += [x, y]
    writer.integers.append(n)
    writer.reals.append(a)
    writer.write_alloc(0)
    writer.fill(3, 14)
    zero = writer.constant(FloatAttr(0.0, f64))
    writer.emit(func.ReturnOp, (writer.real(), writer.integer(), zero))
    function = func.FuncOp.create(
        properties={
            "sym_name": StringAttr("f"),
            "function_type": FunctionType.from_lists([REAL_BUFFER, REAL_BUFFER, i64, f64], [f64, i64, f64]),
        },
        attributes=ad.TargetPositionAttr.at(result=2).as_attributes() if target else {},
        regions=(Region(writer.block),),
    )
    if entry:
        rt.EntryAttr().put(function)
    return ModuleOp([function])
