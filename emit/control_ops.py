"""The control part of the emission table: structured control flow as basic blocks with phis, calls, checks, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.emit.errors import EmissionError
from ulam.emit.external_calls import external_call
from ulam.emit.llvm_text import callee_name, llvm_type, symbol
from ulam.emit.loop_metadata import loop_metadata
from ulam.emit.memory_ops import STACK_LIMIT, context_field, fail_block, site_of
from ulam.emit.outlined_code import ERROR_SITE
from ulam.emit.scalar_ops import known_integer
from ulam.library.externals import is_external
from ulam.library.kernels import FAST
from ulam.library.statuses import FATAL

if TYPE_CHECKING:
    from ulam.emit.llvm_text import Emit, FunctionEmitter

MAX_ERROR_VALUES = 4


def _phis(e: FunctionEmitter, values: list[str], types: list[str], starts: list[str], before: str) -> list[int]:
    """Writes the phis of a loop header; returns where their lines are, to be completed once the body is written."""
    positions: list[int] = []
    for name, t, start in zip(values, types, starts, strict=True):
        positions.append(len(e.lines))
        e.line(f"{name} = phi {t} [ {start}, %{before} ], ")
    return positions


def _complete(e: FunctionEmitter, positions: list[int], nexts: list[str]) -> None:
    for position, value in zip(positions, nexts, strict=True):
        e.lines[position] += f"[ {value}, %{e.block} ]"


def _for(e: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    lower, upper, step, *carried = e.operands(op)
    body = op.body
    index, *inner = body.block.args
    t = e.type(index)
    starts = [e.names[lower], *(e.names[v] for v in carried)]
    limit, increment = e.names[upper], e.names[step]
    first, last, each = (known_integer(name) for name in (starts[0], limit, increment))
    trips: int | None = None
    if first is not None and last is not None and each:
        trips = len(range(first, last, each))
        if trips <= 1:
            _straight(e, op, starts, trips)
            return
    head, inside, done = e.fresh("for"), e.fresh("for.body"), e.fresh("for.end")
    before = e.block
    e.line(f"br label %{head}")
    e.begin_block(head)
    values = [e.define(v) for v in (index, *inner)]
    positions = _phis(e, values, [t, *(e.type(v) for v in inner)], starts, before)
    more, after = e.temporary(), e.temporary()
    e.line(f"{more} = icmp slt {t} {values[0]}, {limit}")
    e.line(f"br i1 {more}, label %{inside}, label %{done}")
    e.begin_block(inside)
    around = e.serial, e.inline_math
    kind, _ = rt.LoopAttr.kind_of(op)
    e.serial = kind == "serial" and e.module.options.opt_level >= 3
    e.inline_math = kind != "cold" and _inlines_math(e)
    e.loop_depth += 1
    last = e.region(body)
    e.loop_depth -= 1
    e.serial, e.inline_math = around
    # below the limit: adding 1 cannot wrap
    e.line(f"{after} = add {'nsw ' if increment == '1' else ''}{t} {values[0]}, {increment}")
    _complete(e, positions, [after, *(e.names[v] for v in e.operands(last))])
    e.line(f"br label %{head}{loop_metadata(e, op, trips)}")
    e.begin_block(done)
    for result, value in zip(op.results, values[1:], strict=True):
        e.names[result] = value


def _inlines_math(e: FunctionEmitter) -> bool:
    """Whether functions are inlined in a loop: in long modules not where they are computed one by one."""
    return e.may_inline_math and not (e.serial and e.module.is_long)


def _straight(e: FunctionEmitter, op: scf.ForOp, starts: list[str], trips: int) -> None:
    """A loop that runs once or never."""
    values = starts[1:]
    if trips:
        for argument, start in zip(op.body.block.args, starts, strict=True):
            e.names[argument] = start
        values = [e.names[v] for v in e.operands(e.region(op.body))]
    for result, value in zip(op.results, values, strict=True):
        e.names[result] = value


def _while(e: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    starts = [e.names[v] for v in e.operands(op)]
    arguments = op.before_region.block.args
    head, inside, done = e.fresh("while"), e.fresh("while.body"), e.fresh("while.end")
    before = e.block
    e.line(f"br label %{head}")
    e.begin_block(head)
    values = [e.define(v) for v in arguments]
    positions = _phis(e, values, [e.type(v) for v in arguments], starts, before)
    # never widened, so what runs in it is a chain of scalar operations
    around = e.serial, e.inline_math
    e.serial = e.module.options.opt_level >= 3
    e.inline_math = _inlines_math(e)
    e.loop_depth += 1
    last = e.region(op.before_region)
    if type(last) is not scf.ConditionOp:
        raise EmissionError("the first region of scf.while must end in scf.condition", last)
    condition, *passed = e.operands(last)
    e.line(f"br i1 {e.names[condition]}, label %{inside}, label %{done}")
    for value, argument, result in zip(passed, op.after_region.block.args, op.results, strict=True):
        e.names[argument] = e.names[result] = e.names[value]
    e.begin_block(inside)
    last = e.region(op.after_region)
    e.loop_depth -= 1
    e.serial, e.inline_math = around
    _complete(e, positions, [e.names[v] for v in e.operands(last)])
    e.line(f"br label %{head}{loop_metadata(e, op)}")
    e.begin_block(done)


def _if(e: FunctionEmitter, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    (condition,) = e.operands(op)
    test = e.names[condition]
    has_else = bool(op.false_region.blocks)
    if test in ("true", "false"):
        if test == "true" or has_else:
            last = e.region(op.true_region if test == "true" else op.false_region)
            for result, value in zip(op.results, e.operands(last), strict=True):
                e.names[result] = e.names[value]
        return
    then = e.fresh("then")
    otherwise = e.fresh("else") if has_else else ""
    done = e.fresh("endif")
    e.line(f"br i1 {test}, label %{then}, label %{otherwise or done}")
    ends: list[tuple[str, tuple[SSAValue, ...]]] = []
    regions = [(then, op.true_region), (otherwise, op.false_region)] if has_else else [(then, op.true_region)]
    for label, region in regions:
        e.begin_block(label)
        last = e.region(region)
        e.line(f"br label %{done}")
        ends.append((e.block, e.operands(last)))
    e.begin_block(done)
    for i, result in enumerate(op.results):
        incoming = ", ".join(f"[ {e.names[values[i]]}, %{block} ]" for block, values in ends)
        e.line(f"{e.define(result)} = phi {e.type(result)} {incoming}")


def _check(e: FunctionEmitter, op: Operation) -> None:
    ok, *values = e.operands(op)
    if len(values) > MAX_ERROR_VALUES:
        raise EmissionError(f"an error has at most {MAX_ERROR_VALUES} values", op)
    test = e.names[ok]
    if test == "true":
        return
    status = op.properties.get("status")
    number = status.value.data if isinstance(status, IntegerAttr) else FATAL
    good = e.fresh("checked")
    error = _error_block(e, site_of(op), values, str(number))
    e.line(f"br i1 {test}, label %{good}, label %{error}{e.module.unlikely_else()}")
    e.begin_block(good)


def _error_block(e: FunctionEmitter, site: int, values: list[SSAValue], status: str) -> str:
    """The label of the cold block of a failed check; numbers of any type are noted as doubles. A function of a long
    module has one for all that do the same.
    """
    conversions: list[str] = []
    doubles: list[str] = []
    same = site, status, *(e.names[value] for value in values)
    if (known := e.failures.get(same)) is not None:
        return known
    for value in values:
        t, name = e.type(value), e.names[value]
        if t != "double":
            double = e.temporary()
            instruction = "uitofp" if t == "i1" else "sitofp"
            conversions.append(f"  {double} = {instruction} {t} {name} to double")
            name = double
        doubles.append(name)
    label = fail_block(e, "error", site, doubles, status, conversions)
    if e.module.is_long:
        e.failures[same] = label
    return label


def _stack_guard(e: FunctionEmitter, op: Operation) -> None:
    """Compares the frame's address with the end of the thread's stack, as the runtime has noted it."""
    e.module.declare("llvm.frameaddress", "declare ptr @llvm.frameaddress.p0(i32 immarg)")
    e.module.declare("ulam_stack_exhausted", "declare i32 @ulam_stack_exhausted(ptr) #2")
    limit, frame, fine, status = (e.temporary() for _ in range(4))
    good, error = e.fresh("guarded"), e.fresh("exhausted")
    failed = fail_block(e, "error", site_of(op), [], status)
    e.line(f"{limit} = load ptr, ptr {context_field(e, STACK_LIMIT)}, align 8")
    e.line(f"{frame} = call ptr @llvm.frameaddress.p0(i32 0)")
    e.line(f"{fine} = icmp uge ptr {frame}, {limit}")
    e.line(f"br i1 {fine}, label %{good}, label %{error}{e.module.unlikely_else()}")
    e.cold += [f"{error}:", f"  {status} = call i32 @ulam_stack_exhausted(ptr %context)", f"  br label %{failed}"]
    e.begin_block(good)


def _propagate(e: FunctionEmitter, status: str, sites: rt.SitesAttr | None) -> None:
    """Leaves with `status` unless it is 0; whoever made it has noted the error. `sites`: as of another call."""
    fine = e.temporary()
    good, error = e.fresh("returned"), e.fresh("failed")
    e.line(f"{fine} = icmp eq i32 {status}, 0")
    e.line(f"br i1 {fine}, label %{good}, label %{error}{e.module.unlikely_else()}")
    e.cold.append(f"{error}:")
    if sites is not None:
        _note_sites_of_call(e, sites.distance.data)
    e.cold.append(f"  ret i32 {status}")
    e.begin_block(good)


def _note_sites_of_call(e: FunctionEmitter, distance: int) -> None:
    """Adds `distance` to the site that is noted, if there is one."""
    address, noted, there, moved, site = (e.temporary() for _ in range(5))
    e.cold += [
        f"  {address} = getelementptr inbounds i8, ptr %context, i64 {ERROR_SITE}",
        f"  {noted} = load i64, ptr {address}, align 8",
        f"  {there} = icmp sge i64 {noted}, 0",
        f"  {moved} = add i64 {noted}, {distance}",
        f"  {site} = select i1 {there}, i64 {moved}, i64 {noted}",
        f"  store i64 {site}, ptr {address}, align 8",
    ]


def _call(e: FunctionEmitter, op: Operation) -> None:
    """Results come back through stack slots of the entry block."""
    arguments = ["ptr %context", "ptr %bound"]
    arguments += [f"{e.type(v)} {e.names[v]}" for v in e.operands(op)]
    callee = callee_name(op)
    in_record = callee in e.module.returning_records
    types = [f"[{len(op.results)} x i64]"] if in_record else [e.type(result) for result in op.results]
    slots = [e.temporary() for _ in types]
    for slot, t in zip(slots, types, strict=True):
        e.allocas.append(f"  {slot} = alloca {t}, align 8")
        arguments.append(f"ptr {slot}")
    status = e.temporary()
    e.line(f"{status} = call i32 {symbol(callee)}({', '.join(arguments)})")
    _propagate(e, status, rt.SitesAttr.of(op))
    for n, result in enumerate(op.results):
        place = e.in_record(slots[0], n) if in_record else slots[n]
        e.line(f"{e.define(result)} = load {e.type(result)}, ptr {place}, align 8")


def _kernel(e: FunctionEmitter, op: Operation) -> None:
    """A call of `ulam_<function>` in the C runtime, or of its fast version; truth values are passed as `int`."""
    function = op.properties["function"]
    assert isinstance(function, StringAttr)
    if is_external(function.data):
        _tested(e, op, external_call(e, op, function.data))
        return
    fast = e.module.options.opt_level >= 3 and function.data in FAST
    name = f"ulam_{function.data}{'_fast' * fast}"
    arguments, types = ["ptr %context"], ["ptr"]
    for value in e.operands(op):
        t, argument = e.type(value), e.names[value]
        if t in ("i1", "i8"):
            wide = e.temporary()
            e.line(f"{wide} = {'zext' if t == 'i1' else 'sext'} {t} {argument} to i32")
            t, argument = "i32", wide
        arguments.append(f"{t} {argument}")
        types.append(t)
    throws = "throws" in op.properties
    returned = "i32" if throws else llvm_type(op.results[0].type) if op.results else "void"
    if throws and op.results:
        raise EmissionError("a kernel that throws has no result", op)
    e.module.declare(name, f"declare {returned} {symbol(name)}({', '.join(types)}) #0")
    call = f"call {returned} {symbol(name)}({', '.join(arguments)})"
    if not throws:
        e.line(f"{e.define(op.results[0])} = {call}" if op.results else call)
        return
    status = e.temporary()
    e.line(f"{status} = {call}")
    _tested(e, op, status)


def _tested(e: FunctionEmitter, op: Operation, status: str) -> None:
    """Leaves with the status of a kernel, and the site of its op, unless it is 0."""
    fine = e.temporary()
    good = e.fresh("returned")
    error = fail_block(e, "error", site_of(op), [], status)
    e.line(f"{fine} = icmp eq i32 {status}, 0")
    e.line(f"br i1 {fine}, label %{good}, label %{error}{e.module.unlikely_else()}")
    e.begin_block(good)


def _number(op: Operation, name: str) -> int:
    attribute = op.properties[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def _profile_call(e: FunctionEmitter, op: Operation, function: str, returned: str) -> str:
    """A call of the profiler; as a C function that may touch any memory, it is not moved across."""
    region, named = (_number(op, name) for name in ("region", "named"))
    kind = ("gradient" in op.properties) + 2 * ("reverse" in op.properties)
    e.module.declare(function, f"declare {returned} @{function}(ptr, i32, i32, i32) #0")
    return f"call {returned} @{function}(ptr %context, i32 {region}, i32 {named}, i32 {kind})"


def _profile_begin(e: FunctionEmitter, op: Operation) -> None:
    fine = e.temporary()
    e.line(f"{fine} = {_profile_call(e, op, 'ulam_profile_begin', 'i32')}")
    e.line(f"{e.define(op.results[0])} = icmp ne i32 {fine}, 0")


def _profile_end(e: FunctionEmitter, op: Operation) -> None:
    e.line(_profile_call(e, op, "ulam_profile_end", "void"))


def _profile_entries(e: FunctionEmitter, op: Operation) -> None:
    e.module.declare("ulam_profile_entries", "declare void @ulam_profile_entries(ptr, i64, i64) #0")
    kept, others = (e.names[operand] for operand in e.operands(op))
    e.line(f"call void @ulam_profile_entries(ptr %context, i64 {kept}, i64 {others})")


def _profile_step(e: FunctionEmitter, op: Operation) -> None:
    e.module.declare("ulam_profile_step", "declare void @ulam_profile_step(ptr, i32) #0")
    e.line(f"call void @ulam_profile_step(ptr %context, i32 {int('failed' in op.properties)})")


def control_table() -> dict[type[Operation], Emit]:
    """Op class → emitter, for control flow, calls and errors."""
    return {
        scf.ForOp: _for,
        scf.WhileOp: _while,
        scf.IfOp: _if,
        func.CallOp: _call,
        rt.CheckOp: _check,
        rt.StackGuardOp: _stack_guard,
        ad.ProfileBeginOp: _profile_begin,
        ad.ProfileEndOp: _profile_end,
        ad.ProfileEntriesOp: _profile_entries,
        ad.ProfileStepOp: _profile_step,
        rt.KernelOp: _kernel,
    }
