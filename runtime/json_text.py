"""JSON that is written: numbers that JSON does not have are strings, those of Stan's data format, which reads them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def number_name(value: float) -> str:
    """How a number that is not finite is written."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: Any) -> Any:
    """The value of dictionaries, lists, strings, finite numbers and None only; what is anything else, as its text."""
    if isinstance(value, float):  # NumPy's, too
        return float(value) if math.isfinite(value) else number_name(value)
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # NumPy's arrays and other scalars
        return plain(value.tolist())
    if isinstance(value, Sequence):
        return [plain(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return str(value)


def json_line(value: Any) -> str:
    """The value as JSON on one line, without its end."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def json_page(value: Any) -> str:
    """The value as JSON on lines of their own, with the end of the last."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
