"""What `help` and `help-all` show, of the whole command line or of one argument."""

from __future__ import annotations

from collections.abc import Iterator

from ulam.tools.cmdstan.arguments import (
    KINDS,
    METHOD,
    TREE,
    Argument,
    ArgumentChoice,
    ArgumentGroup,
    ArgumentValue,
    members,
)
from ulam.tools.cmdstan.parser import HELP_ALL


def help_text(word: str, node: Argument, command: str) -> str:
    """The answer to `help` or `help-all` at an argument."""
    if node is TREE:
        lines = list(_usage(command))
        if word == HELP_ALL:
            lines = [line for member in TREE.members for line in _about(member, 0, True)] + lines
    else:
        lines = list(_about(node, 0, word == HELP_ALL))
    return "".join(f"{line}\n" for line in lines)


def _usage(command: str) -> Iterator[str]:
    yield f"Usage: {command} <method> <argument>=<value> ... <group> <argument>=<value> ..."
    yield ""
    yield "Methods:"
    yield from _rows(METHOD.options)
    yield ""
    yield "Help:"
    yield f"  {'help':<20}  What you are reading"
    yield f"  {'help-all':<20}  All arguments"
    yield f"  {'info':<20}  Versions, and what the model was compiled with"
    yield ""
    yield "For all methods:"
    yield from _rows(member for member in TREE.members if member is not METHOD)
    yield ""
    yield f"{command} <argument> help tells of one argument, {command} <argument> help-all also of those below it."


def _rows(nodes: Iterator[Argument] | tuple[ArgumentGroup, ...]) -> Iterator[str]:
    yield from (f"  {node.name:<20}  {node.help}" for node in nodes)


def _about(node: Argument, depth: int, all_below: bool) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(node, ArgumentGroup):
        yield f"{indent}{node.name}"
        yield f"{indent}  {node.help}"
        if node.members:
            yield f"{indent}  Valid subarguments: {', '.join(member.name for member in node.members)}"
    else:
        kind = KINDS[node.rule.type] if isinstance(node, ArgumentValue) else "list_element"
        valid = node.valid if isinstance(node, ArgumentValue) else ", ".join(option.name for option in node.options)
        yield f"{indent}{node.name}=<{kind}>"
        yield f"{indent}  {node.help}"
        yield f"{indent}  Valid values: {valid}"
        yield f"{indent}  Defaults to {default_text(node)}"
    yield ""
    if all_below:
        for member in members(node):
            yield from _about(member, depth + 1, True)


def default_text(node: ArgumentValue | ArgumentChoice) -> str:
    """The default as it is written on a command line."""
    default = node.default
    if isinstance(node, ArgumentChoice):
        return default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return default or '""'
    return f"{default:.15g}"
