"""What the emitter tells LLVM: alias scopes, constancy of bound data, fast-math flags, loop metadata."""

from __future__ import annotations

import re

import pytest
from emission import LOOSE, STRICT, emit, parse
from xdsl.dialects import func

from ulam.dialects.walk import ops_within
from ulam.emit import alias, jit
from ulam.emit.alias import find_roots
from ulam.emit.llvm_module import emit_module
from ulam.emit.llvm_text import EmitOptions
from ulam.emit.outlined_code import LONG_MODULE_OPS
from ulam.emit.target import Vectors

MAP = """
func.func @f(%x: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %y = rt.bound 0 : !rt.buf<f64>
  %w = rt.alloc %n : !rt.buf<f64>
  %view = rt.view %w[%one] : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %b = rt.load %y[%i] : f64
    %c = arith.mulf %a, %b : f64
    rt.store %c, %view[%i] : f64
    ad.accumulate %x[%i], %c
  }
  func.return
}
"""


def accesses(text: str, kind: str) -> list[str]:
    return [line for line in text.splitlines() if f" {kind} double" in line]


def test_roots() -> None:
    (function,) = parse(MAP).body.block.ops
    assert isinstance(function, func.FuncOp)
    roots = find_roots(function, list(ops_within(function.body)), bound_is_constant=True)
    names = {value.name_hint: root for value, root in roots.roots.items()}
    assert names["w"] == names["view"]
    assert len({names["x"], names["y"], names["w"]}) == 3
    assert roots.written == {names["x"], names["w"]}


def test_accesses_carry_their_scope_and_exclude_the_others() -> None:
    text = emit(MAP)
    metadata = dict(re.findall(r"^!(\d+) = (.*)$", text, re.M))
    scopes: dict[str, set[str]] = {}
    excluded: dict[str, set[str]] = {}
    for line in accesses(text, "load") + [line for line in text.splitlines() if "store double" in line]:
        own, others = re.findall(r"!alias.scope !(\d+), !noalias !(\d+)", line)[0]
        scopes[line] = set(re.findall(r"!(\d+)", metadata[own]))
        excluded[line] = set(re.findall(r"!(\d+)", metadata[others]))
        assert len(scopes[line]) == 1
        assert scopes[line].isdisjoint(excluded[line])
        assert len(excluded[line]) == 2


def test_the_loop_is_widened_without_overlap_tests() -> None:
    optimized = jit.optimized_text(emit(MAP))
    assert "x double>" in optimized
    assert "memcheck" not in optimized


ROWS = """
func.func @f(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %stride: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %k = arith.muli %i, %stride : i64
    %a = rt.load %x[%k] : f64
    %b = rt.math exp(%a) : (f64) -> f64
    rt.store %b, %y[%i] : f64
  }
  func.return
}
"""


def test_there_is_no_version_for_rows_of_one_element() -> None:
    """It would be the only one that is widened."""
    optimized = jit.optimized_text(emit_module(parse(ROWS), EmitOptions(3)))
    assert not re.search(r"icmp (eq|ne) i64 %stride, 1\b", optimized)


def test_more_roots_than_scopes() -> None:
    count = alias.MAX_WRITTEN_ROOTS + 5
    allocs = "\n".join(f"%b{i} = rt.alloc %n : !rt.buf<f64>" for i in range(count))
    stores = "\n".join(f"rt.store %v, %b{i}[%n] : f64" for i in range(count))
    text = emit(
        f"""func.func @f(%n: i64, %v: f64) attributes {{rt.entry = #rt.entry}} {{
          {allocs}
          {stores}
          func.return
        }}"""
    )
    jit.verify(text)
    stores_text = [line for line in text.splitlines() if "store double" in line]
    assert len({line.split("!alias.scope")[1] for line in stores_text}) == alias.MAX_WRITTEN_ROOTS


