"""The base of ulam's own ops: xDSL's, with an `isinstance` and a hash that are as fast as those of any other class.

xDSL's base class is an ABC, whose `isinstance` runs in Python, as its hash by identity does. Passes ask for both all
the time. No class is ever registered as a virtual subclass of an op.
"""

from abc import ABCMeta

from xdsl.irdl import IRDLOperation


class _PlainInstances(ABCMeta):
    __instancecheck__ = type.__instancecheck__


class PlainOperation(IRDLOperation, metaclass=_PlainInstances):
    """See above."""

    __hash__ = object.__hash__
