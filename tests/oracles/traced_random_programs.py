"""Random functions with nested branches, loops, recursion, draws and arrays, and an interpreter that logs what they do.

A program is a tree of tuples, written as Stan by `stan_text` and executed by `Oracle`, which shares no code with the
compiler or the tracer. Only operations with one right result are used: no functions that may be rounded.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

INT_MIN = -(2**31)
FUEL = 3000
"""Ops after which a program is given up."""


class OutOfFuel(Exception):
    """The program runs for too long."""


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


# ---------------------------------------------------------------- programs


class Generator:
    """Functions `g0_rng(int n, real x, array[] int w)`, ...; each may call itself and those before it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions: list[str] = []

    def program(self) -> list[tuple[str, list[Any]]]:
        made: list[tuple[str, list[Any]]] = []
        for n in range(self.random.randint(1, 3)):
            name = f"g{n}_rng"
            self.functions.append(name)
            made.append((name, self.body()))
        return made

    def body(self) -> list[Any]:
        self.ints, self.reals = ["n"], ["x"]
        self.counters: list[str] = []
        self.names = 0
        first = [("if", ("<=", ("var", "n"), ("int", 0)), [("return", ("*", ("var", "x"), ("real", 0.5)))], None)]
        return [
            *first, ("declare_array", "a", "int"), ("declare_array", "b", "real"),
            *self.block(self.random.randint(3, 6), 3, False), ("return", self.real(2)),
        ]  # fmt: skip

    def block(self, count: int, depth: int, in_loop: bool) -> list[Any]:
        ints, reals = list(self.ints), list(self.reals)
        statements = [self.statement(depth, in_loop) for _ in range(count)]
        self.ints, self.reals = ints, reals
        return statements

    def fresh(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def assignable(self, names: list[str], fixed: Sequence[str]) -> list[str]:
        return [name for name in names if name not in fixed and name not in self.counters]

    def statement(self, depth: int, in_loop: bool) -> Any:
        pick = self.random.choice
        kinds = ["int", "real", "int", "real", "assign", "assign", "element", "element_real"]
        if depth > 0:
            kinds += ["if", "if", "for", "while", "foreach"]
        if in_loop:
            kinds += ["break", "continue"]
        kind = pick(kinds)
        if kind == "int":
            value, name = self.int(2), self.fresh("k")
            self.ints.append(name)
            return ("declare", "int", name, value)
        if kind == "real":
            value, name = self.real(2), self.fresh("s")
            self.reals.append(name)
            return ("declare", "real", name, value if self.random.random() < 0.9 else None)
        if kind == "assign":
            ints, reals = self.assignable(self.ints, ("n",)), self.assignable(self.reals, ("x",))
            if reals and (not ints or self.random.random() < 0.5):
                return ("assign", pick(reals), self.real(2), self.random.random() < 0.3)
            if ints:
                return ("assign", pick(ints), self.int(2), self.random.random() < 0.3)
            kind = "element"
        if kind == "element":
            return ("element", "a", self.position(), self.int(2))
        if kind == "element_real":
            return ("element", "b", self.position(), self.real(2))
        if kind == "if":
            otherwise = (
                self.block(self.random.randint(1, 2), depth - 1, in_loop) if self.random.random() < 0.5 else None
            )
            then = self.block(self.random.randint(1, 3), depth - 1, in_loop)
            if self.random.random() < 0.15:
                then.append(("return", self.real(1)))
            return ("if", self.condition(2), then, otherwise)
        if kind == "for":
            name = self.fresh("i")
            low, high = self.int(1), pick([("int", pick([0, 1, 3])), ("%", self.int(1), ("int", 4))])
            self.ints.append(name)
            self.counters.append(name)
            body = self.block(self.random.randint(1, 3), depth - 1, True)
            self.ints.remove(name)
            return ("for", name, ("%", low, ("int", 3)), high, body)
        if kind == "foreach":
            name = self.fresh("e")
            over = pick(["w", "a", "b"])
            (self.reals if over == "b" else self.ints).append(name)
            self.counters.append(name)
            body = self.block(self.random.randint(1, 3), depth - 1, True)
            (self.reals if over == "b" else self.ints).remove(name)
            return ("foreach", name, over, body)
        if kind == "while":
            name = self.fresh("c")
            self.ints.append(name)
            self.counters.append(name)
            body = self.block(self.random.randint(1, 2), depth - 1, True)
            self.ints.remove(name)
            return ("while", name, self.condition(1), self.random.randint(1, 4), body)
        return (kind, self.condition(1))

    def position(self) -> Any:
        """An index from 1 to 3."""
        return pick_position(self)

    def int(self, depth: int) -> Any:
        pick = self.random.choice
        kinds = ["literal", "var", "var"] + ["+", "-", "*", "%", "neg", "?:", "index", "size"] * (depth > 0)
        kind = pick(kinds)
        if kind == "literal":
            return ("int", self.random.randint(0, 5))
        if kind == "var":
            return ("var", pick(self.ints))
        if kind == "%":
            return ("%", self.int(depth - 1), ("int", self.random.randint(2, 7)))
        if kind == "neg":
            return ("neg", ("var", pick(self.ints)))
        if kind == "?:":
            return ("?:", self.condition(depth - 1), self.int(depth - 1), self.int(depth - 1))
        if kind == "index":
            return ("index", pick(["a", "w"]), self.position())
        if kind == "size":
            return ("size", "w")
        return (kind, self.int(depth - 1), self.int(depth - 1))

    def real(self, depth: int) -> Any:
        pick = self.random.choice
        kinds = ["literal", "var", "var"] + ["+", "-", "*", "neg", "?:", "index", "draw", "call", "abs", "mixed"] * (
            depth > 0
        )
        kind = pick(kinds)
        if kind == "literal":
            return ("real", self.random.choice([0.5, 1.25, 2.0, 0.1]))
        if kind == "var":
            return ("var", pick(self.reals))
        if kind == "neg":
            return ("neg", ("var", pick(self.reals)))
        if kind == "?:":
            return ("?:", self.condition(depth - 1), self.real(depth - 1), self.real(depth - 1))
        if kind == "index":
            return ("index", "b", self.position())
        if kind == "draw":
            return ("draw",)
        if kind == "abs":
            return ("abs", self.real(depth - 1))
        if kind == "mixed":
            return (pick(["+", "*"]), self.real(depth - 1), self.int(depth - 1))
        if kind == "call":
            return (
                "call",
                pick(self.functions),
                ("-", ("var", "n"), ("int", self.random.randint(1, 3))),
                self.real(depth - 1),
            )
        return (kind, self.real(depth - 1), self.real(depth - 1))

    def condition(self, depth: int) -> Any:
        pick = self.random.choice
        kind = pick(["ints", "ints", "reals", "reals"] + ["&&", "||", "!"] * (depth > 0))
        compare = pick(["<", "<=", ">", ">=", "==", "!="])
        if kind == "ints":
            return (compare, self.int(1), self.int(0))
        if kind == "reals":
            return (compare, self.real(1), self.real(0))
        if kind == "!":
            return ("!", self.condition(depth - 1))
        return (kind, self.condition(depth - 1), self.condition(depth - 1))


def pick_position(generator: Generator) -> Any:
    """A literal, or 1 + abs(k) % 3."""
    if generator.random.random() < 0.5:
        return ("int", generator.random.randint(1, 3))
    return ("+", ("int", 1), ("%", ("abs", ("var", generator.random.choice(generator.ints))), ("int", 3)))


# ---------------------------------------------------------------- as Stan


def stan_text(program: list[tuple[str, list[Any]]]) -> str:
    """The functions block of a program."""
    lines = ["functions {"]
    for name, body in program:
        lines.append(f"  real {name}(int n, real x, array[] int w) {{")
        lines += _statements(body, "    ")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _statements(statements: list[Any], indent: str) -> list[str]:
    lines: list[str] = []
    deeper = indent + "  "
    for statement in statements:
        match statement:
            case ("declare", kind, name, value):
                lines.append(f"{indent}{kind} {name}" + (f" = {_text(value)};" if value is not None else ";"))
            case ("declare_array", name, kind):
                lines.append(f"{indent}array[3] {kind} {name};")
            case ("assign", name, value, compound):
                lines.append(f"{indent}{name} {'+=' if compound else '='} {_text(value)};")
            case ("element", name, position, value):
                lines.append(f"{indent}{name}[{_text(position)}] = {_text(value)};")
            case ("if", condition, then, otherwise):
                lines += [f"{indent}if ({_text(condition)}) {{", *_statements(then, deeper)]
                if otherwise is not None:
                    lines += [f"{indent}}} else {{", *_statements(otherwise, deeper)]
                lines.append(indent + "}")
            case ("for", name, low, high, body):
                lines.append(f"{indent}for ({name} in {_text(low)}:{_text(high)}) {{")
                lines += [*_statements(body, deeper), indent + "}"]
            case ("foreach", name, over, body):
                lines += [f"{indent}for ({name} in {over}) {{", *_statements(body, deeper), indent + "}"]
            case ("while", name, condition, most, body):
                lines.append(f"{indent}int {name} = 0;")
                lines.append(f"{indent}while ({name} < {most} && {_text(condition)}) {{")
                lines += [f"{deeper}{name} = {name} + 1;", *_statements(body, deeper), indent + "}"]
            case ("break" | "continue" as exit_, condition):
                lines.append(f"{indent}if ({_text(condition)}) {exit_};")
            case ("return", value):
                lines.append(f"{indent}return {_text(value)};")
    return lines


def _text(tree: Any) -> str:
    match tree:
        case ("int", value) | ("real", value) | ("var", value):
            return str(value)
        case ("neg", value):
            return f"(-{_text(value)})"
        case ("!", value):
            return f"(!{_text(value)})"
        case ("abs", value):
            return f"abs({_text(value)})"
        case ("?:", condition, then, otherwise):
            return f"({_text(condition)} ? {_text(then)} : {_text(otherwise)})"
        case ("index", name, position):
            return f"{name}[{_text(position)}]"
        case ("size", name):
            return f"size({name})"
        case ("draw",):
            return "uniform_rng(0, 1)"
        case ("call", name, n, x):
            return f"{name}({_text(n)}, {_text(x)}, w)"
        case (operator, left, right):
            return f"({_text(left)} {operator} {_text(right)})"
    raise AssertionError(tree)


# ---------------------------------------------------------------- the oracle


def wrap(value: int) -> int:
    """Stan's int: 32 bits."""
    return (value - INT_MIN) % 2**32 + INT_MIN


class Oracle:
    """Runs a program; `log` has `("op", name, value)`, `("enter", name)`, `("branch", holds)` in order."""

    def __init__(self, program: list[tuple[str, list[Any]]], draws: Sequence[float]) -> None:
        self.bodies = dict(program)
        self.draws = iter(draws)
        self.log: list[tuple[Any, ...]] = []
        self.fuel = FUEL

    def note(self, *event: Any) -> Any:
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel
        self.log.append(event)
        return event[-1]

    def call(self, name: str, n: int, x: float, w: list[int]) -> float:
        variables: dict[str, Any] = {"n": n, "x": x, "w": w}
        try:
            self.block(self.bodies[name], variables)
        except _Return as leave:
            return float(leave.value)
        raise AssertionError("a function ends in return")

    def block(self, statements: list[Any], v: dict[str, Any]) -> None:
        for statement in statements:
            self.statement(statement, v)

    def statement(self, statement: Any, v: dict[str, Any]) -> None:
        match statement:
            case ("declare", kind, name, value):
                v[name] = math.nan if value is None else self.value(value, v)
                v[name] = float(v[name]) if kind == "real" else v[name]
            case ("declare_array", name, kind):
                v[name] = [INT_MIN if kind == "int" else math.nan] * 3
            case ("assign", name, value, compound):
                before = v[name]
                new = self.value(value, v)
                new = self.operator("+", before, new) if compound else new
                v[name] = float(new) if isinstance(before, float) else new
            case ("element", name, position, value):
                at, new = self.element(position, value, v)
                v[name] = [*v[name][: at - 1], float(new) if name == "b" else new, *v[name][at:]]
                self.note("op", "index_assign", list(v[name]))
            case ("if", condition, then, otherwise):
                if self.branch(self.value(condition, v)):
                    self.block(then, v)
                elif otherwise is not None:
                    self.block(otherwise, v)
            case ("for", name, low, high, body):
                self.counted(self.value(low, v), self.value(high, v), body, v, name)
            case ("foreach", name, over, body):
                self.each(v[over], body, v, name)
            case ("while", name, condition, most, body):
                v[name] = 0
                self.loop(name, condition, most, body, v)
            case ("break", condition):
                if self.branch(self.value(condition, v)):
                    raise _Break
            case ("continue", condition):
                if self.branch(self.value(condition, v)):
                    raise _Continue
            case ("return", value):
                raise _Return(self.value(value, v))

    def element(self, position: Any, value: Any, v: dict[str, Any]) -> tuple[int, Any]:
        return self.index(position, v), self.value(value, v)

    def index(self, position: Any, v: dict[str, Any]) -> int:
        """Of the smallest int even abs is negative: such a program is given up."""
        at = self.value(position, v)
        if not 1 <= at <= 3:
            raise OutOfFuel
        return at

    def branch(self, condition: Any) -> bool:
        return self.note("branch", bool(condition))

    def counted(self, low: int, high: int, body: list[Any], v: dict[str, Any], name: str) -> None:
        i = low
        while True:
            if not self.branch(self.note("op", "<=", int(i <= high))):
                return
            v[name] = i
            try:
                self.block(body, v)
            except _Break:
                return
            except _Continue:
                pass
            i = self.note("op", "+", i + 1)

    def each(self, elements: list[Any], body: list[Any], v: dict[str, Any], name: str) -> None:
        at = 1
        while True:
            if not self.branch(self.note("op", "next", int(at <= len(elements)))):
                return
            v[name] = self.note("op", "element", elements[at - 1])
            try:
                self.block(body, v)
            except _Break:
                return
            except _Continue:
                pass
            at = self.note("op", "+", at + 1)

    def loop(self, name: str, condition: Any, most: int, body: list[Any], v: dict[str, Any]) -> None:
        while True:
            if not self.branch(self.both(lambda: self.operator("<", v[name], most), lambda: self.value(condition, v))):
                return
            v[name] = self.operator("+", v[name], 1)
            try:
                self.block(body, v)
            except _Break:
                return
            except _Continue:
                pass

    def both(self, left: Any, right: Any) -> int:
        return int(bool(right())) if self.branch(left()) else 0

    def operator(self, name: str, a: Any, b: Any) -> Any:
        exact = {
            "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "%": lambda: int(math.fmod(a, b)),
            "<": lambda: int(a < b), "<=": lambda: int(a <= b), ">": lambda: int(a > b), ">=": lambda: int(a >= b),
            "==": lambda: int(a == b), "!=": lambda: int(a != b),
        }[name]()  # fmt: skip
        if name not in ("+", "-", "*"):
            return self.note("op", name, exact)
        if isinstance(a, float) or isinstance(b, float):
            return self.note("op", name, float(exact))
        return self.note("op", name, wrap(exact))

    def value(self, tree: Any, v: dict[str, Any]) -> Any:
        match tree:
            case ("int", value) | ("real", value):
                return value
            case ("var", name):
                return v[name]
            case ("neg", value):
                operand = self.value(value, v)
                return self.note("op", "-", wrap(-operand) if isinstance(operand, int) else -operand)
            case ("!", value):
                return self.note("op", "!", int(not self.value(value, v)))
            case ("abs", value):
                operand = self.value(value, v)
                return self.note("op", "abs", wrap(abs(operand)) if isinstance(operand, int) else abs(operand))
            case ("?:", condition, then, otherwise):
                return self.value(then if self.branch(self.value(condition, v)) else otherwise, v)
            case ("index", name, position):
                return self.note("op", "index", v[name][self.index(position, v) - 1])
            case ("size", name):
                return self.note("op", "size", len(v[name]))
            case ("draw",):
                return self.note("op", "uniform_rng", next(self.draws))
            case ("call", name, n, x):
                passed = (self.value(n, v), float(self.value(x, v)), v["w"])
                self.note("enter", name)
                return self.note("op", name, self.call(name, *passed))
            case ("&&", left, right):
                return self.both(lambda: self.value(left, v), lambda: self.value(right, v))
            case ("||", left, right):
                if self.branch(self.value(left, v)):
                    return 1
                return int(bool(self.value(right, v)))
            case (operator, left, right):
                return self.operator(operator, self.value(left, v), self.value(right, v))
        raise AssertionError(tree)
