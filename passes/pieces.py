"""A large program in pieces: parts of its model that only add to the target become programs of their own.

    model {                              model {
      y1 ~ normal(a * x, s);
      ... 500 statements                   target += evaluate_pieces(a, s, b);
    }                                    }

A piece is an ordinary program: it has the data that it reads (transformed data included), the other variables that its
statements read are its parameters, without constraints, and its model are the statements. Its gradient unit gives a
value and what the variables' adjoints need. The program itself calls all pieces in one place, at its end, and knows
neither how many there are nor what each reads: a table in memory says that (`to_loops/piece_calls`, `c/pieces.c`).

What it is for: the piece's digest says what it is compiled to, whatever stands in the rest of the program, so a changed
statement costs one piece; and all passes, LLVM's included, see programs of bounded length.

Statements stay where they are if they assign what others read, print, or read what cannot be a parameter, or is
assigned again. Where a piece ends is decided by its contents, not by its place: statements put in between move no other
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.call_graph import called_by, reachable
from ulam.passes.complex_types import part_number
from ulam.passes.content_digests import ContentDigest, Digests
from ulam.passes.rewriting import cloned

PIECE_FUNCTION = "evaluate_pieces"
"""What the program calls, with the values of all variables that pieces read."""
SMALLEST_PROGRAM = 1200
"""Ops of a model from which it is taken to pieces; below, one compile is as good as several."""
LEAST, USUAL, MOST = 250, 450, 900
"""Ops of a piece, but for the last one, which may have fewer."""

_BOUND_BLOCKS = ("data", "transformed_data")
_NEVER = (stan.PrintOp, stan.ProfileOp, stan.TargetOp, stan.ReturnOp)

Declared = stan.DeclareOp | stan.ParameterOp


@record
class ProgramPiece:
    """A program of its own. `digest` is that of all it is compiled from."""

    module: ModuleOp
    data: list[str]
    """The data that it has, transformed data among them, in the order of its slots."""
    reads: list[int]
    """Which of the values that the program hands over are its parameters."""
    digest: ContentDigest


def take_to_pieces(module: ModuleOp) -> list[ProgramPiece]:
    """Takes the program apart, in place; its pieces by number, none if it is not large or has nothing that can be
    one."""
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    blocks = {op.kind.data: op for op in program.body.block.ops if isinstance(op, stan.BlockOp)}
    if any(isinstance(op, stan.ProfileOp) for op in ops_within(program)):
        return []
    if "model" not in blocks or sum(1 for _ in ops_within(blocks["model"])) < SMALLEST_PROGRAM:
        return []
    functions = {op.sym_name.data: op for op in program.body.block.ops if isinstance(op, stan.FuncOp)}
    digests = Digests()
    runs = list(_Splitter(blocks, functions, digests).runs())
    if sum(run.n_ops for run in runs) < LEAST:
        return []
    sources = _Sources(blocks)
    shared = parameters_of([variable for run in runs for variable in run.reads], sources)
    writer = _PieceWriter(program, sources, functions, digests, [name_of(variable) for variable in shared])
    parts = [writer.piece(run) for run in runs]
    for op in reversed([op for run in runs for op in run.ops]):
        op.detach()
        op.erase(safe_erase=False)
    _call_pieces(blocks["model"].body.block, shared)
    return parts


# ---------------------------------------------------------------------- which statements


@record
class _Atom:
    """Ops of the model's block that go together, since values pass between them."""

    ops: list[Operation]
    n_ops: int
    reads: set[SSAValue]
    writes: set[SSAValue]
    """Variables, declared ones included."""
    movable: bool


@record
class _Run:
    """The statements of a piece, in order, and the variables that they read."""

    ops: list[Operation]
    reads: list[SSAValue]
    n_ops: int


