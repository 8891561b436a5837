from typing import Any

from ulam.runtime.program import Unit

class DensityCall:
    """Evaluations of a loaded unit: see python_c/calls.c."""

    def __init__(
        self, unit: Unit, run: int, entry: int, bound: int, n: int, with_gradient: bool, keeps: bool
    ) -> None: ...
    @property
    def unit(self) -> Unit: ...
    def evaluate(self, model: Any, theta: Any, jacobian: bool, out: Any, /) -> Any:
        """The log density, with its gradient if there is one; None if an array is not as the code wants it."""

def owned(address: int, give_back: int, /) -> object:
    """What calls the C function `give_back` with the address when nobody refers to it: see python_c/calls.c."""

def quicken(model: type, log_density: str, log_density_gradient: str, /) -> None:
    """Has these methods of the class evaluate without Python code, where a call has the usual arguments.

    Once in a process; with their signatures and descriptions. All other calls are those of the methods in Python.
    """
