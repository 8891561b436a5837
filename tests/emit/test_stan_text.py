"""`-t stan`: the printed text means what the module means."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from stan_interpreter import Interpreter, _OutOfFuel
from stan_programs import build, programs
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Block, Region
from xdsl.parser import Parser

from ulam.dialects import stan
from ulam.emit.stan_text import print_module
from ulam.frontend.check.program import check_program
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.passes.value_form import promote_variables, structure_exits
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ProgramError
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted([*(ROOT / "examples").glob("*.stan"), *(ROOT / "tests/filecheck/frontend").glob("lower-b*.stan")])


def lower(text: str) -> ModuleOp:
    source = Source(text, "model.stan")
    program = parse_program(source)
    check_program(program, source)
    return lower_program(program, source)


def parse_ir(text: str) -> ModuleOp:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(stan.STAN)
    return Parser(context, text).parse_module()


def function_text(body: str) -> str:
    """The text of a function body given as IR; it may use %i, %j (ints) and %x (a real)."""
    module = parse_ir(
        "stan.program @p { stan.func @f(i %i: !stan.int, j %j: !stan.int, x %x: !stan.real) {\n"
        f"{body}\nstan.return\n}} }}"
    )
    module.verify()
    lines = print_module(module).splitlines()
    return "\n".join(line.strip() for line in lines[2:-2])


# ---------------------------------------------------------------- variable form: text and IR are the same program


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_programs_survive_printing_and_parsing(path: Path) -> None:
    module = lower(path.read_text())
    assert str(lower(print_module(module))) == str(module)


OPTIMIZED = sorted([*(ROOT / "examples").glob("*.stan"), *(ROOT / "tests/regressions").glob("*.stan")])


# The other half when there is time.
OPTIMIZED_PARAMETERS = [
    pytest.param(path, id=path.stem, marks=pytest.mark.slow if n % 2 else ()) for n, path in enumerate(OPTIMIZED)
]


@pytest.mark.parametrize("path", OPTIMIZED_PARAMETERS)
def test_what_the_passes_made_of_a_program_is_a_program(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed, compiled again and run without passes it does what the program does."""
    text = path.read_text()
    if "\n// error: " in text or text.startswith("// error: "):
        pytest.skip("it does not compile")
    in_comment = re.search("// data: (.*)", text)
    beside = path.with_suffix(".json")
    data = in_comment[1] if in_comment else beside if beside.exists() else None
    printed = print_module(Compiler(text, path.name, CompileOptions(3)).module)
    again, model = (StanModel(t, data, opt_level=0, cache=False) for t in (printed, text))
    capsys.readouterr()
    point = np.random.default_rng(1).uniform(-1, 1, model.param_unc_num())
    told = [_told(partial(m.log_density, point, propto=False), capsys) for m in (again, model)]
    assert told[0][1:] == told[1][1:]
    np.testing.assert_allclose(told[0][0], told[1][0], rtol=1e-10)
    generated = [
        _told(partial(m.param_constrain, point, include_tp=True, include_gq=True, rng=m.new_rng(1)), capsys)
        for m in (again, model)
    ]
    assert generated[0][1:] == generated[1][1:]
    # A complex variable is two real ones there, one behind the other.
    values = [np.sort(found) if "complex" in text else found for found, *_ in generated]
    np.testing.assert_allclose(*values, rtol=1e-10, atol=1e-12)


def _told(evaluate: Callable[[], Any], capsys: pytest.CaptureFixture[str]) -> tuple[Any, str, str]:
    """What an evaluation gives, the kind of its error, and what it prints."""
    try:
        return evaluate(), "", capsys.readouterr().out
    except ProgramError as error:
        return 0.0, type(error).__name__, capsys.readouterr().out


def test_an_index_behind_a_transpose_has_parentheses() -> None:
    text = "data { matrix[2, 2] A; } generated quantities { real a = (A')[1, 2]; matrix[2, 2] b = A[{1, 2}]''; }"
    module = lower(text)
    printed = print_module(module)
    assert "(A')[1, 2]" in printed and "A[{1, 2}]''" in printed
    assert str(lower(printed)) == str(module)


def expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["x", "y", "i", "j", "1", "2", "0.5", "1e10", "v[1]", "exp(x)", "f(i)"])

    def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.sampled_from(["+", "-", "*", "/", "^", "==", "<", "&&", "||", "%", "%/%"])
        return st.one_of(
            st.builds(lambda a, o, b: f"({a}) {o} ({b})", inner, binary, inner),
            st.builds(lambda a, o, b: f"{a} {o} {b}", inner, binary, inner),
            st.builds(lambda o, a: f"{o}({a})", st.sampled_from("-+!"), inner),
            st.builds(lambda a, b, c: f"(({a}) ? {b} : {c})", inner, inner, inner),
        )

    return st.recursive(leaves, compound, max_leaves=8)


@settings(max_examples=150, suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much))
@given(expressions())
def test_expressions_keep_their_structure(expression: str) -> None:
    from ulam.frontend.diagnostics import DiagnosticError

    text = (
        "functions { int f(int n) { return n; } real f(real n) { return n; } }\n"
        "data { int i; int j; real x; real y; vector[2] v; }\n"
        f"transformed data {{ print({expression}); }}"
    )
    try:
        module = lower(text)
    except DiagnosticError:
        assume(False)
        raise
    printed = print_module(module)
    # `1.0 * i` stands for the promotion of an int beside another int.
    assert normalized(lower(printed)) == normalized(module), printed


def normalized(module: ModuleOp) -> str:
    """The IR without products `1.0 * promoted int`."""
    for op in list(module.walk(reverse=True)):
        if type(op) is stan.BINARY_OPERATORS["*"]:
            one, factor = op.operands[0].owner, op.operands[1].owner
            if isinstance(one, stan.ConstantOp) and "1.0" in str(one.value) and isinstance(factor, stan.PromoteOp):
                op.results[0].replace_all_uses_with(factor.results[0])
                op.detach()
                one.detach()
    return str(module)


# ---------------------------------------------------------------- what gets a name


def test_an_expression_is_written_where_it_is_used() -> None:
    assert (
        function_text("""
        %a = stan.add %i, %j : !stan.int
        stan.print print(%a : !stan.int)
    """)
        == "print(i + j);"
    )


def test_a_long_expression_used_twice_gets_a_name() -> None:
    assert function_text("""
        %a = stan.call a_function_of_integers(%i, %j) user autodiff [0, 0]
          : (!stan.int, !stan.int) -> !stan.int
        stan.print print(%a, %a : !stan.int, !stan.int)
    """) == "int a = a_function_of_integers(i, j);\nprint(a, a);"  # fmt: skip


def test_a_read_before_an_assignment_keeps_the_old_value() -> None:
    assert function_text("""
        %v = stan.declare v : !stan.var<!stan.int>
        %old = stan.read %v : !stan.int
        stan.assign %v = %i : !stan.var<!stan.int>, !stan.int
        stan.print print(%old : !stan.int)
    """) == "int v;\nint old = v;\nv = i;\nprint(old);"  # fmt: skip


def test_random_draws_keep_their_order() -> None:
    draws = """
        %a = stan.call a_rng(%x) user autodiff [0] : (!stan.real) -> !stan.real
        %b = stan.call b_rng(%x) user autodiff [0] : (!stan.real) -> !stan.real
    """
    forward = draws + "stan.print print(%a, %b : !stan.real, !stan.real)"
    assert function_text(forward) == "print(a_rng(x), b_rng(x));"
    backward = draws + "stan.print print(%b, %a : !stan.real, !stan.real)"
    assert function_text(backward) == "real a = a_rng(x);\nreal b = b_rng(x);\nprint(b, a);"


def test_a_draw_is_not_moved_over_a_print() -> None:
    assert function_text("""
        %a = stan.call a_rng(%x) user autodiff [0] : (!stan.real) -> !stan.real
        stan.print print(%i : !stan.int)
        stan.print print(%a : !stan.real)
    """) == "real a = a_rng(x);\nprint(i);\nprint(a);"  # fmt: skip


