"""Reads CmdStan's command line: a tree whose words count in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ulam.tools.cmdstan.arguments import (
    KINDS,
    METHOD,
    TREE,
    Argument,
    ArgumentChoice,
    ArgumentGroup,
    Arguments,
    ArgumentValue,
    members,
    walk,
)

HELP, HELP_ALL, INFO = "help", "help-all", "info"

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLAGS = {"0": False, "1": True, "false": False, "true": True}


class CommandLineError(Exception):
    """What is wrong with a command line: lines of a message."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)
        super().__init__("\n".join(lines))


class HelpAsked(Exception):
    """A command line asks about an argument: `word` is one of `help`, `help-all` and `info`."""

    def __init__(self, word: str, node: Argument) -> None:
        self.word, self.node = word, node
        super().__init__(word)


def parse(words: Sequence[str]) -> Arguments:
    """The arguments. Raises CommandLineError, or HelpAsked."""
    found = _Parser(words)
    found.read()
    return found.arguments


class _Parser:
    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(reversed(words))
        self.arguments = Arguments()

    def read(self) -> None:
        """All words. At the top each argument is given once, and the name of a method alone means it."""
        left = {member.name: member for member in TREE.members}
        while self.words:
            word = self.words[-1]
            self._answer(word, TREE)
            if METHOD.name in left and METHOD.option(word) is not None:
                word = self.words[-1] = f"{METHOD.name}={word}"
            name = word.partition("=")[0]
            if name not in left:
                raise CommandLineError(*_misplaced(word, name))
            self._member(left.pop(name), "")
        if METHOD.name in left:
            raise CommandLineError(
                "A method must be specified!", f"  Methods: {', '.join(option.name for option in METHOD.options)}"
            )

    def _answer(self, word: str, node: Argument) -> None:
        if word in (HELP, HELP_ALL, INFO):
            raise HelpAsked(word, node)

    def _member(self, node: Argument, above: str) -> None:
        """One argument, whose name the next word has, and what is below it."""
        path = f"{above}.{node.name}" if above else node.name
        name, equals, text = self.words.pop().partition("=")
        if isinstance(node, ArgumentGroup):
            if equals:
                raise CommandLineError(
                    f'"{name}" takes no value: it opens a group.', f"  Perhaps you meant {name} {_first(node)}?"
                )
            self._group(node, path)
            return
        if not equals:
            if self.words:
                self._answer(self.words[-1], node)
            raise CommandLineError(f'"{name}" needs a value: {_pattern(node)}')
        if isinstance(node, ArgumentValue):
            self.arguments.given[path] = value_of(node, text)
            return
        option = node.option(text)
        if option is None:
            choices = ", ".join(entry.name for entry in node.options)
            raise CommandLineError(f'{text} is not a valid value for "{name}"', f"  Valid values: {choices}")
        if option.missing:
            raise CommandLineError(option.missing)
        self.arguments.given[path] = text
        self._group(option, f"{path}.{text}")

    def _group(self, group: ArgumentGroup, path: str) -> None:
        """The words that are arguments of this group, up to one that is none."""
        below = {member.name: member for member in group.members}
        while self.words:
            self._answer(self.words[-1], group)
            node = below.get(self.words[-1].partition("=")[0])
            if node is None:
                return
            self._member(node, path)


def value_of(node: ArgumentValue, text: str) -> bool | int | float | str:
    """The value that a text stands for. Raises CommandLineError."""
    kind = node.rule.type
    found: bool | int | float | str | None = None
    if kind is str:
        found = text
    elif kind is bool:
        found = _FLAGS.get(text)
    elif kind is int:
        found = int(text) if _INTEGER.fullmatch(text) else None
    else:
        found = float(text) if _REAL.fullmatch(text) else None
    if found is None or not node.rule.holds(found):
        raise CommandLineError(f'{text} is not a valid value for "{node.name}"', f"  Valid values: {node.valid}")
    return found


# ---------------------------------------------------------------- what may be meant


def _pattern(node: ArgumentValue | ArgumentChoice) -> str:
    if isinstance(node, ArgumentChoice):
        return f"{node.name}=<{'|'.join(option.name for option in node.options)}>"
    return f"{node.name}=<{KINDS[node.rule.type]}>"


def _first(group: ArgumentGroup) -> str:
    return next((_pattern(node) for node in group.members if isinstance(node, ArgumentValue)), "")


def paths_to(name: str, node: Argument = TREE, before: str = "") -> Iterator[str]:
    """How the arguments of this name are written, with what has to stand before them."""
    for member in members(node):
        whole = f"{before}{member.name}"
        if member.name == name:
            yield whole if isinstance(member, ArgumentGroup) else f"{before}{_pattern(member)}"
        yield from paths_to(name, member, f"{whole}=" if isinstance(member, ArgumentChoice) else f"{whole} ")


def _misplaced(word: str, name: str) -> Iterator[str]:
    """The message for a word that is no argument where it stands."""
    yield f"{word} is either mistyped or misplaced."
    known = {node.name for _, node in walk()}
    names = [name]
    if name not in known:
        from difflib import get_close_matches

        names = get_close_matches(name, sorted(known), 3)
    found = [path for each in names for path in paths_to(each)]
    if found:
        yield "Perhaps you meant one of the following valid configurations?"
        yield from (f"  {path}" for path in found)
