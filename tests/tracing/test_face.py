"""What users call on nodes and traces is put into their classes by one module, with its documentation."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import pytest

from ulam.trace import Node, Trace
from ulam.tracing import face


@pytest.mark.parametrize(("methods", "target"), [(face.NodeMethods, Node), (face.TraceMethods, Trace)])
def test_methods_are_in_the_classes(methods: type, target: type) -> None:
    names = [name for name in dir(methods) if not name.startswith("_")]
    assert {"to_svg", "to_json", "adjoint"} <= set(names)
    shown = pydoc.plain(pydoc.render_doc(target))
    for name in names:
        assert getattr(target, name) is getattr(methods, name) and getattr(target, name).__doc__
        assert f" {name}" in shown


def test_nodes_are_read_alone() -> None:
    """Nodes know the tape: neither readers nor what compiles is imported with them."""
    code = "import sys, ulam.tracing.nodes; print(*(m for m in sys.modules if m.startswith('ulam.tracing.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = ("tape", "instrument", "nodes", "program_text", "contexts", "hooks")
    others = [name for name in done.stdout.split() if name.split(".")[2] not in allowed]
    assert "ulam.tracing.nodes" in done.stdout and not others
