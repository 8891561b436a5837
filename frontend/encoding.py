"""Files of text: Stan programs and their includes are UTF-8, and what is not is told once, with the mend.

Also for data files, so nothing of the frontend is imported here.
"""

from __future__ import annotations

import codecs
import os

from ulam.library.records import record

_SAMPLE = 4000  # characters that are looked at to tell what a file is
REPLACEMENT = "\ufffd"
"""What stands for bytes that are not UTF-8."""
_NOT_PRINTABLE = dict.fromkeys((*range(0x09), *range(0x0E, 0x20), 0x7F, ord(REPLACEMENT)))

INCLUDE = "#include"
"""How the directive begins that brings another file into a program."""

NOT_UTF8 = "this is not UTF-8 text, but perhaps Latin-1"
SAVE_AS_UTF8 = "save it as UTF-8; `iconv -f {} -t UTF-8 FILE` converts it"


@record(frozen=True, slots=True)
class TextProblem:
    """What is wrong with a file as a whole; `is_fatal`: nothing in it can be read."""

    message: str
    help: str
    is_fatal: bool
    offset: int = 0


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file; bytes that are not UTF-8 are `REPLACEMENT`s. Raises OSError."""
    with open(path, "rb") as file:
        return decoded(file.read())


def decoded(data: bytes) -> str:
    """Bytes as text, without a byte order mark of UTF-8."""
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")


def problem_of(text: str) -> TextProblem | None:
    """What keeps a text from being a program: another encoding, or no text at all."""
    sample = text[:_SAMPLE]
    if "\0" in sample and _is_wide(sample.lstrip(REPLACEMENT)):
        return TextProblem("this is UTF-16 text, and Stan programs are UTF-8", SAVE_AS_UTF8.format("UTF-16"), True)
    if len(sample) - len(sample.translate(_NOT_PRINTABLE)) > max(2, len(sample) // 10):
        return TextProblem("this is not text", "is it the file that was meant? A Stan program is UTF-8 text", True)
    if (first := text.find(REPLACEMENT)) >= 0:
        return TextProblem(NOT_UTF8, SAVE_AS_UTF8.format("ISO-8859-1"), False, first)
    return None


def _is_wide(sample: str) -> bool:
    """Whether every second character is NUL, or nearly: two bytes for each letter."""
    if len(sample) < 8:
        return False
    shares = sorted(part.count("\0") / max(1, len(part)) for part in (sample[::2], sample[1::2]))
    return shares[0] < 0.1 and shares[1] > 0.4
