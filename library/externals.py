"""External functions: those that a program declares without a body, and that come from elsewhere.

    real f(real x, vector y, int n);        f has no body: who compiles the program gives it (`ulam.external`)

A call of one is a kernel whose name says all that there is to know of it, so every pass that meets it, and who links
the object code, reads the same, and nothing has to be handed on:

    external$f$rvi$r$s$p        name, codes of the arguments, code of the result, its sizes, whether it has a pullback
    external_pullback$...       the pullback of that

Codes of types are those of the signature table (`frontend/functions/type_codes.py`): `i` an int, `r` a real, `v`, `w`,
`m` a vector, row vector and matrix, `2r` an array of rank 2; `x` before one says that it must be data. Sizes of the
result are `a1d0`, size 0 of argument 1, `i2`, the value of argument 2, and `n3`, the number 3; `s` for a scalar.

**The C function.** Arguments in order, an `int` as `int`, a real as `double`, a container as a pointer to its elements
and then its sizes, as `int64_t`. Matrices are column-major, and arrays have the elements of what they are of one behind
the other. Then where the result goes: a pointer, and its sizes. It returns a status. The pullback has the same
arguments, then the adjoint of the result (a `double`, or a pointer and the sizes), then a pointer for the adjoint of
each argument of reals that need not be data: it is all 0 there.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

from ulam.library.records import record

VALUE, PULLBACK = "external", "external_pullback"
SYMBOL = "ulam_"
"""Before a kernel's name: the symbol of the function that compiled code calls."""

_PREFIXES = (f"{VALUE}$", f"{PULLBACK}$")
_ARGUMENT = re.compile(r"(x?)(\d*)([irvwm])")
_RANKS = {"i": 0, "r": 0, "v": 1, "w": 1, "m": 2}


class ExternalForm(NamedTuple):
    """What the compiler must know of an external function that is given.

    `identity` is not for the compiler: it says which function it is, for the key of cached code.
    """

    name: str
    has_pullback: bool = False
    shape: tuple[str, ...] = ()
    """Sizes of the result, as the user wrote them."""
    identity: str = ""


@record(frozen=True)
class ExternalArgument:
    """An argument, or the result."""

    code: str
    """Without the mark of data."""
    data_only: bool = False

    @property
    def is_int(self) -> bool:
        """Whether it is an int, or an array of them."""
        return self.code.endswith("i")

    @property
    def rank(self) -> int:
        """How many sizes it has."""
        return int(self.code[:-1] or 0) + _RANKS[self.code[-1]]

    @property
    def is_matrix(self) -> bool:
        """Whether its last two sizes are those of matrices."""
        return self.code.endswith("m")

    @property
    def element(self) -> str:
        """The type of its elements in memory."""
        return "i32" if self.is_int else "f64"


@record(frozen=True)
class ExternalFunction:
    """An external function as a program declares it."""

    name: str
    arguments: tuple[ExternalArgument, ...]
    result: ExternalArgument
    sizes: tuple[str, ...]
    """Of the result: codes as above."""
    has_pullback: bool

    @cached_property
    def kernel_name(self) -> str:
        """The name of its kernel."""
        return self._named(VALUE)

    @cached_property
    def pullback_name(self) -> str | None:
        """The name of its pullback's kernel; None if it has no pullback."""
        return self._named(PULLBACK) if self.has_pullback else None

    def _named(self, prefix: str) -> str:
        codes = "".join("x" * a.data_only + a.code for a in self.arguments)
        pullback = "p" if self.has_pullback else "n"
        return "$".join((prefix, self.name, codes, self.result.code, "_".join(self.sizes) or "s", pullback))

    @property
    def adjoints(self) -> tuple[int, ...]:
        """Positions of the arguments that a pullback gives adjoints of."""
        return tuple(n for n, a in enumerate(self.arguments) if not a.is_int and not a.data_only)

    def parameters(self, *, pullback: bool) -> str:
        """The parameters of the kernel, as `library/kernels.py` writes them."""
        texts = [self._parameter("in", a, f"a{n}d") for n, a in enumerate(self.arguments)]
        if not pullback:
            return " ".join([*texts, self._parameter("out", self.result, "od")])
        texts.append(self._parameter("in", self.result, "od"))
        texts += [f"out:f64[{_product(self.arguments[n], f'a{n}d')}]" for n in self.adjoints]
        return " ".join(texts)

    @staticmethod
    def _parameter(kind: str, argument: ExternalArgument, sizes: str) -> str:
        if kind == "in" and argument.code == "i":
            return "value:i32"
        names = [f"{sizes}{k}" for k in range(argument.rank)]
        return " ".join([f"{kind}:{argument.element}[{_product(argument, sizes)}]", *(f"{name}:i64" for name in names)])

    def prototype(self, name: str | None = None, *, pullback: bool = False, names: tuple[str, ...] = ()) -> str:
        """Its declaration in C."""
        names = names or tuple(f"x{n + 1}" for n in range(len(self.arguments)))
        texts = [_declared(a, name_, constant=True) for a, name_ in zip(self.arguments, names, strict=True)]
        if pullback:
            texts.append(_declared(self.result, "adjoint", constant=True))
            texts += [f"double *{names[n]}_adjoint" for n in self.adjoints]
        else:
            kind = "int" if self.result.is_int else "double"
            texts.append(", ".join([f"{kind} *result", *_size_names(self.result, "result")]))
        return f"int {name or self.name + '_pullback' * pullback}({', '.join(texts)})"


def _product(argument: ExternalArgument, sizes: str) -> str:
    return "*".join(f"{sizes}{k}" for k in range(argument.rank)) or "1"


def _declared(argument: ExternalArgument, name: str, *, constant: bool) -> str:
    kind = "int" if argument.is_int else "double"
    if not argument.rank:
        return f"{kind} {name}"
    return ", ".join([f"{'const ' * constant}{kind} *{name}", *_size_names(argument, name)])


def _size_names(argument: ExternalArgument, name: str) -> list[str]:
    if argument.rank == 1:
        return [f"int64_t {name}_size"]
    return [f"int64_t {name}_size{k + 1}" for k in range(argument.rank)]


def arguments_of(codes: str) -> tuple[ExternalArgument, ...]:
    """The arguments of a concatenation of codes."""
    return tuple(ExternalArgument(rank + code, bool(data)) for data, rank, code in _ARGUMENT.findall(codes))


def is_external(kernel: str) -> bool:
    """Whether this is the name of the kernel of an external function, or of its pullback."""
    return kernel.startswith(_PREFIXES)


def is_pullback(kernel: str) -> bool:
    """Whether this is the name of the pullback's kernel of an external function."""
    return kernel.startswith(_PREFIXES[1])


@lru_cache(maxsize=1024)
def external_function(kernel: str) -> ExternalFunction:
    """What the name of a kernel says."""
    _, name, codes, result, sizes, pullback = kernel.split("$")
    listed = () if sizes == "s" else tuple(sizes.split("_"))
    return ExternalFunction(name, arguments_of(codes), ExternalArgument(result), listed, pullback == "p")


def name_in_program(callee: str) -> str:
    """What a program calls it by whose kernel has this name; any other name as it is."""
    return external_function(callee).name if is_external(callee) else callee
