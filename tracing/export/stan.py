"""What one run did, as a Stan program without branches, loops and calls: every operation in the order in which it ran.

    real h_trace(real x, int n) {
      ...
      real v10 = x ^ 0.0;  // line 8

Variables are named by their positions: `v4_2` is @2 of the call @4. Calls that were entered are written out; jumps are
comments; what was drawn is a literal, as are the parameters of a model after their transform. Called with the same
arguments it gives the same value, bit for bit. Nothing but the tape is used: that shows that the tape is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ulam.library.functions import FunctionKind, kind_of
from ulam.runtime.arguments import require_text
from ulam.runtime.errors import ArgumentError
from ulam.tracing.export.graph import Spans, check_whole, top_of, written
from ulam.tracing.export.stan_expressions import (
    Expression,
    FieldsOf,
    NamedValue,
    call_text,
    literal,
    size_text,
    sizes_of,
    unsized_text,
    zero_size,
)
from ulam.tracing.instrument.graph import OPAQUE, ValueType
from ulam.tracing.listing import line_of
from ulam.tracing.node_kinds import ConstrainNode, TargetNode, TargetTerm, TildeNode
from ulam.tracing.nodes import (
    ArgumentNode,
    Const,
    ConstantNode,
    ItemNode,
    JumpNode,
    NestedCallNode,
    Node,
    Ref,
    ReturnNode,
    SpecialCallNode,
)
from ulam.tracing.tape.values import MISSING

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

NAMED_DEPTH = 4
"""Calls that the name of a variable tells."""

MAX_NODES = 10_000
"""Nodes of a program that can still be compiled in reasonable time."""


def to_stan(
    what: Node | Trace,
    path: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    max_nodes: int | None = MAX_NODES,
) -> str:
    """The program: a functions block with `name` (by default the function's, with `_trace`); also written to `path`.

    It has the parameters of the function that was called. Functions of the program that were not entered come with it.
    A run that failed fails in the same op. Raises ArgumentError for more than `max_nodes` nodes (None: any number), for
    traces that are not whole, and for values that are not kept or have no type in a trace, as tuples.
    """
    node = top_of(what)
    if not isinstance(node, NestedCallNode):
        raise ArgumentError(f"only a call that was entered has a program of its own, but {node} is not one")
    check_whole(node.trace, "written as a program")
    if not node.trace.context.record >= {"tilde", "target"}:
        raise ArgumentError("the trace has not all terms of the target: record tilde and target, too")
    if node.trace.dropped:
        raise ArgumentError("the trace is not whole: it has reached its limit_bytes")
    return written(_Writer(node, max_nodes).text(name or default_name(node.function)), path)


def default_name(function: str) -> str:
    """`f_trace`; suffixes that mean something to Stan stay at the end, but `_rng`: nothing is drawn."""
    base, _, suffix = function.rpartition("_")
    if base and suffix in ("lpdf", "lpmf", "lcdf", "lccdf"):
        return f"{base}_trace_{suffix}"
    return f"{base if base and suffix == 'rng' else function}_trace"


@dataclass
class _Statement:
    """A line. `new` is declared as a copy of `old` first, unless nobody reads that any more."""

    parts: Expression
    comment: str = ""
    new: NamedValue | None = None
    old: NamedValue | None = None
    reads: set[NamedValue] = field(default_factory=set[NamedValue])


class _Writer:
    def __init__(self, call: NestedCallNode, max_nodes: int | None) -> None:
        self.call = call
        self.room = max_nodes
        self.statements: list[_Statement] = []
        self.values: dict[tuple[int, int], Expression] = {}
        """What stands for a node: by place of the frame and position."""
        self.promoted: dict[NamedValue, NamedValue] = {}
        self.formals: list[NamedValue] = []
        self.calls_functions: set[str] = set()
        self.target: Expression = ["0.0"]
        self.path: list[str] = []
        self.taken: set[str] = set()
        self.spans = Spans()

    def text(self, name: str) -> str:
        graph = self.call.trace.tape.tables.graphs[self.call.item.child]
        self.taken = {p.name for p in graph.parameters if "." not in p.name} | {name}
        formals: list[str] = []
        for parameter, node in zip(graph.parameters, self.call.call_arguments, strict=True):
            formal = parameter.name
            if "." in formal:  # a field of a tuple, or a part of a complex number
                formal = self.fresh(formal.replace(".", "_"), parameter.type, ()).name
            variable = NamedValue(formal, parameter.type, sizes_of(node.value))
            self.formals.append(variable)
            formals.append(f"{'data ' if parameter.data else ''}{unsized_text(parameter.type, node)} {formal}")
        result = "void" if graph.result.base == "void" else unsized_text(graph.result, self.call)
        returned = self.walk()
        body = list(self.lines())
        if self.call.trace.failed and self.call.value is MISSING:
            if not body[-1].startswith("reject("):
                body.append('reject("the run ended here");')
        elif returned is not None:
            body.append(f"return {_joined(returned)};")
        lines = [*self.definitions(), f"  {result} {name}({', '.join(formals)}) {{", *(f"    {line}" for line in body)]
        return "\n".join(["functions {", *lines, "  }", "}"]) + "\n"

    def definitions(self) -> Iterator[str]:
        """The functions of the program, if any is called."""
        from ulam.frontend.parse.program import parse_program
        from ulam.frontend.source import Source

        trace = self.call.trace
        if not self.calls_functions:
            return
        require_text(trace.source.filename, "a trace as Stan")
        source = Source(trace.source.text, trace.source.filename, include_paths=trace.source.include_paths)
        defined = parse_program(source).functions
        if any(function.name in self.calls_functions for function in defined):
            yield from (f"  {source.text[f.span.start : f.span.end]}" for f in defined)

    # ------------------------------------------------------------ nodes

    def walk(self) -> Expression | None:
        """Writes all statements; what is returned."""
        returned: Expression | None = None
        stack: list[tuple[NestedCallNode, Iterator[Node]]] = [(self.call, iter(self.call.children))]
        while stack:
            call, nodes = stack[-1]
            node = next(nodes, None)
            if node is None:
                stack.pop()
                if stack:
                    self.leave(call)
                    self.path.pop()
                continue
            if self.room is not None:
                self.room -= 1
                if self.room < 0:
                    raise ArgumentError(
                        "the trace has more nodes than max_nodes: a program that long cannot be compiled"
                    )
            if isinstance(node, NestedCallNode) and node.body is not None and not node.is_opaque:
                self.path.append(f"@{node.at}")
                self.comment(line_of(node, short=True))
                stack.append((node, iter(node.children)))
            else:
                found = self.node(node, call)
                returned = found if isinstance(node, ReturnNode) and call is self.call else returned
        return returned

    def node(self, node: Node, call: NestedCallNode) -> Expression | None:
        """Writes a node; of a return, what it gives."""
        if isinstance(node, ArgumentNode):
            if node.number > 1:
                self.values[node.frame.place, node.at] = self.argument(node, call)
        elif isinstance(node, JumpNode):
            self.comment(str(node))
        elif isinstance(node, ReturnNode):
            result = node.result
            returned = None if result is None else self.converted(self.operand(result), node.type)
            if returned is not None:
                self.values[node.frame.place, -1] = returned
            return returned
        else:
            assert isinstance(node, ItemNode)
            self.item(node)
        return None

    def argument(self, node: ArgumentNode, call: NestedCallNode) -> Expression:
        """A parameter is what the caller passed, an argument of a block what the jump did."""
        if node.is_parameter and call is self.call:
            return [self.formals[node.at - 2]]
        source = call.operands[node.at - 2] if node.is_parameter else node.source
        if source is None:
            raise ArgumentError(f"what {node} was given is not kept")
        return self.converted(self.operand(source), node.type)

    def leave(self, call: NestedCallNode) -> None:
        """After a call that was entered: its value is what it returned."""
        body = call.body
        assert body is not None
        returned = self.values.get((body.place, -1))
        if returned is not None:
            self.values[call.frame.place, call.at] = returned
            if isinstance(call, TildeNode):
                self.add(call, returned)

    def item(self, node: ItemNode) -> None:
        if isinstance(node, ConstantNode):
            self.values[node.frame.place, node.at] = [literal(node.value, node.type)]
        elif isinstance(node, TargetTerm):
            self.term(node)
        elif node.threw and (node.item.draws or (node.type.rank and node.value is MISSING)):
            assert node.trace.error is not None
            self.write(None, [f'reject("{node.trace.error.message.replace(chr(34), "")}")'], node)
        elif isinstance(node, SpecialCallNode):
            self.special(node)
        elif node.function in ("tuple", "complex"):
            self.values[node.frame.place, node.at] = FieldsOf(self.operands(node))
        elif node.function == "field" and isinstance(whole := self.operand(node.operands[0]), FieldsOf):
            self.values[node.frame.place, node.at] = whole.fields[int(node.operands[1].value) - 1]
        elif node.function == "target" and not node.operands:
            self.values[node.frame.place, node.at] = self.target
        elif node.item.draws or kind_of(node.function) is FunctionKind.RNG:
            self.literal(node, "drawn")
        elif node.item.unnormalized:
            self.literal(node, "without constants")
        else:
            self.calls_functions.add(node.function)
            self.calls_functions.update(o.constant for o in node.item.operands if o.type.base == "function")
            self.define(node, call_text(node.item, self.operands(node)))

    def special(self, node: SpecialCallNode) -> None:
        name = node.function
        operands = self.operands(node)
        if isinstance(node, ConstrainNode):
            self.literal(node, node.parameter)
        elif name == OPAQUE:
            self.literal(node, "made by the library")
        elif name in ("check", "next"):
            self.comment(str(node))
        elif name in ("print", "reject"):
            self.write(None, [f"{name}(", *_separated(operands), ")"], node)
        elif name == "index_assign":
            self.index_assign(node, operands)
        elif name in ("declare", "uninitialized"):
            self.define(node, None)
        elif name == "element":
            self.define(node, self.element(node, operands))
        else:
            raise ArgumentError(f"{node} cannot be written as Stan")

    def element(self, node: ItemNode, operands: list[Expression]) -> Expression:
        """An element of a container that is looped over; matrices are by column."""
        container, counter = node.operands
        if node.item.operands[0].type.base != "matrix" or node.item.operands[0].type.array_rank:
            return [*operands[0], "[", *operands[1], "]"]
        column, row = divmod(int(counter.value) - 1, sizes_of(container.value)[0])
        return [*operands[0], f"[{row + 1}, {column + 1}]"]

    def index_assign(self, node: ItemNode, operands: list[Expression]) -> None:
        container, *indices, value = operands
        new = self.variable(node)
        part = call_text(node.item, [[new], *indices], name="index")
        old = container[0] if len(container) == 1 and isinstance(container[0], NamedValue) else None
        reads = {part for found in operands for part in found if isinstance(part, NamedValue)}
        if old is None:
            raise ArgumentError(f"{node} cannot be written as Stan: it assigns to a container that is not kept")
        self.statements.append(_Statement([*part, " = ", *value], self.place(node), new, old, reads))
        self.values[node.frame.place, node.at] = [new]

    def term(self, node: TargetTerm) -> None:
        """What adds to the target. Of a model, what depends on dropped constants or on a transform is a literal."""
        if isinstance(node, TildeNode) and not node.item.unnormalized:
            operands = self.operands(node)
            name = f"{node.distribution}_{'lpmf' if node.item.operands[0].type.is_int else 'lpdf'}"
            self.calls_functions.add(name)
            self.define(node, call_text(node.item, operands, name))
        elif isinstance(node, TargetNode) and node.cause == "target" and not node.parameter:
            (operand,) = self.operands(node)
            rank = node.item.operands[0].type.rank
            self.define(node, ["sum(", *operand, ")"] if rank else operand)
        else:
            what = f"Jacobian term of {node.parameter}" if isinstance(node, TargetNode) else "without constants"
            self.literal(node, what)
        self.add(node, self.values[node.frame.place, node.at])

    def add(self, node: Node, increment: Expression) -> None:
        variable = self.fresh(f"target_{node.at}", ValueType("real"), ())
        self.statements.append(_Statement(["real ", variable, " = ", *self.target, " + ", *increment]))
        self.target = [variable]

    # ------------------------------------------------------------ values

    def operands(self, node: ItemNode) -> list[Expression]:
        """As the op takes them: an int that was promoted to a variable's real stays one."""
        found: list[Expression] = []
        for operand, used in zip(node.item.operands, node.operands, strict=True):
            found.append(self.converted(self.operand(used), operand.type))
        return found

    def operand(self, used: Ref | Const) -> Expression:
        if isinstance(used, Ref):
            found = self.values.get((used.node.frame.place, used.position))
            if found is None:
                raise ArgumentError(f"the value of {used.node} is not kept")
            return found
        if used.type.rank:
            variable = self.fresh("unassigned", used.type, sizes_of(used.value))
            self.write(variable, None, None)
            return [variable]
        return [literal(used.value, used.type)]

    def converted(self, expression: Expression, type_: ValueType) -> Expression:
        """An int where a real is meant: a real variable, or literal."""
        if type_.is_int or type_.base in ("string", "function") or len(expression) != 1:
            return expression
        (part,) = expression
        if isinstance(part, str):
            return (
                [literal(float(part), type_)] if not type_.rank and part.lstrip("(-").rstrip(")").isdigit() else [part]
            )
        if not part.type.is_int:
            return expression
        if part not in self.promoted:
            self.promoted[part] = self.fresh(f"{part.name}_real", type_, part.sizes)
            self.write(self.promoted[part], [part], None)
        return [self.promoted[part]]

    def define(self, node: ItemNode, expression: Expression | None) -> None:
        """A variable for the value of a node."""
        if node.type.base == "void":
            assert expression is not None
            self.write(None, expression, node)
            return
        variable = self.variable(node)
        self.write(variable, expression, node)
        self.values[node.frame.place, node.at] = [variable]

    def literal(self, node: ItemNode, why: str) -> None:
        """The value of a node as it was."""
        variable = self.variable(node)
        value = node.value
        text = None if zero_size(value) else literal(value, node.type)
        self.write(variable, None if text is None else [text], node, why)
        self.values[node.frame.place, node.at] = [variable]

    def variable(self, node: ItemNode) -> NamedValue:
        unsized_text(node.type, node)  # refuses what has no type
        value = node.value
        if node.type.rank and value is MISSING:
            raise ArgumentError(f"the value of {node} is not kept: use containers='copy'")
        depth = "_".join(self.path) if len(self.path) <= NAMED_DEPTH else f"{len(self.path)}_deep"
        name = f"v{depth.replace('@', '')}_{node.at}" if self.path else f"v{node.at}"
        return self.fresh(name, node.type, sizes_of(value))

    def fresh(self, name: str, type_: ValueType, sizes: tuple[int, ...]) -> NamedValue:
        """A variable of a new name that begins with `name`."""
        count = 1
        made = name
        while made in self.taken:
            count += 1
            made = f"{name}_{count}"
        self.taken.add(made)
        return NamedValue(made, type_, sizes)

    # ------------------------------------------------------------ lines

    def place(self, node: Node | None) -> str:
        """The line of the source."""
        span = None if node is None else self.spans.of(node)
        return "" if span is None else f"line {span.line}"

    def comment(self, text: str) -> None:
        where = "/".join(self.path[:-1] if text.startswith("".join(self.path[-1:])) else self.path)
        self.statements.append(_Statement([], f"{where + '/' if where else ''}{text}"))

    def write(self, variable: NamedValue | None, value: Expression | None, node: Node | None, why: str = "") -> None:
        parts: Expression = []
        if variable is not None:
            parts = [f"{size_text(variable.type, variable.sizes)} ", variable]
            parts += [] if value is None else [" = ", *value]
        elif value is not None:
            parts = list(value)
        comment = ", ".join(filter(None, (why, self.place(node))))
        self.statements.append(_Statement(parts, comment))

    def lines(self) -> Iterator[str]:
        """The statements as text. A container whose old value nobody reads is changed in place."""
        last: dict[NamedValue, int] = {}
        for n, statement in enumerate(self.statements):
            last.update((part, n) for part in statement.parts if isinstance(part, NamedValue))
            last.update((part, n) for part in statement.reads)
        for n, statement in enumerate(self.statements):
            new, old = statement.new, statement.old
            if new is not None and old is not None:
                if last[old] == n and old not in self.formals:
                    new.stands_for = old
                else:
                    yield f"{size_text(new.type, new.sizes)} {new} = {old};"
            text = _joined(statement.parts)
            comment = f"// {statement.comment}" if statement.comment else ""
            yield f"{text};  {comment}".rstrip() if text else comment


def _joined(parts: Expression) -> str:
    return "".join(map(str, parts))


def _separated(operands: list[Expression], first: str = ", ") -> Expression:
    """Operands with commas; `first` stands between the first two."""
    parts: Expression = []
    for n, operand in enumerate(operands):
        parts += [] if n == 0 else [first if n == 1 else ", "]
        parts += operand
    return parts
