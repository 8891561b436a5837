"""Verifies that facts (see `dialects/facts.py`) stand on ops of which they can be true, as xDSL does not."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ulam.dialects.ad import AD
from ulam.dialects.facts import Fact
from ulam.dialects.rt import RT
from ulam.dialects.stan import STAN
from ulam.dialects.trace import TRACE
from ulam.dialects.walk import ops_within

_DIALECTS = (STAN, RT, AD, TRACE)
FACTS: dict[str, type[Fact]] = {
    fact.name: fact for dialect in _DIALECTS for fact in dialect.attributes if issubclass(fact, Fact)
}
"""The facts of our dialects by name."""

_PREFIXES = {dialect.name for dialect in _DIALECTS}


def run_on(op: Operation) -> None:
    """Raises VerifyException if an op at or below `op` has a fact that it cannot have, or what only looks like one."""
    for inner in ops_within(op):
        if inner.attributes:
            verify_op(inner)


def verify_op(op: Operation) -> None:
    """The same, of one op."""
    for name, attribute in op.attributes.items():
        prefix, dot, _ = name.partition(".")
        if not dot or prefix not in _PREFIXES:
            continue
        if (fact := FACTS.get(name)) is None:
            known = ", ".join(sorted(other for other in FACTS if other.startswith(f"{prefix}.")))
            raise VerifyException(f"{op.name}: the dialect '{prefix}' has no attribute '{name}', but {known}")
        if not isinstance(attribute, fact):
            raise VerifyException(f"{op.name}: '{name}' is to be a #{name}, found {attribute}")
        if not isinstance(op, fact.ON):
            places = " or ".join(cls.name for cls in fact.ON)
            raise VerifyException(f"{op.name}: '{name}' is an attribute of {places}")
        attribute.verify_on(op)
