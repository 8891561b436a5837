"""What recording costs: nanoseconds and bytes per node, cold, with memory touched before, and with memory used again.

    python benchmarks/tracing.py [--json FILE] [--nodes N]

`h` is the loop of the tests: 8 nodes per turn, of which 4 are kept; `cheap` is the same without `pow`; `calls` enters a
function of two ops in every turn. "bare" is the time without recording. "cold" is the first run of a process. Goals,
for 10^7 nodes: 20 ns per node at first with memory touched before, 2 ns with memory used again, 8 bytes per node,
100 MB; 50 ms for the first 100 lines of the listing, 100 ms to find what is not finite; a first call that takes at
most twice as long as untraced.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from ulam import StanModel  # noqa: E402
from ulam.trace import (  # noqa: E402
    Axis,
    DepthLimit,
    Replay,
    Scripted,
    StanFunction,
    TraceContext,
    diff,
    from_json,
    functions,
    query,
    track,
)
from ulam.tracing.listing import lines_of  # noqa: E402

PROGRAM = """functions {
  real zero(real x) { return 0.0; }
  real h(real x, int n) {
    int i = 0;
    real r = zero(x);
    while (i < n) { r += x ^ i; i += 1; }
    return r;
  }
  real cheap(real x, int n) {
    int i = 0;
    real r = 0;
    while (i < n) { r += x * i; i += 1; }
    return r;
  }
  real late(real x, real z, int n) {
    int i = 0;
    real r = 0;
    while (i < n) { r += x * i; i += 1; }
    return r + z * sin(z);
  }
  real rand_rng() { return uniform_rng(0, 1); }
  int geom_rng(int n, real beta) { if (rand_rng() < beta) return n; else return geom_rng(n + 1, beta); }
  real square_and_one(real x) { return x * x + 1; }
  real calls(int n) { real r = 0; for (i in 1:n) r += square_and_one(i); return r; }
}
"""
MIB = 1 << 20
RUNS = 5
LIMITS = {"stop": 1 << 30, "ring": 16 * MIB, "spill": 1 << 30, "edges": 1 << 30}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--cold", nargs=2, metavar=("FUNCTION", "MODE"), help="the first run alone, in seconds")
    arguments = parser.parse_args()
    if arguments.cold:
        function, mode = arguments.cold
        print(first_run(function, mode, arguments.nodes))
        return 0
    found: dict[str, Any] = {"compiling": compiling()}
    n = arguments.nodes // 8
    for name in ("h", "cheap"):
        found[name] = {mode: measure(name, arguments.nodes, mode) for mode in LIMITS}
    found["calls"] = {"stop": measure("calls", arguments.nodes, "stop")}
    found["reading"] = reading(n)
    found["options"] = options()
    found["densities"] = densities()
    found["adjoints"] = adjoints()
    found["exports"] = exports()
    found["explanations"] = explanations()
    found["updates"] = updates(arguments.nodes // 10)
    show(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compiling() -> dict[str, float]:
    """Seconds until the function has run once, untraced and traced: compiling is all but all of it."""
    program = functions(PROGRAM)
    track(program.h, 1.0, 1)  # what is imported once
    plain = min(seconds(lambda: track(functions(PROGRAM).h, 1.0, 1, context=DepthLimit(1))) for _ in range(RUNS))
    traced = min(seconds(lambda: track(functions(PROGRAM).h, 1.0, 1)) for _ in range(RUNS))
    return {"untraced": plain, "traced": traced}


def densities() -> dict[str, dict[str, float]]:
    """Log densities of examples: seconds until the first value and microseconds of a later one, with and without."""
    found: dict[str, dict[str, float]] = {}
    for name in ("eight_schools", "logistic", "hierarchical", "gaussian_process"):
        path = Path(__file__).parent.parent / "examples" / f"{name}.stan"
        model = StanModel(path, path.with_suffix(".json"), opt_level=0, cache=False)
        theta = [0.1] * model.param_unc_num()
        plain, traced = partial(model.log_density, theta, propto=False), partial(model.track_density, theta)
        first = seconds(plain), seconds(traced)
        again = [min(seconds(run) for _ in range(100)) for run in (plain, traced)]
        found[name] = {
            "nodes": len(traced()), "untraced, s": first[0], "traced, s": first[1], "untraced, us": again[0] * 1e6,
            "traced, us": again[1] * 1e6,
        }  # fmt: skip
    return found


def adjoints() -> dict[str, dict[str, float]]:
    """Backward walks: seconds of the first, which compiles pullbacks, and microseconds per node of the next."""
    nodes_of = {name: track(getattr(functions(PROGRAM), name), *size_of(name, 100_000)) for name in ("h", "calls")}
    for name in ("eight_schools", "hierarchical", "gaussian_process"):
        path = Path(__file__).parent.parent / "examples" / f"{name}.stan"
        model = StanModel(path, path.with_suffix(".json"), cache=False)
        nodes_of[name] = model.track_density([0.1] * model.param_unc_num(), context=TraceContext(containers="copy"))
    found: dict[str, dict[str, float]] = {}
    for name, root in nodes_of.items():
        first = seconds(root.trace.adjoint)
        nodes = 1 + sum(1 for _ in query(root, Axis.DESCENDANT))
        again = min(seconds(root.trace.adjoint) for _ in range(3))
        found[name] = {
            "nodes": nodes,
            "first, s": first,
            "ops": len(root.trace.op_library.names),
            "us/node": again / nodes * 1e6,
        }
    return found


def exports() -> dict[str, dict[str, float]]:
    """Writing a loop of 10^6 nodes and 10^5 calls, whole or as pictures of 2000 nodes, and comparing; in seconds."""
    found: dict[str, dict[str, float]] = {}
    for name, arguments in (("h", (1.0, 125_000)), ("calls", (100_000,))):
        node = track(getattr(functions(PROGRAM), name), *arguments)
        other = track(getattr(functions(PROGRAM), name), *arguments[:-1], arguments[-1] + 1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            row = {"JSON": seconds(partial(node.to_json, path)), "MB": path.stat().st_size / 1e6}
            row["from JSON"] = seconds(partial(from_json, path))
            row["Chrome trace"] = seconds(partial(node.to_chrome_trace, path))
        row["DOT"], row["SVG"] = seconds(node.to_dot), seconds(node.to_svg)
        row["diff"] = seconds(partial(diff, node, other))
        found[name] = row
    short = track(functions(PROGRAM).h, 1.0, 240)
    found["240 turns of h"] = {"Stan": seconds(short.to_stan)}
    text = short.to_stan()
    found["240 turns of h"]["compiled again"] = seconds(lambda: track(functions(text).h_trace, 1.0, 240))
    return found


EXPLAINED = """data { int N; vector[N] y; } parameters { real mu; real<lower=0> s; }
model { mu ~ normal(0, 1); BODY }
"""
BODIES = {
    "vectorised": "y ~ uniform(mu - s, mu + s);",
    "loop": "for (i in 1:N) target += log(mu + 1.5 - y[i]);",
    "filled": "vector[N] z; for (i in 1:N) z[i] = log(mu + 1.5 - y[i]); target += sum(z);",
}


def explanations() -> dict[str, dict[str, float]]:
    """Seconds of an explanation with 10^5 observations, one of them to blame: the first, a later one, and 100 tries."""
    data = {"N": 100_000, "y": [i / 100_000 for i in range(99_999)] + [7.0]}
    found: dict[str, dict[str, float]] = {}
    for name, body in BODIES.items():
        model = StanModel(EXPLAINED.replace("BODY", body), data, cache=False)
        first = seconds(partial(model.explain, [0.0, 0.2]))
        again = min(seconds(partial(model.explain, [0.0, 0.2])) for _ in range(3))
        compiled = seconds(partial(model.log_density, [0.0, 0.2]))
        tried = seconds(partial(model.explain, 0.1, tries=100))
        found[name] = {"first, s": first, "again, s": again, "untraced, s": compiled, "100 tries, s": tried}
    return found


TERMS = """data { int N; vector[N] y; } parameters { real m; real z; }
model { for (i in 1:N) y[i] ~ normal(m, 1); z ~ std_normal(); }
"""


def updates(total: int) -> dict[str, dict[str, float]]:
    """Milliseconds of updates and of full runs: `late` changes 3 nodes at the end of a long tape; `flip` is a call that
    runs again; `last term` changes the last of many additions to the target, `all terms` all of them.
    """
    program = functions(PROGRAM)
    late = track(program.late, 1.0, 1.0, total // 8)
    geom = track(program.geom_rng, 1, 0.5, rng=Scripted([0.7595, 0.8639, 0.25]))
    count = total // 100
    terms = StanModel(TERMS, {"N": count, "y": [0.5] * count}, cache=False)
    density = terms.track_density([0.1, 0.2])
    runs: dict[str, tuple[Any, dict[str, Any], Callable[[], Any]]] = {
        "late": (late, {"z": 2.0}, lambda: track(program.late, 1.0, 2.0, total // 8)),
        "flip": (geom, {"beta": 0.76}, lambda: track(program.geom_rng, 1, 0.76, rng=Replay(geom.trace))),
        "last term": (density, {"z": 0.3}, lambda: terms.track_density([0.1, 0.3])),
        "all terms": (density, {"m": 0.3}, lambda: terms.track_density([0.3, 0.2])),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (node, changes, full) in runs.items():
        full()
        update = partial(node.trace.update, **changes)
        first = seconds(update)
        again = min(seconds(update) for _ in range(RUNS))
        made = update()
        found[name] = {
            "recomputed": len(made.recomputed), "first, ms": first * 1e3, "again, ms": again * 1e3,
            "full run, ms": min(seconds(full) for _ in range(RUNS)) * 1e3,
        }  # fmt: skip
    return found


def size_of(name: str, nodes: int) -> tuple[Any, ...]:
    """Arguments of a function for about so many nodes."""
    return (nodes // 10,) if name == "calls" else (1.0, nodes // 8)


def first_run(name: str, mode: str, nodes: int) -> float:
    """Seconds of the first run, in a process that has no memory of runs before."""
    function: StanFunction = getattr(functions(PROGRAM), name)
    context = TraceContext(overflow=mode, limit_bytes=LIMITS[mode])
    arguments = size_of(name, nodes)
    function.program.compiled(function.program.signatures[name][0][0], context)
    return seconds(lambda: track(function, *arguments, context=context))


def measure(name: str, total: int, mode: str) -> dict[str, float]:
    """Nanoseconds per node of runs one after the other, and what they keep."""
    function: StanFunction = getattr(functions(PROGRAM), name)
    arguments = size_of(name, total)
    small = (*arguments[:-1], 2)
    context = TraceContext(overflow=mode, limit_bytes=LIMITS[mode])
    bare = DepthLimit(1)
    for warm in (context, bare):
        track(function, *small, context=warm)
    found: dict[str, float] = {}
    gc.collect()
    command = [sys.executable, __file__, "--cold", name, mode, "--nodes", str(total)]
    cold = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    node = track(function, *arguments, context=context)
    info = node.trace.tape.recorder.info()
    held = info.chunks * info.chunk_bytes if mode == "spill" else info.bytes + info.edge_bytes
    children = len(node.children) if name != "calls" else 0
    nodes = children or (5 * arguments[0] + 6 * arguments[0])
    del node
    found["nodes"] = nodes
    found["cold"] = cold / nodes * 1e9
    touched = getattr(functions(PROGRAM), name)
    touched.program.compiled(touched.program.signatures[name][0][0], context)
    track(touched, *small, context=context)
    touched.program.recorder(context).touch(80 * MIB if mode in ("stop", "spill") else 24 * MIB)
    start = time.perf_counter()
    track(touched, *arguments, context=context)
    found["touched"] = (time.perf_counter() - start) / nodes * 1e9
    again = [seconds(lambda: track(touched, *arguments, context=context)) for _ in range(RUNS)]
    found["reused"] = min(again) / nodes * 1e9
    found["bare"] = min(seconds(lambda: track(touched, *arguments, context=bare)) for _ in range(RUNS)) / nodes * 1e9
    found["megabytes"] = held / 1e6
    found["bytes per node"] = held / nodes
    found["dropped"] = info.dropped
    return found


def options() -> dict[str, float]:
    """What options of contexts add to each call of a function that is entered, in nanoseconds."""
    count = 100_000

    def per_call(context: TraceContext) -> float:
        function: StanFunction = functions(PROGRAM).calls
        track(function, 2, context=context)
        return min(seconds(lambda: track(function, count, context=context)) for _ in range(RUNS)) / count * 1e9

    plain = per_call(TraceContext())
    hooks: dict[Any, Any] = {"square_and_one": lambda site, operands, value: None}
    contexts = {
        "timing": TraceContext(timing=True), "counted depth": TraceContext(max_depth=5),
        "constants": TraceContext(constants=True), "hooks": TraceContext(hooks=hooks),
    }  # fmt: skip
    return {name: per_call(context) - plain for name, context in contexts.items()}


def reading(n: int) -> dict[str, float]:
    """Milliseconds of reading a long trace."""
    node = track(functions(PROGRAM).h, 1.0, n)
    lines = seconds(lambda: list(itertools.islice(lines_of(node, 2), 100)))
    last = seconds(lambda: str(node.children[-1]))
    fresh = track(functions(PROGRAM).h, 1.0, n)
    middle = seconds(lambda: str(fresh.children[4 * n]))
    search = min(seconds(lambda: list(fresh.trace.find(nonfinite=True))) for _ in range(RUNS))
    return {
        "first 100 lines": lines * 1e3, "last node": last * 1e3, "a node in the middle": middle * 1e3,
        "what is not finite": search * 1e3,
    }  # fmt: skip


def show(found: dict[str, Any]) -> None:
    """Tables."""
    compiled = found["compiling"]
    ratio = compiled["traced"] / compiled["untraced"]
    print(f"first call: {compiled['untraced']:.3f} s untraced, {compiled['traced']:.3f} s traced, ratio {ratio:.2f}")
    columns = ("cold", "touched", "reused", "bare", "bytes per node", "megabytes")
    print(f"{'function':9s}{'mode':7s}" + "".join(f"{c:>16s}" for c in columns))
    for name in ("h", "cheap", "calls"):
        for mode, row in found[name].items():
            print(f"{name:9s}{mode:7s}" + "".join(f"{row[c]:16.2f}" for c in columns))
    print(", ".join(f"{what} {ms:.1f} ms" for what, ms in found["reading"].items()))
    print("added to each call: " + ", ".join(f"{what} {ns:.0f} ns" for what, ns in found["options"].items()))
    for name, row in found["densities"].items():
        print(f"{name:18s}" + ", ".join(f"{what}: {value:.3g}" for what, value in row.items()))
    print("updates")
    for name, row in found["updates"].items():
        print(f"{name:18s}" + ", ".join(f"{what}: {value:.4g}" for what, value in row.items()))
    print("adjoints")
    for name, row in found["adjoints"].items():
        print(f"{name:18s}" + ", ".join(f"{what}: {value:.6g}" for what, value in row.items()))
    print("exports, s")
    for name, row in found["exports"].items():
        print(f"{name:18s}" + ", ".join(f"{what}: {value:.3g}" for what, value in row.items()))
    print("explanations")
    for name, row in found["explanations"].items():
        print(f"{name:18s}" + ", ".join(f"{what}: {value:.3g}" for what, value in row.items()))


if __name__ == "__main__":
    sys.exit(main())
