"""A client of BridgeStan's C interface, over ctypes alone: by the functions of C, and by R's, which take addresses."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_P, _I, _U, _B, _D, _S = (
    ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_bool, ctypes.c_double, ctypes.c_char_p,
)  # fmt: skip

PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "bs_model_construct": (_P, (_S, _U, _P)),
    "bs_model_destruct": (None, (_P,)),
    "bs_free_error_msg": (None, (_P,)),
    "bs_name": (_S, (_P,)),
    "bs_model_info": (_S, (_P,)),
    "bs_param_names": (_S, (_P, _B, _B)),
    "bs_param_unc_names": (_S, (_P,)),
    "bs_param_num": (_I, (_P, _B, _B)),
    "bs_param_unc_num": (_I, (_P,)),
    "bs_param_constrain": (_I, (_P, _B, _B, _P, _P, _P, _P)),
    "bs_param_unconstrain": (_I, (_P, _P, _P, _P)),
    "bs_param_unconstrain_json": (_I, (_P, _S, _P, _P)),
    "bs_param_initialize": (_I, (_P, _S, _P, _D, _I, _B, _P, _P)),
    "bs_log_density": (_I, (_P, _B, _B, _P, _P, _P)),
    "bs_log_density_gradient": (_I, (_P, _B, _B, _P, _P, _P, _P)),
    "bs_log_density_hessian": (_I, (_P, _B, _B, _P, _P, _P, _P, _P)),
    "bs_log_density_hessian_vector_product": (_I, (_P, _B, _B, _P, _P, _P, _P, _P)),
    "bs_rng_construct": (_P, (_U, _P)),
    "bs_rng_destruct": (None, (_P,)),
    "bs_set_print_callback": (_I, (_P, _P)),
}
"""Result and arguments of each function; the last one is the message of an error where there is one."""

WITHOUT_R = ("bs_set_print_callback",)
R_NAMES = [f"{name}_R" for name in PROTOTYPES if name not in WITHOUT_R] + ["bs_version_R"]
VERSION = ("bs_major_version", "bs_minor_version", "bs_patch_version")


class ClientError(RuntimeError):
    """What the library said."""


class BridgeStanClient:
    """A model of a library. Numbers are floats, vectors NumPy arrays."""

    def __init__(self, path: str | os.PathLike[str], data: object = None, seed: int = 1234) -> None:
        self.library = ctypes.CDLL(os.fspath(path))
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        text = None if data is None else data if isinstance(data, bytes) else json.dumps(data).encode()
        with self.message() as error:
            self.model = self.library.bs_model_construct(text, seed, error)
            if not self.model:
                raise ClientError(self._take(error))

    def close(self) -> None:
        self.library.bs_model_destruct(self.model)
        self.model = None

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the model that returns 0 or -1."""
        with self.message() as error:
            status = getattr(self.library, f"bs_{name}")(self.model, *arguments, error)
            if status:
                assert status == -1
                raise ClientError(self._take(error))
            assert not ctypes.c_void_p.from_address(error).value

    def _take(self, error: int) -> str:
        address = ctypes.c_void_p.from_address(error).value
        assert address, "an error without a message"
        text = ctypes.string_at(address).decode()
        self.library.bs_free_error_msg(address)
        return text

    @contextmanager
    def message(self) -> Iterator[int]:
        """The address of a place for a message."""
        place = ctypes.c_void_p()
        yield ctypes.addressof(place)

    def names(self, tp: bool = False, gq: bool = False) -> list[str]:
        return _split(self.library.bs_param_names(self.model, tp, gq))

    def unconstrained_names(self) -> list[str]:
        return _split(self.library.bs_param_unc_names(self.model))

    def size(self, tp: bool = False, gq: bool = False) -> int:
        return self.library.bs_param_num(self.model, tp, gq)

    @property
    def n(self) -> int:
        return self.library.bs_param_unc_num(self.model)

    def rng(self, seed: int) -> int:
        return self.library.bs_rng_construct(seed, None)

    def constrain(self, x: Any, tp: bool = False, gq: bool = False, rng: int | None = None) -> Any:
        out = np.empty(self.size(tp, gq))
        self.call("param_constrain", tp, gq, _address(x), out.ctypes.data, rng)
        return out

    def unconstrain(self, values: Any) -> Any:
        out = np.empty(self.n)
        self.call("param_unconstrain", _address(values), out.ctypes.data)
        return out

    def unconstrain_json(self, values: object) -> Any:
        out = np.empty(self.n)
        self.call("param_unconstrain_json", json.dumps(values).encode(), out.ctypes.data)
        return out

    def initialize(
        self, values: object, rng: int, radius: float = 2, tries: int = 100, jacobian: bool = True
    ) -> Any:
        out = np.empty(self.n)
        text = None if values is None else json.dumps(values).encode()
        self.call("param_initialize", text, rng, radius, tries, jacobian, out.ctypes.data)
        return out

    def density(self, x: Any, propto: bool = True, jacobian: bool = True) -> float:
        value = ctypes.c_double()
        self.call("log_density", propto, jacobian, _address(x), ctypes.addressof(value))
        return value.value

    def gradient(self, x: Any, propto: bool = True, jacobian: bool = True) -> tuple[float, Any]:
        value, gradient = ctypes.c_double(), np.empty(self.n)
        arguments = (propto, jacobian, _address(x), ctypes.addressof(value), gradient.ctypes.data)
        self.call("log_density_gradient", *arguments)
        return value.value, gradient

    def hessian(self, x: Any, propto: bool = True, jacobian: bool = True) -> tuple[float, Any, Any]:
        value, gradient, hessian = ctypes.c_double(), np.empty(self.n), np.empty((self.n, self.n))
        results = (ctypes.addressof(value), gradient.ctypes.data, hessian.ctypes.data)
        self.call("log_density_hessian", propto, jacobian, _address(x), *results)
        return value.value, gradient, hessian

    def hessian_vector(self, x: Any, v: Any, propto: bool = True, jacobian: bool = True) -> tuple[float, Any]:
        value, product = ctypes.c_double(), np.empty(self.n)
        arguments = (propto, jacobian, _address(x), _address(v), ctypes.addressof(value), product.ctypes.data)
        self.call("log_density_hessian_vector_product", *arguments)
        return value.value, product


def _address(values: Any) -> int:
    assert values.dtype == np.float64 and values.flags.c_contiguous
    return values.ctypes.data


def _split(text: bytes) -> list[str]:
    return text.decode().split(",") if text else []
