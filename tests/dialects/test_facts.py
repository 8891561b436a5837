"""What passes tell each other: declared attribute classes, verified with what they stand on, read by name nowhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf
from xdsl.dialects.builtin import ArrayAttr, IntAttr, ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from ulam.dialects.ad import AD
from ulam.dialects.rt import RT, LoopAttr, SitesAttr, SlotsAttr
from ulam.dialects.stan import STAN, ProfiledBlocksAttr
from ulam.passes import verify_facts
from ulam.passes.lowering_pipeline import lower
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.interpreter_settings import compiling

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
functions {
  real depth(real x, int n) { return n > 0 ? depth(x, n - 1) + x : x; }
  real deep_lp(real x, int n) { target += -x; return n > 0 ? deep_lp(x, n - 1) + target() : x; }
}
data { int N; vector[N] y; array[N] int k; }
parameters { real mu; real<lower=0> s; vector[N] z; }
model {
  profile("prior") { mu ~ normal(0, 1); s ~ normal(0, depth(1.5, N)); }
  z[k] ~ normal(mu, s);
  real x = deep_lp(mu, 3);
  while (x > 100) x -= s;
  for (n in 1:N) { if (y[n] > 0) y[n] ~ lognormal(mu, s); else y[n] ~ normal(z[n] + x, s); }
}
"""


def _context() -> Context:
    context = Context()
    for dialect in (builtin.Builtin, arith.Arith, func.Func, scf.Scf, STAN, RT, AD):
        context.load_dialect(dialect)
    return context


def _parsed(text: str) -> ModuleOp:
    module = Parser(_context(), text).parse_module()
    module.verify()
    verify_facts.run_on(module)
    return module


@pytest.mark.parametrize("level", [0, 3])
def test_lowered_units_have_declared_facts_only(level: int) -> None:
    """Every discardable attribute of a lowered unit is a fact; facts survive as text."""
    program = Compiler(PROGRAM, options=CompileOptions(level)).program
    found = set[str]()
    for kind in UNITS.values():
        with compiling():
            module = lower(program, kind, level).module
        verify_facts.run_on(module)
        found |= {name for op in module.walk() for name in op.attributes}
        assert str(_parsed(str(module))) == str(module)
    assert found <= set(verify_facts.FACTS), found - set(verify_facts.FACTS)
    assert {"rt.entry", "rt.slots", "rt.loop", "ad.profile"} <= found


BODY = "{ func.return %x : f64 }"
POSITION = "ad.target_position = #ad.target_position"
LOOP = """func.func @f(%n: i64) {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {{
    scf.yield
  }} {{{0}}}
  func.return
}}"""
IF = """func.func @f(%c: i1) {{
  {0}
  scf.if %c {{
    scf.yield
  }} {1}
  func.return
}}"""


PROFILED = """func.func @f() {
  %c = ad.profile_begin 0 named 0
  scf.if %c {
    scf.yield
  } {ad.profile = #ad.profile}
  func.return
}"""


@pytest.mark.parametrize(
    "text",
    [
        "module attributes {rt.slots = #rt.slots<3>} {}",
        f"func.func @f(%x: f64) -> f64 attributes {{rt.entry = #rt.entry}} {BODY}",
        f"func.func @f(%x: f64) -> f64 attributes {{{POSITION}<result 0>}} {BODY}",
        f"func.func @f(%x: f64) -> f64 attributes {{{POSITION}<argument 0>}} {BODY}",
        f"func.func @f(%x: f64) -> f64 attributes {{{POSITION}<result 0, argument 0>}} {BODY}",
        LOOP.format("rt.loop = #rt.loop<serial>"),
        LOOP.format("rt.loop = #rt.loop<interleave 4>"),
        LOOP.format("other = 3, my.own = 4"),
        PROFILED,
    ],
)  # fmt: skip
def test_facts_are_read_as_they_are_written(text: str) -> None:
    module = _parsed(text)
    assert str(_parsed(str(module))) == str(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module attributes {rt.slots = 3 : i64} {}", "builtin.module: 'rt.slots' is to be a #rt.slots, found 3 : i64"),
        ("module attributes {rt.slots = #rt.slots<-1>} {}", "a number of slots is not negative, found -1"),
        (f"func.func @f(%x: f64) -> f64 attributes {{rt.sites = #rt.sites<2>}} {BODY}", "is an attribute of func.call"),
        ("module attributes {rt.entry = #rt.entry} {}", "builtin.module: 'rt.entry' is an attribute of func.func"),
        ("module attributes {rt.entri = #rt.entry} {}", "the dialect 'rt' has no attribute 'rt.entri', but .*rt.entry"),
        (
            f"func.func @f(%x: f64) -> f64 attributes {{{POSITION}<result 1>}} {BODY}",
            "f has no result 1 of type f64 for the target",
        ),
        (
            f"func.func @f(%x: f64, %y: i1) -> f64 attributes {{{POSITION}<argument 1>}} {BODY}",
            "f has no argument 1 of type f64 for the target",
        ),
        (LOOP.format("rt.loop = #rt.loop<fast>"), "a loop is cold, serial, .*kinds, found fast"),
        (LOOP.format("rt.loop = #rt.loop<interleave>"), "two or more sums of a loop are interleaved"),
        (LOOP.format("rt.loop = #rt.loop<serial 4>"), "two or more sums of a loop are interleaved"),
        (LOOP.format("rt.ahead = #rt.ahead"), "scf.for: 'rt.ahead' is an attribute of rt.load"),
        (LOOP.format("rt.reduced = #rt.reduced"), "scf.for: 'rt.reduced' is an attribute of scf.if"),
        (LOOP.format("rt.harmless = #rt.harmless"), "scf.for: 'rt.harmless' is an attribute of rt.check"),
        (LOOP.format("stan.peeled = #stan.peeled"), "scf.for: 'stan.peeled' is an attribute of stan.for or stan.while"),
        (IF.format("", "{ad.profile = #ad.profile}"), "condition of a profile region is the result of ad.pro"),
    ],
)  # fmt: skip
def test_wrong_facts_are_refused(text: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=message):
        _parsed(text)


def test_values_of_facts_are_verified() -> None:
    for make in (
        lambda: LoopAttr(StringAttr("interleave"), IntAttr(1)),
        lambda: SlotsAttr(IntAttr(-2)),
        lambda: SitesAttr(IntAttr(0)),
        lambda: ProfiledBlocksAttr(ArrayAttr([StringAttr("modell")])),
    ):
        with pytest.raises(VerifyException):
            make()


BY_NAME = re.compile(r"\.attributes(\[|\.get\(|\.pop\()")


def test_no_attribute_is_set_or_read_by_its_name() -> None:
    """Passes and emission use the classes' accessors; nothing else hangs on ops either."""
    wrong = []
    for folder in ("dialects", "passes", "emit", "tracing", "tools", "frontend"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name in ("facts.py", "plain_attribute.py") and path.parent == ROOT / "dialects":
                continue
            text = path.read_text()
            if "__setattr__" in text:
                wrong.append(f"{path}: __setattr__")
            wrong += [
                f"{path}: {line}" for line in text.splitlines() if re.search(r"\.attributes(\[|\.get\(|\.pop\()", line)
            ]
            for node in ast.walk(ast.parse(text)):
                if (
                    isinstance(node, ast.Compare)
                    and isinstance(node.ops[0], ast.In | ast.NotIn)
                    and isinstance(place := node.comparators[0], ast.Attribute)
                    and place.attr == "attributes"
                ):
                    wrong.append(f"{path}:{node.lineno}")
    assert not wrong
