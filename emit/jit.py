"""LLVM: text in, machine code out, and machine code into the process. The only module that imports llvmlite.

    data = compile_object(text, Pipeline())          # an object file's bytes, for this machine
    loaded = load_object(data, runtime_library)      # needs neither xDSL nor the frontend
    address = loaded.address("evaluate")

All functions may be called from several threads. A loaded object stays in memory as long as its handle.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ulam.emit.errors import CodeGenerationError
from ulam.emit.function_attributes import PLAIN
from ulam.emit.target import NATIVE, Host, chosen, named
from ulam.library.records import record

if TYPE_CHECKING:
    from llvmlite.binding import LLJIT, ModuleRef, ResourceTracker, TargetMachine
    from llvmlite.binding.newpassmanagers import ModulePassManager

_lock = threading.Lock()
_compile_lock = threading.Lock()
_names = itertools.count()


LONG_MODULE = 3_000
"""Lines of a module from which it counts as long: up to here what runs once gets all passes, which take a quarter of a
second."""


@record(frozen=True)
class Pipeline:
    """How hard LLVM tries.

    `speed`: 0 to 3. What 2 and 3 add takes a tenth of LLVM's time and gains nothing here: the passes before have found
    what is redundant. `vectorize`: widen loops, and unroll them where that pays. `interleave`: run several widened
    iterations side by side; half more compile time per loop, and a few percent on loops that are short and hot.
    SLP vectorisation is always off: it takes most of the time and gains nothing here.
    `if_long`: of modules of more than `long_from` lines these passes only, by their names in llvmlite, instead of all
    that belong to `speed`.
    `plain_if_long`: code of modules of more than `LONG_MODULE` lines is generated for one instruction after the other,
    in an eighth of the time. Nothing is fused then, so last bits may differ.
    `quick_from`: of modules of more lines instructions alone are found one by one.
    """

    speed: int = 1
    vectorize: bool = True
    interleave: bool = False
    if_long: tuple[str, ...] = ()
    long_from: int = LONG_MODULE
    plain_if_long: bool = False
    quick_from: int | None = None


HOT = Pipeline()
"""For log density and gradient."""
SCALAR = Pipeline(vectorize=False)
"""For functions that are called from outside."""
ONCE = Pipeline(
    vectorize=False,
    if_long=(
        "simplify_cfg",
        "sroa",
        "instruction_combine",
        "post_order_function_attributes",
        "tail_call_elimination",
        "simplify_cfg",
    ),
    long_from=1_000,
)
"""For what runs once: transformed data, generated quantities. Our own passes have moved and shared what can be; those
of LLVM for loops, without widening them, make little faster. Endless recursion needs no more stack than at its first
level: it ends when it is interrupted, not before.
"""
ONCE_LOOSELY = replace(ONCE, plain_if_long=True)
"""The same where last bits may differ: at levels 3 and 4."""
LARGE = replace(ONCE, if_long=("sroa", "simplify_cfg"), quick_from=20_000)
"""For the log density of a large program that is compiled for any data: most of it is in branches that data never
take, and gradients take twice as long where loops are not widened. What instructions could be combined to, our own
passes have found. What selecting them one by one costs depends on the length: up to 6% of a gradient's time in modules
of 21,000 to 32,000 lines, for 5 to 12% of the compile time; 10 to 30% and 1 to 3% in those of 12,000 to 16,000."""
VAST = Pipeline(speed=0, vectorize=False)
"""For modules with a function so long that passes of LLVM whose time grows with the square of it would never end: those
of this pipeline, and of code generation for it, take time in proportion. Nothing is fused, widened or inlined."""

BLOCK_LIMIT = 4_000
"""Instructions in one basic block up to which its code is generated with care (half a second). Beyond, twice as many
take five times as long, in the selection of instructions."""
CROWDED = 100_000
"""Instructions of a basic block, after LLVM's passes, times the comparisons among them, from which on they are selected
one by one. Ordering them with care keeps what each comparison has set from all others, and takes time with the third
power of the block: 0.3 s up to here, 4 for 3,600 with 145 comparisons, 27 for 4,400 with 200."""
MAY_BE_CROWDED = 1_000
"""Lines of a module from which it is looked for such blocks."""
FUNCTION_LIMIT = 25_000
"""Instructions of a function up to which it is optimised (2 seconds); from there on a few passes (combining
instructions, threading jumps) are slower than linear."""


@cache
def machine() -> Host:
    """This machine."""
    return Host(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())


@cache
def host() -> Host:
    """This machine, or what `ULAM_TARGET_CPU` makes of it."""
    _initialize()
    return chosen(machine())


def target(name: str) -> Host:
    """What code is made for, by a name of it: `host` is `NATIVE`. Raises TargetError for names that there are not."""
    return host() if name == NATIVE else named(host(), name)


_initialized = False


def _initialize() -> None:
    global _initialized
    with _lock:
        if not _initialized:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            _initialized = True


def _target_machine(care: int, processor: str = NATIVE) -> TargetMachine:
    """A new one each time: they must not be shared between threads. `care`: with which code is generated, 0 to 2."""
    machine = target(processor)
    return llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=min(care, 2),
        reloc="pic",
        codemodel="default",
    )


# LLVM's hidden options, which belong to the process (and to whoever else uses llvmlite in it), while we compile
OPTIONS = {
    # loops that add up in strict order are widened too, all but the additions: the same bits, several times faster
    "force-ordered-reductions": ("true", "false"),
    # a tenth of the compile time; addresses here are simple enough for the machine's addressing modes
    "disable-lsr": ("true", "false"),
    # a version of a loop for rows with one element would be its only widened one
    "enable-mem-access-versioning": ("false", "true"),
    # short loops of known length are not masked unless we say so: rows would wait for each other's masks
    "vectorizer-min-trip-count": ("1", "16"),
    # two vectors of parameters are a known, often odd, distance apart: what is stored in one is not soon loaded from it
    "store-to-load-forwarding-conflict-detection": ("false", "true"),
}
OPTIONS_IF_QUICK = {
    # instructions are selected one by one ("FastISel"); the default, which is for code that is generated without care,
    # cannot be given back once it was changed, so that such code is told, too
    "fast-isel": ("true", "false"),
}
OPTIONS_IF_LONG = {
    # the usual one orders instructions as they are written; in blocks with hundreds of comparisons and values that are
    # stored, which only long programs have, it goes back again and again: seconds for a block. The bits are the same.
    "pre-RA-sched": ("list-burr", "default"),
}
"""Of modules of more than `LONG_MODULE` lines."""


class _Options:
    """LLVM's options while a module is compiled."""

    def __init__(self) -> None:
        self._defaults: dict[str, str] = {}

    def set(self, options: Mapping[str, tuple[str, str]]) -> None:
        """`options` have our value, and the one that they have at the end."""
        for name, (ours, default) in options.items():
            self._defaults[name] = default
            llvm.set_option("ulam", f"-{name}={ours}")

    def reset(self) -> None:
        for name, default in self._defaults.items():
            llvm.set_option("ulam", f"-{name}={default}")


