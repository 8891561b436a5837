"""Source text with its includes in place, and where each of its characters comes from.

Spans of the AST are character offsets into `Source.text`. `#include` directives are resolved when a `Source` is made:
the directive stays in the text (the lexer skips it) and the text of the named file follows it. `Source.location` maps
an offset back to the file, line and column that a user knows.
Source: Stan Reference Manual, "Includes".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from errno import ENAMETOOLONG
from pathlib import Path

from ulam.frontend.encoding import INCLUDE, problem_of, read_text
from ulam.library.records import record

# Also used by the lexer, which skips directives; the groups are the quoted, bracketed and bare file name.
INCLUDE_DIRECTIVE = r'\#include[ \t\f\r\n]+(?:"[^"\r\n]*"|<[^>\r\n]*>|[^\s"<]\S*)'

# What may hide a directive, and directives. An unterminated comment swallows the rest of its file.
_COMMENT_STRING_OR_INCLUDE = re.compile(
    r'//[^\r\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|"[^"\r\n]*"|(?P<include>' + INCLUDE_DIRECTIVE + ")"
)
MAX_INCLUDE_DEPTH = 200  # files that include one another
MAX_INCLUSIONS = 2000
MAX_INCLUDED_TEXT = 20_000_000  # characters; 24 files that include the next twice would make millions of copies

_NAME = re.compile(r"[A-Za-z]\w*")
_NEXT_PART = re.compile(r"\s*[\[(]")
_BRACKET = re.compile(r"[\[\](){}]")
_LONGEST_INDEXED = 80

_LINE_END = re.compile(r"\r\n|\r|\n")


@record(slots=True, frozen=True)
class SourceLocation:
    """A place as a user names it; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@record(slots=True, frozen=True)
class SourceProblem:
    """What is wrong with a file, or went wrong while includes were resolved; a diagnostic is made of it.

    A warning if `is_error` is not set.
    """

    start: int
    end: int
    message: str
    help: str | None
    code: str = "include"
    is_error: bool = True


@record(slots=True, frozen=True)
class _Included:
    """An included file as it was read."""

    resolved: Path
    text: str


def file_of_source(name: str, text: str) -> _File:
    """A file for `Source.add`."""
    return _File(name, text, 1, None, 0)


class _TooMuchIncluded(Exception):
    """A limit of includes was met; it has been noted."""


class _File:
    """One file of a source: the main one, or one inclusion of a file."""

    __slots__ = ("_line_starts", "first_line", "included_at", "name", "parent", "text")

    def __init__(self, name: str, text: str, first_line: int, parent: _File | None, included_at: int) -> None:
        self.name = name
        self.text = text
        self.first_line = first_line
        self.parent = parent
        self.included_at = included_at  # offset of the directive in the parent's text
        self._line_starts: list[int] | None = None

    @property
    def line_starts(self) -> list[int]:
        if self._line_starts is None:
            self._line_starts = [0, *(m.end() for m in _LINE_END.finditer(self.text))]
        return self._line_starts

    def position(self, offset: int) -> tuple[int, int]:
        starts = self.line_starts
        index = bisect_right(starts, offset) - 1
        return index + self.first_line, offset - starts[index] + 1

    def line(self, number: int) -> str:
        starts = self.line_starts
        index = number - self.first_line
        if not 0 <= index < len(starts):
            raise IndexError(f"{self.name} has no line {number}")
        end = starts[index + 1] if index + 1 < len(starts) else len(self.text)
        return self.text[starts[index] : end].rstrip("\r\n")


