"""Compiles the units of a program, each with a key in the cache that says what it is compiled from.

What a unit is compiled from has a digest (`passes/unit_digests.py`), and so has each piece that a large program was
taken to (`passes/pieces.py`). The cache is asked by these digests when it does not know the program's text, so that a
changed statement costs one unit, or one piece of it. Sites and layouts stand at other places of the text then; they are
told by what comes how many-th in the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ulam.library.records import record
from ulam.passes.units import UnitKind, density_unit
from ulam.runtime.unit_objects import PieceObject, UnitObject

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.passes.content_digests import ContentDigest, Place
    from ulam.passes.pieces import ProgramPiece

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
    digest: ContentDigest
    key: str = ""


class UnitsByContent:
    """The units of one program, by the digests of what they compute; and its pieces, if it was taken to pieces."""

    def __init__(
        self,
        compiler: UnitCompiler,
        digests: Mapping[str, ContentDigest],
        pieces: Sequence[ProgramPiece],
        store: UnitStore | None,
        libraries: Mapping[str, str],
    ) -> None:
        """`libraries`: of other packages, and what changes with them: their functions may be more than their ops."""
        self._compiler = compiler
        self._digests = digests
        self._store = store
        self._of_libraries = "".join(f" {name} {known}" for name, known in sorted(libraries.items()))
        self.pieces = pieces
        self._parts = [compiler.of_piece(piece.module) for piece in pieces]

    def units(self, kinds: Sequence[UnitKind]) -> list[UnitObject]:
        """Units with the pieces that they call."""
        gradients = dict.fromkeys(density_unit(1, kind.propto) for kind in kinds if kind.computes == "density")
        own = [_Job(self._compiler, kind, self._digests[kind.computes]) for kind in kinds]
        of_pieces = {
            gradient: [_Job(part, gradient, piece.digest) for part, piece in zip(self._parts, self.pieces, strict=True)]
            for gradient in gradients
        }
        objects = iter(self._objects([*own, *(job for jobs in of_pieces.values() for job in jobs)]))
        units = [next(objects) for _ in own]
        pieces = {gradient: self._piece_objects(jobs, objects) for gradient, jobs in of_pieces.items()}
        for kind, unit in zip(kinds, units, strict=True):
            if kind.computes == "density":
                unit.pieces = pieces[density_unit(1, kind.propto)]
        return units

    def _piece_objects(self, jobs: Sequence[_Job], objects: Iterator[UnitObject]) -> list[PieceObject]:
        found = [(job, piece, next(objects)) for job, piece in zip(jobs, self.pieces, strict=True)]
        return [
            PieceObject(unit.code, unit.n_slots, piece.data, piece.reads, unit.layouts, job.key)
            for job, piece, unit in found
        ]

    def stored(self, kind: UnitKind) -> UnitObject | None:
        """A unit of a program that was not taken to pieces, if the cache has it."""
        return self._stored(_Job(self._compiler, kind, self._digests[kind.computes]))

    def keep(self, kind: UnitKind, unit: UnitObject) -> None:
        """Stores a unit of such a program that was compiled elsewhere."""
        self._kept(_Job(self._compiler, kind, self._digests[kind.computes]), unit)

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

    def _key(self, job: _Job) -> str:
        if not job.key and self._store is not None:
            job.key = self._store.key(job.digest.text + self._of_libraries, job.kind.name)
        return job.key

    def _stored(self, job: _Job) -> UnitObject | None:
        match self._store.get(self._key(job)) if self._store is not None else None:
            case (
                {
                    "places": list(old),
                    "sites": list(sites),
                    "n_slots": int(n),
                    "draws": bool(draws),
                    "layouts": list(layouts),
                },
                bytes(code),
            ) if len(old) == len(job.digest.places):
                now = {tuple(place): there for place, there in zip(old, job.digest.places, strict=True)}
                return UnitObject(code, _moved(sites, now), n, draws, _moved(layouts, now))
            case _:
                return None

    def _kept(self, job: _Job, unit: UnitObject) -> UnitObject:
        """A unit that was compiled now, and stored, if all places that it tells are among those of the program."""
        places = set(job.digest.places)
        told = [tuple(entry[name] for name in PLACE) for entry in (*unit.sites, *unit.layouts)]
        if self._store is not None and all(place in places or not place[1] for place in told):
            fields = {
                "places": job.digest.places, "sites": unit.sites, "n_slots": unit.n_slots, "draws": unit.draws,
                "layouts": unit.layouts,
            }  # fmt: skip
            self._store.put(self._key(job), fields, unit.code)
        return unit


def _moved(entries: Iterable[Mapping[str, Any]], now: Mapping[tuple[Any, ...], Place]) -> list[dict[str, Any]]:
    """Entries that tell a place, with where it is now."""
    found: list[dict[str, Any]] = []
    for entry in entries:
        place = tuple(entry[name] for name in PLACE)
        found.append({**entry, **dict(zip(PLACE, now.get(place, place), strict=True))})
    return found
