"""The passes by name, and the optimization levels as lists of them.

A level is data: `stan-opt -O2 --print-pipeline` prints what `stan-opt -p` accepts. Pass modules are imported only when
a pipeline names them. The levels' passes run on the variable form of the `stan` dialect; what follows at every level,
`structure-exits` first, is lowering. Source: Stan's optimization levels documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from ulam.library.extension_points import ExtensionError, ExtensionPoint, load_object

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ArgSpec, ParameterListType

# Name of the pass: module and class.
PASSES: dict[str, str] = {
    "link-library": "ulam.passes.optimize.link_library:LinkLibrary",
    "sums-of-elements": "ulam.passes.optimize.sums_of_elements:SumsOfElements",
    "loop-vectorization": "ulam.passes.optimize.loop_vectorization:LoopVectorization",
    "static-loop-unrolling": "ulam.passes.optimize.static_loop_unrolling:StaticLoopUnrolling",
    "one-step-loop-unrolling": "ulam.passes.optimize.one_step_loop_unrolling:OneStepLoopUnrolling",
    "ad-level-optimization": "ulam.passes.optimize.ad_level_optimization:AdLevelOptimization",
    "memory-pattern-optimization": "ulam.passes.optimize.memory_pattern_optimization:MemoryPatternOptimization",
    "function-inlining": "ulam.passes.optimize.function_inlining:FunctionInlining",
    "lazy-code-motion": "ulam.passes.optimize.lazy_code_motion:LazyCodeMotion",
    "structure-exits": "ulam.passes.value_form.structure_exits:StructureExits",
    "split-branch-chains": "ulam.passes.value_form.split_branch_chains:SplitBranchChains",
    "promote-variables": "ulam.passes.value_form.promote_variables:PromoteVariables",
    "thread-target": "ulam.passes.loops.thread_target:ThreadTarget",
    "fold": "ulam.passes.loops.fold:Fold",
    "cse": "ulam.passes.loops.cse:Cse",
    "invariant-kernels": "ulam.passes.loops.invariant_kernels:InvariantKernels",
    "batch-kernels": "ulam.passes.loops.batch_kernels:BatchKernels",
    "share-kernels": "ulam.passes.loops.share_kernels:ShareKernels",
    "inline-kernels": "ulam.passes.loops.inline_kernels:InlineKernels",
    "normal-terms": "ulam.passes.loops.normal_terms:NormalTerms",
    "powers-to-exponentials": "ulam.passes.loops.powers_to_exponentials:PowersToExponentials",
    "carry-stores": "ulam.passes.loops.carry_stores:CarryStores",
    "cancel-inverses": "ulam.passes.loops.cancel_inverses:CancelInverses",
    "logs-of-transforms": "ulam.passes.loops.logs_of_transforms:LogsOfTransforms",
    "share-exponentials": "ulam.passes.loops.share_exponentials:ShareExponentials",
    "linear-layouts": "ulam.passes.loops.linear_layouts:LinearLayouts",
    "scaled-factors": "ulam.passes.loops.scaled_factors:ScaledFactors",
    "solved-columns": "ulam.passes.loops.solved_columns:SolvedColumns",
    "form-layouts": "ulam.passes.loops.form_layouts:FormLayouts",
    "chosen-elements": "ulam.passes.loops.chosen_elements:ChosenElements",
    "listed-products": "ulam.passes.loops.listed_products:ListedProducts",
    "products-ahead": "ulam.passes.loops.products_ahead:ProductsAhead",
    "design-products": "ulam.passes.loops.design_products:DesignProducts",
    "columns-together": "ulam.passes.loops.columns_together:ColumnsTogether",
    "distribute-loops": "ulam.passes.loops.distribute_loops:DistributeLoops",
    "sums-to-target": "ulam.passes.loops.sums_to_target:SumsToTarget",
    "unique-designs": "ulam.passes.loops.unique_designs:UniqueDesigns",
    "unique-rows": "ulam.passes.loops.unique_rows:UniqueRows",
    "lazy-comparisons": "ulam.passes.loops.lazy_comparisons:LazyComparisons",
    "sum-arms": "ulam.passes.loops.sum_arms:SumArms",
    "unswitch-loops": "ulam.passes.loops.unswitch_loops:UnswitchLoops",
    "carried-rows": "ulam.passes.loops.carried_rows:CarriedRows",
    "branch-additions": "ulam.passes.loops.branch_additions:BranchAdditions",
    "additions-in-place": "ulam.passes.loops.additions_in_place:AdditionsInPlace",
    "tabulate-by-index": "ulam.passes.loops.tabulate_by_index:TabulateByIndex",
    "elements-by-index": "ulam.passes.loops.elements_by_index:ElementsByIndex",
    "elements-of-views": "ulam.passes.loops.elements_of_views:ElementsOfViews",
    "split-memory": "ulam.passes.loops.split_memory:SplitMemory",
    "sink-fills": "ulam.passes.loops.sink_fills:SinkFills",
    "sink-bound": "ulam.passes.loops.sink_bound:SinkBound",
    "small-sizes": "ulam.passes.loops.small_sizes:SmallSizes",
    "logs-to-products": "ulam.passes.loops.logs_to_products:LogsToProducts",
    "share-arms": "ulam.passes.loops.share_arms:ShareArms",
    "idle-iterations": "ulam.passes.loops.idle_iterations:IdleIterations",
    "log-recursions": "ulam.passes.loops.log_recursions:LogRecursions",
    "scaled-log-sums": "ulam.passes.loops.scaled_log_sums:ScaledLogSums",
    "log-sums-to-products": "ulam.passes.loops.log_sums_to_products:LogSumsToProducts",
    "forward-stores": "ulam.passes.loops.forward_stores:ForwardStores",
    "logs-of-choices": "ulam.passes.loops.logs_of_choices:LogsOfChoices",
    "licm": "ulam.passes.loops.licm:Licm",
    "invariant-loops": "ulam.passes.loops.invariant_loops:InvariantLoops",
    "prefix-sums": "ulam.passes.loops.prefix_sums:PrefixSums",
    "private-rows": "ulam.passes.loops.private_rows:PrivateRows",
    "terms-at-stores": "ulam.passes.loops.terms_at_stores:TermsAtStores",
    "loop-fusion": "ulam.passes.loops.loop_fusion:LoopFusion",
    "unroll-small": "ulam.passes.loops.unroll_small:UnrollSmall",
    "dce": "ulam.passes.loops.dce:Dce",
    "convert-stan-to-loops": "ulam.passes.to_loops.convert_stan_to_loops:ConvertStanToLoops",
    "simplify": "ulam.passes.loops.simplify:Simplify",
    "hoist-data": "ulam.passes.loops.hoist_data:HoistData",
    "if-changed": "ulam.passes.loops.if_changed:IfChanged",
    "separate-data-checks": "ulam.passes.loops.separate_data_checks:SeparateDataChecks",
    "sum-data-terms": "ulam.passes.loops.sum_data_terms:SumDataTerms",
    "tabulate-data": "ulam.passes.loops.tabulate_data:TabulateData",
    "defer-checks": "ulam.passes.loops.defer_checks:DeferChecks",
    "tabulate-invariants": "ulam.passes.loops.tabulate_invariants:TabulateInvariants",
    "lighten-loops": "ulam.passes.loops.lighten_loops:LightenLoops",
    "fuse-loops": "ulam.passes.loops.fuse_loops:FuseLoops",
    "reverse-mode": "ulam.passes.autodiff.reverse_mode:ReverseModePass",
    "count-profile-entries": "ulam.passes.loops.count_profile_entries:CountProfileEntries",
    "forward-mode": "ulam.passes.autodiff.forward_mode:ForwardModePass",
    "strip-mine": "ulam.passes.loops.strip_mine:StripMine",
    "sort-rows": "ulam.passes.loops.sort_rows:SortRows",
    "split-squares": "ulam.passes.loops.split_squares:SplitSquares",
    "split-terms": "ulam.passes.loops.split_terms:SplitTerms",
    "split-scatters": "ulam.passes.loops.split_scatters:SplitScatters",
    "release-arena": "ulam.passes.loops.release_arena:ReleaseArena",
    "stack-buffers": "ulam.passes.loops.stack_buffers:StackBuffers",
    "carry-elements": "ulam.passes.loops.carry_elements:CarryElements",
    "dead-stores": "ulam.passes.loops.dead_stores:DeadStores",
    "loops-from-guards": "ulam.passes.loops.loops_from_guards:LoopsFromGuards",
    "memory-from-guards": "ulam.passes.loops.memory_from_guards:MemoryFromGuards",
    "data-divisors": "ulam.passes.loops.data_divisors:DataDivisors",
    "shared-divisors": "ulam.passes.loops.shared_divisors:SharedDivisors",
    "counted-sums": "ulam.passes.loops.counted_sums:CountedSums",
    "overwritten-memory": "ulam.passes.loops.overwritten_memory:OverwrittenMemory",
    "invariant-sizes": "ulam.passes.loops.invariant_sizes:InvariantSizes",
    "coalesce-loops": "ulam.passes.loops.coalesce_loops:CoalesceLoops",
    "choose-nests": "ulam.passes.loops.choose_nests:ChooseNests",
    "interchange-loops": "ulam.passes.loops.interchange_loops:InterchangeLoops",
    "equal-sizes": "ulam.passes.loops.equal_sizes:EqualSizes",
    "carried-data": "ulam.passes.loops.carried_data:CarriedData",
    "elements-at-reads": "ulam.passes.loops.elements_at_reads:ElementsAtReads",
    "loops-from-zero": "ulam.passes.loops.loops_from_zero:LoopsFromZero",
    "loop-hints": "ulam.passes.loops.loop_hints:LoopHints",
    "share-parts": "ulam.passes.loops.share_parts:ShareParts",
    "split-functions": "ulam.passes.loops.split_functions:SplitFunctions",
    "counted-loops": "ulam.passes.optimize.counted_loops:CountedLoops",
    "constant-propagation": "ulam.passes.optimize.constant_propagation:ConstantPropagation",
    "copy-propagation": "ulam.passes.optimize.copy_propagation:CopyPropagation",
    "expression-propagation": "ulam.passes.optimize.expression_propagation:ExpressionPropagation",
    "dead-code-elimination": "ulam.passes.optimize.dead_code_elimination:DeadCodeElimination",
    "partial-evaluation": "ulam.passes.optimize.partial_evaluation:PartialEvaluation",
    "print-analysis": "ulam.passes.analysis.print_analysis:PrintAnalysis",
    "repeat": "ulam.passes.optimize.repeat:Repeat",
    "strip-profiles": "ulam.passes.strip_profiles:StripProfiles",
    "insert-profiles": "ulam.passes.insert_profiles:InsertProfiles",
    "specialize-data": "ulam.passes.optimize.specialize_data:SpecializeData",
    "trace-instrument": "ulam.tracing.instrument.trace_instrument:TraceInstrument",
    "verify-dominance": "ulam.passes.verify_dominance:VerifyDominance",
}

OWN_PASSES = ExtensionPoint("ulam.passes", "pass")
"""Passes of other packages and of users, by name; those of the table come first."""

_LOOPS = ("stan.for", "stan.foreach", "stan.while")
# Passes that do nothing unless the program has one of these ops: importing them would take longer than a small program.
WORKS_ON: dict[str, tuple[str, ...]] = {
    "counted-loops": ("stan.while",),
    "function-inlining": ("stan.func",),
    "sums-of-elements": _LOOPS,
    "loop-vectorization": _LOOPS,
    "static-loop-unrolling": _LOOPS,
    "one-step-loop-unrolling": _LOOPS,
}

_OPTIONS_OF_LEVELS = {"when": ("useful",)}
"""What levels say to those passes: it is right without a look at what they take."""

# Constants, copies, what they decide and what then is dead feed each other: to a fixpoint, bounded.
_FIXPOINT_OF_INTS = (
    'repeat{passes="constant-propagation{preserve-numerics=true},copy-propagation,'
    'partial-evaluation{preserve-numerics=true},dead-code-elimination" max=4}'
)
_FIXPOINT = (
    'repeat{passes="constant-propagation,copy-propagation,'
    'partial-evaluation{preserve-numerics=true},dead-code-elimination" max=4}'
)
# Vectorisation wants whole loops and expressions as they were written, so it comes before unrolling and before rules
# that change bits. Expression propagation shows these rules whole expressions; lazy-code-motion, after it, shares again
# what it duplicated, and the temporaries of both end as copies and dead assignments.
_EVERYTHING = (
    "function-inlining",
    "counted-loops",
    _FIXPOINT,
    "sums-of-elements",
    "loop-vectorization",
    "static-loop-unrolling{when=useful}",
    "one-step-loop-unrolling{when=useful elementwise=false}",
    _FIXPOINT,
    'repeat{passes="expression-propagation{when=useful limit=64}" max=4}',
    "partial-evaluation",
    "lazy-code-motion",
    'repeat{passes="constant-propagation,copy-propagation,dead-code-elimination" max=2}',
    "memory-pattern-optimization",
    "ad-level-optimization",
)


def _then_elements(name: str) -> tuple[str, ...]:
    """A pass of level 4. Unrolled loops read index arrays at literal indices: those elements are known."""
    return (name, "specialize-data") if name.startswith("static-loop-unrolling") else (name,)


LEVELS: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("dead-code-elimination", "ad-level-optimization"),
    2: (
        "function-inlining",
        _FIXPOINT_OF_INTS,
        "static-loop-unrolling{when=useful}",
        "one-step-loop-unrolling{when=useful}",
        "expression-propagation{preserve-numerics=true when=useful}",
        _FIXPOINT_OF_INTS,
        "lazy-code-motion{preserve-numerics=true}",
        "copy-propagation",
        "dead-code-elimination",
        "ad-level-optimization",
    ),
    3: _EVERYTHING,
    4: ("specialize-data", *(entry for name in _EVERYTHING for entry in _then_elements(name))),
}
DEFAULT_LEVEL = 3

# What becomes of a program's profile statements, before the passes of the level: see `insert_profiles`.
PROFILING: dict[str, str] = {
    "on": "",
    "off": "strip-profiles",
    "statements": "strip-profiles,insert-profiles{each=statement}",
    "blocks": "strip-profiles,insert-profiles{each=block}",
    "functions": "strip-profiles,insert-profiles{each=function}",
}


_OPTIONS = r'\{(?:"(?:[^"\\]|\\.)*"|[^"{}])*\}'
_NAME = r"[a-z][a-z0-9-]*"
# Patterns are texts: `re` compiles them when the first is asked for, which a start from the cache does not.
_STRING = r'"(?:[^"\\]|\\.)*"'
_PART = rf"(?P<name>{_NAME})(?P<options>{_OPTIONS})?"
_PLAIN_OPTION = rf'(?P<name>{_NAME})=(?:"(?P<string>[ !#-\[\]-~]*)"|(?P<word>{_NAME}|\d+))(?: |$)'
"""An option with one value, whose text stands for itself."""
_TRUTH = {"true": True, "false": False}
_WELL_FORMED = rf"\s*{_NAME}(?:{_OPTIONS})?\s*(?:,\s*{_NAME}(?:{_OPTIONS})?\s*)*"
_ANCHORED = r"(?s)\s*builtin\.module\s*\((?P<inner>.*)\)\s*"
_ANCHOR = r"(?P<op>\b[\w.]+)\s*\("


class PipelineError(ValueError):
    """The text of a pipeline cannot be read, or names a pass or an option that does not exist."""


def level_pipeline(level: int) -> str:
    """The passes of an optimization level as pipeline text."""
    return ",".join(LEVELS[level])


def pass_class(name: str) -> type[ModulePass]:
    """The class of a pass; imports its module. Raises PipelineError if there is none of that name."""
    if (reference := PASSES.get(name)) is not None:
        return load_object(reference)
    try:
        if (found := OWN_PASSES.find(name)) is not None:
            return found
    except ExtensionError as error:
        raise PipelineError(str(error)) from error
    raise unknown_pass(name)


def unknown_pass(name: str) -> PipelineError:
    """The error for a name that no pass has."""
    return PipelineError(f"unknown pass '{name}'{did_you_mean(name, [*PASSES, *OWN_PASSES.names()])}")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the one that is nearest to it, if one is near."""
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def parse_pipeline(text: str, is_idle: Callable[[str], bool] = lambda name: False) -> list[ModulePass]:
    """The passes that `name{option=value ...},name,...` stands for, but for idle ones. Raises PipelineError.

    As MLIR has it, `builtin.module(...)` may stand around the whole.
    """
    passes: list[ModulePass] = []
    for spec in pass_specs(text):
        if spec.name not in PASSES:
            pass_class(spec.name)  # raises if there is none
        if not is_idle(spec.name):
            passes.append(_pass(spec))
        elif spec.parameters and spec.parameters != _OPTIONS_OF_LEVELS:
            _pass(spec)  # raises if they are wrong
    for entry in passes:
        check: Callable[[], None] | None = getattr(entry, "check_steps", None)
        if check is not None:
            check()
    return passes


