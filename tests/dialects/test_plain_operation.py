"""Ops whose definitions are made with the first instance."""

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import operand_def, prop_def, traits_def
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure

from ulam.dialects import plain_operation as module
from ulam.dialects.plain_operation import PlainOperation, plain_operation


class _Base(PlainOperation):
    traits = traits_def(NoMemoryEffect())


@plain_operation
class _JoinedOp(_Base):
    name = "toy.joined"
    value = operand_def()
    label = prop_def(StringAttr)
    traits = traits_def(IsTerminator())


@plain_operation
class _BareOp(PlainOperation):
    name = "toy.bare"


def test_traits_are_known_without_an_instance() -> None:
    assert _JoinedOp.has_trait(IsTerminator) and _JoinedOp.has_trait(NoMemoryEffect) and not _JoinedOp.has_trait(Pure)
    assert not _BareOp.has_trait(NoMemoryEffect)
    assert set(_JoinedOp.get_irdl_definition().traits) == set(_JoinedOp.traits)


def test_first_instances_may_be_made_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    given = test.TestOp(result_types=[StringAttr("type")]).results[0]
    defined: list[type] = []
    define = module.irdl_op_definition

    def slowly(op: type[PlainOperation]) -> type[PlainOperation]:
        defined.append(op)
        sleep(0.01)
        return define(op)

    monkeypatch.setattr(module, "irdl_op_definition", slowly)

    @plain_operation
    class SharedOp(PlainOperation):
        name = "toy.shared"
        value = operand_def()

    assert not defined
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda _: SharedOp.create(operands=[given]), range(4))
        assert {each.value for each in made} == {given}  # type: ignore[attr-defined]
    assert defined == [SharedOp]
