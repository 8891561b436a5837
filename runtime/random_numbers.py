"""Streams of random numbers in C: those of `Rng(seed, stream)`, without the time that NumPy's take to import."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.c_library import library


def generator_words(seed: int, stream: int) -> Any:
    """The state of `Rng(seed, stream)` as c/pcg64dxsm.h wants it."""
    entropy = [*_words_of(int(seed)), *_words_of(int(stream))]  # NumPy's ints, too
    words = (ctypes.c_uint64 * 4)()
    given = (ctypes.c_uint32 * len(entropy))(*entropy)
    library().ulam_seed_words(ctypes.addressof(given), len(entropy), ctypes.addressof(words))
    return words


def _words_of(number: int) -> list[int]:
    """32 bits each, the lower ones first; at least one."""
    if number < 0:
        raise ValueError(f"seeds and streams must not be negative, found {number}")
    return [number >> place & 0xFFFFFFFF for place in range(0, max(number.bit_length(), 1), 32)]


class UniformNumbers:
    """Uniform numbers of a stream: those of `numpy.random.Generator.uniform`."""

    def __init__(self, seed: int, stream: int) -> None:
        self._words = generator_words(seed, stream)

    def draw(self, low: float, high: float, count: int) -> npt.NDArray[np.float64]:
        """The next ones, between two bounds."""
        numbers = np.empty(count)
        library().ulam_uniform_numbers(ctypes.addressof(self._words), low, high, count, numbers.ctypes.data)
        return numbers
