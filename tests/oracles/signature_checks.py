"""Programs that make calls of library functions one at a time, and what is wrong with their values and gradients.

A parameter, `which`, says which call is made, so one compiled program serves for many; their arguments are parameters,
too, shared by all calls whose arguments have the same type, and ints are found from reals. Of results that are
containers the value is a weighted sum; the weights of a base begin where its elements do in the container.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import product

import numpy as np
from signature_values import (
    DRAWN_ROWS,
    Plan,
    Values,
    candidates,
    container,
    direction,
    element,
    from_parameter_order,
    in_parameter_order,
    inner_of,
    is_plain,
    plan,
    rank_of,
    scalar_in,
    shape_of_loop,
    templates,
)

import ulam
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.functions.type_codes import code_of
from ulam.frontend.stan_types import COMPLEX, INT, REAL, ArrayType, StanType
from ulam.library.functions import FunctionKind, named
from ulam.runtime.errors import ProgramError

IN_A_PROGRAM = 24
VALUE_TOLERANCE = 1e-11
GRADIENT_TOLERANCE = 1e-9
DIFFERENCE_TOLERANCE = 1e-5
STEP = 1e-5
WIDE_STEP = 1e-3
"""For differences of gradients that are sums of series: their last digits would be divided by the shorter step."""
SMALL = 1e-3
"""Values below count as if they were this large: entries may cancel in the sum of a container."""
HIGHEST_RANK = 7
"""Of arrays of ints: the highest whose size programs can ask for."""
POINTS = 5
"""At so many a difference may be wrong, for rounding or the border of a domain, before it counts."""
NO_ARGUMENTS = "no arguments were found for which it has a finite value"

WHOLE = "int whole(real x) { int n = -1100; while (n < x - 0.5) n += 1; return n; }"


class CallProgram:
    """Calls in one program. `shapes[k]` are those of the arguments of call k, as arrays by dimension."""

    def __init__(self, signatures: Sequence[Signature], shapes: Sequence[Sequence[tuple[int, ...]]]) -> None:
        self.signatures, self.shapes = signatures, shapes
        self.slots: dict[str, tuple[StanType, tuple[int, ...]]] = {}
        self.arguments = [self._place(s, of) for s, of in zip(signatures, shapes, strict=True)]
        self.places: dict[str, slice] = {}
        start = 3
        for name, (_, shape) in self.slots.items():
            self.places[name] = slice(start, start + math.prod(shape))
            start = self.places[name].stop
        self.size = start
        self.model = ulam.StanModel(self.text(), opt_level=0)

    def _place(self, signature: Signature, shapes: Sequence[tuple[int, ...]]) -> list[str]:
        names: list[str] = []
        for type_, shape in zip(signature.arguments, shapes, strict=True):
            stem = f"{code_of(type_)}_{'_'.join(map(str, shape))}"
            name = f"a{sum(n.startswith(f'a{stem}_n') for n in names)}"
            names.append(f"a{stem}_n{name[1:]}")
            self.slots[names[-1]] = (type_, shape)
        return names

    def text(self) -> str:
        functions = {WHOLE: None}
        declarations, ints = [], []
        for name, (type_, shape) in self.slots.items():
            parameter = name
            if scalar_in(type_) == INT:
                parameter = f"r{name}"
                ints.append(f"{_declared(type_, shape)} {name} = whole({parameter});")
                functions |= dict.fromkeys(_whole(n + 1) for n in range(rank_of(type_)))
                type_ = _of_reals(type_)
            declarations.append(f"{_declared(type_, shape)} {parameter};")
        statements: dict[bool, list[str]] = {True: [], False: []}
        for number, (signature, names) in enumerate(zip(self.signatures, self.arguments, strict=True)):
            functions |= dict.fromkeys(_weighted_sum(signature.result))
            call = _call(signature.name, names)
            is_random = named(signature.name).kind is FunctionKind.RNG
            statements[is_random].append(f"if (which == {number}) value = weighted({call}, first, count);")
        random = statements[True]
        return "\n".join([
            "functions {", *functions, "}", "parameters { real which; real first; real count;", *declarations, "}",
            "transformed parameters { real value = 0; {", *([] if random else ints), *statements[False], "} }",
            "model { target += value; }",
            "generated quantities { real drawn = 0; {", *(ints if random else []),
            *(s.replace(" value = ", " drawn = ") for s in random), "} }",
        ])  # fmt: skip

    def point(self, number: int, values: Sequence[Values], offset: int = 0, count: int = 0) -> Values:
        theta = np.zeros(self.size)
        theta[:3] = number, offset, count
        for name, type_, value in zip(self.arguments[number], self.signatures[number].arguments, values, strict=True):
            theta[self.places[name]] = in_parameter_order(type_, np.asarray(value))
        return theta

    def value(self, theta: Values) -> float:
        try:
            return self.model.log_density(theta, propto=False)
        except ProgramError:
            return math.nan

    def value_and_gradient(self, theta: Values) -> tuple[float, Values]:
        try:
            value, gradient = self.model.log_density_gradient(theta, propto=False)
        except ProgramError:
            return math.nan, np.full(theta.size, math.nan)
        return value, np.array(gradient)

    def drawn(self, theta: Values, rng: object) -> float:
        try:
            return float(self.model.param_constrain(theta, include_gq=True, rng=rng)[-1])  # type: ignore[arg-type]
        except ProgramError:
            return math.nan

    def gradients(self, number: int, gradient: Values) -> list[Values]:
        """With respect to each argument, by dimension."""
        found = []
        for name, type_, shape in zip(
            self.arguments[number], self.signatures[number].arguments, self.shapes[number], strict=True
        ):
            found.append(from_parameter_order(type_, gradient[self.places[name]], shape))
        return found


# ---------------------------------------------------------------- text


def _declared(type_: StanType, shape: tuple[int, ...]) -> str:
    """`array[2, 3] vector[2]`; the parts of complex numbers are no dimension."""
    inner = inner_of(type_)
    shape = shape[:-1] if scalar_in(type_) == COMPLEX else shape
    rank = type_.rank if isinstance(type_, ArrayType) else 0
    outer = f"array[{', '.join(map(str, shape[:rank]))}] " if rank else ""
    own = f"[{', '.join(map(str, shape[rank:]))}]" if shape[rank:] else ""
    return f"{outer}{inner}{own}"


def _of_reals(type_: StanType) -> StanType:
    return ArrayType(type_.rank, REAL) if isinstance(type_, ArrayType) else REAL


def _whole(rank: int) -> str:
    commas = "," * (rank - 1)
    sizes = ", ".join(f"dims(x)[{n + 1}]" for n in range(rank))
    return (
        f"array[{commas}] int whole(array[{commas}] real x) {{ array[{sizes}] int n; "
        f"for (i in 1:size(x)) n[i] = whole(x[i]); return n; }}"
    )


def _call(name: str, arguments: Sequence[str]) -> str:
    bar = named(name).kind.is_probability and len(arguments) > 1
    joined = f"{arguments[0]} | {', '.join(arguments[1:])}" if bar else ", ".join(arguments)
    return f"{name}({joined})"


@cache
def _weighted_sum(type_: StanType) -> tuple[str, ...]:
    """`weighted(x, first, count)`: the entries of a result by the weights 1, 1.1, 1.2, ...; or how many there are."""
    rank = type_.rank if isinstance(type_, ArrayType) else 0
    loops, name = "", "x"
    for depth in range(rank):
        loops, name = f"{loops}for (x{depth} in {name}) ", f"x{depth}"
    own = rank_of(type_) - rank
    if own == 2:
        loops, name = f"{loops}for (i in 1:rows({name})) for (j in 1:cols({name})) ", f"{name}[i, j]"
    elif own == 1:
        loops, name = f"{loops}for (i in 1:num_elements({name})) ", f"{name}[i]"
    parts = [f"get_real({name})", f"get_imag({name})"] if scalar_in(type_) == COMPLEX else [name]
    body = " ".join(f"total += (1 + 0.1 * (n + first)) * {part}; n += 1;" for part in parts)
    return (
        f"real weighted({type_} x, real first, real count) {{ int n = 0; real total = 0; {loops}{{ {body} }} "
        "if (count > 0) return n * count; return total; }",
    )


# ---------------------------------------------------------------- checks


def problems(overloads: Iterable[Signature], differences: Differences | None = None, seed: int = 0) -> list[str]:
    """What is wrong with these overloads, those that cannot be tried left out (see `can_be_tried`).

    `differences` are those that derivatives are compared with: `difference_problems`, `second_difference_problems`.
    With a seed they are called at points drawn around those of the tables, where they have values there.
    """
    differences = differences or difference_problems
    plans = [plan(s) for s in overloads]
    found: list[str] = []
    for is_random in (False, True):
        group = [p for p in plans if p.is_random is is_random]
        for start in range(0, len(group), IN_A_PROGRAM):
            found += _problems(group[start : start + IN_A_PROGRAM], differences, seed)
    return found


def can_be_tried(signature: Signature) -> bool:
    """Whether the arguments may be parameters: neither functions nor tuples, nothing that must be data."""
    if signature.data_only or not all(map(is_plain, (*signature.arguments, signature.result))):
        return False
    return all(rank_of(a) <= HIGHEST_RANK for a in signature.arguments if scalar_in(a) == INT)


def _problems(plans: Sequence[Plan], differences: Differences, seed: int) -> list[str]:
    with_base = [p for p in plans if p.base is not None]
    alone = [p for p in plans if p.base is None]
    found: list[str] = []
    if with_base:
        bases = list(dict.fromkeys((p.signature.name, p.base) for p in with_base))
        base_program = _base_program(bases)
        shapes = [[v.shape for v in _arguments(p, next(candidates(p)), True)[0]] for p in with_base]
        program = CallProgram([p.signature for p in with_base], shapes)
        for number, made in enumerate(with_base):
            check = Comparison(program, number, base_program, bases.index((made.signature.name, made.base)), made, seed)
            found += [f"{made.signature}: {problem}" for problem in check.problems(differences)]
    if alone:
        values = [templates(p.signature.name, p.signature.arguments, seed) for p in alone]
        found += _problems_alone(alone, values, differences)
    return found


@cache
def _result_of(name: str, types: tuple[StanType, ...]) -> Signature:
    from ulam.frontend.functions.signatures import unique_cheapest

    signature = unique_cheapest(name, types)
    assert signature is not None
    return signature


def _base_program(bases: Sequence[tuple[str, tuple[StanType, ...] | None]]) -> CallProgram:
    of_bases = [_result_of(name, types) for name, types in bases if types is not None]
    return CallProgram(of_bases, [[v.shape for v in templates(s.name, s.arguments)[0]] for s in of_bases])


def _arguments(
    made: Plan, row: tuple[Values, ...], ints_too: bool
) -> tuple[list[Values], list[list[Values]], tuple[int, ...]]:
    """The arguments of the overload, those of the base for each of its elements, and the dimensions of these."""
    assert made.base is not None
    shape = shape_of_loop(made)
    types = made.signature.arguments
    rows = [element(row, types, n, ints_too) for n in range(math.prod(shape))]
    looped = [rank_of(t) > rank_of(b) for t, b in zip(types, made.base, strict=True)]
    of_base = [[r[j] if looped[j] else rows[0][j] for j in range(len(types))] for r in rows]
    passed = [
        container(t, b, [r[j] for r in of_base] if looped[j] else [rows[0][j]], shape)
        for j, (t, b) in enumerate(zip(types, made.base, strict=True))
    ]
    return passed, of_base, shape


class Comparison:
    """One overload against its base."""

    def __init__(
        self, program: CallProgram, number: int, base: CallProgram, base_number: int, made: Plan, seed: int
    ) -> None:
        self.program, self.number, self.base, self.base_number, self.made = program, number, base, base_number, made
        self.seed = seed
        self.kind = named(made.signature.name).kind

    def problems(self, differences: Differences) -> list[str]:
        """At the first arguments for which the base has finite values; differences may be out of reach there."""
        differing: list[str] = []
        infinite: tuple[float, float] | None = None
        tried = 0
        for row, ints_too in product(candidates(self.made, self.seed), (True, False)):
            passed, of_base, shape = _arguments(self.made, row, ints_too)
            if any(v.shape != s for v, s in zip(passed, self.program.shapes[self.number], strict=True)):
                continue
            theta = self.program.point(self.number, passed)
            if self.kind is FunctionKind.RNG:
                wanted = self._drawn(of_base)
                if math.isnan(wanted):
                    continue
                found = self.program.drawn(theta, self.program.model.new_rng(7))
                same = found == wanted or abs(found - wanted) <= VALUE_TOLERANCE * abs(wanted)
                return [] if same else [f"draws {found}, one by one {wanted}"]
            expected = self._expected(of_base, shape)
            if expected is None:
                if infinite is None or math.isnan(infinite[0]):
                    infinite = self._infinite(of_base), self.program.value(theta)
                continue
            tried += 1
            if problems := self._value_problems(theta, *expected):
                return problems
            differing = differences(self.program, self.number, theta, passed)
            if not differing or tried == POINTS:
                return differing
        if tried or infinite is None:
            return differing if tried else [NO_ARGUMENTS]
        wanted, found = infinite
        return [] if found == wanted else [NO_ARGUMENTS if math.isnan(wanted) else f"{found}, by its elements {wanted}"]

    def _infinite(self, of_base: list[list[Values]]) -> float:
        """The value where there is no finite one."""
        values = [self.base.value(self.base.point(self.base_number, row)) for row in of_base]
        return math.nan if math.inf in values and -math.inf in values else sum(values)

    def _drawn(self, of_base: list[list[Values]]) -> float:
        rng = self.base.model.new_rng(7)
        total, offset = 0.0, 0
        for row in of_base:
            counting = self.base.point(self.base_number, row, count=1)
            length = self.base.drawn(counting, self.base.model.new_rng(1))
            if not math.isfinite(length):
                return math.nan
            total += self.base.drawn(self.base.point(self.base_number, row, offset), rng)
            offset += int(length)
        return total

    def _expected(
        self, of_base: list[list[Values]], shape: tuple[int, ...]
    ) -> tuple[float, list[Values], float] | None:
        """Value and gradients by argument as they follow from the base, and the sum of what was added up."""
        values, gradients, offset = [], [], 0
        of_containers = not self.kind.is_probability
        for row in of_base:
            point = self.base.point(self.base_number, row, offset)
            value, gradient = self.base.value_and_gradient(point)
            if not (math.isfinite(value) and np.all(np.isfinite(gradient[3:]))):
                return None
            values.append(value)
            gradients.append(self.base.gradients(self.base_number, gradient))
            if of_containers:
                once, twice = (self.base.value(self.base.point(self.base_number, row, count=n)) for n in (1, 2))
                offset += round(twice - once)  # without what a transform adds to the target
        if self.kind is FunctionKind.CDF:
            factors = [math.prod(values[:n] + values[n + 1 :]) for n in range(len(values))]
            value, size = math.prod(values), abs(math.prod(values))
        else:
            factors = [1.0] * len(values)
            value, size = math.fsum(values), math.fsum(map(abs, values))
        combined = []
        assert self.made.base is not None
        for j, (type_, base) in enumerate(zip(self.made.signature.arguments, self.made.base, strict=True)):
            parts = [g[j] * f for g, f in zip(gradients, factors, strict=True)]
            looped = rank_of(type_) > rank_of(base)
            combined.append(container(type_, base, parts, shape) if looped else np.sum(parts, axis=0))
        return value, combined, size

    def _value_problems(self, theta: Values, value: float, gradients: list[Values], size: float) -> list[str]:
        found, gradient = self.program.value_and_gradient(theta)
        if not abs(found - value) <= VALUE_TOLERANCE * max(size, SMALL):
            return [f"{found!r}, by its elements {value!r}"]
        problems = []
        for j, (got, wanted) in enumerate(zip(self.program.gradients(self.number, gradient), gradients, strict=True)):
            if scalar_in(self.made.signature.arguments[j]) == INT:
                continue
            scale = np.maximum(np.max(np.abs(wanted), initial=0.0), 1e-8)
            if not np.all(np.abs(got - wanted) <= GRADIENT_TOLERANCE * scale):
                problems.append(f"gradient of argument {j + 1} {got.tolist()}, by its elements {wanted.tolist()}")
        return problems


Differences = Callable[[CallProgram, int, Values, Sequence[Values]], list[str]]


def _line(program: CallProgram, number: int, theta: Values, passed: Sequence[Values]) -> Values:
    """A direction along which the arguments stay in the domain."""
    rng = np.random.default_rng(number)
    along = np.zeros(theta.size)
    for name, type_, argument in zip(
        program.arguments[number], program.signatures[number].arguments, passed, strict=True
    ):
        if scalar_in(type_) != INT:
            along[program.places[name]] = in_parameter_order(type_, direction(np.asarray(argument), rng))
    return along


def difference_problems(program: CallProgram, number: int, theta: Values, passed: Sequence[Values]) -> list[str]:
    """The gradient against a central difference along a line on which the arguments stay in the domain."""
    value, gradient = program.value_and_gradient(theta)
    along = _line(program, number, theta, passed)
    if not np.any(along):
        return []
    ahead, behind = (program.value(theta + sign * STEP * along) for sign in (1, -1))
    difference = (ahead - behind) / (2 * STEP)
    found = float(gradient @ along)
    scale = float(np.abs(gradient) @ np.abs(along)) + 1e-2 * abs(value)
    if abs(difference - found) <= DIFFERENCE_TOLERANCE * scale + 1e-9:
        return []
    return [f"derivative along a line {found}, central difference {difference}"]


def second_difference_problems(program: CallProgram, number: int, theta: Values, passed: Sequence[Values]) -> list[str]:
    """The product of the Hessian with such a direction against a central difference of gradients."""
    along = _line(program, number, theta, passed)
    if not np.any(along):
        return []
    gradient = program.value_and_gradient(theta)[1]
    _, found = program.model.log_density_hessian_vector_product(theta, along, propto=False)
    errors = []
    for step in (STEP, WIDE_STEP):
        ahead, behind = (program.value_and_gradient(theta + sign * step * along)[1] for sign in (1, -1))
        difference = (ahead - behind) / (2 * step)
        if not np.all(np.isfinite(difference)):
            continue
        scale = np.max(np.abs(found)) + np.max(np.abs(difference)) + 1e-2 * np.max(np.abs(gradient))
        errors.append(float(np.max(np.abs(difference - found)) / max(scale, 1e-9)))
    if not errors or min(errors) <= DIFFERENCE_TOLERANCE:
        return []
    return [f"product of Hessian and direction {found[3:].tolist()}, off differences by {min(errors):.1e}"]


def _problems_alone(
    plans: Sequence[Plan], values: Sequence[Sequence[tuple[Values, ...]]], differences: Differences
) -> list[str]:
    """Overloads that nothing is known of but that they have values, and gradients that are those of the values."""
    left = list(range(len(plans)))
    problems: dict[int, list[str]] = {}
    for attempt in range(min(POINTS + DRAWN_ROWS, max(map(len, values)))):
        trying = [n for n in left if attempt < len(values[n])]
        if not trying:
            break
        rows = [values[n][attempt] for n in trying]
        program = CallProgram([plans[n].signature for n in trying], [[v.shape for v in row] for row in rows])
        for place, (n, row) in enumerate(zip(trying, rows, strict=True)):
            said = _problems_at(program, place, plans[n], row, differences)
            if said is None:
                continue
            problems[n] = said
            if not said:
                left.remove(n)
    return [f"{plans[n].signature}: {said}" for n in left for said in problems.get(n, [NO_ARGUMENTS])]


def _problems_at(
    program: CallProgram, place: int, made: Plan, row: Sequence[Values], differences: Differences
) -> list[str] | None:
    """What is wrong at these arguments; None if there is no finite value."""
    theta = program.point(place, row)
    if made.is_random:
        return [] if math.isfinite(program.drawn(theta, program.model.new_rng(7))) else None
    if not made.signature.arguments:
        return []
    value, gradient = program.value_and_gradient(theta)
    if not (math.isfinite(value) and np.all(np.isfinite(gradient))):
        return None
    return differences(program, place, theta, row)