@contextmanager
def _options(is_long: bool, is_quick: bool) -> Iterator[_Options]:
    with _compile_lock:
        options = _Options()
        try:
            options.set({**OPTIONS, **(OPTIONS_IF_LONG if is_long else {}), **(OPTIONS_IF_QUICK if is_quick else {})})
            yield options
        finally:
            options.reset()


@contextmanager
def _parsed(text: str) -> Iterator[ModuleRef]:
    """The module, in a context of its own; both are given back here.

    An exception may hold them in a cycle, by its traceback, and garbage collection would take the context first.
    """
    with llvm.create_context() as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise CodeGenerationError(f"LLVM refused the module: {error}") from error
        with module:
            yield module


def _optimize(module: ModuleRef, pipeline: Pipeline, machine: TargetMachine, few: Sequence[str]) -> None:
    """Runs the passes of a pipeline, or only `few`."""
    with llvm.create_pipeline_tuning_options(speed_level=pipeline.speed) as options:
        options.loop_vectorization = pipeline.vectorize
        options.loop_interleaving = pipeline.interleave
        options.loop_unrolling = pipeline.vectorize
        options.slp_vectorization = False
        with llvm.create_pass_builder(machine, options) as builder:
            passes = llvm.create_new_module_pass_manager() if few else builder.getModulePassManager()
            for name in few:
                getattr(passes, f"add_{name}_pass")()
            try:
                passes.run(module, builder)
            finally:
                _release(passes)


