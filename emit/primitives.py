"""The table of `rt.math`: what each scalar function becomes.

* `inline`: a few instructions, written at the call.
* `intrinsic`: an LLVM intrinsic that is one machine instruction (or a call of libm where it is not).
* `own`: a function of `vector_math`, inlined within loops so that they widen, called elsewhere.
* `libm`, `runtime`: pure C functions, by name; the runtime's begin with `ulam_`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ulam.emit.errors import EmissionError
from ulam.emit.vector_math import ARITY, FUNCTIONS, definition
from ulam.library.derivatives import arguments_of, primitive_names
from ulam.library.records import record

if TYPE_CHECKING:
    from ulam.emit.llvm_text import FunctionEmitter


@record(frozen=True)
class PrimitiveForm:
    """One row. `target` is the text, intrinsic or C symbol; arguments and results are doubles."""

    kind: Literal["inline", "intrinsic", "own", "libm", "runtime"]
    target: str
    arity: int = 1
    libm: str | None = None
    """For `own` functions: the C function to call instead at levels 3 and 4, on loop-carried chains and outside of
    loops: there own functions would be part of what LLVM compiles for the sake of one call."""


# `{r}` is the result, `{t0}`, `{t1}` are temporaries, `{0}`, `{1}`, ... the arguments
INLINE: dict[str, tuple[int, str]] = {
    "square": (1, "{r} = fmul double {0}, {0}"),
    "value_of": (1, "{r} = fadd double {0}, -0.0"),  # x + -0 is x, for every x
    "fixed_value_of": (1, "{r} = fadd double {0}, -0.0"),
    "inv": (1, "{r} = fdiv double 1.0, {0}"),
    "inv_square": (1, "{t0} = fmul double {0}, {0}\n{r} = fdiv double 1.0, {t0}"),
    "inv_sqrt": (1, "{t0} = call double @llvm.sqrt.f64(double {0})\n{r} = fdiv double 1.0, {t0}"),
    # 1 where x is NaN, as in Stan
    "step": (1, "{t0} = fcmp olt double {0}, 0.0\n{r} = select i1 {t0}, double 0.0, double 1.0"),
    "fdim": (2, "{t0} = fsub double {0}, {1}\n{t1} = fcmp ole double {0}, {1}\n"
                "{r} = select i1 {t1}, double 0.0, double {t0}"),
    "lmultiply": (2, "{t0} = call double @ulam.log(double {1})\n{t1} = fmul double {0}, {t0}\n"
                     "{t2} = fcmp oeq double {0}, 0.0\n{t3} = fcmp oeq double {1}, 0.0\n{t4} = and i1 {t2}, {t3}\n"
                     "{r} = select i1 {t4}, double 0.0, double {t1}"),
    "log_of_zero": (1, "{r} = fadd double 0xFFF0000000000000, -0.0"),
    "log_given": (2, "{r} = fadd double {1}, -0.0"),
    "scaled_outcome": (2, "{r} = fdiv double {0}, {1}"),
    "log_of_base": (1, "{r} = call double @ulam.log(double {0})"),
    # 1 where the exponent is 0 or the base 1, whatever the other is, as pow has it
    "power_by_log": (3, "{t0} = fmul double {1}, {2}\n{t1} = fcmp oeq double {1}, 0.0\n"
                        "{t2} = fcmp oeq double {2}, 0.0\n{t3} = or i1 {t1}, {t2}\n"
                        "{t4} = select i1 {t3}, double 0.0, double {t0}\n{r} = call double @ulam.exp(double {t4})"),
    "log_diff_exp": (2, "{t0} = fsub double {1}, {0}\n{t1} = call double @ulam.log1m_exp(double {t0})\n"
                        "{t2} = fadd double {0}, {t1}\n{t3} = fcmp ole double {0}, {1}\n"
                        "{t4} = fcmp oeq double {0}, {1}\n{t5} = fcmp olt double {0}, 0x7FF0000000000000\n"
                        "{t6} = and i1 {t4}, {t5}\n"
                        "{t7} = select i1 {t6}, double 0xFFF0000000000000, double 0x7FF8000000000000\n"
                        "{r} = select i1 {t3}, double {t7}, double {t2}"),
}  # fmt: skip

INTRINSICS: dict[str, tuple[str, int]] = {
    "sqrt": ("llvm.sqrt.f64", 1),
    "fabs": ("llvm.fabs.f64", 1),
    "abs": ("llvm.fabs.f64", 1),
    "floor": ("llvm.floor.f64", 1),
    "ceil": ("llvm.ceil.f64", 1),
    "trunc": ("llvm.trunc.f64", 1),
    "round": ("llvm.round.f64", 1),
    "copysign": ("llvm.copysign.f64", 2),
    "fma": ("llvm.fma.f64", 3),
    # a NaN argument gives the other one, as C's functions do
    "fmin": ("llvm.minnum.f64", 2),
    "fmax": ("llvm.maxnum.f64", 2),
}

OWN_WITH_LIBM = frozenset({"exp", "log", "log1p", "expm1", "tanh"})

LIBM: dict[str, int] = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "sinh": 1, "cosh": 1, "asinh": 1, "acosh": 1,
    "atanh": 1, "exp2": 1, "exp10": 1, "log2": 1, "log10": 1, "cbrt": 1, "lgamma": 1, "tgamma": 1, "erf": 1, "erfc": 1,
    "atan2": 2, "hypot": 2, "fmod": 2, "pow": 2,
}  # fmt: skip

# those without a derivative; the other functions of the runtime are the primitives of derivatives.txt with no row above
RUNTIME: dict[str, int] = {
    "pentagamma": 1,
    "log_gamma_p_daa": 2,
    "log_gamma_q_daa": 2,
    "log_inc_beta_daa": 4,
    "log_inc_beta_dab": 4,
    "log_inc_beta_dbb": 4,
    "log_von_mises_dkk": 3,
    "von_mises_normalizer_dkk": 1,
}

SYNONYMS = {
    "multiply_log": "lmultiply", "inv_logit_of_bounds": "inv_logit", "binomial_coefficient_log": "lchoose",
    "power_of_outcome": "pow",
}  # fmt: skip


def _table() -> dict[str, PrimitiveForm]:
    table = {name: PrimitiveForm("inline", text, n) for name, (n, text) in INLINE.items()}
    table |= {name: PrimitiveForm("intrinsic", target, n) for name, (target, n) in INTRINSICS.items()}
    for name in FUNCTIONS:
        table[name] = PrimitiveForm("own", name, ARITY.get(name, 1), name if name in OWN_WITH_LIBM else None)
    table |= {name: PrimitiveForm("libm", name, n) for name, n in LIBM.items()}
    others = [name for name in primitive_names() if name not in table and name not in SYNONYMS]
    for name, n in {**{name: len(arguments_of(name)) for name in others}, **RUNTIME}.items():
        table[name] = PrimitiveForm("runtime", f"ulam_{name}", n)
    return table | {name: table[target] for name, target in SYNONYMS.items()}


PRIMITIVES: dict[str, PrimitiveForm] = _table()

# pow with the exponents that models write: the same bits whether or not the exponent is a known constant
POWER = """define internal double @ulam.pow(double %x, double %y) alwaysinline #1 {
  %square = fmul double %x, %x
  %inverse = fdiv double 1.0, %x
  %cube = fmul double %square, %x
  %positive = fadd double %x, 0.0
  %magnitude = call double @llvm.sqrt.f64(double %positive)
  %low = fcmp oeq double %x, 0xFFF0000000000000
  %root = select i1 %low, double 0x7FF0000000000000, double %magnitude
  %is.two = fcmp oeq double %y, 2.0
  %is.inverse = fcmp oeq double %y, -1.0
  %is.three = fcmp oeq double %y, 3.0
  %is.root = fcmp oeq double %y, 0.5
  %general = call double @pow(double %x, double %y) nobuiltin #1
  %r1 = select i1 %is.root, double %root, double %general
  %r2 = select i1 %is.three, double %cube, double %r1
  %r3 = select i1 %is.inverse, double %inverse, double %r2
  %r4 = select i1 %is.two, double %square, double %r3
  ret double %r4
}"""


_OWN_CALL = re.compile(r"@ulam\.\w+\([^)]*\)")
_CALLED = " noinline"
"""Behind calls of own functions where no loop is widened for them."""


def emit_math(e: FunctionEmitter, op: Operation) -> None:
    """Writes an `rt.math`."""
    function = op.properties["function"]
    assert isinstance(function, StringAttr)
    name = function.data
    emit_special = SPECIAL.get(name)
    if emit_special is not None and emit_special(e, op):
        return
    primitive = PRIMITIVES.get(name)
    if primitive is None:
        raise EmissionError(f"the function '{name}' is not supported yet: it has no row in emit/primitives.py", op)
    operands = e.operands(op)
    types = [e.type(v) for v in operands]
    if types != ["double"] * primitive.arity or e.type(op.results[0]) != "double":
        wanted, got = ", ".join(["double"] * primitive.arity), ", ".join(types)
        raise EmissionError(f"'{name}' takes ({wanted}) and gives a double; it is called with ({got})", op)
    arguments = [e.names[v] for v in operands]
    result = e.define(op.results[0])
    if primitive.kind == "inline":
        _inline(e, primitive.target, arguments, result)
        return
    e.line(f"{result} = {_call(e, primitive, arguments)}")


def _inline(e: FunctionEmitter, text: str, arguments: list[str], result: str) -> None:
    used = {f"t{i}": e.temporary() for i in range(8) if f"{{t{i}}}" in text}
    if not e.inline_math:
        text = _OWN_CALL.sub(rf"\g<0>{_CALLED}", text)
    if e.contract:
        text = text.replace("= fmul double", "= fmul contract double").replace(
            "= fsub double", "= fsub contract double"
        )
    for line in text.format(*arguments, r=result, **used).split("\n"):
        e.line(line)
    for callee, arity in _callees(text):
        if callee.startswith("ulam."):
            e.module.math_functions.add(callee.removeprefix("ulam."))
        else:
            e.module.declare(callee, f"declare double @{callee}({', '.join(['double'] * arity)})")


@cache
def _callees(text: str) -> list[tuple[str, int]]:
    """What an inline form calls, with the number of arguments."""
    return [(callee, arguments.count(",") + 1) for callee, arguments in re.findall(r"@([\w.]+)\(([^)]*)\)", text)]


def _call(e: FunctionEmitter, primitive: PrimitiveForm, arguments: list[str]) -> str:
    """The text of a call; declares or asks for the definition of what is called."""
    target, attributes = primitive.target, ""
    if primitive.kind == "own":
        if primitive.libm is not None and (e.serial or (e.contract and not e.inline_math)):
            target, attributes = primitive.libm, " nobuiltin #1"
        else:
            e.module.math_functions.add(target)
            target = f"ulam.{target}"
            attributes = "" if e.inline_math else _CALLED
    elif primitive.kind == "libm":
        if target == "pow":
            e.module.math_functions.add("pow")
            target = "ulam.pow"
        else:
            # LLVM must not replace calls whose argument it happens to know: bits would depend on what it knows
            attributes = " nobuiltin #1"
    if not target.startswith("ulam."):
        parameters = ", ".join(["double"] * primitive.arity)
        suffix = "" if primitive.kind == "intrinsic" else " #1"
        e.module.declare(target, f"declare double @{target}({parameters}){suffix}")
    typed = ", ".join([f"double {argument}" for argument in arguments])
    return f"call double @{target}({typed}){attributes}"


def definitions(names: set[str], fused: bool, declare: Callable[[str, str], None]) -> list[str]:
    """Definitions of the math functions a module uses; what they call in turn is declared."""
    texts: list[str] = []
    for name in sorted(names):
        if name == "pow":
            declare("pow", "declare double @pow(double, double) #1")
            declare("llvm.sqrt.f64", "declare double @llvm.sqrt.f64(double)")
            texts.append(POWER)
            continue
        text, intrinsics = definition(name, fused)
        for declaration in sorted(intrinsics):
            declare(declaration.split("@")[1].split("(")[0], declaration)
        texts.append(text)
    return texts


def _integer_abs(e: FunctionEmitter, op: Operation) -> bool:
    (a,) = e.operands(op)
    t = e.type(a)
    if t == "double":
        return False
    callee = f"llvm.abs.{t}"
    e.module.declare(callee, f"declare {t} @{callee}({t}, i1)")
    e.line(f"{e.define(op.results[0])} = call {t} @{callee}({t} {e.names[a]}, i1 false)")
    return True


def _classify(test: str) -> Callable[[FunctionEmitter, Operation], bool]:
    """`is_nan` and the like: an i1, or an integer 0 or 1."""

    def emit(e: FunctionEmitter, op: Operation) -> bool:
        (a,) = e.operands(op)
        (result,) = op.results
        t = e.type(result)
        truth = e.define(result) if t == "i1" else e.temporary()
        operand = e.names[a]
        if "fabs" in test:
            operand = e.temporary()
            e.module.declare("llvm.fabs.f64", "declare double @llvm.fabs.f64(double)")
            e.line(f"{operand} = call double @llvm.fabs.f64(double {e.names[a]})")
        e.line(f"{truth} = fcmp {test.removeprefix('fabs ').format(operand)}")
        if t != "i1":
            e.line(f"{e.define(result)} = zext i1 {truth} to {t}")
        return True

    return emit


# functions of or to integers; they answer False where the table's row applies
SPECIAL: dict[str, Callable[[FunctionEmitter, Operation], bool]] = {
    "abs": _integer_abs,
    "is_nan": _classify("uno double {}, 0.0"),
    "is_inf": _classify("fabs oeq double {}, 0x7FF0000000000000"),
    "is_finite": _classify("fabs olt double {}, 0x7FF0000000000000"),
    "int_step": _classify("ogt double {}, 0.0"),
}