class _Splitter:
    def __init__(self, blocks: dict[str, stan.BlockOp], functions: dict[str, stan.FuncOp], digests: Digests) -> None:
        self.functions = functions
        self.digests = digests
        self.model = blocks["model"].body.block
        self._quiet: dict[str, bool] = {}
        self._sources = _Sources(blocks)

    def runs(self) -> Iterator[_Run]:
        """What pieces are made of."""
        run = _Run([], [], 0)
        for group in self._groups():
            size = sum(atom.n_ops for atom in group)
            if run.n_ops + size > MOST and run.ops:
                yield run
                run = _Run([], [], 0)
            for atom in group:
                run.ops += atom.ops
                run.reads += _read_from_outside(atom, group)
            run.n_ops += size
            if run.n_ops >= LEAST and int(self.digests.of(group[-1].ops).text[:8], 16) < (size << 32) // USUAL:
                yield run
                run = _Run([], [], 0)
        if run.ops:
            yield run

    def _groups(self) -> list[list[_Atom]]:
        """What can be evaluated at the end of the model as well, in order."""
        atoms = self._atoms()
        last: dict[SSAValue, int] = {}
        for n, atom in enumerate(atoms):
            for variable in (*atom.reads, *atom.writes):
                last[variable] = n
        found: list[tuple[int, list[_Atom]]] = []
        assigned: dict[SSAValue, int] = {}
        n = 0
        while n < len(atoms):
            group = self._group(atoms, last, n)
            if group:
                found.append((n, group))
            else:
                assigned |= dict.fromkeys(atoms[n].writes, n)
            n += len(group) or 1
        return [group for n, group in found if all(assigned.get(v, -1) < n for atom in group for v in atom.reads)]

    def _group(self, atoms: Sequence[_Atom], last: dict[SSAValue, int], first: int) -> list[_Atom]:
        """The fewest atoms from one on that declare all variables that they assign, for themselves alone; or none."""
        end, n, size = first, first, 0
        own: set[SSAValue] = set()
        while n <= end:
            atom = atoms[n]
            size += atom.n_ops
            own.update(op.res for op in atom.ops if isinstance(op, stan.DeclareOp))
            if size > MOST or not atom.movable or not atom.writes <= own:
                return []
            end = max([end, *(last[variable] for variable in atom.writes)])
            n += 1
        group = list(atoms[first : end + 1])
        others = {v for atom in group for v in atom.reads} - own
        return group if all(map(self._can_be_read, others)) else []

    def _can_be_read(self, variable: SSAValue) -> bool:
        """Whether a piece can have the variable: as data, or as a parameter with sizes that are known of data."""
        declared = self._sources.get(name_of(variable))
        if declared is None or declared[0] in _BOUND_BLOCKS:
            return declared is not None
        op = declared[1]
        type_ = op.res.type.element
        if (
            stan.scalar_of(type_) != stan.REAL
            or op.field_ranks is not None
            or part_number(op.var_name.data) is not None
        ):
            return False
        return _slice(op.sizes, self._sources) is not None

    def _atoms(self) -> list[_Atom]:
        ops = [op for op in self.model.ops if not isinstance(op, stan.GlobalOp)]
        places = {op: n for n, op in enumerate(ops)}
        atoms: list[_Atom] = []
        here: list[Operation] = []
        open_to = -1
        for n, op in enumerate(ops):
            here.append(op)
            for result in op.results:
                if not isinstance(result.type, stan.VarType):
                    for use in result.uses:
                        open_to = max(open_to, places[_top_level(use.operation, self.model)])
            if open_to <= n:
                atoms.append(self._atom(here))
                here = []
        return atoms

    def _atom(self, ops: list[Operation]) -> _Atom:
        reads: set[SSAValue] = set()
        writes: set[SSAValue] = set()
        inner: set[SSAValue] = set()
        movable, n_ops = True, 0
        for top in ops:
            for op in ops_within(top):
                n_ops += 1
                movable = movable and not isinstance(op, _NEVER) and self._is_quiet(op)
                for operand in op.operands:
                    if isinstance(operand.type, stan.VarType) and operand not in inner:
                        (reads if isinstance(op, stan.ReadOp) else writes).add(operand)
                if isinstance(op, stan.DeclareOp):
                    if op.parent is self.model:
                        writes.add(op.res)
                    else:
                        inner.add(op.res)
        return _Atom(ops, n_ops, reads, writes, movable)

    def _is_quiet(self, op: Operation) -> bool:
        """Whether what is called neither prints nor reads the target."""
        return all(self._function_is_quiet(name) for name in called_by(op))

    def _function_is_quiet(self, name: str) -> bool:
        if name not in self._quiet:
            self._quiet[name] = True  # of one that calls itself
            function = self.functions.get(name)
            within = () if function is None else ops_within(function)
            never = (stan.PrintOp, stan.ProfileOp, stan.TargetOp)
            self._quiet[name] = all(not isinstance(op, never) and self._is_quiet(op) for op in within)
        return self._quiet[name]