@contextmanager
def _optimized(
    text: str, pipeline: Pipeline, between: Callable[[], None], processor: str = NATIVE, prefix: str = ""
) -> Iterator[tuple[TargetMachine, ModuleRef]]:
    """The module after LLVM's passes, and the machine that it is for."""
    lines = text.count("\n")
    is_long = lines > LONG_MODULE
    care = 0 if is_long and pipeline.plain_if_long else pipeline.speed
    is_quick = care == 0 or (pipeline.quick_from is not None and lines > pipeline.quick_from)
    with (
        _options(is_long, is_quick) as options,
        _target_machine(care, processor) as machine,
        _parsed(text) as module,
    ):
        if prefix:
            for function in module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.name = prefix + function.name
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        between()
        _optimize(module, pipeline, machine, pipeline.if_long if lines > pipeline.long_from else ())
        between()
        if lines > MAY_BE_CROWDED and not is_quick and _is_crowded(str(module)):
            options.set(OPTIONS_IF_QUICK)
        yield machine, module


def _is_crowded(text: str) -> bool:
    """Whether some basic block of a module has too many comparisons among too many instructions."""
    instructions = comparisons = 0
    for line in text.splitlines():
        if not line.startswith("  "):
            instructions = comparisons = 0
            continue
        instructions += 1
        comparisons += " = icmp " in line or " = fcmp " in line
        if instructions * comparisons > CROWDED:
            return True
    return False


def _release(passes: ModulePassManager) -> None:
    """Gives back what a pass manager holds, some 70 kB. llvmlite never does: its method for it is hidden by another."""
    if not passes.closed:
        NewPassManager._dispose(passes)
        passes.detach()


def verify(text: str) -> None:
    """Raises CodeGenerationError unless `text` is a valid module."""
    _initialize()
    with _parsed(text) as module:
        try:
            module.verify()
        except RuntimeError as error:
            raise CodeGenerationError(f"LLVM refused the module: {error}") from error


def _go_on() -> None:
    pass


_OPTIMIZED = re.compile(rf"^define (?!internal \w+ @ulam\.(?:allocate|fail\.))(?!.* {PLAIN} )", re.MULTILINE)
"""The beginning of a function to optimise. What long modules have once (`outlined_code`) is no reason to."""


def _in_proportion(text: str, pipeline: Pipeline) -> Pipeline:
    """`pipeline`, or `VAST` if a block or function is too long for it, or no function is to be optimised."""
    if _OPTIMIZED.search(text) is None:
        return VAST
    if len(text) < 20 * BLOCK_LIMIT:  # no instruction is shorter
        return pipeline
    of_block = of_function = 0
    for line in text.splitlines():
        if line.startswith(" "):
            of_block += 1
            of_function += 1
            if of_block > BLOCK_LIMIT or of_function > FUNCTION_LIMIT:
                return VAST
        else:
            of_block = 0
            if line.startswith("define"):
                of_function = 0
    return pipeline


def compile_object(
    text: str,
    pipeline: Pipeline = HOT,
    between: Callable[[], None] = _go_on,
    *,
    processor: str = NATIVE,
    prefix: str = "",
) -> bytes:
    """The module as an object file. `between` is called between steps, and may end this by an exception.

    `processor` is a name that `target` knows. `prefix` goes before the names of functions that others see.
    """
    pipeline = _in_proportion(text, pipeline)
    with _optimized(text, pipeline, between, processor, prefix) as (machine, module):
        return machine.emit_object(module)