def test_bound_data_are_constant_only_where_nothing_binds() -> None:
    reader = """func.func @{name}(%i: i64) -> f64 {attributes} {{
      %y = rt.bound 0 : !rt.buf<f64>
      %x = rt.load %y[%i] : f64
      func.return %x : f64
    }}
    """
    alone = reader.format(name="shared", attributes="") + reader.format(
        name="g", attributes="attributes {rt.entry = #rt.entry}"
    )
    assert emit(alone).count("!invariant.load") == 4
    binder = """func.func @bind(%i: i64) attributes {rt.entry = #rt.entry} {
      %x = func.call @shared(%i) : (i64) -> (f64)
      rt.set_bound 1, %x : f64
      func.return
    }"""
    text = emit(alone + binder)
    assert text.count("!invariant.load") == 2
    assert "!invariant.load" not in text.split("@shared(")[1].split("\n}")[0]


FLAGS = """
func.func @f(%a: f64, %b: f64, %x: !rt.buf<f64>, %i: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %p = arith.mulf %a, %b : f64
  %s = arith.addf %p, %b fastmath<reassoc> : f64
  %d = arith.divf %s, %a : f64
  %m = arith.negf %d : f64
  ad.accumulate %x[%i], %m
  func.return %m : f64
}
"""


@pytest.mark.parametrize("level", [0, 1, 2])
def test_strict_levels_have_no_flags(level: int) -> None:
    body = emit(FLAGS, level)
    assert not re.search(r"reassoc|contract|fast|nnan|ninf|nsz|arcp|afn", body)


@pytest.mark.parametrize("level", [3, 4])
def test_loose_levels_contract_and_reassociate_where_marked(level: int) -> None:
    text = emit(FLAGS, level)
    assert "%p = fmul contract double" in text
    assert "%s = fadd reassoc contract double" in text
    assert "%d = fdiv double" in text
    assert "%m = fneg contract double" in text
    assert text.count("fadd reassoc contract") == 2
    assert not re.search(r"nnan|ninf|nsz|arcp|afn| fast ", text)


SERIAL = """
func.func @f(%n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %z = arith.constant 0.0 : f64
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %z) -> (f64) : i64 {
    %y = rt.math exp(%x) : (f64) -> f64
    scf.yield %y : f64
  } {rt.loop = #rt.loop<serial>}
  func.return %r : f64
}
"""


def test_serial_loops_call_libm_at_loose_levels_only() -> None:
    assert "call double @exp(" in emit(SERIAL, LOOSE)
    assert "call double @ulam.exp(" in emit(SERIAL, STRICT)
    assert "call double @ulam.exp(" in emit(SERIAL.replace("{rt.loop = #rt.loop<serial>}", ""), LOOSE)


def loop_hints(text: str) -> list[str]:
    """The metadata of the only loop."""
    loop = re.search(r"!llvm.loop !(\d+)", text)
    assert loop is not None
    nodes = dict(re.findall(r"^!(\d+) = (.*)$", text, re.M))
    return [nodes[n] for n in re.findall(r"!(\d+)", nodes[loop[1]])[1:]]


def test_cold_loops_are_left_alone() -> None:
    text = emit(SERIAL.replace("serial", "cold"))
    hints = loop_hints(text)
    assert '!{!"llvm.loop.unroll.disable"}' in hints
    assert '!{!"llvm.loop.vectorize.enable", i1 false}' in hints


KNOWN_TRIPS = """
func.func @f(%x: !rt.buf<f64>) -> f64 attributes {{rt.entry = #rt.entry}} {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = arith.constant {trips} : i64
  %z = arith.constant 0.0 : f64
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %z) -> (f64) : i64 {{
    %y = rt.load %x[%i] : f64
    %t = arith.addf %s, %y fastmath<reassoc> : f64
    scf.yield %t : f64
  }}
  func.return %r : f64
}}
"""
UNROLLED_NEVER = '!{!"llvm.loop.unroll.disable"}'
MASKED = '!{!"llvm.loop.vectorize.predicate.enable", i1 true}'


@pytest.mark.parametrize(
    ("trips", "level", "stays"), [(4, 3, False), (9, 3, False), (8, 3, True), (99, 4, True), (99, 2, False)]
)
def test_loops_of_known_length_are_widened_rather_than_unrolled(trips: int, level: int, stays: bool) -> None:
    assert (UNROLLED_NEVER in loop_hints(emit(KNOWN_TRIPS.format(trips=trips), level))) == stays


