"""Programs that call every overload of every library function, and whether checker and compiler agree on them.

`sweep` asks for each overload both the type checker and the compiler (lowering at level 0, without LLVM): a call that
the checker lets pass must compile, one that it reports as not supported must be what the compiler refuses. Calls are
tried many in a program; a program that fails is halved until the calls at fault are alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.functions import signatures
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.functions.type_codes import code_of
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.stan_types import (
    COMPLEX,
    INT,
    REAL,
    ArrayType,
    BasicType,
    FunctionType,
    StanType,
    TupleType,
    scalar_of,
)
from ulam.passes.errors import NotSupportedError
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling

NOT_SUPPORTED = "not-supported"
UNIT_OF = {"value": "constrain", "gradient": "gradient_full"}
_INDICES = {
    "vector": 1,
    "row_vector": 1,
    "matrix": 2,
    "complex_vector": 1,
    "complex_row_vector": 1,
    "complex_matrix": 2,
}


@dataclass(frozen=True)
class LibraryCall:
    """A call of one overload. `way`: `value`, of data in generated quantities; `gradient`, of parameters in model."""

    signature: Signature
    way: str

    def __str__(self) -> str:
        return f"{self.signature} [{self.way}]"

    @property
    def types(self) -> tuple[StanType, ...]:
        return (*self.signature.arguments, self.signature.result)

    def argument(self, position: int) -> str:
        """The variable that is passed: a parameter where the derivative with respect to it is wanted."""
        type_ = self.signature.arguments[position]
        is_parameter = self.way == "gradient" and position not in self.signature.data_only and _is_differentiable(type_)
        return f"{'p' if is_parameter else 'd'}_{_name_of(type_)}"

    @property
    def text(self) -> str:
        """The call as an expression of a scalar."""
        arguments = [self.argument(position) for position in range(len(self.signature.arguments))]
        name = self.signature.name
        bar = name.endswith(("_lpdf", "_lpmf", "_cdf", "_lcdf", "_lccdf")) and len(arguments) > 1
        joined = f"{arguments[0]} | {', '.join(arguments[1:])}" if bar else ", ".join(arguments)
        return _first_scalar(f"{name}({joined})", self.signature.result)

    def has_block(self, block: str) -> bool:
        """Whether the call stands in this block: what draws, what changes the Jacobian and others."""
        if self.way == "value":
            return block == "generated quantities"
        return block == ("transformed parameters" if self.signature.name.endswith("_jacobian") else "model")

    @property
    def statement(self) -> str:
        if self.way == "value" or self.signature.name.endswith("_jacobian"):
            return f"print({self.text});"
        is_int = scalar_of(_scalar_type(self.signature.result)) == INT
        return f"print({self.text});" if is_int else f"target += {self.text};"


def calls(names: Iterable[str]) -> Iterator[LibraryCall]:
    """Both ways of all overloads, but for functions of functions and what a block forbids."""
    for name in names:
        found = signatures.overloads(name)
        assert found is not None
        if found.higher_order():
            continue
        for signature in found.all():
            if not name.endswith("_jacobian"):
                yield LibraryCall(signature, "value")
            differentiable = any(map(_is_differentiable, signature.arguments))
            if differentiable and not name.endswith("_rng"):
                yield LibraryCall(signature, "gradient")


def _is_differentiable(type_: StanType) -> bool:
    return not isinstance(type_, (FunctionType, TupleType)) and scalar_of(type_) in (REAL, COMPLEX)


def _name_of(type_: StanType) -> str:
    return code_of(type_).replace("(", "t").replace(")", "")


def _declaration(type_: StanType, name: str) -> str:
    return f"{_sized(type_)} {name};"


def _sized(type_: StanType) -> str:
    if isinstance(type_, ArrayType):
        return f"array[{', '.join('2' * type_.rank)}] {_sized(type_.element)}"
    if isinstance(type_, TupleType):
        return f"tuple({', '.join(map(_sized, type_.elements))})"
    assert isinstance(type_, BasicType)
    indices = _INDICES.get(type_.name, 0)
    return f"{type_}[{', '.join('2' * indices)}]" if indices else str(type_)


def _scalar_type(type_: StanType) -> StanType:
    return _scalar_type(type_.elements[0]) if isinstance(type_, TupleType) else type_


def _first_scalar(text: str, type_: StanType) -> str:
    if isinstance(type_, TupleType):
        return _first_scalar(f"{text}.1", type_.elements[0])
    if isinstance(type_, ArrayType):
        return _first_scalar(f"{text}[{', '.join('1' * type_.rank)}]", type_.element)
    assert isinstance(type_, BasicType)
    indices = _INDICES.get(type_.name, 0)
    text = f"{text}[{', '.join('1' * indices)}]" if indices else text
    return f"abs({text})" if scalar_of(type_) == COMPLEX else text


def program(group: Sequence[LibraryCall]) -> str:
    """One program that makes all these calls, one in a line."""
    used: dict[str, set[StanType]] = {"d": set(), "p": set()}
    for call in group:
        for position, type_ in enumerate(call.signature.arguments):
            used[call.argument(position)[0]].add(type_)

    def block(name: str, prefix: str) -> str:
        declared = [_declaration(t, f"{prefix}_{_name_of(t)}") for t in sorted(used[prefix], key=str)]
        return f"{name} {{\n  " + "\n  ".join(declared) + "\n}"

    parts = [block("data", "d"), block("parameters", "p")]
    for name in ("transformed parameters", "model", "generated quantities"):
        statements = [call.statement for call in group if call.has_block(name)]
        parts.append(f"{name} {{\n  " + "\n  ".join(statements) + "\n}")
    return "\n".join(parts)


def checker_refuses(group: Sequence[LibraryCall]) -> str | None:
    """What the checker says of the program: None if nothing, else code and message of the first error."""
    source = Source(program(group), "calls.stan")
    try:
        with compiling():
            check_program(parse_program(source), source)
    except DiagnosticError as error:
        first = error.diagnostics[0]
        return f"{first.code}: {first.message}"
    return None


def compiler_refuses(group: Sequence[LibraryCall]) -> str | None:
    """What the compiler says of the program when no checker stands before it: None if it compiles."""
    compiler = Compiler(program(group), "calls.stan", CompileOptions(opt_level=0))
    try:
        for unit in {UNIT_OF[call.way] for call in group}:
            compiler.llvm_text(unit)
    except NotSupportedError as error:
        return f"{NOT_SUPPORTED}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def at_fault(group: Sequence[LibraryCall]) -> Iterator[tuple[LibraryCall, str]]:
    """The calls of a group that do not compile, and why."""
    if not group:
        return
    reason = compiler_refuses(group)
    if reason is None:
        return
    if len(group) == 1:
        yield group[0], reason
        return
    middle = len(group) // 2
    yield from at_fault(group[:middle])
    yield from at_fault(group[middle:])