def read_passes(text: str) -> Iterator[ModulePass]:
    """The same for a pipeline that is known to be right: steps of passes are not looked at before they run."""
    return map(_pass, pass_specs(text))


@cache
def pipeline_parts(text: str) -> tuple[tuple[str, str], ...]:
    """The passes of a pipeline: name and text of each. What cannot be told apart is one part without a name."""
    if re.fullmatch(_WELL_FORMED, text) is None:
        return (("", text),)
    return tuple((part["name"], part[0]) for part in re.finditer(_PART, text))


def pass_specs(text: str) -> Iterator[ArgSpec]:
    """The parts of a pipeline's text. Nearly all are read here: xDSL takes ten times as long for them."""
    from xdsl.utils.arg_spec import ArgSpec, parse_spec
    from xdsl.utils.arg_spec import parse_pipeline as parse_specs
    from xdsl.utils.exceptions import ArgSpecParseError

    inner = without_anchor(text)
    try:
        if re.fullmatch(_WELL_FORMED, inner) is None:
            _refuse_anchors(inner)
            yield from parse_specs(inner) if inner.strip() else ()
            return
        for part in re.finditer(_PART, inner):
            options = (part["options"] or "{}")[1:-1].strip()  # xDSL wants no blanks at its ends
            plain = _plain_options(options)
            yield parse_spec(f"{part['name']}{{{options}}}") if plain is None else ArgSpec(part["name"], plain)
    except (ArgSpecParseError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise PipelineError(f"cannot read the pass pipeline '{text}': {reason}") from None


def _plain_options(text: str) -> dict[str, ParameterListType] | None:
    """The options of a pass if all of them are plain ones."""
    found: dict[str, ParameterListType] = {}
    plain = re.compile(_PLAIN_OPTION)
    position = 0
    while position < len(text):
        if (option := plain.match(text, position)) is None:
            return None
        word = option["word"]
        value = option["string"] if word is None else _TRUTH.get(word, int(word) if word.isdecimal() else word)
        found[option["name"]] = (value,)
        position = option.end()
    return found


def without_anchor(text: str) -> str:
    """The text of a pipeline without `builtin.module(...)` around it."""
    anchored = re.fullmatch(_ANCHORED, text)
    return anchored["inner"] if anchored is not None else text


def _refuse_anchors(text: str) -> None:
    """Raises ValueError if a part of a pipeline is for the ops of a kind, as in MLIR `func.func(...)`."""
    if (found := re.search(_ANCHOR, re.sub(_STRING, '""', text))) is not None:
        raise ValueError(
            f"passes work on whole modules: write builtin.module(...) around all, and no {found['op']}(...)"
        )


def _pass(spec: ArgSpec) -> ModulePass:
    cls = pass_class(spec.name)
    try:
        if (made := _plainly_made(cls, spec)) is not None:
            return made
        entry = cls.from_spec(spec)
        _check_counts(entry)
    except (ValueError, TypeError) as error:
        raise PipelineError(f"wrong options for pass '{spec.name}': {error}") from None
    return entry


_KINDS = {"bool": bool, "int": int, "str": str}
"""Kinds of options, as annotations say it, of which there is nothing to convert."""


def _plainly_made(cls: type[ModulePass], spec: ArgSpec) -> ModulePass | None:
    """The pass if its options are single values of the kinds that they have: xDSL resolves annotations for others."""
    kinds = _kinds_of_options(cls)
    options: dict[str, Any] = {}
    for name, values in spec.parameters.items():
        name = name.replace("-", "_")
        kind = _KINDS.get(kinds.get(name, ""))
        value = values[0] if len(values) == 1 else None
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            return None
        options[name] = value
    if any(name not in options and not hasattr(cls, name) for name in kinds):
        return None  # an option without a default is missing
    return cls(**options)


@cache
def _kinds_of_options(cls: type[ModulePass]) -> dict[str, str]:
    """The options of a pass by name, those of its bases, too, with their kinds as annotations say it."""
    kinds: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        kinds.update(base.__dict__.get("__annotations__", {}))
    return {name: kind for name, kind in kinds.items() if not str(kind).startswith("ClassVar")}


def _check_counts(entry: ModulePass) -> None:
    """Raises ValueError if an option that is a number is negative: all of them are limits of something counted."""
    for option in fields(entry):
        value = getattr(entry, option.name)
        if isinstance(value, int) and value < 0:
            raise ValueError(f"{option.name.replace('_', '-')} is {value}, but must not be negative")


def run_pipeline(
    module: ModuleOp, text: str, between: Callable[[], None] | None = None, *, skip_unused: bool = False
) -> None:
    """Runs the passes of a pipeline on a module, but for those that have nothing to work on.

    `between` is called before each, and may end this by an exception. `skip_unused`: functions that no block needs are
    marked first, which passes then leave out.
    """
    from xdsl.context import Context

    from ulam.passes.running import remembering, run_passes

    if skip_unused:
        from ulam.passes.analysis.call_graph import mark_unused

        mark_unused(module)
    names = _op_names(module)

    def is_idle(name: str) -> bool:
        return not names.intersection(WORKS_ON.get(name, names))

    with remembering():
        run_passes(Context(), module, parse_pipeline(text, is_idle), between)


def _op_names(module: ModuleOp) -> frozenset[str]:
    """The names of the ops of the user's functions and of the blocks."""
    from ulam.dialects.walk import ops_within
    from ulam.passes.analysis.scopes import own_bodies

    return frozenset(op.name for body in own_bodies(module) for op in ops_within(body))


def pipeline_text(passes: list[ModulePass]) -> str:
    """What `parse_pipeline` reads back; names of options have hyphens, as those of passes have."""
    from xdsl.utils.arg_spec import ArgSpec

    def text(entry: ModulePass) -> str:
        spec = entry.spec()
        return str(ArgSpec(spec.name, {name.replace("_", "-"): value for name, value in spec.parameters.items()}))

    return ",".join(map(text, passes))