def test_lazy_operands_that_need_statements_become_branches() -> None:
    text = function_text("""
        %s = stan.select %i -> (!stan.int) {
          stan.print print(%j : !stan.int)
          stan.yield %i : !stan.int
        } else {
          stan.yield %j : !stan.int
        }
        stan.print print(%s : !stan.int)
    """)
    assert text == "int s;\nif (i) {\nprint(j);\ns = i;\n} else {\ns = j;\n}\nprint(s);"


def test_a_division_of_promoted_ints_stays_a_division_of_reals() -> None:
    assert function_text("""
        %a = stan.promote %i : (!stan.int) -> !stan.real
        %b = stan.promote %j : (!stan.int) -> !stan.real
        %c = stan.div %a, %b : !stan.real
        stan.target_add %c : !stan.real
    """) == "target += 1.0 * i / j;"  # fmt: skip


TUPLES = """
functions { complex f(complex z, tuple(real, array[] complex) t) { return z * t.2[1] + t.1; } }
data { int N; array[N] complex z; array[N] tuple(int, complex) d; }
parameters { complex a; array[N] tuple(real<lower=0>, complex) p; }
model {
  complex b = f(a, (p[1].1, {a, d[1].2}));
  for (q in p) target += -norm(q.2 - b * z[1]) * q.1;
}
"""


@pytest.mark.parametrize("level", [0, 3])
def test_complex_and_tuple_variables_are_printed_by_their_parts(level: int) -> None:
    given = {"N": 2, "z": [1 + 2j, 3j], "d": [(1, 2 + 1j), (2, 3)]}
    parts = {"N": 2, "z_real": [1, 0], "z_imag": [2, 3], "d": ([1, 2], ([2.0, 3.0], [1.0, 0.0]))}
    printed = print_module(Compiler(TUPLES, "model.stan", CompileOptions(opt_level=level)).module)
    tuple_by_tuple = np.array([0.3, -0.2, 0.5, 0.7, 0.1, 0.4, 0.6, 0.2])
    field_by_field = tuple_by_tuple[[0, 1, 2, 5, 3, 6, 4, 7]]
    expected = StanModel(TUPLES, given, opt_level=0).log_density(tuple_by_tuple)
    assert StanModel(printed, parts, opt_level=0).log_density(field_by_field) == pytest.approx(expected, rel=1e-14)


# ---------------------------------------------------------------- random programs, both forms


def as_program(module: ModuleOp) -> ModuleOp:
    """The functions of a module as a `stan.program`."""
    functions = list(module.body.block.ops)
    for function in functions:
        function.detach()
    program = stan.ProgramOp("p", Region(Block(functions)))
    return ModuleOp([program])


def reparsed(module: ModuleOp) -> ModuleOp:
    text = print_module(module)
    # The generator leaves out the size of its array; the passes' own names are not for users.
    text = text.replace("array[] int part", "array[3] int part", 2).replace("array[3] int part)", "array[] int part)")
    return lower(re.sub(r"__(_\d)?\b", r"_u\1", text))


def run(module: ModuleOp, fuel: int) -> tuple[Any, list[Any]]:
    function = next(op for op in module.walk() if isinstance(op, stan.FuncOp))
    interpreter = Interpreter(fuel)
    result = interpreter.call(function, [5, 0, 2], [7, 8, 9])
    return result, interpreter.printed


@settings(max_examples=60, suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much))
@given(programs)
def test_the_text_of_both_forms_does_what_the_module_does(program: list[Any]) -> None:
    try:
        expected = run(build(program), 3_000)
    except _OutOfFuel:
        assume(False)
        raise
    module = as_program(build(program))
    assert run(reparsed(module), 100_000) == expected
    structure_exits.run_on(module)
    promote_variables.run_on(module)
    assert run(reparsed(module), 100_000) == expected
