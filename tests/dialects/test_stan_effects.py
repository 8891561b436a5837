"""What the ops of the `stan` dialect say they do."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, UnitAttr, i8
from xdsl.ir import Attribute, Operation
from xdsl.traits import is_side_effect_free
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect, conflict, effects_of, effects_within
from ulam.frontend.check.program import check_program
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source


def lower(text: str) -> ModuleOp:
    source = Source(text, "model.stan")
    program = parse_program(source)
    check_program(program, source)
    return lower_program(program, source)


def block(module: ModuleOp) -> stan.BlockOp:
    return [op for op in module.walk() if isinstance(op, stan.BlockOp)][-1]


def effects(text: str, *, bodies: bool = False) -> Effect:
    """Effects of a statement of the generated quantities, or of the model if it adds to the target."""
    kind = "model" if "target" in text or "~" in text or "_lp" in text else "generated quantities"
    module = lower(
        """functions {
          real plain(real x) { return x + 1; }
          real loud(real x) { print(x); return x; }
          real quiet_loud(real x) { return loud(x); }
          real even(int n) { return n == 0 ? 1 : odd(n - 1); }
          real odd(int n) { if (n < 0) reject("n"); return n == 0 ? 0 : even(n - 1); }
          real my_rng() { return normal_rng(0, 1); }
          real my_lp(real x) { target += x; return x; }
        }
        data { int i; real d; vector[3] v; vector[3] w; }
        parameters { real p; }
        """
        + f"{kind} {{ {text} }}"
    )
    functions = [op for op in module.walk() if isinstance(op, stan.FuncOp)]
    calls = CallEffects(functions) if bodies else None
    return effects_within(block(module), calls) & ~(Effect.READS_VAR | Effect.WRITES_VAR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("print(d);", Effect.PRINTS),
        ('reject("no");', Effect.THROWS),
        ('fatal_error("no");', Effect.THROWS),
        ("print(d + 1, i * 2, exp(d), -d, i < 2);", Effect.PRINTS),
        ("print(v + w);", Effect.PRINTS | Effect.THROWS),  # sizes may differ
        ("print(v * 2);", Effect.PRINTS),
        ("print(i %/% 2);", Effect.PRINTS | Effect.THROWS),  # division by zero
        ("print(v[2]);", Effect.PRINTS | Effect.THROWS),
        ("print(normal_rng(0, 1));", Effect.PRINTS | Effect.DRAWS | Effect.THROWS),
        ("target += p;", Effect.ADDS_TARGET),
        ("print(target());", Effect.PRINTS | Effect.READS_TARGET),
        ("p ~ normal(0, 1);", Effect.ADDS_TARGET | Effect.THROWS),
        ('profile("a") { print(d); }', Effect.PRINTS | Effect.PROFILES),
        ("for (k in 1:3) { if (k > 1) break; }", Effect.NONE),  # a break ends inside of its loop
    ],
)
def test_effects_of_statements(text: str, expected: Effect) -> None:
    assert effects(text) == expected


@pytest.mark.parametrize(
    ("call", "bound", "exact"),
    [
        ("plain(d)", Effect.PRINTS | Effect.THROWS, Effect.NONE),
        ("loud(d)", Effect.PRINTS | Effect.THROWS, Effect.PRINTS),
        ("quiet_loud(d)", Effect.PRINTS | Effect.THROWS, Effect.PRINTS),
        ("even(i)", Effect.PRINTS | Effect.THROWS, Effect.THROWS),
        ("my_rng()", Effect.PRINTS | Effect.THROWS | Effect.DRAWS, Effect.THROWS | Effect.DRAWS),
        (
            "my_lp(p)",
            Effect.PRINTS | Effect.THROWS | Effect.READS_TARGET | Effect.ADDS_TARGET | Effect.ADDS_JACOBIAN,
            Effect.ADDS_TARGET,
        ),
    ],
)
def test_effects_of_user_functions(call: str, bound: Effect, exact: Effect) -> None:
    """By the name alone an upper bound; from the bodies, recursion included, what they really do."""
    text = f"real x = {call};"
    assert effects(text) == bound
    assert effects(text, bodies=True) == exact


def test_only_ops_without_effects_are_free_for_other_passes() -> None:
    module = lower("data { real d; int i; vector[2] v; } transformed data { print(d * 2, v + v, i / i, exp(d)); }")
    free = {op.name: is_side_effect_free(op) for op in block(module).walk() if op.results}
    assert free["stan.mul"] and not free["stan.add"] and not free["stan.div"] and not free["stan.read"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Effect.PRINTS, Effect.PRINTS, True),
        (Effect.PRINTS, Effect.THROWS, True),
        (Effect.DRAWS, Effect.DRAWS, True),
        (Effect.THROWS, Effect.THROWS, True),
        (Effect.THROWS, Effect.READS_VAR, False),
        (Effect.THROWS, Effect.WRITES_VAR, True),
        (Effect.ADDS_TARGET, Effect.ADDS_TARGET, False),
        (Effect.ADDS_TARGET, Effect.READS_TARGET, True),
        (Effect.READS_VAR, Effect.WRITES_VAR, True),
        (Effect.READS_VAR, Effect.READS_VAR, False),
        (Effect.NONE, Effect.PROFILES, False),
        (Effect.ADDS_TARGET, Effect.PROFILES, True),
        (Effect.READS_VAR, Effect.LEAVES_LOOP, False),
    ],
)
def test_what_must_keep_its_order(first: Effect, second: Effect, expected: bool) -> None:
    assert conflict(first, second) is expected
    assert conflict(second, first) is expected


def test_every_op_of_the_dialect_answers() -> None:
    for op_class in stan.STAN.operations:
        traits = [type(t).__name__ for t in op_class.traits.traits]
        assert traits or op_class.name in {"stan.if", "stan.select", "stan.and", "stan.or", "stan.scope"}, op_class.name


def test_a_read_has_the_effect_of_reading() -> None:
    module = lower("data { real d; } transformed data { print(d); }")
    read = next(op for op in block(module).walk() if isinstance(op, stan.ReadOp))
    assert effects_of(read) == Effect.READS_VAR


def test_an_unchecked_function_of_scalars_does_not_throw() -> None:
    def call(*types: Attribute, **more: Attribute) -> stan.CallOp:
        operands = [create_ssa_value(type_) for type_ in types]
        bits = DenseArrayBase.from_list(i8, [0] * len(types))
        properties = {"callee": StringAttr("lchoose" if len(types) == 2 else "log1m"), "autodiff": bits, **more}
        return stan.CallOp.create(operands=operands, result_types=(types[0],), properties=properties)

    unchecked = {"unchecked": UnitAttr()}
    assert effects_of(call(stan.REAL)) == Effect.THROWS
    assert effects_of(call(stan.REAL, **unchecked)) == Effect.NONE
    assert effects_of(call(stan.VECTOR, **unchecked)) == Effect.NONE
    assert effects_of(call(stan.VECTOR, stan.VECTOR, **unchecked)) == Effect.THROWS  # sizes may differ
    assert (
        effects_of(call(stan.REAL, definition=StringAttr("log1m"), **unchecked)) == Effect.THROWS
    )  # what it calls may
    with pytest.raises(VerifyException, match="user's function has no requirements"):
        call(stan.REAL, user=UnitAttr(), **unchecked).verify()


def _first_call(text: str) -> stan.CallOp:
    return next(op for op in lower(text).walk() if isinstance(op, stan.CallOp))


def test_totality_is_told_on_the_call() -> None:
    call = _first_call("data { real x; } generated quantities { real y = inv_logit(x); }")
    assert "total" in call.properties and effects_of(call) == Effect.NONE
    assert effects_of(call.clone()) == Effect.NONE  # it goes where the call goes
    del call.properties["total"]  # as in IR that is written by hand
    assert effects_of(call) == Effect.THROWS


def test_total_functions_of_two_containers_compare_sizes() -> None:
    call = _first_call("data { vector[2] x; vector[2] z; } generated quantities { vector[2] y = fmax(x, z); }")
    assert "total" in call.properties and effects_of(call) == Effect.THROWS


def test_calls_of_user_functions_are_not_told_to_be_total() -> None:
    call = _first_call(
        """functions { real logit(tuple(int, int) n) { return n.1; } }
        generated quantities { real y = logit((1, 2)); }"""
    )
    assert "user" in call.properties and "total" not in call.properties
    call.properties["total"] = UnitAttr()
    with pytest.raises(VerifyException, match="it is not known that it never throws"):
        call.verify()


def test_functions_of_the_library_are_looked_at_once() -> None:
    """What was found of their bodies serves those that ask later; functions of the program are looked at again."""
    module = lower(
        """functions { real loud(real x) { print(x); return student_t_lcdf(x | 3, 0, 1); } }
        generated quantities { real q = loud(1.5); }"""
    )
    functions = [op for op in module.walk() if isinstance(op, stan.FuncOp)]
    known: dict[Operation, Effect] = {}
    first = effects_within(block(module), CallEffects(functions, known))
    assert known
    assert all(function.properties.get("library") is not None for function in known)
    bodies = dict(known)
    for function in bodies:
        known[function] = Effect.DRAWS  # what a body that is not looked at cannot say
    again = effects_within(block(module), CallEffects(functions, known))
    assert again & Effect.PRINTS
    assert again == first | Effect.DRAWS
    assert set(known) == set(bodies)
