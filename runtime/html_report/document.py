"""An HTML document that is complete: one file with its style, its script and its data.

Nothing of it is fetched: there are no fonts, images or scripts of elsewhere, and the page forbids them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from ulam.runtime.markup import markup

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'"
"""Nothing may be fetched and no script but the page's own runs, whatever stands in it."""

_IN_A_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What could end the element that data stand in, as JSON writes it otherwise."""


def document(
    title: str, head: str, body: str, *, written_by: str, styles: Sequence[str], script: str, data: Any = None
) -> str:
    """The text of the file. `head` and `body` are markup; `styles` and `script` name files of this folder.

    `data` is what the script reads, as JSON in the element `data`, which browsers do not run.
    """
    style = "".join(f"\n{_resource(name)}" for name in styles)
    code = f"\n{_resource(script)}"
    policy = POLICY.format(b64encode(sha256(code.encode()).digest()).decode())
    text = "" if data is None else json.dumps(data, separators=(",", ":")).translate(_IN_A_SCRIPT)
    given = f'<script type="application/json" id="data">{text}</script>\n' if text else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{markup(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#content">To the contents</a>\n<header class="top">\n{head}</header>\n'
        f'<main id="content">\n{body}\n</main>\n<footer>Written by <code>{written_by}</code>. This file is complete: '
        f"it needs no other, and no network.</footer>\n{given}<script>{code}</script>\n</body>\n</html>\n"
    )


def _resource(name: str) -> str:
    return files("ulam.runtime.html_report").joinpath(name).read_text(encoding="utf-8")
