"""Classes with an `isinstance` that is as fast as that of ordinary classes.

xDSL's ops and attributes are ABCs, whose `isinstance` runs in Python unless the class is the one asked for. Passes ask
all the time. No class is ever registered as a virtual subclass of one of ours.
"""

from __future__ import annotations

from abc import ABCMeta


class PlainInstances(ABCMeta):
    """The metaclass of such classes."""

    __instancecheck__ = type.__instancecheck__
