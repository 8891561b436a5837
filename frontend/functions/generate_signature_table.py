"""Makes `library/signature_table.txt`, the compact form of the list of all library signatures.

    python -m ulam.frontend.functions.generate_signature_table tests/reference/stan_math_signatures_newest.txt

The list has one signature a line, `normal_lpdf(real, real, vector) => real`. The table has one function a line, sorted
by name:

    name TAB data-only arguments TAB result=arguments arguments ...;result=arguments ...

with types as in `type_codes`. `.` stands for no arguments. The second field names arguments that must be data (the
list does not): `5:3,4` means the fourth and fifth of calls with five arguments.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ulam.frontend.functions.type_codes import BASIC_CODES
from ulam.library.signature_table import TABLE

_SIGNATURE = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\) => (?P<result>[^>]*)\Z")
_TOKEN = re.compile(r"array\[(?P<commas>,*)\] |tuple\(|\w+|=>|[(),]|\s+")


def _positions(*numbers: int) -> tuple[int, ...]:
    return numbers


# Which arguments (from 0) of calls with a given number of arguments must be data.
# Source: what stanc3 (2.40) declares as data; the Stan Functions Reference marks most of them `data`.
_ODE = {7: _positions(5, 6), 10: _positions(5, 6, 7, 8, 9)}
_ALGEBRA = {5: _positions(3, 4), 8: _positions(3, 4, 5, 6, 7)}
_LINSPACED = {3: _positions(0, 1, 2)}
DATA_ONLY: dict[str, dict[int, tuple[int, ...]]] = {
    "algebra_solver": _ALGEBRA,
    "algebra_solver_newton": _ALGEBRA,
    "hmm_hidden_state_prob": {3: _positions(0, 1, 2)},
    "integrate_1d": {6: _positions(4, 5), 7: _positions(4, 5, 6)},
    "integrate_ode": _ODE,
    "integrate_ode_adams": _ODE,
    "integrate_ode_bdf": _ODE,
    "integrate_ode_rk45": _ODE,
    "linspaced_array": _LINSPACED,
    "linspaced_int_array": _LINSPACED,
    "linspaced_row_vector": _LINSPACED,
    "linspaced_vector": _LINSPACED,
    "map_rect": {5: _positions(3, 4)},
    "quantile": {2: _positions(0, 1)},
    "to_int": {1: _positions(0)},
    "wiener_lccdf_unnorm": {6: _positions(5), 9: _positions(8)},
    "wiener_lcdf_unnorm": {6: _positions(5), 9: _positions(8)},
    "wiener_lpdf": {7: _positions(6), 9: _positions(8)},
}


class _TypeText:
    """Reads types from Stan's notation and writes their codes."""

    def __init__(self, text: str) -> None:
        self.tokens = [m for m in _TOKEN.finditer(text) if not m.group().isspace()]
        self.position = 0

    def codes(self) -> str:
        """The codes of a comma-separated list, up to the end or to a closing parenthesis."""
        parts = []
        while self.position < len(self.tokens) and self.tokens[self.position].group() != ")":
            token = self.tokens[self.position].group()
            if token == ",":
                self.position += 1
            elif token == "data":
                self.position += 1
                parts.append("!")
            else:
                parts.append(self.code())
        return "".join(parts)

    def code(self) -> str:
        """The code of the one type that begins here."""
        match = self.tokens[self.position]
        token = match.group()
        self.position += 1
        if match.group("commas") is not None:
            return f"{len(match.group('commas')) + 1}{self.code()}"
        if token == "tuple(":
            inner = self.codes()
            self.position += 1
            return f"({inner})"
        if token == "(":
            inner = self.codes()
            self.position += 2  # `)` and `=>`
            return f"<{inner}>{self.code()}"
        return BASIC_CODES[token]


def table_lines(signatures: str) -> list[str]:
    """The lines of the table, from the text of the list."""
    functions: dict[str, dict[str, list[str]]] = {}
    codes: dict[str, str] = {}
    for line in signatures.splitlines():
        match = _SIGNATURE.match(line)
        if match is None:
            raise ValueError(f"not a signature: {line!r}")
        texts = match.group("arguments"), match.group("result")
        for text in texts:
            if text not in codes:
                codes[text] = _TypeText(text).codes()
        results = functions.setdefault(match.group("name"), {})
        results.setdefault(codes[texts[1]], []).append(codes[texts[0]] or ".")
    return [_line(name, functions[name]) for name in sorted(functions)]


def _line(name: str, results: dict[str, list[str]]) -> str:
    data_only = ";".join(
        f"{arity}:{','.join(map(str, positions))}" for arity, positions in DATA_ONLY.get(name, {}).items()
    )
    groups = ";".join(f"{result}={' '.join(arguments)}" for result, arguments in results.items())
    return f"{name}\t{data_only}\t{groups}"


def write_table(signatures: Path, table: Path = TABLE) -> None:
    """Reads the list and writes the table."""
    table.write_text("\n".join(table_lines(signatures.read_text())) + "\n")


if __name__ == "__main__":
    write_table(Path(sys.argv[1]), *map(Path, sys.argv[2:3]))
