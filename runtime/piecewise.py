"""Compiles a program that was taken to pieces (`passes/pieces.py`), each with a key of its own in the cache.

What a unit of such a program is compiled from has a digest: of the program without its pieces, and of each piece. The
cache is asked by these digests when it does not know the program's text, so that a changed statement costs one piece.
Sites and layouts stand at other places of the text then; they are told by what comes how many-th in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ulam.library.records import record
from ulam.passes.units import UnitKind, density_unit
from ulam.runtime.unit_objects import PieceObject, UnitObject

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.passes.pieces import Pieces, Place

PLACE = ("file", "line", "column")


class UnitCompiler(Protocol):
    """What is asked of `ulam.runtime.compiler.Compiler`."""

    def of_piece(self, module: ModuleOp) -> UnitCompiler:
        """What compiles a piece of the program."""
        ...

    def compiled_together(
        self, jobs: Sequence[tuple[Any, UnitKind]], then: Callable[[int, UnitObject], UnitObject] | None = None
    ) -> list[UnitObject]:
        """Units of this program or of pieces of it; `then` is called with the number of each and the unit."""
        ...


class UnitStore(Protocol):
    """Where units are kept by the digest of what they are compiled from."""

    def key(self, digest: str, unit: str) -> str: ...
    def get(self, key: str) -> tuple[Mapping[str, Any], bytes] | None: ...
    def put(self, key: str, fields: dict[str, Any], code: bytes) -> None: ...


@record
class _Job:
    """Something to compile: the program's own part of a unit, or a piece."""

    compiler: UnitCompiler
    kind: UnitKind
    digest: str
    places: Sequence[Place]
    key: str = ""


class PiecewiseUnits:
    """The units of one program."""

    def __init__(self, compiler: UnitCompiler, pieces: Pieces, store: UnitStore | None) -> None:
        self._compiler = compiler
        self._pieces = pieces
        self._store = store
        self._parts = [compiler.of_piece(piece.module) for piece in pieces.parts]

    def unit(self, kind: UnitKind) -> UnitObject:
        """A unit with the pieces that it calls."""
        is_density = kind.computes == "density"
        digest, places = self._pieces.digests["density" if is_density else "constrain"]
        jobs = [_Job(self._compiler, kind, digest, places)]
        if is_density:
            gradient = density_unit(1, kind.propto)
            for part, piece in zip(self._parts, self._pieces.parts, strict=True):
                jobs.append(_Job(part, gradient, piece.digest, piece.places))
        main, *parts = self._objects(jobs)
        main.pieces = [
            PieceObject(part.code, part.n_slots, piece.data, piece.reads, part.layouts, job.key)
            for job, part, piece in zip(jobs[1:], parts, self._pieces.parts, strict=False)
        ]
        return main

    def _objects(self, jobs: Sequence[_Job]) -> list[UnitObject]:
        found = [self._stored(job) for job in jobs]
        missing = [job for job, unit in zip(jobs, found, strict=True) if unit is None]
        # Each is stored as soon as it is there: a call that is interrupted loses nothing.
        made = iter(
            self._compiler.compiled_together(
                [(job.compiler, job.kind) for job in missing], lambda number, unit: self._kept(missing[number], unit)
            )
        )
        return [next(made) if unit is None else unit for unit in found]

    def _stored(self, job: _Job) -> UnitObject | None:
        if self._store is None:
            return None
        job.key = self._store.key(job.digest, job.kind.name)
        match self._store.get(job.key):
            case (
                {
                    "places": list(old),
                    "sites": list(sites),
                    "n_slots": int(n),
                    "draws": bool(draws),
                    "layouts": list(layouts),
                },
                bytes(code),
            ) if len(old) == len(job.places):
                now = {tuple(place): there for place, there in zip(old, job.places, strict=True)}
                return UnitObject(code, _moved(sites, now), n, draws, _moved(layouts, now))
            case _:
                return None

    def _kept(self, job: _Job, unit: UnitObject) -> UnitObject:
        """A unit that was compiled now, and stored, if all places that it tells are among those of the program."""
        places = set(job.places)
        told = [tuple(entry[name] for name in PLACE) for entry in (*unit.sites, *unit.layouts)]
        if self._store is not None and all(place in places or not place[1] for place in told):
            fields = {
                "places": list(job.places), "sites": unit.sites, "n_slots": unit.n_slots, "draws": unit.draws,
                "layouts": unit.layouts,
            }  # fmt: skip
            self._store.put(job.key, fields, unit.code)
        return unit


def _moved(entries: Iterable[Mapping[str, Any]], now: Mapping[tuple[Any, ...], Place]) -> list[dict[str, Any]]:
    """Entries that tell a place, with where it is now."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        place = tuple(entry[name] for name in PLACE)
        found.append({**entry, **dict(zip(PLACE, now.get(place, place), strict=True))})
    return found
