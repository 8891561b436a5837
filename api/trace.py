"""Traces of Stan programs: every op, branch and call of one run, as nodes to print and to follow.

from ulam import StanModel
from ulam.trace import Scripted, print_levels

node = StanModel("geom.stan").track("geom_rng", 1, 0.5, rng=Scripted([0.7, 0.8, 0.2]))
print_levels(node, 2)
"""

from ulam.tracing.contexts import (
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
from ulam.tracing.diff.differences import Diff, Divergence, TermDifference, ValueDifference, diff
from ulam.tracing.explain.explanation import Explanation
from ulam.tracing.export.trace_json import from_json, schema
from ulam.tracing.functions import Functions, StanFunction, functions, traced_ir, track
from ulam.tracing.gradients.gradient_check import GradientCheck
from ulam.tracing.gradients.op_library import NoDerivative, OpLibrary
from ulam.tracing.hooks import ContextError, HookError
from ulam.tracing.listing import format_levels, print_levels
from ulam.tracing.node_kinds import ConstrainNode, NestedTildeNode, TargetNode, TargetTerm, TildeNode
from ulam.tracing.nodes import (
    ArgumentNode,
    Const,
    ConstantNode,
    ControlFlowNode,
    DataFlowNode,
    DrawNode,
    JumpNode,
    NestedCallNode,
    Node,
    PrimitiveCallNode,
    Ref,
    ReturnNode,
    SpecialCallNode,
)
from ulam.tracing.program_text import Location, Span
from ulam.tracing.queries import Axis, backward, dependents, forward, query, referenced
from ulam.tracing.saved import DamagedTrace, load
from ulam.tracing.tape.recorder import DrawsExhausted, OtherDraws, Replay, Scripted, Seeded
from ulam.tracing.tape.values import MISSING, Digest
from ulam.tracing.trace import Trace, TraceError
from ulam.tracing.update.update import Reused, Update

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
