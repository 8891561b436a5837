"""What always follows the passes of a level: from the `stan` dialect to the functions that are emitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.context import Context

from ulam.passes.loops.unit_modules import set_slots, slots_of
from ulam.passes.nested import nested_passes, run_nested
from ulam.passes.pipeline_order import VALUE_FORM, unit_pipeline
from ulam.passes.pipelines import parse_pipeline
from ulam.passes.running import observer, remembering, run_passes
from ulam.passes.to_loops.programs import LoweredUnit, ProgramParts, program_of, take_apart
from ulam.passes.to_loops.units import lower_unit
from ulam.passes.units import UnitKind

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

_CONTEXT = Context()
REASSOCIATING_LEVEL = 3
"""From this level on sums may be re-associated."""
ALL_DATA = "hoist-data{rejections=true variables=true}"
"""Moves work on data to `bind`, branches that reject data and variables that are filled with it included."""
SOLVED_COLUMNS = 'if-changed{passes="solved-columns" then="fold,cse,dce"}'
"""Lets solutions of equations be linear in data for layouts, twice as these."""
LINEAR_LAYOUTS = 'if-changed{{passes="split-squares,linear-layouts{}" then="fold,cse,dce"}}'
"""Gives sums of squares layouts of their data, twice: while statements have loops of their own, and when rows stand in
one loop.
"""
EQUAL_DESIGNS = (
    # What is left of a loop has no branches, perhaps, and goes into the one that fills what it reads.
    'if-changed{passes="split-terms" then="dce,'
    'loop-fusion{before-reverse-mode=true reassociate=true function=evaluate},cse,logs-of-transforms,dce"}',
    'if-changed{passes="unique-designs" then="fold,cse,licm,dce"}',
)
"""The same for rows that several loops compute one after the other: before reverse mode, which gives them one body."""
COALESCED_LOOPS = 'if-changed{passes="coalesce-loops" then="fold,cse,licm,dce"}'
CHOSEN_NESTS = 'if-changed{passes="choose-nests" then="fold,dce"}'
"""Of nests whose inner loops are of different lengths the rows in one loop, for layouts, and twice as these; whether
that one runs.
"""
SMALL_SIZES = 'if-changed{passes="small-sizes" then="fold,forward-stores{function=evaluate},cse,licm,dce"}'
"""Gives the heaviest nest versions without inner loops, before it gets its derivatives."""


_SCALARS = "unroll-small{function=evaluate},fold"
_BEFORE_DATA = (
    'if-changed{passes="lazy-comparisons,loops-from-zero,invariant-sizes" then="simplify"}',
    "split-memory{function=evaluate}",
    'if-changed{passes="branch-additions,overwritten-memory,loops-from-guards,carry-elements" then="cse,dce"}',
    "invariant-kernels",
    "share-kernels",
    f'if-changed{{passes="inline-kernels" then="{_SCALARS},{_SCALARS},forward-stores{{function=evaluate}},cse,dce"}}',
    "logs-of-transforms",
)
"""Of density units at levels 3 and 4, as the two that follow: before what data alone decide moves to `bind`."""


def _before_fusion(layouts: bool) -> tuple[str, ...]:
    """While statements have loops of their own."""
    then = "cse,dce,idle-iterations{function=evaluate},licm,dce"  # while loops over few states are loops
    tables = f"tabulate-data{{strips=true}},{ALL_DATA}"
    return (
        'if-changed{passes="prefix-sums" then="cse,dce,share-arms,cse,dce"}',
        'if-changed{passes="equal-sizes" then="cse"}',
        'if-changed{passes="memory-from-guards" then="cse,dce"}',
        "sink-fills{function=evaluate}",
        "additions-in-place{function=evaluate}",
        # Behind what takes unchanged numbers out of branches.
        f'if-changed{{passes="counted-sums" then="cse,dce,carried-data,fold,cse,dce,{ALL_DATA}"}}',
        # While factors are apart from what they solve.
        *(('if-changed{passes="scaled-factors" then="fold,cse,dce"}',) if layouts else ()),
        *(('if-changed{passes="form-layouts{early=true}" then="fold,cse,dce"}',) if layouts else ()),
        'if-changed{passes="interchange-loops" then="fold,cse,licm,dce"}',
        'if-changed{passes="normal-terms{function=evaluate}" then="cse,dce"}',
        f'if-changed{{passes="powers-to-exponentials{{function=evaluate}}" then="{tables}"}}',
        'if-changed{passes="logs-of-choices{function=evaluate}" then="fold,cse,dce"}',
        'if-changed{passes="sums-to-target" then="cse,dce"}',
        # Ahead of layouts, which take elements at an index for coefficients of groups.
        'if-changed{passes="elements-by-index" then="fold,cse,dce"}',
        *((COALESCED_LOOPS, SOLVED_COLUMNS, LINEAR_LAYOUTS.format("{early=true}")) if layouts else ()),
        'if-changed{passes="terms-at-stores,elements-at-reads,private-rows" then="fold,cse,dce"}',
        f'if-changed{{passes="log-recursions{{function=evaluate}}" then="{then}"}}',
        "dead-stores",
    )


def _behind_fusion(layouts: bool, hessian: bool) -> tuple[str, ...]:
    """When rows stand in one loop, before they get their derivatives."""
    inner = "unroll-small{function=evaluate most=8 inner=true}"
    then = f"dce,{inner},fold,forward-stores{{function=evaluate}},cse,dce"
    return (
        'if-changed{passes="forward-stores{function=evaluate}" then="cse,dce"}',
        'if-changed{passes="carry-stores{function=evaluate},cancel-inverses{function=evaluate}" then="dce"}',
        'if-changed{passes="distribute-loops{function=evaluate}" then="cse,dce"}',
        'if-changed{passes="carried-rows{function=evaluate}" then="cse,dce"}',
        'if-changed{passes="scaled-log-sums{function=evaluate}" then="fold,cse,dce,licm,dce"}',
        f'if-changed{{passes="log-sums-to-products{{function=evaluate}}" then="{then}"}}',
        # Behind it, which looks for logarithms. What stores had hidden from the first time is seen here.
        'if-changed{passes="logs-of-transforms" then="dce"}',
        *((COALESCED_LOOPS, SOLVED_COLUMNS) if layouts else ()),
        *((LINEAR_LAYOUTS.format(""), 'if-changed{passes="form-layouts" then="fold,cse,dce"}') if layouts else ()),
        # Behind them: what is reduced has no rows left.
        *(('if-changed{passes="tabulate-by-index" then="fold,cse,licm,dce"}',) if layouts and not hessian else ()),
        # Ahead of it rows may be found to have a layout.
        'if-changed{passes="invariant-kernels,batch-kernels" '
        'then="invariant-loops,tabulate-invariants{branches=true},dead-stores,cse,dce"}',
        'if-changed{passes="elements-of-views,chosen-elements,products-ahead" then="cse,licm,dce"}',
        *(('if-changed{passes="listed-products" then="fold,cse,licm,dce"}',) if layouts else ()),
        *(EQUAL_DESIGNS if layouts and not hessian else ()),
        *(("design-products",) if layouts else ()),
        'if-changed{passes="columns-together" then="cse,licm,dce"}',
        *((CHOSEN_NESTS,) if layouts and hessian else ()),
        "shared-divisors{function=evaluate}",
    )


def _few_passes(layouts: bool) -> tuple[str, ...]:
    """Of a large program for any data, before derivatives: what data alone decide, checks, and loops of costly terms,
    whose rows are then mostly equal, leave its loops. Few clean up, as each has to go through all that will never run.
    """
    fusion = "loop-fusion{before-reverse-mode=true reassociate=true function=evaluate}"
    fuse = ("sums-to-target", "unroll-small{function=evaluate}", fusion, "dce")
    return ("lighten-loops{reassociate=true few=true}", *fuse, *(EQUAL_DESIGNS[:1] if layouts else ()))


def lowering_pipeline(unit: UnitKind, opt_level: int, layouts: bool = True, few_passes: bool = False) -> str:
    """The passes that follow `convert-stan-to-loops{unit=...}`, in order.

    What they tell each other stands in the module: an attribute of it is the number of slots of the bound table so far,
    `ad.gradient` asks for reverse mode. `layouts`: levels 3 and 4 choose layouts of the data. `few_passes`: of density
    units there those that a large program gains most by, for the time that they take.
    """
    may_reassociate = opt_level >= REASSOCIATING_LEVEL
    reassociate = "{reassociate=true}" if may_reassociate else ""
    hints = "{nests=true scatters=true}" if may_reassociate else ""
    is_loose = unit.hot and may_reassociate
    is_thorough = is_loose and not few_passes
    passes = ["simplify", *(_BEFORE_DATA if is_thorough else ())]
    if unit.has_bind:
        passes.append(ALL_DATA if is_loose else "hoist-data")
    if is_few := is_loose and few_passes:
        passes += _few_passes(layouts and not unit.hessian)
    elif unit.hot:
        passes += [f'if-changed{{passes="carried-data" then="fold,cse,dce,{ALL_DATA}"}}'] if is_thorough else []
        passes += ['if-changed{passes="data-divisors{function=evaluate}" then="licm"}'] if is_thorough else []
        passes += [f"lighten-loops{reassociate}", *(_before_fusion(layouts) if is_thorough else ())]
        passes.append(f"fuse-loops{{before-reverse-mode=true{' reassociate=true' * may_reassociate}}}")
        passes += _behind_fusion(layouts, unit.hessian) if is_thorough else ()
        if is_thorough and not unit.hessian:
            passes.append(SMALL_SIZES)
    passes.append("reverse-mode")
    if unit.counts_entries:
        passes.append("count-profile-entries")
    if unit.gradient:
        passes += ["cse", *([] if is_few else [f"fuse-loops{reassociate}"])]
    if is_few and layouts and not unit.hessian:
        passes += ["sum-arms", "unique-rows", "logs-to-products", "share-exponentials"]
    if is_thorough and not unit.hessian:
        # Loops over rows have their derivatives now. None of these needs another one's leavings taken away.
        rows = ("sort-rows",) * (layouts and unit.gradient)
        rows += ("sum-arms", *(("unique-rows", "choose-nests") if layouts else ()), "unswitch-loops")
        passes.append(f'if-changed{{passes="{",".join(rows)}" then="fold,cse,dce"}}')
        passes += ["strip-mine", "logs-to-products", "share-exponentials"]
    passes += [f"thread-target{reassociate}", "dce"]
    if unit.hessian:
        passes += ["forward-mode", "simplify", *(["strip-mine"] if may_reassociate and not is_few else [])]
    if unit.gradient:
        passes.append("split-scatters{divisions=true}" if is_loose else "split-scatters")
    passes += ["release-arena", "stack-buffers", f"loop-hints{hints}"]
    if unit.is_bound and (unit.hot or not few_passes):
        # What is not runs once, and is compiled as it is written, which takes time in proportion.
        # Reads of the bound table within arms would tell equal arms apart.
        sink = ["sink-bound{function=evaluate}"] if is_loose else []
        passes += [f"share-parts{{relocated={str(unit.hot).lower()}}}", *sink, "split-functions"]
    return ",".join(passes)


def lowering_passes(unit: UnitKind, opt_level: int) -> tuple[ModulePass, ...]:
    """The same as passes."""
    return nested_passes(lowering_pipeline(unit, opt_level))


def to_value_form(module: ModuleOp) -> ProgramParts:
    """The value form of a program, in place; taken apart."""
    run_value_form(module)
    return take_apart(program_of(module))


def run_value_form(module: ModuleOp) -> None:
    """Makes values of the variables of a program, in place."""
    run_passes(_CONTEXT, module, nested_passes(VALUE_FORM))


def lower(
    program: ProgramParts, kind: UnitKind, opt_level: int, *, layouts: bool = True, chosen: str | None = None
) -> LoweredUnit:
    """A unit of the program, ready for emission."""
    unit = begin_unit(program, kind, opt_level)
    finish_unit(unit, opt_level, layouts=layouts, chosen=chosen)
    return unit


def begin_unit(program: ProgramParts, kind: UnitKind, opt_level: int) -> LoweredUnit:
    """A unit as loops over scalars: what the blocks of the program that belong to it become."""
    watching = observer()
    if watching is not None:
        watching.before("convert-stan-to-loops", None)
    unit = lower_unit(program, kind, whole_terms=opt_level < REASSOCIATING_LEVEL)
    if watching is not None:
        watching.after("convert-stan-to-loops", unit.module)
    return unit


def finish_unit(
    unit: LoweredUnit,
    opt_level: int,
    between: Callable[[], None] | None = None,
    *,
    layouts: bool = True,
    few_passes: bool = False,
    chosen: str | None = None,
) -> None:
    """Everything else up to emission. What becomes of equal units is equal.

    `between` is called before each pass, and may end this by an exception. `chosen`: the passes of density units,
    instead of the level's.
    """
    set_slots(unit.module, unit.n_slots)
    if chosen is not None and unit.kind.hot:
        text = unit_pipeline(chosen, unit.kind)
        parse_pipeline(text)  # what is wrong with it is told before anything runs
    else:
        text = lowering_pipeline(unit.kind, opt_level, layouts, few_passes)
    with remembering():
        run_nested(_CONTEXT, unit.module, text, between)
    unit.n_slots = slots_of(unit.module)
