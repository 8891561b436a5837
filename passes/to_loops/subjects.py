"""What the error of a requirement calls the value that it is about.

    transformed data { simplex[2] q = ...; }    q: the sum is 1.5, but must be 1 ...;  q[2] is -0.5, but must be ...
    target += dirichlet_lpdf(p | a);            dirichlet_lpdf: alpha[2] is -1, but must be positive!

Inside of the check of a declared constraint it is the variable, or the part of it that is looked at; inside of a
function of the library that the program calls it is an argument of that function. Functions that these call add nothing
of their own: what they get is called as where it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.library.records import record
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.size_text import name_of_size

MOST_VALUES = 4
"""How many values a message may have: see `rt.check`."""

_NOUNS = {
    "num_elements": "the number of elements",
    "size": "the size",
    "rows": "the number of rows",
    "cols": "the number of columns",
    "sum": "the sum",
    "dot_self": "the sum of squares",
}
"""How messages call what these functions give."""

_TRANSPOSE = stan.UNARY_OPERATORS["'"]


@record(frozen=True)
class Subject:
    """`name` has a `{}` for each of `values`: the positions of a part; `noun` is what is said of it, '' for itself."""

    name: str
    values: tuple[SSAValue, ...] = ()
    noun: str = ""

    def part(self, kinds: Sequence[str], indices: Sequence[SSAValue]) -> Subject:
        """Of a part of it; of all of it where more than one index selects several positions."""
        if any(kind not in ("single", "all") for kind in kinds):
            return replace(self, noun="")
        while kinds and kinds[-1] == "all":
            kinds = kinds[:-1]
        if not kinds:
            return self
        text = ", ".join("{}" if kind == "single" else "" for kind in kinds).replace(", ,", ",,")
        return Subject(f"{self.name}[{text}]", (*self.values, *indices))


def subject_of_requirement(low: Lowering, op: stan.CallOp) -> Subject:
    """What the first argument of a requirement is called."""
    found = described(low, op.arguments[0])
    return found if found is not None else Subject(name_of_size(op.arguments[0]) or "value")


def described(low: Lowering, value: SSAValue) -> Subject | None:
    """What is checked, if it is an argument of a function of the library, or a part or a size of one."""
    op = value.owner
    if not isinstance(op, Operation):
        for frame in reversed(low.frames):
            if value in frame.told:
                return frame.told[value]
        function = op.parent_op()
        if not isinstance(function, stan.FuncOp):
            return None
        return Subject(function.argument_names.data[value.index].data)  # type: ignore[attr-defined]
    if isinstance(op, stan.PromoteOp | _TRANSPOSE):
        return described(low, op.operands[0])
    if isinstance(op, stan.IndexOp):
        whole = described(low, op.operands[0])
        return None if whole is None else whole.part([k.data for k in op.kinds], _indices(low, op.operands[1:]))
    if isinstance(op, stan.CallOp) and (noun := _NOUNS.get(op.callee.data)) is not None:
        measured = described(low, op.arguments[0])
        return None if measured is None else replace(measured, noun=noun)
    return None


def _indices(low: Lowering, operands: Sequence[SSAValue]) -> list[SSAValue]:
    found = [low.env.get(ssa) for ssa in operands]
    return [index for index in found if isinstance(index, SSAValue) and index.type == i32]


def message_about(
    low: Lowering, subject: Subject, where: str, phrase: str, arguments: Sequence[SSAValue]
) -> tuple[str, list[SSAValue]]:
    """A message with its values: `where` is the function, if no declared variable is being checked."""
    name, positions = subject.name, list(subject.values)
    if name.count("{}") != len(positions):
        name, positions = name.partition("[")[0], []
    while len(arguments) + len(positions) > MOST_VALUES:  # the whole that the part is one of
        name = name[: name.rindex("[")]
        positions = positions[: name.count("{}")]
    if len(positions) < len(subject.values):
        subject = replace(subject, noun=subject.noun or "an element")
    values = [*arguments, *positions]
    name = name.format(*(f"{{{n}}}" for n in range(len(arguments), len(values))))
    if low.subjects:
        variable = low.subjects[-1]
        is_named = name == variable or name.startswith(f"{variable}[")
        about = f"{name}: {subject.noun}" if subject.noun else name if is_named else f"{variable}: {name}"
    else:
        about = f"{where}: {subject.noun} of {name}" if subject.noun else f"{where}: {name}"
    return f"{about} is {{0}}, but {phrase}", values
