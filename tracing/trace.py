"""A trace: what one run of a function recorded, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ulam.runtime.errors import ArgumentError, ProgramError, UlamError
from ulam.tracing.contexts import TraceContext
from ulam.tracing.instrument.graph import ROOT, Graph
from ulam.tracing.node_kinds import make_node
from ulam.tracing.nodes import ItemNode, NestedCallNode, Node
from ulam.tracing.program_text import FunctionText, SourceText, Span
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.recorder import (
    NO_CONTINUATION,
    NO_DRAWS,
    Continuation,
    Draws,
)
from ulam.tracing.tape.tape import Tape
from ulam.tracing.tape.target import Terms

if TYPE_CHECKING:
    from ulam.tracing.face import TraceMethods
    from ulam.tracing.gradients.adjoint import Adjoints
    from ulam.tracing.gradients.gradient_check import Density
    from ulam.tracing.gradients.op_library import OpLibrary
    from ulam.tracing.update.update import Update
    from ulam.tracing.versions import RecordedRun
else:  # `face` puts them in
    TraceMethods = object


class SavedError(UlamError):
    """The error of a run whose trace was saved: `name` is the class of the exception that it was.

    `message` is its text without the place, as listings have it.
    """

    def __init__(self, name: str, text: str, message: str) -> None:
        self.name, self.message = name, message
        super().__init__(text)


@dataclass(frozen=True)
class TraceError:
    """What ended a run: the exception, and the node that it came from (None if nothing of that is kept)."""

    exception: Exception
    node: Node | None

    @property
    def type(self) -> type[Exception]:
        return type(self.exception)

    @property
    def name(self) -> str:
        """Of the class of the exception; of a trace that was read, of the one that there was."""
        return self.exception.name if isinstance(self.exception, SavedError) else self.type.__name__

    @property
    def message(self) -> str:
        error = self.exception
        if isinstance(error, SavedError):
            return error.message
        text = error.text if isinstance(error, ProgramError) else str(error)
        return text.splitlines()[0] if text else self.type.__name__

    @property
    def entry(self) -> list[str]:
        """What is saved: the arguments of `SavedError`."""
        return [self.name, str(self.exception), self.message]

    @property
    def span(self) -> Span | None:
        """Where the program failed."""
        error = self.exception
        if isinstance(error, ProgramError) and error.line > 0:
            return Span(error.file, error.line, error.column, error.column + 1)
        return None if self.node is None else self.node.span


class Trace(TraceMethods):
    """What one run recorded. Nodes keep it alive; `close` gives its memory back."""

    def __init__(
        self,
        tape: Tape,
        context: TraceContext,
        source: SourceText,
        ops: Mapping[str, Mapping[int, Any]],
        library: OpLibrary | None = None,
    ) -> None:
        self.tape = tape
        self.context = context
        self.source = source
        self.draws: Draws = NO_DRAWS
        self.continuation: Continuation = NO_CONTINUATION
        self.error: TraceError | None = None
        self.adjoints: Adjoints | None = None
        """What `adjoint` found last."""
        self.density: Density | None = None
        """Of a model's log density: the model, and which of its terms."""
        self.again: Callable[[TraceContext], Trace] | None = None
        """Runs the same once more, recorded in another way; None for a trace without its program."""
        self._ops = ops
        self._library = library
        self._nodes: WeakValueDictionary[tuple[int, int], Node] = WeakValueDictionary()
        self._metadata: dict[tuple[int, int], dict[str, Any]] = {}
        self._texts: dict[str, FunctionText] = {}
        self.users: dict[int, dict[int, list[int]]] = {}
        self.decided: dict[int, dict[int, list[int]]] = {}
        """What `queries` found: by frame, position → positions of its users, and of what it decided on."""
        self._root_frame = tape.frame(ROOT, 0)
        self.runs: dict[int, RecordedRun] = {}
        """Of each segment of the tape the run that has recorded it. Empty: it cannot run again."""
        self.other_draws: dict[int, Draws] = {}
        """Of a version: what ops drew that were evaluated anew."""
        self._terms: Terms | None = None
        self.updates: list[Update] = []
        """Those in place that can be taken back, in order."""

    @property
    def failed(self) -> bool:
        """Whether an error ended the run."""
        return self.tape.failed

    @property
    def root(self) -> ItemNode:
        """The call that was tracked."""
        found = self.node(self._root_frame, self._root_frame.head + 1)
        assert isinstance(found, ItemNode)
        return found

    @property
    def dropped(self) -> int:
        """How many nodes were not kept, for want of room."""
        return self.tape.recorder.info().dropped

    @property
    def draws_used(self) -> int:
        """How many random numbers the run took."""
        return len(self.draws)

    @property
    def op_library(self) -> OpLibrary:
        """Values and pullbacks of the ops of the program. Raises ArgumentError for a trace without its program."""
        if self._library is None:
            raise ArgumentError("the trace was loaded from a file: its program is not there to be run; track it again")
        return self._library

    def with_copies(self) -> Trace:
        """The same run with all containers copied: this trace, if it has them, or another one.

        Raises ArgumentError for a trace without its program.
        """
        if self.context.keeps_all:
            return self
        if self.again is None:
            raise ArgumentError('the trace cannot be run once more: track it with TraceContext(containers="copy")')
        found = self.again(self.context.copying())
        found.density = self.density
        return found

    def node(self, frame: Frame, position: int) -> Node:
        """The node at a position of a frame. Raises IndexError."""
        key = (frame.place, position)
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = make_node(self, frame, position)
        return found

    def terms(self, touched: set[str]) -> Terms:
        """The additions to the target; `touched`: the functions that have some."""
        if self._terms is None:
            self._terms = self.tape.terms or Terms(self._root_frame, touched)
        return self._terms

    def forget_terms(self) -> None:
        """They are found again: the trace has changed."""
        self._terms = None

    def set_terms(self, terms: Terms) -> None:
        """Of a version."""
        self._terms = self.tape.terms = terms

    def move_metadata(self, places: Mapping[int, int]) -> None:
        """Frames have other places than in the trace that the metadata are of."""
        self._metadata = {(places[at], n): entry for (at, n), entry in self._metadata.items() if at in places}

    def same_program(self, tape: Tape) -> Trace:
        """A trace of the same program with another tape; nodes have the metadata that they were given."""
        made = Trace(tape, self.context, self.source, self._ops, self._library)
        made.density = self.density
        made._texts = self._texts
        made._metadata = {key: dict(entry) for key, entry in self._metadata.items()}
        return made

    def text_of(self, graph: Graph) -> FunctionText:
        """A traced function as text and ops."""
        if (found := self._texts.get(graph.symbol)) is None:
            found = FunctionText(graph, self._ops.get(graph.symbol, {}), self.source)
            self._texts[graph.symbol] = found
        return found

    def has_metadata(self, node: Node) -> bool:
        """Whether a node has any."""
        return bool(self._metadata.get((node.frame.place, node.at))) or bool(node.site_metadata)

    def metadata_of(self, node: Node) -> dict[str, Any]:
        """A node's dictionary."""
        key = (node.frame.place, node.at)
        if (found := self._metadata.get(key)) is None:
            found = self._metadata[key] = dict(node.site_metadata)
        return found

    @property
    def noted(self) -> dict[tuple[int, int], dict[str, Any]]:
        """The metadata that were asked for, by place of the frame and position."""
        return self._metadata

    def close(self) -> None:
        """Gives the memory to the next run. Nodes cannot be read any more."""
        self.tape.close()
        self.runs = {}


def origin(trace: Trace) -> Node | None:
    """The innermost node that threw."""
    node: Node = trace.root
    while isinstance(node, NestedCallNode) and (body := node.body) is not None and body.is_cut:
        last = body.steps - 1
        ordinal = body.throwing(last)
        if ordinal is None:
            return node
        block = body.block(last)
        node = trace.node(body, body.position(last, False, len(block.arguments) + ordinal))
    return node