@pytest.mark.parametrize(
    ("trips", "lanes", "level", "masked"),
    [
        (46, 8, 3, True),  # 5 vectors, and 6 single ones that would take longer than all of them
        (46, 4, 3, False),  # 11 vectors, and 2 single ones
        (46, 4, 2, True),  # the same on every processor
        (434, 8, 3, False),  # masks for all would cost more than 2 single ones
        (48, 8, 3, False),  # nothing is left over
        (7, 4, 3, True),
        (3, 4, 3, False),
    ],
)
def test_rests_are_masked_where_that_is_cheaper(trips: int, lanes: int, level: int, masked: bool) -> None:
    text = emit_module(parse(KNOWN_TRIPS.format(trips=trips)), EmitOptions(level, vectors=Vectors(lanes)))
    assert (MASKED in loop_hints(text)) == masked


@pytest.mark.parametrize(
    ("vectors", "level", "masked"),
    [
        (Vectors(8), 3, True),
        (Vectors(4), 3, True),
        (Vectors(4, 4, masks=False), 3, False),
        (Vectors(4, 4, masks=False), 2, True),
    ],
)
def test_loops_that_write_are_masked_where_there_are_mask_registers(vectors: Vectors, level: int, masked: bool) -> None:
    loop = MAP.replace("ad.accumulate %x[%i], %c\n  }", "} {rt.loop = #rt.loop<masked_tail>}")
    text = emit_module(parse(loop), EmitOptions(level, vectors=vectors))
    assert (MASKED in loop_hints(text)) == masked


@pytest.mark.parametrize("kind", ["functions", "strip_of_functions", "masked_tail", "interleave 4"])
@pytest.mark.parametrize(("vectors", "level"), [(Vectors(4), 3), (Vectors(4), 2), (Vectors(8), 3), (Vectors(4, 4), 3)])
def test_functions_have_the_longest_vectors_where_llvm_would_take_others(
    kind: str, vectors: Vectors, level: int
) -> None:
    loop = MAP.replace("ad.accumulate %x[%i], %c\n  }", f"}} {{rt.loop = #rt.loop<{kind}>}}")
    text = emit_module(parse(loop), EmitOptions(level, vectors=vectors))
    expected = "functions" in kind and level == 3 and vectors == Vectors(4, 8)
    assert ('"prefer-vector-width"="512"' in text) == expected
    assert "llvm.loop.vectorize.width" not in text  # LLVM complains on standard error where it cannot follow


IN_BRANCH = """
func.func @f(%x: !rt.buf<f64>, %c: i1) -> f64 attributes {{rt.entry = #rt.entry}} {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = arith.constant {trips} : i64
  %z = arith.constant 0.0 : f64
  %t = scf.if %c -> (f64) {{
    %r = scf.for %i = %zero to %n step %one iter_args(%s = %z) -> (f64) : i64 {{
      %y = rt.load %x[%i] : f64
      %a = arith.addf %s, %y fastmath<reassoc> : f64
      scf.yield %a : f64
    }} {{rt.loop = #rt.loop<interleave 4>}}
    scf.yield %r : f64
  }} else {{
    scf.yield %z : f64
  }}
  func.return %t : f64
}}
"""


@pytest.mark.parametrize(("trips", "level", "alone"), [(5, 3, True), (15, 3, True), (16, 3, False), (5, 2, False)])
def test_short_sums_in_branches_have_one_vector_of_sums(trips: int, level: int, alone: bool) -> None:
    hints = loop_hints(emit_module(parse(IN_BRANCH.format(trips=trips)), EmitOptions(level)))
    assert ('!{!"llvm.loop.interleave.count", i32 1}' in hints) == alone
    assert ('!{!"llvm.loop.interleave.count", i32 4}' in hints) != alone


LONG = "\n".join(f"%e{n} = arith.addi %n, %n : i64" for n in range(LONG_MODULE_OPS))
SUMMED = """
    %t = scf.for %i = %zero to %n step %one iter_args(%s = %z) -> (f64) : i64 {
      %a = rt.load %x[%i] : f64
      %b = arith.addf %s, %a fastmath<reassoc> : f64
      scf.yield %b : f64
    } {rt.loop = #rt.loop<interleave 4>}"""