def compile_assembly(text: str, pipeline: Pipeline = HOT, *, processor: str = NATIVE, prefix: str = "") -> str:
    """The module as assembly."""
    pipeline = _in_proportion(text, pipeline)
    with _optimized(text, pipeline, _go_on, processor, prefix) as (machine, module):
        return machine.emit_assembly(module)


def optimized_text(text: str, pipeline: Pipeline = HOT) -> str:
    """The module as LLVM IR text, optimised."""
    pipeline = _in_proportion(text, pipeline)
    with _optimized(text, pipeline, _go_on) as (_, module):
        return str(module)


def compile_listings(text: str, pipeline: Pipeline = HOT) -> tuple[str, float, str]:
    """The module as LLVM IR text after LLVM's passes, the CPU time then, and the assembly."""
    with _optimized(text, _in_proportion(text, pipeline), _go_on) as (machine, module):
        now = time.process_time()
        return str(module), now, machine.emit_assembly(module)


class LinkedObject:
    """Machine code in the process. Addresses are valid while this object lives, which keeps what the code needs."""

    keeps: object = None

    def __init__(self, jit: LLJIT, tracker: ResourceTracker, name: str) -> None:
        self._jit = jit
        self._name = name
        # a tracker that is dropped takes the code with it
        self._trackers = [tracker]
        self._addresses: dict[str, int] = {}

    def address(self, symbol: str) -> int:
        """Where the function `symbol` begins."""
        address = self._addresses.get(symbol)
        if address is None:
            try:
                tracker = self._jit.lookup(self._name, symbol)
            except RuntimeError as error:
                raise CodeGenerationError(f"'{symbol}' cannot be linked: {error}") from error
            self._trackers.append(tracker)
            address = self._addresses[symbol] = tracker[symbol]
        return address

    def function(self, symbol: str, *argument_types: Any) -> Any:
        """A ctypes function of int32 result; a call releases the interpreter lock."""
        return ctypes.CFUNCTYPE(ctypes.c_int32, *argument_types)(self.address(symbol))


def load_object(
    data: bytes,
    runtime_library: str | os.PathLike[str] | None = None,
    symbols: Mapping[str, int] = MappingProxyType({}),
) -> LinkedObject:
    """Links an object file into the process, against the C runtime, libm and functions at addresses that are known."""
    _provide_symbols(str(Path(runtime_library).resolve()) if runtime_library is not None else None)
    jit = _jit()
    name = f"ulam.{next(_names)}"
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for symbol, address in symbols.items():
        builder.import_symbol(symbol, address)
    try:
        tracker = builder.link(jit, name)
    except RuntimeError as error:
        raise CodeGenerationError(f"the object cannot be linked: {error}") from error
    return LinkedObject(jit, tracker, name)


@cache
def _provide_symbols(library: str | None) -> None:
    """Makes the runtime's symbols, and libm's, visible to the linker."""
    if library is not None:
        try:
            llvm.load_library_permanently(library)
        except RuntimeError as error:
            raise CodeGenerationError(f"the runtime library cannot be loaded: {error}") from error
    try:
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return  # elsewhere, the C library brings these functions and is loaded already


OBJECTS_PER_LINKER = 16
"""What is unlinked leaves 9 kB in its linker, which gives them back with all else when its last object goes. A linker
takes twice as long to make as an object to link, so each serves some."""

_linker: LLJIT | None = None
_linker_uses = 0


def _jit() -> LLJIT:
    """The linker for one more object."""
    global _linker, _linker_uses
    host()  # takes the lock itself
    with _lock:
        if _linker is None or _linker_uses == OBJECTS_PER_LINKER:
            _linker, _linker_uses = llvm.create_lljit_compiler(_target_machine(2), use_jit_link=True), 0
        _linker_uses += 1
        return _linker
