"""AST → `stan` dialect: properties that hold for every program, and the choice of library definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, FileLineColLoc, ModuleOp, StringAttr
from xdsl.parser import Parser

from ulam.dialects import stan
from ulam.frontend.check.program import check_program
from ulam.frontend.functions.definitions import resolve
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.stan_types import INT, MATRIX, REAL, VECTOR, StanType, array_of
from ulam.passes import verify_dominance

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted([*(ROOT / "examples").glob("*.stan"), *(ROOT / "tests/filecheck/frontend").glob("lower-*.stan")])


def lower(text: str, name: str = "model.stan") -> ModuleOp:
    source = Source(text, name)
    program = parse_program(source)
    check_program(program, source)
    module = lower_program(program, source)
    module.verify()
    return module


def ops(module: ModuleOp, op_class: type) -> list:
    """The ops of a class in program order, those of library functions left out."""
    found = []
    for op in module.walk():
        function = op
        while function is not None and not isinstance(function, stan.FuncOp):
            function = function.parent_op()
        if isinstance(op, op_class) and not (isinstance(function, stan.FuncOp) and function.library is not None):
            found.append(op)
    return found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_every_module_is_valid_and_round_trips(path: Path) -> None:
    module = lower(path.read_text(), path.name)
    verify_dominance.run_on(module)
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(stan.STAN)
    assert str(Parser(context, str(module)).parse_module()) == str(module)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_every_op_has_a_location(path: Path) -> None:
    module = lower(path.read_text(), path.name)
    for op in module.walk():
        if not isinstance(op, (ModuleOp, stan.ProgramOp)):
            assert isinstance(op.location, FileLineColLoc), op.name


def test_locations_name_the_line_and_column_of_the_source() -> None:
    module = lower("transformed data {\n  real x = 1;\n  print(x);\n}\n")
    (print_op,) = ops(module, stan.PrintOp)
    location = print_op.location
    assert (location.filename.data, location.line.data, location.column.data) == ("model.stan", 3, 3)


def test_locations_of_library_functions_name_the_library_file() -> None:
    module = lower("parameters { real x; }\nmodel { x ~ normal(0, 1); }")
    function = next(op for op in module.walk() if isinstance(op, stan.FuncOp))
    last = function.body.block.last_op
    assert last is not None and isinstance(last.location, FileLineColLoc)
    file, line = last.location.filename.data, last.location.line.data
    text = (ROOT / file).read_text().splitlines()[line - 1]
    assert file.startswith("library/") and "return" in text


# ---------------------------------------------------------------- library definitions


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("normal_lpdf", (REAL, REAL, REAL)),
        ("normal_lpdf", (VECTOR, REAL, array_of(REAL))),
        ("normal_lpdf", (array_of(INT), REAL, REAL)),
        ("poisson_lpmf", (array_of(INT), VECTOR)),
        ("multi_normal_cholesky_lpdf", (array_of(VECTOR), VECTOR, MATRIX)),
    ],
)
def test_a_scalar_or_vector_definition_serves_containers(name: str, arguments: tuple[StanType, ...]) -> None:
    found = resolve(name, arguments)
    assert found is not None and found.definition.name == name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("normal_lpdf", (REAL, REAL)),  # number of arguments
        ("poisson_lpmf", (array_of(REAL), REAL)),  # an int formal takes no reals
        ("normal_lpdf", (MATRIX, REAL, REAL)),  # densities take no matrices of scalars
        ("multi_normal_cholesky_lpdf", (REAL, VECTOR, MATRIX)),
        ("no_such_function", (REAL,)),
    ],
)
def test_what_does_not_fit_has_no_definition(name: str, arguments: tuple[StanType, ...]) -> None:
    assert resolve(name, arguments) is None


def test_library_functions_come_once_and_with_what_they_call() -> None:
    module = lower("parameters { real x; vector[2] v; }\nmodel { x ~ normal(0, 1); v ~ normal(x, 1); }")
    functions = [op for op in module.walk() if isinstance(op, stan.FuncOp)]
    symbols = [f.sym_name.data for f in functions]
    assert len(symbols) == len(set(symbols)) and symbols.count("normal_lpdf") == 1
    assert all(f.library is not None for f in functions)
    for call in module.walk():
        if isinstance(call, stan.CallOp) and call.definition is not None:
            assert call.definition.data in symbols


def test_a_user_function_may_have_the_name_of_a_library_helper() -> None:
    module = lower(
        "functions { real log_sqrt_two_pi() { return 0; } }\n"
        "parameters { real x; }\nmodel { target += normal_lpdf(x | 0, 1) + log_sqrt_two_pi(); }"
    )
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, stan.FuncOp)}
    assert functions["log_sqrt_two_pi"].library is None
    helper = next(
        c.definition.data
        for c in functions["normal_lpdf"].walk()
        if isinstance(c, stan.CallOp) and c.definition is not None and c.callee.data == "log_sqrt_two_pi"
    )
    assert functions[helper].library is not None


# ---------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1 / 2", stan.INT),
        ("1 / 2.0", stan.REAL),
        ("2 ^ 3", stan.REAL),
        ("1 + 2 * 3.0", stan.REAL),
        ("1 < 2.5", stan.INT),
    ],
)
def test_ints_beside_reals_are_promoted(expression: str, result: object) -> None:
    module = lower(f"transformed data {{ print({expression}); }}")
    (print_op,) = ops(module, stan.PrintOp)
    assert print_op.operands[0].type == result


def test_literals_are_made_real_at_once() -> None:
    module = lower("transformed data { real x = 1; vector[2] v = -2 + [1, 2]'; }")
    assert not ops(module, stan.PromoteOp)


def test_autodiff_flags_follow_the_static_rule() -> None:
    module = lower("data { real d; } parameters { real p; } model { real l = d; target += normal_lpdf(d | p, l); }")
    (call,) = ops(module, stan.CallOp)
    assert tuple(call.autodiff.get_values()) == (0, 1, 1)


# ---------------------------------------------------------------- statements


def test_sizes_and_bounds_stand_before_their_declaration() -> None:
    module = lower("data { int N; array[N, 2] vector<lower=0, upper=N>[3] v; }")
    declare = ops(module, stan.DeclareOp)[1]
    assert isinstance(declare, stan.DeclareOp)
    assert len(declare.sizes) == 3 and declare.lower is not None and declare.upper is not None
    assert declare.lower.type == stan.REAL == declare.upper.type


def test_names_of_local_blocks_do_not_become_global() -> None:
    module = lower("generated quantities { { real a = 1; print(a); } { real a = 2; print(a); } real b = 3; }")
    declarations = ops(module, stan.DeclareOp)
    assert [("local" in d.properties, d.var_name) for d in declarations] == [
        (True, StringAttr("a")), (True, StringAttr("a")), (False, StringAttr("b")),
    ]  # fmt: skip


def test_reduce_sum_names_its_callback() -> None:
    module = lower(
        "functions { real part_lpdf(array[] real y, int a, int b, real mu) { return normal_lupdf(y | mu, 1); } }\n"
        "data { array[3] real y; } parameters { real mu; }\n"
        "model { target += reduce_sum(part_lupdf, y, 1, mu); }"
    )
    call = next(c for c in ops(module, stan.CallOp) if c.callee.data == "reduce_sum")
    assert call.callback.data == "part_lpdf" and call.unnormalized is not None and len(call.arguments) == 3