ADDED = """
    scf.for %i = %zero to %n step %one : i64 {
      ad.accumulate %x[%i], %z
    } {rt.loop = #rt.loop<interleave 4>}"""


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(("loop", "level", "in_long"), [(SUMMED, 3, True), (ADDED, 3, False), (ADDED, 2, True)])
def test_only_sums_run_side_by_side_in_long_modules(loop: str, level: int, in_long: bool, long: bool) -> None:
    text = f"""func.func @f(%x: !rt.buf<f64>, %n: i64) attributes {{rt.entry = #rt.entry}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %z = arith.constant 0.0 : f64
    {LONG if long else ""}{loop}
    func.return
    }}"""
    side_by_side = '!{!"llvm.loop.interleave.count", i32 4}' in loop_hints(emit_module(parse(text), EmitOptions(level)))
    assert side_by_side == (in_long or not long)


MOVED = """
    scf.for %i = %zero to %n step %one : i64 {{
      %j = arith.addi %i, %n : i64
      %a = rt.load %x[%j] : f64
      %b = {operation}
      rt.store %b, %x[%i] : f64
    }}"""


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    ("operation", "level", "in_long"),
    [
        ("arith.mulf %a, %z : f64", 3, False),
        ("arith.mulf %a, %z : f64", 2, True),
        ("arith.divf %a, %z : f64", 3, True),
        ("rt.math exp(%a) : (f64) -> f64", 3, True),
    ],
)
def test_loops_that_only_move_elements_are_not_widened_in_long_modules(
    operation: str, level: int, in_long: bool, long: bool
) -> None:
    text = f"""func.func @f(%x: !rt.buf<f64>, %n: i64) attributes {{rt.entry = #rt.entry}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %z = arith.constant 0.0 : f64
    {LONG if long else ""}{MOVED.format(operation=operation)}
    func.return
    }}"""
    hints = loop_hints(emit_module(parse(text), EmitOptions(level)))
    is_widened = '!{!"llvm.loop.vectorize.enable", i1 false}' not in hints
    assert is_widened == (in_long or not long)


ONE_BY_ONE = """
    scf.for %i = %zero to %n step %one : i64 {{
      %a = rt.load %x[%i] : f64
      %b = rt.math inv_logit(%a) : (f64) -> f64
      rt.store %b, %x[%i] : f64
    }} {{rt.loop = #rt.loop<{kind}>}}"""


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    ("kind", "level", "called_in_long"), [("serial", 3, True), ("functions", 3, False), ("serial", 2, False)]
)
def test_long_modules_call_functions_that_are_computed_one_by_one(
    kind: str, level: int, called_in_long: bool, long: bool
) -> None:
    text = f"""func.func @f(%x: !rt.buf<f64>, %n: i64) attributes {{rt.entry = #rt.entry}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    {LONG if long else ""}{ONE_BY_ONE.format(kind=kind)}
    func.return
    }}"""
    call = next(
        line
        for line in emit_module(parse(text), EmitOptions(level)).split("\n")
        if "call double @ulam.inv_logit" in line
    )
    assert call.endswith(" noinline") == (called_in_long and long)


COLUMNS = KNOWN_TRIPS.replace("}\n  func.return", "} {{rt.loop = #rt.loop<columns>}}\n  func.return")


@pytest.mark.parametrize("trips", [7, 8, 11])
def test_columns_are_widened_and_not_written_out(trips: int) -> None:
    hints = loop_hints(emit_module(parse(COLUMNS.format(trips=trips)), EmitOptions(3)))
    assert UNROLLED_NEVER in hints
    # what is forced, LLVM tells on standard error if it cannot do it
    assert '!{!"llvm.loop.vectorize.enable", i1 true}' not in hints


def test_functions_that_are_not_entries_are_internal() -> None:
    text = emit(
        """func.func @inner(%x: f64) -> f64 {
          func.return %x : f64
        }
        func.func @outer(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
          %r = func.call @inner(%x) : (f64) -> (f64)
          func.return %r : f64
        }"""
    )
    assert "define internal i32 @inner(" in text
    assert "define i32 @outer(" in text
    data = jit.compile_object(text)
    assert jit.load_object(data).address("outer")
    with pytest.raises(jit.CodeGenerationError, match="'inner' cannot be linked"):
        jit.load_object(data).address("inner")
