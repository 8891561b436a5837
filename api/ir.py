"""The dialects of ulam's IR, for front ends and passes of one's own: docs/dialects has every op, type and attribute.

    from ulam.ir import stan

    stan.CallOp("exp", [value], stan.REAL, [1])
"""

from __future__ import annotations

from ulam.dialects import ad, rt, stan, trace

__all__ = ["ad", "rt", "stan", "trace"]
