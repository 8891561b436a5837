"""The data sets of a study: read when their turn comes, and told apart by what is in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ulam.runtime.data import Values, read_data
from ulam.runtime.errors import ArgumentError
from ulam.runtime.json_text import plain
from ulam.runtime.named_text import NamedText
from ulam.runtime.parallel_jobs import job_seed
from ulam.runtime.studies.jobs import DataSet

DIGEST = 32
"""Hexadecimal digits that tell data sets apart."""

_KINDS = (Mapping, str, os.PathLike, NamedText)


class AnnotatedSets(list[Any]):
    """Data sets, and beside each what `extract` is given with its fit."""

    def __init__(self, datasets: Sequence[Any], about: Sequence[Any]) -> None:
        super().__init__(datasets)
        self.about = about


class DataSets:
    """Data sets by their index. Files are read when they are asked for, and not kept."""

    def __init__(self, given: Any, seed: int) -> None:
        if isinstance(given, (str, os.PathLike, NamedText)) or not isinstance(given, Iterable):
            raise ArgumentError(f"datasets must be a sequence or a mapping of data sets, found {type(given).__name__}")
        self.names: list[str] | None = None
        self.seed = seed
        self.about: Sequence[Any] | None = given.about if isinstance(given, AnnotatedSets) else None
        if isinstance(given, Mapping):
            self.names = [str(name) for name in given]
            self._sets: Sequence[Any] = list(given.values())
        else:
            self._sets = given if isinstance(given, Sequence) else list(given)
        if self.names is not None:
            for name, each in zip(self.names, self._sets, strict=True):
                _check_kind(each, f"datasets[{name!r}]")

    def __len__(self) -> int:
        return len(self._sets)

    def name(self, index: int) -> str:
        """What messages call it: its name, or the path that was given."""
        if self.names is not None:
            return self.names[index]
        given = self._sets[index]
        is_path = isinstance(given, os.PathLike) or (isinstance(given, str) and given.lstrip()[:1] not in ("{", "["))
        return os.fspath(given) if is_path else ""

    def values(self, index: int) -> Values:
        """What is in it. Raises what reading it raises."""
        given = self._sets[index]
        _check_kind(given, f"datasets[{index}]")
        return read_data(given)

    def fit_seed(self, index: int) -> int:
        """The seed of its fit."""
        return job_seed(self.seed, index + 1)

    def make(self, index: int) -> DataSet:
        """All that its fit needs."""
        about = None if self.about is None else self.about[index]
        return DataSet(index, self.name(index), self.values(index), self.fit_seed(index), about)

    def digest(self, index: int) -> str:
        """Tells it apart from others; empty if it cannot be read."""
        try:
            values = self.values(index).values
            return digest_of(values if self.about is None else {"data": values, "about": self.about[index]})
        except Exception:  # which its turn will tell
            return ""

    def described(self, index: int) -> str:
        """For messages."""
        name = self.name(index)
        return f"data set {index}{f' ({name})' if name else ''}"


def _check_kind(given: Any, where: str) -> None:
    if not isinstance(given, _KINDS):
        raise ArgumentError(f"{where} must be a path, JSON text or a mapping, found {type(given).__name__}")


def digest_of(value: Any) -> str:
    """Of data: the same for arrays and lists with the same numbers."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()[:DIGEST]


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        digest.update(b"{%d" % len(value))
        for name in sorted(value, key=str):
            digest.update(f"{name!s}\0".encode("utf-8", "backslashreplace"))
            _add(digest, value[name])
        return
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.empty(0, dtype=object)
    if array.dtype.kind in "iub":
        array = array.astype(np.int64)
    elif array.dtype.kind == "f":
        array = array.astype(np.float64)
    else:
        digest.update(json.dumps(plain(value), sort_keys=True).encode())
        return
    digest.update(f"{array.dtype.kind}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
