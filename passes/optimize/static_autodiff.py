"""Stan's static rule: which expressions count as autodiff, whatever the program does.

Parameters are, and everything that is not int and was declared in transformed parameters or model, or in a function;
formals unless they are declared `data`; and what is computed from one of these. It decides which summands `~` drops.
"""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import stan
from ulam.passes.analysis.nesting import enclosing
from ulam.passes.variable_form import Variable

_AUTODIFF_BLOCKS = ("parameters", "transformed_parameters", "model")


class StaticAutodiff:
    """Answers for one program."""

    def __init__(self, program: stan.ProgramOp) -> None:
        self._program = program
        self._known: dict[SSAValue, bool] = {}
        self._blocks: dict[str, str] | None = None

    def of(self, value: SSAValue) -> bool:
        """Whether a value is autodiff."""
        if (known := self._known.get(value)) is None:
            known = self._known[value] = stan.scalar_of(value.type) != stan.INT and self._of_real(value)
        return known

    def _of_real(self, value: SSAValue) -> bool:
        op = value.owner
        if isinstance(op, Block):
            return self._of_argument(cast(BlockArgument, value))
        if isinstance(op, stan.ReadOp):
            return self._of_variable(op.operands[0].owner)
        if isinstance(op, stan.TargetOp):
            return True
        if op.regions:
            ends = [block.last_op for region in op.regions for block in region.blocks]
            return any(self.of(operand) for end in ends if end is not None for operand in end.operands)
        return any(self.of(operand) for operand in op.operands)

    def _of_argument(self, value: BlockArgument) -> bool:
        parent = value.owner.parent_op()
        if isinstance(parent, stan.FuncOp):
            return is_autodiff_formal(parent, value.index)
        return isinstance(parent, stan.ForEachOp) and self.of(parent.container)

    def _of_variable(self, declaration: Operation | Block) -> bool:
        if isinstance(declaration, stan.GlobalOp):
            return self._block_of(declaration.var_name.data) in _AUTODIFF_BLOCKS
        assert isinstance(declaration, Operation)
        return is_autodiff_place(declaration)

    def _block_of(self, name: str) -> str:
        if self._blocks is None:
            self._blocks = {
                op.var_name.data: block.kind.data
                for block in self._program.body.block.ops
                if isinstance(block, stan.BlockOp)
                for op in block.body.block.ops
                if isinstance(op, Variable)
            }
        return self._blocks.get(name, "")


def is_autodiff_formal(function: stan.FuncOp, position: int) -> bool:
    """Whether a formal that is not int counts as autodiff: unless it is declared `data`."""
    return not function.data_only.get_values()[position]


def is_autodiff_place(op: Operation) -> bool:
    """Whether what is declared where `op` stands, and is not int, counts as autodiff."""
    around = enclosing(op, (stan.BlockOp, stan.FuncOp))
    return isinstance(around, stan.FuncOp) or (
        isinstance(around, stan.BlockOp) and around.kind.data in _AUTODIFF_BLOCKS
    )
