"""Loop vectorization: statements on elements  →  statements on whole containers.

    for (n in 1:N) {                                  mu = mu + r_1_1[J_1] .* z;
      mu[n] += r_1_1[J_1[n]] * z[n];            →     y ~ normal(mu, sigma);
      y[n] ~ normal(mu[n], sigma);
    }

Loops are looked at innermost first. Each statement of the body is written for all iterations at once (`whole_vectors`);
then the statements are distributed: those that can, leave the loop, in front of it or behind it, as far as no value
goes from a later statement back to an earlier one. A variable that the body assigns is touched by each iteration at
its own place, `mu[n]`, or else keeps all statements on it in the loop; scalars declared in the body become vectors.
Additions to the target, and to a variable that is nothing but a sum, are regrouped (levels 3 and 4). Where the loop may
have no iteration and a whole statement could throw all the same, `if (u >= l)` goes around.

Statements leave only where the order of errors cannot be seen: in transformed parameters and model, without a print
among them; elsewhere only if they cannot throw.
Source: Stan Reference Manual, "Loops"; Kennedy and Allen, Optimizing Compilers for Modern Architectures, chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes import variable_form as form
from ulam.passes.analysis.linear_forms import LinearForm
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.analysis.sizes import SizeFacts
from ulam.passes.optimize.loop_span import Library, Local, LoopSpan, Prevented
from ulam.passes.optimize.loop_statements import LoopStatement, name_of, statements_of, variables_in_place
from ulam.passes.optimize.whole_sums import WholeSums
from ulam.passes.optimize.whole_vectors import ADD, BINARY, WholeVectors
from ulam.passes.remarks import remark
from ulam.passes.rewriting import applied_to, discard

_GE = BINARY[">="]
_EXITS = {
    stan.Effect.LEAVES_LOOP: "break or continue leaves it",
    stan.Effect.RETURNS: "a return leaves it",
    stan.Effect.PROFILES: "it has a profile inside",
    stan.Effect.READS_TARGET: "it reads the target",
}
_SEEN = stan.Effect.PRINTS | stan.Effect.DRAWS
_ROUNDS = 4
"""How often statements are divided anew, after some were found to stay."""

_CARRIED = "is carried from one iteration to the next"


class LoopVectorization(ModulePass):
    """Makes whole-vector statements of loops over elements."""

    name = "loop-vectorization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """All loops of all programs of a module."""
        for program in op.body.block.ops:
            if isinstance(program, stan.ProgramOp):
                run_on(program)


def run_on(program: stan.ProgramOp) -> bool:
    """Vectorises the loops of a program; whether any changed."""
    facts = SizeFacts(program)
    functions = [op for op in program.body.block.ops if isinstance(op, stan.FuncOp)]
    calls = stan.CallEffects(functions)
    library = Library(program, {op.sym_name.data: op for op in functions})
    names = form.FreshNames(program)
    changed = False
    for body in own_bodies(program):
        loops = [op for op in ops_within(body) if isinstance(op, stan.ForOp | stan.ForEachOp)]
        for loop in reversed(loops):
            if isinstance(loop, stan.ForOp):
                changed |= _Loop(loop, facts, calls, library, names).run()
            else:
                _tell(loop, loop.variable.data, "it runs over the elements of a container")
    return changed


def _tell(op: Operation, variable: str, message: str, *, done: bool = False) -> None:
    remark(LoopVectorization.name, op.location, f"loop over {variable}", message, done=done)


@record(eq=False, repr=False)
class _Whole:
    """A statement written for all iterations: the ops that take its place."""

    block: Block
    guarded: bool


@record(eq=False, repr=False)
class _Loop:
    """One loop."""

    loop: stan.ForOp
    facts: SizeFacts
    calls: stan.CallEffects
    library: Library
    names: form.FreshNames
    wholes: dict[LoopStatement, _Whole] = field(default_factory=dict)
    reasons: dict[LoopStatement, str] = field(default_factory=dict)
    users: dict[SSAValue, list[LoopStatement]] = field(default_factory=dict)  # of each variable, in order
    drafts: list[Block] = field(default_factory=list[Block])
    """Where whole statements are written; what is not taken from there is not part of the program."""

    def run(self) -> bool:
        """Takes out of the loop what can leave it; whether anything could."""
        loop = self.loop
        if loop.initial:
            return False
        if (reason := self._obstacle()) is not None:
            _tell(loop, loop.variable.data, reason)
            return False
        self.statements = statements_of(loop)
        if self.statements is None:
            _tell(loop, loop.variable.data, "an expression in it is evaluated ahead of its statement")
            return False
        for statement in self.statements:
            for variable in statement.touched:
                self.users.setdefault(variable, []).append(statement)
        written = frozenset(v for s in self.statements for v in s.written)
        self.span = LoopSpan(loop, self.facts, written)
        self.kept = self._keep_bounds()
        self._write_wholes()
        front, behind = self._distribute()
        useful = any(not s.is_local for s in (*front, *behind))
        if useful:
            self._replace(front, behind)
        self._forget_the_rest(useful)
        for statement in self.statements:
            if (reason := self.reasons.get(statement)) is not None and not statement.is_declaration:
                _tell(statement.root, loop.variable.data, reason)
        return useful

    def _obstacle(self) -> str | None:
        """What keeps everything in the loop, if the body as a whole has it."""
        effects = stan.Effect.NONE
        for inner in self.loop.body.block.ops:
            effects |= stan.effects_within(inner, self.calls)
        self.effects = effects
        return next((reason for effect, reason in _EXITS.items() if effects & effect), None)

    # ------------------------------------------------------------ bounds

    def _keep_bounds(self) -> list[stan.AssignOp]:
        """Assignments to variables of those bounds that cannot just be written again."""
        found: list[stan.AssignOp] = []
        self.bounds = _expressions_before(self.loop)
        again = set(self.bounds)
        for bound in (self.loop.lower, self.loop.upper):
            if bound in self.span.bounds or self._is_plain(bound, again):
                continue
            declaration = form.declare(self.names.fresh("bound"), stan.INT, self.loop.location)
            self.span.bounds[bound] = declaration.results[0]
            found.append(form.assign(declaration.results[0], bound, self.loop.location))
        return found

    def _is_plain(self, bound: SSAValue, again: set[Operation]) -> bool:
        op = bound.owner
        if not isinstance(op, Operation) or isinstance(op, stan.ConstantOp):
            return True
        if isinstance(op, stan.ReadOp):
            return op in again and op.operands[0] not in self.span.written
        return isinstance(op, (ADD, BINARY["-"])) and all(self._is_plain(operand, again) for operand in op.operands)

    def _insert_kept(self, block: Block) -> None:
        """Writes the variables of bounds: each is assigned right behind the expression of its value."""
        first = self.bounds[0] if self.bounds else self.loop
        for assignment in self.kept:
            variable, value = assignment.operands
            assert isinstance(variable.owner, Operation)
            block.insert_op_before(variable.owner, first)
            if value.owner in self.bounds:
                assert isinstance(value.owner, Operation)
                block.insert_op_after(assignment, value.owner)
            else:
                block.insert_op_before(assignment, first)

    # ------------------------------------------------------------ statements

    def _write_wholes(self) -> None:
        """Writes each statement for all iterations, or notes why not."""
        assert self.statements is not None
        self.strict = bool(self.effects & _SEEN) or not form.errors_are_retold(self.loop)
        self.locals: dict[SSAValue, Local] = {}
        carried = self._carried()
        for statement in self.statements:
            try:
                for variable in statement.touched:
                    if variable in carried and not self._is_sum(statement, variable):
                        raise Prevented(carried[variable])
                self.wholes[statement] = self._whole(statement)
            except Prevented as prevented:
                self.reasons[statement] = str(prevented)

    def _carried(self) -> dict[SSAValue, str]:
        """Variables that iterations share other than each at its place, with the reason to give."""
        assert self.statements is not None
        found: dict[SSAValue, str] = {}
        in_place = variables_in_place(self.statements, self.span)
        for variable in self.span.written:
            name = name_of(variable)
            if self._is_declared_inside(variable):
                if not isinstance(variable.type, stan.VarType) or stan.dimensions(variable.type.element):
                    found[variable] = f"{name}, a container, is declared in the loop"
            elif (other := in_place[variable]) is not None:
                found[variable] = other or f"{name} {_CARRIED}"
        return found

    def _is_declared_inside(self, variable: SSAValue) -> bool:
        return isinstance(variable.owner, stan.DeclareOp) and self.loop.is_ancestor(variable.owner)

    def _is_sum(self, statement: LoopStatement, variable: SSAValue) -> bool:
        """Whether `s = s + e` is all that the loop does to `s`."""
        root = statement.root
        if not isinstance(root, stan.AssignOp) or root.operands[0] is not variable or len(root.operands) != 2:
            return False
        if self.users[variable] != [statement]:
            return False
        if self._is_declared_inside(variable) or root.value.type not in (stan.REAL, stan.INT):
            return False
        return statement.accesses[variable] == 2 and _summand(root) is not None

    def _vectors(self, statement: LoopStatement) -> WholeSums:
        vectors = WholeSums(self.span, self.calls, self.library, self.locals, self.strict, statement.root.location)
        self.drafts.append(vectors.block)
        return vectors

    def _whole(self, statement: LoopStatement) -> _Whole:
        root = statement.root
        vectors = self._vectors(statement)
        if isinstance(root, stan.DeclareOp):
            if root.operands:
                raise Prevented(f"{root.var_name.data}, a container, is declared in the loop")
        elif isinstance(root, stan.TargetAddOp | stan.JacobianAddOp):
            self._increment(root, vectors)
        elif isinstance(root, stan.AssignOp):
            self._assignment(root, vectors, statement)
        else:
            raise Prevented(_what_it_is(root))
        return _Whole(vectors.block, vectors.guarded)

    def _increment(self, root: stan.TargetAddOp | stan.JacobianAddOp, vectors: WholeSums) -> None:
        """`target += e`, `jacobian += e` and `~`."""
        if stan.dimensions(root.value.type):
            raise Prevented("a container is added to the target in each iteration")
        for summand in vectors.summands(root.value):
            new = applied_to(root, (summand,))
            if not isinstance(summand.owner, stan.CallOp):
                new.properties.pop("tilde", None)
            vectors.block.add_op(new)

    # ------------------------------------------------------------ assignments

    def _assignment(self, root: stan.AssignOp, vectors: WholeSums, statement: LoopStatement) -> None:
        variable = root.operands[0]
        if self._is_declared_inside(variable):
            self._assign_local(root, vectors, statement)
        elif not root.kinds.data:
            self._assign_sum(root, vectors)
        else:
            self._assign_elements(root, vectors)

    def _assign_local(self, root: stan.AssignOp, vectors: WholeSums, statement: LoopStatement) -> None:
        """A scalar of the body: its values become a vector, or one expression if they are read just once."""
        if root.kinds.data:
            raise Prevented("an element of a local container is assigned")
        variable = root.operands[0]
        each = vectors.varies(root.value)
        value = vectors.each(root.value) if each else vectors.same(root.value)
        if each and value.type == stan.array_of(stan.REAL, 1):
            value = vectors.oriented(value)
        if self._is_read_next(statement, variable):
            self.locals[variable] = Local(each, value, None)
            return
        declaration = form.declare(self.names.fresh(name_of(variable)), value.type, root.location)
        vectors.block.add_ops([declaration, form.assign(declaration.results[0], value, root.location)])
        self.locals[variable] = Local(each, None, declaration.results[0])

    def _is_read_next(self, statement: LoopStatement, variable: SSAValue) -> bool:
        """Whether the statement that follows is the only one to read a local variable, and reads it once."""
        assert self.statements is not None
        users = self.users[variable][-2:]
        if len(self.users[variable]) != 3 or not self.users[variable][0].is_declaration:
            return False
        return users == self.statements[statement.number : statement.number + 2] and users[-1].accesses[variable] == 1

    def _assign_sum(self, root: stan.AssignOp, vectors: WholeSums) -> None:
        """`s = s + e`  →  `s = s + sum(e)`."""
        variable, summand = root.operands[0], _summand(root)
        assert summand is not None
        value: SSAValue = vectors.emit(form.read(variable, root.location))
        for part in vectors.summands(summand):
            if stan.dimensions(part.type):
                part = vectors.call("sum", root.value.type, part)
            value = vectors.operator(ADD, root.value.type, value, part)
        vectors.block.add_op(form.assign(variable, value, root.location))

    def _assign_elements(self, root: stan.AssignOp, vectors: WholeSums) -> None:
        """`mu[n] = e`  →  `mu = e`, or `mu[l:u] = e`."""
        variable = root.operands[0]
        assert isinstance(variable.type, stan.VarType)
        # The indices are evaluated first, as in the program; nothing in them throws that would not throw there.
        kinds, indices = vectors.whole_indices(root.kinds, root.indices, self.facts.declared_sizes(variable))
        wanted = stan.indexed(variable.type.element, kinds) if kinds else variable.type.element
        assert wanted is not None
        value = self._elements(root.value, wanted, vectors)
        if value.type != wanted:
            raise Prevented(f"the values of all iterations do not make what {name_of(variable)} holds")
        if stan.dimensions(root.value.type) and not self._is_row(root):
            vectors.risk("the size of a row")
        vectors.block.add_op(stan.AssignOp(variable, value, tuple(kinds), indices, location=root.location))

    def _elements(self, value: SSAValue, wanted: Attribute, vectors: WholeSums) -> SSAValue:
        """What is assigned in all iterations, as `wanted`."""
        vectors.orientation = stan.ROW_VECTOR if wanted == stan.ROW_VECTOR else stan.VECTOR
        if not vectors.varies(value):
            return self._repeated(vectors.same(value), wanted, vectors)
        whole = vectors.each(value)
        if whole.type == wanted:
            return whole
        if wanted in (stan.VECTOR, stan.ROW_VECTOR) and not stan.dimensions(value.type):
            return vectors.oriented(whole)
        if wanted == stan.array_of(stan.REAL, 1) and whole.type in (stan.VECTOR, stan.ROW_VECTOR):
            return vectors.call("to_array_1d", wanted, whole)
        return whole

    def _repeated(self, value: SSAValue, wanted: Attribute, vectors: WholeSums) -> SSAValue:
        count = vectors.count()
        names = {stan.VECTOR: "rep_vector", stan.ROW_VECTOR: "rep_row_vector", stan.MATRIX: "rep_matrix"}
        return vectors.call(names.get(wanted, "rep_array"), wanted, value, count)

    def _is_row(self, root: stan.AssignOp) -> bool:
        """Whether a row is assigned that surely has the size of those that the variable is declared with."""
        kinds = [kind.data for kind in root.kinds.data]
        declared = self.facts.declared_sizes(root.operands[0])
        sizes = [size for n, size in enumerate(declared) if n >= len(kinds) or kinds[n] == "all"]
        return not {*kinds} - {"single", "all"} and None not in sizes and self._has_sizes(root.value, sizes)

    def _has_sizes(self, value: SSAValue, sizes: Sequence[LinearForm | None]) -> bool:
        """Whether a container and all that it is computed from surely have the same sizes, so that none of it fails."""
        op = value.owner
        if not isinstance(op, Operation) or self.facts.sizes(value) != sizes:
            return False
        if isinstance(op, stan.IndexOp | stan.ReadOp):
            return True
        return all(self._has_sizes(operand, sizes) for operand in op.operands if stan.dimensions(operand.type))

    # ------------------------------------------------------------ distribution

    def _distribute(self) -> tuple[list[LoopStatement], list[LoopStatement]]:
        """The statements that go in front of what stays, and those that go behind it."""
        assert self.statements is not None
        leaving = set(self.wholes)
        self._keep_with_locals([s for s in self.statements if s not in leaving], leaving)
        for _ in range(_ROUNDS):
            front, behind = self._sides(leaving)
            stuck = [s for s in self.statements if s in leaving.difference(front, behind)]
            if not stuck:
                return front, behind
            for statement in stuck:
                self._keep(statement, leaving, "other statements of the loop come both before and after it")
            self._keep_with_locals(stuck, leaving)
        for statement in self.statements:
            self._keep(statement, leaving, "it is woven into the others")
        return [], []

    def _keep(self, statement: LoopStatement, leaving: set[LoopStatement], reason: str) -> None:
        leaving.discard(statement)
        self.reasons.setdefault(statement, reason)

    def _keep_with_locals(self, staying: list[LoopStatement], leaving: set[LoopStatement]) -> None:
        """A local scalar stays if anything that reads or assigns it does."""
        seen: set[SSAValue] = set()
        pending = list(staying)
        while pending:
            for variable in pending.pop().touched:
                if variable in seen or not self._is_declared_inside(variable):
                    continue
                seen.add(variable)
                for statement in self.users[variable]:
                    if statement in leaving:
                        reason = f"a statement on {name_of(variable)} stays in the loop"
                        self._keep(statement, leaving, reason)
                        pending.append(statement)

    def _sides(self, leaving: set[LoopStatement]) -> tuple[list[LoopStatement], list[LoopStatement]]:
        """Leaving statements that need nothing of those that stay, and of the others those that these do not need."""
        assert self.statements is not None
        late: dict[SSAValue, bool] = {}  # touched by what comes with or behind the loop: whether assigned
        front: list[LoopStatement] = []
        rest: list[LoopStatement] = []
        for statement in self.statements:
            if statement in leaving and not statement.depends_on(late):
                front.append(statement)
            else:
                rest.append(statement)
                statement.note(late)
        early: dict[SSAValue, bool] = {}  # the same, backwards, of what stays
        behind: list[LoopStatement] = []
        for statement in reversed(rest):
            if statement in leaving and not statement.depends_on(early):
                behind.append(statement)
            else:
                statement.note(early)
        return front, behind[::-1]

    # ------------------------------------------------------------ replacement

    def _forget_the_rest(self, replaced: bool) -> None:
        """Ops that were written and not taken use nothing of the program any more."""
        for block in self.drafts:
            block.drop_all_references()
        if not replaced:
            for assignment in self.kept:
                assignment.drop_all_references()

    def _replace(self, front: Sequence[LoopStatement], behind: Sequence[LoopStatement]) -> None:
        """Puts the whole statements around the loop, which keeps the others or disappears."""
        assert self.statements is not None
        loop, location = self.loop, self.loop.location
        block = loop.parent
        assert block is not None
        left = [*front, *behind]
        stays = len(left) < len(self.statements)
        self._insert_kept(block)
        # The expressions of the bounds stay right before the loop, unless variables keep their values.
        moved = [loop] if self.kept else [*self.bounds, loop]
        body, before, after = block, moved[0], loop.next_op
        if any(self.wholes[s].guarded for s in left) and not self.span.is_nonempty:
            body, before = self._guard(location, moved[0])
            after = before
            for op in moved:
                op.detach()
            body.insert_ops_before(moved, before)
            before = moved[0]
        for statement in front:
            _move(self.wholes[statement].block, body, before)
        for statement in behind:
            _move(self.wholes[statement].block, body, after)
        for statement in left:
            statement.erase()
        if not stays:
            bounds = [loop.lower, loop.upper]
            discard(loop)
            form.erase_unused(bounds)
        self._tell_done(front, behind, stays)

    def _guard(self, location: LocationAttr, place: Operation) -> tuple[Block, Operation]:
        """`if (u >= l) { }` in front of `place`; the block of its branch, and the end of that."""
        vectors = WholeVectors(self.span, self.calls, self.library, {}, False, location)
        condition = vectors.operator(
            _GE, stan.INT, vectors.bound(self.loop.upper), vectors.bound(self.loop.lower)
        )  # fmt: skip
        end = form.yield_(location)
        then = Block([end])
        otherwise = Block([form.yield_(location)])
        vectors.block.add_op(stan.IfOp(condition, Region(then), Region(otherwise), location=location))
        assert place.parent is not None
        _move(vectors.block, place.parent, place)
        return then, end

    def _tell_done(self, front: Sequence[LoopStatement], behind: Sequence[LoopStatement], stays: bool) -> None:
        count = len([s for s in (*front, *behind) if not s.is_declaration])
        what = "1 statement became a whole-vector statement"
        if count > 1:
            what = f"{count} statements became whole-vector statements"
        if stays:
            what += ", the others stay in the loop"
        _tell(self.loop, self.loop.variable.data, what, done=True)


# ---------------------------------------------------------------- questions about statements


def _expressions_before(loop: stan.ForOp) -> list[Operation]:
    """The expressions right before a loop that are its bounds: what they read has not changed when it starts."""
    found: list[Operation] = []
    users: set[Operation] = {loop}
    op = loop.prev_op
    while op is not None and form.is_tree(op):
        if all(use.operation in users for result in op.results for use in result.uses):
            found.append(op)
            users.add(op)
        op = op.prev_op
    return found[::-1]


def _summand(root: stan.AssignOp) -> SSAValue | None:
    """The `e` of `s = s + e`."""
    op = root.value.owner
    if not isinstance(op, ADD):
        return None
    for mine, other in ((0, 1), (1, 0)):
        read = op.operands[mine].owner
        if isinstance(read, stan.ReadOp) and read.operands[0] is root.operands[0]:
            return op.operands[other]
    return None


def _what_it_is(root: Operation) -> str:
    """Why a statement that is no assignment and no addition to the target stays."""
    if isinstance(root, form.LOOPS):
        return "a loop stays inside of it"
    if isinstance(root, stan.IfOp):
        return "a branch is taken or not in each iteration"
    if isinstance(root, stan.PrintOp):
        return f"{root.kind.data} stays where it is"
    if isinstance(root, stan.CallOp):
        return f"{root.callee.data} is called for its effects"
    return "it is not an assignment to elements and not an addition to the target"


def _move(source: Block, target: Block, before: Operation | None) -> None:
    """Moves all ops of a block in front of an op of another, or to its end."""
    ops = list(source.ops)
    for op in ops:
        op.detach()
    if before is None:
        target.add_ops(ops)
    else:
        target.insert_ops_before(ops, before)
