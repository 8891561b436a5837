"""The sweep of `benchmarks/library_arguments.py`: the C functions of a library with wrong arguments.

Each round is a process of its own that calls the functions of a library with arguments of which some are wrong: NULL,
sizes and counts that cannot be, JSON that is damaged, files that there are not, points with NaN, huge and infinite
values, options of every kind. Results go to arrays with guard pages of their own. What may come back is 0, or -1 with a
message; whatever else ends the sweep: a fault, an empty message, an array written beyond its end, a call that takes
long.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bridgestan_client import PROTOTYPES

PROGRAM = """
functions { real fold(int n, real x) { return n <= 0 ? x : fold(n - 1, 0.5 * x); } }
data { int<lower=0> N; vector[N] y; array[N, 2] int k; tuple(real, array[2] int) t; }
transformed data { real shift = normal_rng(0, 1); }
parameters { real mu; real<lower=0> sigma; simplex[3] s; cov_matrix[2] C; array[2] matrix[2, 3] m; }
transformed parameters { vector[3] p = cumulative_sum(s) * fold(N, mu); }
model {
  if (sigma > 50) reject("sigma of ", sigma);
  if (mu > 60) target += y[N + 1];
  y ~ normal(mu + shift, sigma);
  C ~ wishart(4, identity_matrix(2));
  for (i in 1:2) to_vector(m[i]) ~ std_normal();
  if (mu > 40) print("far away: ", mu);
}
generated quantities { array[2] real z = normal_rng({mu, sigma}, sigma); int n = poisson_rng(sigma); }
"""
DATA: dict[str, Any] = {"N": 2, "y": [0.5, -1.5], "k": [[1, 2], [3, 4]], "t": {"1": 0.5, "2": [7, 8]}}
VALUES: dict[str, Any] = {
    "mu": 1, "sigma": 2, "s": [0.25, 0.25, 0.5], "C": [[2, 1], [1, 3]],
    "m": [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 7]]],
}  # fmt: skip

NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, 1.8e308, math.inf, -math.inf, math.nan, 700.0, -745.0)
COUNTS = (0, 1, 2, 3, 7, -1, -(2**31), 100)
CALLS = 300
"""Of a round."""
SECONDS = 60
"""What a round may take of the processor."""


class GuardedArrays:
    """Arrays of doubles whose ends are those of pages, with pages that nobody may touch beside them."""

    def __init__(self) -> None:
        self._maps: list[tuple[mmap.mmap, int]] = []
        self._libc = ctypes.CDLL(None)
        self._libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

    def make(self, count: int, left: bool) -> Any:
        """An array of so many numbers, at the beginning of its pages or at their end."""
        page = mmap.PAGESIZE
        bytes_ = 8 * count
        pages = max(1, -(-bytes_ // page))
        room = mmap.mmap(-1, (pages + 2) * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(room))
        for address in (start, start + (pages + 1) * page):
            assert self._libc.mprotect(address, page, 0) == 0
        self._maps.append((room, start))
        place = start + page + (0 if left else pages * page - bytes_)
        return np.ctypeslib.as_array((ctypes.c_double * max(count, 1)).from_address(place))[:count]


# ---------------------------------------------------------------- what is wrong


def damaged(rng: random.Random, value: Any) -> bytes:
    """JSON text of a value, or something like it."""
    text = bytearray(json.dumps(changed(rng, value)).encode())
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 2, 10))):
        place = rng.randrange(len(text) + 1)
        match rng.randrange(5):
            case 0:
                del text[place : place + rng.randrange(1, 8)]
            case 1:
                text[place:place] = bytes([rng.randrange(1, 256)])
            case 2:
                text[place:place] = rng.choice(TOKENS)
            case 3:
                del text[place:]
            case _:
                text[place:place] = text[rng.randrange(len(text) + 1) :][:20]
    return bytes(text).replace(b"\0", b"")


TOKENS = (
    b"[", b"]", b"{", b"}", b",", b":", b'"', b"null", b"true", b"NaN", b"-Infinity", b'"Inf"', b"1e999", b"-0.0",
    b"99999999999999999999", b"0x1", b"\\ud800", b"\xff\xfe", b"[" * 3000, b'{"1":' * 500, b" " * 5000,
)  # fmt: skip
REPLACEMENTS = (
    None, True, "x", "Inf", [], [[]], {}, 1, 0, -1, 2**31, 2**70, 1.5, [1, "a"], [[1], [2, 3]], {"1": 1}, [0] * 50,
)  # fmt: skip


def changed(rng: random.Random, value: Any) -> Any:
    """A value with parts of it replaced, left out or repeated."""
    if rng.random() < 0.02:
        return rng.choice(REPLACEMENTS)
    if isinstance(value, dict):
        return {name: changed(rng, entry) for name, entry in value.items() if rng.random() > 0.02}
    if isinstance(value, list):
        found = [changed(rng, entry) for entry in value]
        return found + found[:1] if rng.random() < 0.02 else found
    return value


# ---------------------------------------------------------------- a round


class Round:
    """Calls with arguments drawn from a seed."""

    def __init__(self, path: Path, seed: int) -> None:
        from ulam_header import Callback, Gradient, Options, Output, initialized

        self.rng, self.counts, self.arrays = random.Random(seed), Counter[str](), GuardedArrays()
        self.callback_type, self.gradient_type = Callback, Gradient
        self.options = lambda: initialized(Options, "ULAM_SAMPLE_OPTIONS")
        self.output = lambda: initialized(Output, "ULAM_SAMPLE_OUTPUT")
        self.kept: list[Any] = []
        self.library = ctypes.CDLL(str(path))
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.library.ulam_sample.argtypes = [ctypes.c_void_p] * 4
        self.library.ulam_native_handle.argtypes = [ctypes.c_void_p, ctypes.c_bool, *[ctypes.c_void_p] * 3]
        self.model = self.library.bs_model_construct(json.dumps(DATA).encode(), 1, None)
        assert self.model, "data that are right"
        self.n: int = self.library.bs_param_unc_num(self.model)
        self.left = self.rng.random() < 0.5

    def size(self, tp: bool, gq: bool) -> int:
        return self.library.bs_param_num(self.model, tp, gq)

    def array(self, count: int) -> Any:
        found = self.arrays.make(count, self.left)
        self.kept.append(found)
        return found

    def point(self, count: int) -> int | None:
        """The address of numbers, some of them strange; NULL now and then."""
        if self.rng.random() < 0.05:
            return None
        x = self.array(count)
        x[:] = [self.rng.gauss(0, 1) for _ in range(count)]
        for _ in range(self.rng.choice((0, 0, 1, 3)) if count else 0):
            x[self.rng.randrange(count)] = self.rng.choice(NUMBERS)
        return x.ctypes.data

    def room(self, count: int) -> int | None:
        return None if self.rng.random() < 0.05 else self.array(count).ctypes.data

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    def owner(self) -> int | None:
        return None if self.rng.random() < 0.05 else self.model

    def text(self, value: Any) -> bytes | None:
        match self.rng.randrange(12):
            case 0:
                return None
            case 1:
                return b""
            case 2:
                return self.rng.choice((b"none.json", b"/.json", b".json", b"/", b"x" * 5000 + b".json"))
            case _:
                return damaged(self.rng, value)

    def call(self, name: str, *arguments: Any) -> None:
        """A function that returns 0 or -1, with a place for its message or without."""
        place = ctypes.c_void_p()
        asked = self.rng.random() < 0.9
        error = ctypes.addressof(place) if asked else None
        status = getattr(self.library, name)(*arguments, error)
        self.judge(name, status in (0, 1), place, asked)

    def judge(self, name: str, fine: bool, place: ctypes.c_void_p, asked: bool) -> None:
        self.counts[f"{name} {'done' if fine else 'refused'}"] += 1
        if asked and fine != (place.value is None):
            raise AssertionError(f"{name}: {'a message' if fine else 'no message'}, and status of the other kind")
        if place.value is not None:
            raw = ctypes.string_at(place.value)
            text = raw.decode()  # UTF-8
            assert text.strip(), f"{name}: an empty message"
            self.library.bs_free_error_msg(place)

    # -------- one function each

    def construct(self) -> None:
        place = ctypes.c_void_p()
        made = self.library.bs_model_construct(self.text(DATA), self.rng.randrange(2**32), ctypes.addressof(place))
        self.judge("bs_model_construct", bool(made), place, True)
        if made:
            self.library.bs_param_names(made, True, True)
            self.library.bs_model_destruct(made)

    def names(self) -> None:
        owner = self.owner()
        for name in ("bs_name", "bs_model_info", "bs_param_unc_names"):
            assert (getattr(self.library, name)(owner) is None) == (owner is None)
        tp, gq = self.flag(), self.flag()
        assert (self.library.bs_param_names(owner, tp, gq) is None) == (owner is None)
        assert (self.library.bs_param_num(owner, tp, gq) < 0) == (owner is None)
        self.library.bs_model_destruct(None)
        self.library.bs_rng_destruct(None)
        self.library.bs_free_error_msg(None)

    def constrain(self) -> None:
        tp, gq = self.flag(), self.flag()
        rng = self.library.bs_rng_construct(self.rng.randrange(2**32), None) if self.flag() else None
        out = self.room(self.size(tp, gq))
        self.call("bs_param_constrain", self.owner(), tp, gq, self.point(self.n), out, rng)
        self.library.bs_rng_destruct(rng)

    def unconstrain(self) -> None:
        count = self.size(False, False)
        values = self.point(count)
        if self.flag():  # what unconstrained ones stand for
            values, x = self.array(count).ctypes.data, self.array(self.n)
            x[:] = [self.rng.gauss(0, 1) for _ in range(self.n)]
            self.library.bs_param_constrain(self.model, False, False, x.ctypes.data, values, None, None)
        self.call("bs_param_unconstrain", self.owner(), values, self.room(self.n))

    def unconstrain_json(self) -> None:
        self.call("bs_param_unconstrain_json", self.owner(), self.text(VALUES), self.room(self.n))

    def initialize(self) -> None:
        rng = self.library.bs_rng_construct(self.rng.randrange(2**32), None) if self.rng.random() < 0.9 else None
        radius, tries = self.rng.choice((*NUMBERS, 2.0, 2.0)), self.rng.choice((*COUNTS, 100))
        self.call(
            "bs_param_initialize", self.owner(), self.text(VALUES), rng, radius, tries, self.flag(), self.room(self.n)
        )
        self.library.bs_rng_destruct(rng)

    def density(self) -> None:
        point, value = self.point(self.n), self.room(1)
        arguments = (self.owner(), self.flag(), self.flag(), point)
        match self.rng.randrange(4):
            case 0:
                self.call("bs_log_density", *arguments, value)
            case 1:
                self.call("bs_log_density_gradient", *arguments, value, self.room(self.n))
            case 2:
                self.call("bs_log_density_hessian", *arguments, value, self.room(self.n), self.room(self.n**2))
            case _:
                vector = self.point(self.n)
                self.call("bs_log_density_hessian_vector_product", *arguments, vector, value, self.room(self.n))

    def handle(self) -> None:
        function, user = ctypes.c_void_p(), ctypes.c_void_p()
        places = [None if self.rng.random() < 0.1 else ctypes.addressof(place) for place in (function, user)]
        self.call("ulam_native_handle", self.owner(), self.flag(), *places)
        if function.value is None or user.value is None:
            return
        x, gradient, lp = self.array(self.n), self.array(self.n), self.array(1)
        x[:] = [self.rng.gauss(0, 1) for _ in range(self.n)]
        if self.flag():
            x[self.rng.randrange(self.n)] = self.rng.choice(NUMBERS)
        n = self.n if self.rng.random() < 0.7 else self.rng.choice((0, self.n - 1, self.n + 1, 2**63))
        status = self.gradient_type(function.value)(n, x.ctypes.data, gradient.ctypes.data, lp.ctypes.data, user.value)
        assert (status == 5) == (n != self.n) and status in (0, 1, 2, 5)
        self.counts[f"callback {status}"] += 1

    def sample(self) -> None:
        options, output, rng = self.options(), self.output(), self.rng
        options.chains, options.draws, options.warmup = rng.randrange(1, 4), rng.randrange(12), rng.randrange(12)
        options.threads, options.max_depth, options.seed = rng.randrange(4), 4, rng.randrange(2**64)
        for name, kind in rng.sample(type(options)._fields_, rng.choice((0, 1, 1, 2, 5))):
            if name in ("chains", "draws", "warmup", "max_depth"):  # many of these take long, and are right
                setattr(options, name, rng.choice((0, -1, 1, 3, -(2**31))))
            elif kind is ctypes.c_double:
                setattr(options, name, rng.choice(NUMBERS))
            elif kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t):
                setattr(options, name, rng.choice(COUNTS))
        options.metric = options.metric if rng.random() < 0.5 else rng.randrange(3)
        chains, thin = max(options.chains, 0), max(options.thin, 1)
        kept = -(-max(options.draws, 0) // thin) + (-(-max(options.warmup, 0) // thin) if options.save_warmup else 0)
        if rng.random() < 0.2:
            options.init_points = self.point(chains * self.n)
        if rng.random() < 0.3:
            text = self.text(VALUES)
            self.kept.append(ctypes.c_char_p(text))
            options.init = ctypes.cast(self.kept[-1], ctypes.c_void_p)
        if rng.random() < 0.2:
            options.inv_metric = self.point(self.n**2 if options.metric == 2 else self.n)
        output.rows = kept if rng.random() < 0.8 else rng.choice((kept - 1, kept + 1, 0, -1, -(2**63)))
        rows = max(output.rows, 0)
        for name, width in (("values", self.size(True, True)), ("unconstrained", self.n), ("statistics", 7)):
            setattr(output, name, self.room(chains * rows * width))
        output.step_sizes = self.room(chains)
        output.inv_metrics = self.room(chains * (self.n**2 if options.metric == 2 else self.n))
        if rng.random() < 0.5:
            last = rng.randrange(1, 30)
            seen: list[int] = []

            def take(draw: Any, user: int) -> int:
                seen.append(draw.contents.row)
                return len(seen) == last

            self.kept.append(self.callback_type(take))
            output.callback = ctypes.cast(self.kept[-1], ctypes.c_void_p)
        if rng.random() < 0.05:
            output.size = rng.choice((0, 8, 10_000))
        given = None if rng.random() < 0.01 else ctypes.addressof(options)
        if given is None:  # the defaults: 4 chains of 1000 draws
            output.values = output.unconstrained = output.statistics = output.callback = None
            output.step_sizes, output.inv_metrics = self.room(4), self.room(4 * self.n)
        there = None if rng.random() < 0.03 else ctypes.addressof(output)
        self.call("ulam_sample", self.owner(), given, there)

    def run(self, calls: int) -> None:
        functions: list[Callable[[], None]] = [
            self.construct, self.names, self.constrain, self.unconstrain, self.unconstrain_json, self.initialize,
            self.density, self.density, self.handle, self.sample,
        ]  # fmt: skip
        for _ in range(calls):
            self.rng.choice(functions)()
            self.kept.clear()


def threads_at_once(path: Path, count: int) -> None:
    """Threads that use one model at once, from its first evaluation on, with what one thread gets."""

    def work(k: int) -> None:
        together.wait()
        for i in range(200):
            found[k].append(one(points[(k + i) % count]))
        options.seed = 3
        assert chosen.library.ulam_sample(chosen.model, ctypes.addressof(options), ctypes.addressof(output), None) == 0

    def one(x: Any) -> tuple[float, bytes]:
        value, gradient = ctypes.c_double(), np.empty(chosen.n)
        status = chosen.library.bs_log_density_gradient(
            chosen.model, True, True, x.ctypes.data, ctypes.addressof(value), gradient.ctypes.data, None
        )
        assert status == 0
        return value.value, gradient.tobytes()

    chosen = Round(path, 1)
    options, output = chosen.options(), chosen.output()
    options.chains, options.warmup, options.draws, options.threads = 2, 20, 20, 2
    points = np.random.default_rng(1).normal(size=(count, chosen.n)) / 2
    together = threading.Barrier(count)
    found: list[list[Any]] = [[] for _ in range(count)]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [one(point) for point in points]
    assert all(found[k] == [expected[(k + i) % count] for i in range(200)] for k in range(count))


# ---------------------------------------------------------------- the sweep


def built(folder: Path, guarded: bool) -> Path:
    """A library of the program: with the archive, or linked with the runtime with guard pages."""
    from ulam.runtime.libraries import build as building

    if guarded:
        from guard_pages import GUARDED, use_guarded_runtime
        from runtime_builds import compile_source

        use_guarded_runtime()
        from ulam.runtime.c_library import library_path

        shim = compile_source("runtime/c/shim/bridgestan.c", folder / "shim.o", (*GUARDED, "-DULAM_LINKED"))
        linked = building.link

        def link(objects: Any, archives: Any, *others: Any, **options: Any) -> None:
            linked([*objects, shim], [library_path()], *others, **options)

        building.link = link
    return building.build(PROGRAM, folder / "library.so", opt_level=0, cache=False)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help=f"so many rounds of {CALLS} calls")
    parser.add_argument("--seed-base", type=int, default=0, help="the seed of the first")
    parser.add_argument("--seconds", type=float, help="begin no second round after so many seconds")
    parser.add_argument("--guard-pages", action="store_true", help="with the runtime whose memory has guard pages")
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.library is not None:
        if arguments.threads:
            threads_at_once(arguments.library, arguments.threads)
            return 0
        found = Round(arguments.library, arguments.seed_base)
        found.run(CALLS)
        print(json.dumps(found.counts))
        return 0
    total, rounds, started = Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        library = built(Path(name), arguments.guard_pages)
        child = [sys.executable, "-X", "faulthandler", os.path.abspath(sys.argv[0]), "--library", str(library)]
        if not _child([*child, "--threads", "16"], "16 threads"):
            return 1
        for seed in range(arguments.seed_base, arguments.seed_base + arguments.rounds):
            if rounds and arguments.seconds is not None and time.monotonic() - started > arguments.seconds:
                break
            output = _child([*child, "--seed-base", str(seed)], f"seed {seed}")
            if not output:
                return 1
            total.update(json.loads(output.splitlines()[-1]))
            rounds += 1
    for line in sorted(total):
        print(f"{total[line]:8} {line}")
    print(f"{rounds} rounds, {sum(total.values())} calls, and 16 threads: errors only")
    return 0


def _child(command: list[str], what: str) -> str:
    """What a round printed; empty if it went wrong, which is told."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    if done.returncode == 0:
        return done.stdout or "done"
    why = signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"
    print(f"{what}: {why}\n{done.stderr[-4000:]}")
    return ""