def _read_from_outside(atom: _Atom, group: Sequence[_Atom]) -> Iterator[SSAValue]:
    """The variables that an atom reads of those that its group does not declare, in order."""
    own = {variable for other in group for variable in other.writes}
    for top in atom.ops:
        for op in ops_within(top):
            if isinstance(op, stan.ReadOp) and op.var in atom.reads and op.var not in own:
                yield op.var


def _top_level(op: Operation, block: Block) -> Operation:
    while op.parent is not block:
        op = cast("Operation", op.parent_op())
    return op


def name_of(variable: SSAValue) -> str:
    return cast("stan.GlobalOp | stan.DeclareOp | stan.ParameterOp", variable.owner).var_name.data


class _Sources(dict[str, tuple[str, Declared]]):
    """What each variable is declared by that the model may read, and in which block. Those of the model that share a
    name are not there."""

    def __init__(self, blocks: dict[str, stan.BlockOp]) -> None:
        super().__init__()
        twice: set[str] = set()
        for kind, block in blocks.items():
            for op in block.body.block.ops if kind != "generated_quantities" else ():
                if isinstance(op, Declared) and (kind == "model" or "local" not in op.properties):
                    name = op.var_name.data
                    if name in self:
                        twice.add(name)
                    self[name] = kind, op
        for name in twice:
            del self[name]


def _slice(values: Iterable[SSAValue], sources: _Sources) -> list[Operation] | None:
    """The ops that sizes are computed by, in order, if from data alone; they read variables of data by name."""
    needed: dict[Operation, None] = {}
    work = list(values)
    while work:
        op = work.pop().owner
        if not isinstance(op, Operation) or op.regions or isinstance(op, stan.DeclareOp | stan.ParameterOp):
            return None
        if isinstance(op, stan.ReadOp):
            found = sources.get(name_of(op.var))
            if found is None or found[0] not in _BOUND_BLOCKS:
                return None
        elif not isinstance(op, stan.GlobalOp):
            work += op.operands
        needed[op] = None
    if not needed:
        return []
    block = next(iter(needed)).parent
    return [op for op in block.ops if op in needed] if block is not None else None


# ---------------------------------------------------------------------- programs of pieces