class Source:
    """The text of a program, under the name that messages show.

    `include_paths` are searched for included files after the folder of the including file. `first_line` is the number
    of the first line where the text is an excerpt of a file.
    """

    __slots__ = ("_files", "_search", "_segment_files", "_segment_offsets", "_segment_starts", "_included",
                 "included_files", "name", "problems", "text")  # fmt: skip

    def __init__(self, text: str, name: str, include_paths: Iterable[str | Path] = (), first_line: int = 1) -> None:
        self.name = name
        self.text = text
        self.problems: list[SourceProblem] = []
        self.included_files: list[Path] = []  # each once, in order of first use: what a cache key must cover
        main = _File(name, self._readable(text, 0), first_line, None, 0)
        self.text = text = main.text
        self._files = [main]
        self._included: dict[Path, _Included | None] = {}
        self._search = [Path(p) for p in include_paths]
        # Parallel lists: from offset `starts[k]` on, the text is that of `files[k]` from its offset `offsets[k]` on.
        self._segment_starts = [0]
        self._segment_files = [main]
        self._segment_offsets = [0]
        if INCLUDE in text:
            pieces: list[str] = []
            self._segment_starts, self._segment_files, self._segment_offsets = [], [], []
            with suppress(_TooMuchIncluded):
                self._expand(main, Path(name).parent, (_absolute(Path(name)),), pieces, 0)
            self.text = "".join(pieces)

    @classmethod
    def read(cls, path: str | Path, include_paths: Iterable[str | Path] = ()) -> Source:
        """The source in a file; raises OSError if it cannot be read."""
        return cls(read_text(path), str(path), include_paths)

    def add(self, file: _File) -> int:
        """Puts a file behind what there is; returns the offset at which it begins."""
        begin = len(self.text)
        if begin:
            self._segment_starts.append(begin)
            self._segment_files.append(file)
            self._segment_offsets.append(0)
        else:
            self._segment_files[:] = [file]
        self._files.append(file)
        self.text += file.text
        return begin

    # -------------------------------------------------------------- places

    def location(self, offset: int) -> SourceLocation:
        file, file_offset = self._origin(offset)
        line, column = file.position(file_offset)
        return SourceLocation(file.name, line, column)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, in the file that the character comes from."""
        file, file_offset = self._origin(offset)
        return file.position(file_offset)

    def file(self, offset: int) -> str:
        """Name of the file that the character comes from."""
        return self._origin(offset)[0].name

    def line(self, number: int) -> str:
        """Text of a line of the main file, without its end."""
        return self._files[0].line(number)

    def line_at(self, offset: int) -> str:
        """Text of the line that the character is on, without its end."""
        file, file_offset = self._origin(offset)
        return file.line(file.position(file_offset)[0])

    def offset(self, file: str, line: int, column: int) -> int | None:
        """Where the character at a place is in the text, the first time that the file is in it; None if it is not."""
        for segment, start in enumerate(self._segment_starts):
            origin = self._segment_files[segment]
            index = line - origin.first_line
            if origin.name != file or not 0 <= index < len(origin.line_starts):
                continue
            begin = self._segment_offsets[segment]
            inside = origin.line_starts[index] + column - 1
            last = segment + 1 == len(self._segment_starts)
            end = len(origin.text) if last else begin + self._segment_starts[segment + 1] - start
            if begin <= inside < max(end, begin + 1):
                return start + inside - begin
        return None

    def indexed_at(self, file: str, line: int, column: int) -> str | None:
        """`y[n + 1]`, if what is written at a place is a variable with indices, or a call; None for anything else."""
        start = self.offset(file, line, column)
        name = None if start is None else _NAME.match(self.text, start)
        if name is None:
            return None
        end = name.end()
        while end - name.start() < _LONGEST_INDEXED and (part := _NEXT_PART.match(self.text, end)) is not None:
            depth = 0
            for bracket in _BRACKET.finditer(self.text, part.end() - 1, name.start() + _LONGEST_INDEXED):
                depth += 1 if bracket[0] in "[({" else -1
                if depth == 0:
                    end = bracket.end()
                    break
            else:
                return None
        return " ".join(self.text[name.start() : end].split()) if end > name.end() else None

    def inclusions(self, offset: int) -> list[SourceLocation]:
        """The `#include` directives that brought the character in, innermost first."""
        file, _ = self._origin(offset)
        chain: list[SourceLocation] = []
        while file.parent is not None:
            line, column = file.parent.position(file.included_at)
            chain.append(SourceLocation(file.parent.name, line, column))
            file = file.parent
        return chain

    def _origin(self, offset: int) -> tuple[_File, int]:
        segment = bisect_right(self._segment_starts, offset) - 1
        file = self._segment_files[segment]
        inside = offset - self._segment_starts[segment] + self._segment_offsets[segment]
        return file, min(inside, len(file.text))

    def _readable(self, text: str, start: int, included: tuple[Path, int, int] | None = None) -> str:
        """The text of a file that begins at `start`, without what cannot be read; notes what is wrong with it.

        `included` is its path and the place of the directive.
        """
        problem = problem_of(text)
        if problem is None:
            return text
        at, end, message = start + problem.offset, start + problem.offset + 1, problem.message
        if included is not None and problem.is_fatal:
            path, at, end = included
            message = f"the included file '{path}' cannot be read: {message}"
        self.problems.append(SourceProblem(at, end, message, problem.help, "encoding", is_error=problem.is_fatal))
        return "" if problem.is_fatal else text

    def _read(self, path: Path) -> _Included | None:
        """A file that may be included, read once; None if it does not exist."""
        if path not in self._included:
            self._included[path] = _Included(_absolute(path), read_text(path)) if path.is_file() else None
            if self._included[path] is not None:
                self.included_files.append(path)
        return self._included[path]

    # -------------------------------------------------------------- includes

    def _expand(self, file: _File, folder: Path, active: tuple[Path, ...], pieces: list[str], length: int) -> int:
        """Appends the text of `file` with its includes in place; returns the length of all pieces."""

        def add(piece: str, file_offset: int) -> None:
            nonlocal length
            self._segment_starts.append(length)
            self._segment_files.append(file)
            self._segment_offsets.append(file_offset)
            pieces.append(piece)
            length += len(piece)

        done = 0
        for match in _COMMENT_STRING_OR_INCLUDE.finditer(file.text):
            if match.lastgroup is None:
                continue
            # The line ends keep tokens on both sides of the directive and of the included text apart.
            add(file.text[done : match.end()] + "\n", done)
            done = match.end()
            directive_end = length - 1
            found = self._find(match.group(), folder, active, directive_end - len(match.group()), directive_end)
            if found is not None:
                path, file_read = found
                start = directive_end - len(match.group())
                self._check_limits(len(active), length, start, directive_end)
                text = self._readable(file_read.text, length, (path, start, directive_end))
                included = _File(str(path), text, 1, file, match.start())
                self._files.append(included)
                length = self._expand(included, path.parent, (*active, file_read.resolved), pieces, length)
                add("\n", done)
        add(file.text[done:], done)
        return length

    def _check_limits(self, depth: int, length: int, start: int, end: int) -> None:
        """Ends the inclusion of files that include each other without end, or nearly."""
        limit = None
        if depth > MAX_INCLUDE_DEPTH:
            limit = f"files include one another more than {MAX_INCLUDE_DEPTH} deep"
        elif len(self._files) > MAX_INCLUSIONS:
            limit = f"the program includes more than {MAX_INCLUSIONS} files, counted as often as they are included"
        elif length > MAX_INCLUDED_TEXT + len(self._files[0].text):
            limit = f"the included files have more than {MAX_INCLUDED_TEXT} characters, as often as they are included"
        if limit is not None:
            self.problems.append(SourceProblem(start, end, limit, "include each file once"))
            raise _TooMuchIncluded

    def _find(
        self, directive: str, folder: Path, active: tuple[Path, ...], start: int, end: int
    ) -> tuple[Path, _Included] | None:
        name = directive[len(INCLUDE) :].strip().strip('"<>')
        # As in the reference compiler, `/pre/x.stan` is below the folders searched; only then is it an absolute path.
        relative = name.lstrip("/")
        absolute = (Path(name),) if Path(name).is_absolute() else ()
        for path in dict.fromkeys((folder / relative, *(p / relative for p in self._search), *absolute)):
            try:
                if (found := self._read(path)) is None:
                    continue
            except OSError as error:
                where = name if error.errno == ENAMETOOLONG else path
                message = f"the included file '{where}' cannot be read: {error.strerror}"
                self.problems.append(SourceProblem(start, end, message, None))
                return None
            if found.resolved in active:
                message = f"'{name}' includes itself, directly or through the files that it includes"
                self.problems.append(SourceProblem(start, end, message, None))
                return None
            return path, found
        looked = ", ".join(f"'{p}'" for p in dict.fromkeys((folder, *self._search)))
        message = f"the included file '{name}' was not found"
        self.problems.append(SourceProblem(start, end, message, f"folders searched: {looked}"))
        return None


def _absolute(path: Path) -> Path:
    return path.resolve()
