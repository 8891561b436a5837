"""Traces of Stan programs: every op, branch and call of one run, as nodes to print and to follow.

from ulam import StanModel
from ulam.trace import Scripted, print_levels

node = StanModel("geom.stan").track("geom_rng", 1, 0.5, rng=Scripted([0.7, 0.8, 0.2]))
print_levels(node, 2)
"""

from ulam.runtime.explain.explanation import Explanation
from ulam.runtime.trace.choices import ContextError, HookError
from ulam.runtime.trace.contexts import (
    Compose,
    Default,
    DepthLimit,
    Enter,
    Hook,
    Only,
    Primitive,
    Site,
    Skip,
    TraceContext,
    is_builtin,
)
from ulam.runtime.trace.diff.differences import Diff, Divergence, TermDifference, ValueDifference, diff
from ulam.runtime.trace.export.json import schema
from ulam.runtime.trace.export.read_json import from_json
from ulam.runtime.trace.functions import Functions, StanFunction, functions, traced_ir, track
from ulam.runtime.trace.gradients.gradient_check import GradientCheck
from ulam.runtime.trace.gradients.op_library import NoDerivative, OpLibrary
from ulam.runtime.trace.listing import format_levels, print_levels
from ulam.runtime.trace.nodes import (
    ArgumentNode,
    ConstantNode,
    ControlFlowNode,
    DataFlowNode,
    DrawNode,
    JumpNode,
    NestedCallNode,
    Node,
    PrimitiveCallNode,
    ReturnNode,
    SpecialCallNode,
)
from ulam.runtime.trace.operands import Const, Ref
from ulam.runtime.trace.program_text import Location, Span
from ulam.runtime.trace.queries import Axis, backward, dependents, forward, query, referenced
from ulam.runtime.trace.recorder import DrawsExhausted, OtherDraws, Replay, Scripted, Seeded
from ulam.runtime.trace.saved import DamagedTrace, load
from ulam.runtime.trace.target_nodes import ConstrainNode, NestedTildeNode, TargetNode, TargetTerm, TildeNode
from ulam.runtime.trace.trace import Trace, TraceError
from ulam.runtime.trace.update.update import Reused, Update
from ulam.runtime.trace.values import MISSING, Digest

__all__ = [
    "MISSING", "ArgumentNode", "Axis", "Compose", "Const", "ConstantNode", "ConstrainNode", "ContextError",
    "ControlFlowNode", "DamagedTrace", "DataFlowNode", "Default", "DepthLimit", "Diff", "Digest", "Divergence",
    "DrawNode", "DrawsExhausted", "Enter", "Explanation", "Functions", "GradientCheck", "Hook", "HookError",
    "JumpNode", "Location", "NestedCallNode", "NestedTildeNode", "NoDerivative", "Node", "Only", "OpLibrary",
    "OtherDraws", "Primitive", "PrimitiveCallNode", "Ref", "Replay", "ReturnNode", "Reused", "Scripted", "Seeded",
    "Site", "Skip", "Span", "SpecialCallNode", "StanFunction", "TargetNode", "TargetTerm", "TermDifference",
    "TildeNode", "Trace", "TraceContext", "TraceError", "Update", "ValueDifference", "backward", "dependents", "diff",
    "format_levels", "forward", "from_json", "functions", "is_builtin", "load", "print_levels", "query", "referenced",
    "schema", "traced_ir", "track",
]  # fmt: skip