class _PieceWriter:
    """Writes the module of one piece."""

    def __init__(
        self,
        program: stan.ProgramOp,
        sources: _Sources,
        functions: dict[str, stan.FuncOp],
        digests: Digests,
        shared: Sequence[str],
    ) -> None:
        self.program = program
        self.functions = functions
        self.digests = digests
        self.sources = sources
        self.shared = {name: n for n, name in enumerate(shared)}

    def piece(self, run: _Run) -> ProgramPiece:
        data = self._data(run)
        parameters = parameters_of(run.reads, self.sources)
        bodies = [("data", data), ("parameters", self._parameters(parameters)), ("model", self._model(run))]
        ops = [stan.BlockOp(kind, Region(block)) for kind, block in bodies]
        functions = [cloned(self.functions[name]) for name in reachable(ops, self.functions)]
        program = stan.ProgramOp(self.program.sym_name, Region(Block([*functions, *ops])))
        declared = [op.var_name.data for op in data.ops if isinstance(op, stan.DeclareOp)]
        reads = [self.shared[name_of(variable)] for variable in parameters]
        return ProgramPiece(ModuleOp([program]), declared, reads, self.digests.of([program]))

    def _data(self, run: _Run) -> Block:
        """The data and transformed data that are read, or that sizes depend on, in the program's order."""
        block = Block()
        variables: dict[str, SSAValue] = {}
        needed = self._needed(run)
        for name, (kind, op) in self.sources.items():
            if kind in _BOUND_BLOCKS and name in needed:
                self._declare(block, op, variables, parameter=False)
        return block

    def _needed(self, run: _Run) -> set[str]:
        found: set[str] = set()
        work = [name_of(variable) for variable in dict.fromkeys(run.reads)]
        while work:
            name = work.pop()
            if name not in found:
                found.add(name)
                sizes = _slice(self.sources[name][1].sizes, self.sources) or ()
                work += [name_of(op.var) for op in sizes if isinstance(op, stan.ReadOp)]
        return found

    def _declare(self, block: Block, op: Declared, variables: dict[str, SSAValue], *, parameter: bool) -> None:
        """Declares a variable again, without constraints, with the ops that compute its sizes."""
        values: dict[SSAValue, SSAValue] = {}
        for size in _slice(op.sizes, self.sources) or ():
            self._clone(size, block, values, variables)
        sizes = [values[size] for size in op.sizes]
        kind = stan.ParameterOp if parameter else stan.DeclareOp
        declared = kind(op.var_name, op.res.type.element, sizes, location=op.location)
        if op.field_ranks is not None:
            declared.properties["field_ranks"] = op.field_ranks
        block.add_op(declared)
        if not parameter:
            variables[op.var_name.data] = declared.res

    def _clone(
        self, op: Operation, block: Block, values: dict[SSAValue, SSAValue], variables: dict[str, SSAValue]
    ) -> None:
        """Puts a copy of an op into another block, where variables are found by name."""
        if isinstance(op, stan.GlobalOp):
            return
        for operand in op.operands:
            if isinstance(operand.type, stan.VarType) and operand not in values:
                values[operand] = self._variable(operand, block, variables)
        block.add_op(cloned(op, values))

    @staticmethod
    def _variable(operand: SSAValue, block: Block, variables: dict[str, SSAValue]) -> SSAValue:
        name = name_of(operand)
        if name not in variables:
            global_op = stan.GlobalOp(name, operand.type)
            if block.first_op is None:
                block.add_op(global_op)
            else:
                block.insert_op_before(global_op, block.first_op)
            variables[name] = global_op.res
        return variables[name]

    def _parameters(self, parameters: Iterable[SSAValue]) -> Block:
        block = Block()
        variables: dict[str, SSAValue] = {}
        for variable in parameters:
            self._declare(block, self.sources[name_of(variable)][1], variables, parameter=True)
        return block

    def _model(self, run: _Run) -> Block:
        block = Block()
        values: dict[SSAValue, SSAValue] = {}
        variables: dict[str, SSAValue] = {}
        for variable in dict.fromkeys(run.reads):
            values[variable] = self._variable(variable, block, variables)
        for op in run.ops:
            block.add_op(cloned(op, values))
        return block


def parameters_of(reads: Iterable[SSAValue], sources: _Sources) -> list[SSAValue]:
    """Those of the variables that are no data, in the order of their declarations."""
    found = {name_of(variable): variable for variable in reads}
    return [found[name] for name, (kind, _) in sources.items() if name in found and kind not in _BOUND_BLOCKS]


def _call_pieces(model: Block, shared: Sequence[SSAValue]) -> None:
    """Adds the pieces to the target, at the end of the model."""
    reads = [stan.ReadOp(variable) for variable in shared]
    call = stan.CallOp(PIECE_FUNCTION, [op.res for op in reads], stan.REAL, (1,) * len(reads))
    assert call.res is not None
    model.add_ops([*reads, call, stan.TargetAddOp(call.res)])
