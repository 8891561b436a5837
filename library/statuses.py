"""How compiled code says what became of a call: the statuses that functions return and checks leave with.

Those of the C runtime are the same (`ULAM_OK` and below in runtime/c/context.h).
"""

from __future__ import annotations

OK = 0
REJECTION = 1
"""The point is refused, as by `reject`: a sampler would go on with another."""
FATAL = 2
"""An error that no other point would mend, as an index out of range or `fatal_error`."""
LOCATE = 3
"""Of a hot unit: an error happened; the unit `locate` tells which."""
STOPPED = 4
"""The run was stopped from outside, by a signal or a time limit."""
