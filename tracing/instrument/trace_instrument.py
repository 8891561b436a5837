"""The pass `trace-instrument{function=f}`: traced clones of a function and of all that it calls, with their tables.
With `root=log_prob`, or another of `density.ROOTS`, these are of the model instead of a function.

Adds to the program, in variable form: `f.traced`, clones of what it calls, and `trace.root`, a function that calls it
once.
The functions that are there do not change. Tables are `trace.sites` beside the program.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.dialects import trace
from ulam.passes.errors import NotSupportedError
from ulam.tracing.instrument.choices import Plan
from ulam.tracing.instrument.density import ROOTS, model_function
from ulam.tracing.instrument.graph import plain
from ulam.tracing.instrument.unit import add_clones, find_function


@dataclass(frozen=True)
class TraceInstrument(ModulePass):
    """Adds traced clones of a function, or of the model, and of all that it calls.

    `depth`: how many levels are traced, 0 for all. `jacobian`: of a model, with Jacobian adjustments.
    """

    name = "trace-instrument"

    function: str = ""
    root: str = ""
    depth: int = 0
    jacobian: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.root and self.root not in ROOTS:
            raise NotSupportedError(f"root is one of {', '.join(ROOTS)}, not '{self.root}'")
        made = [model_function(op, self.root, jacobian=self.jacobian)] if self.root else []
        functions = made or find_function(op, self.function)
        if len(functions) != 1:
            raise NotSupportedError(f"the program has {len(functions)} functions that are called '{self.function}'")
        clones = add_clones(op, functions[0], Plan(most_depth=self.depth or None, jacobian=self.jacobian))
        for symbol, traced in clones.traced.items():
            table = json.dumps(plain(traced.graph), separators=(",", ":"))
            op.body.block.add_op(trace.SitesOp(symbol, table))
