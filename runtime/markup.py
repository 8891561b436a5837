"""Text within HTML and SVG."""

from __future__ import annotations

import re
from html import escape

_NO_CHARACTER = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def markup(text: str) -> str:
    """As text or attribute of HTML or XML, which cannot have most control characters."""
    return escape(_NO_CHARACTER.sub("\ufffd", text))
