"""What `~` drops, by Stan Math: writes tests/reference/unnormalized.jsonl.

    python benchmarks/unnormalized_values.py --httpstan DIR --build DIR [--add FILE] [--all]

A call (expression and arguments) is evaluated by `stan::math::NAME<true>`, once for every choice of which arguments are
autodiff variables and which are doubles. `--add` takes the calls, JSON lines with `function`, `signature`, `expr` and
`args` (see tests/reference/README.md); with `--all` those that the file has are evaluated anew, too, unless Stan Math's
headers in httpstan are too old to have the function. What was computed is kept in the build folder, so a run that was
ended goes on where it was.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stan_reference import BuildError, find_httpstan, run

FILE = Path(__file__).parent.parent / "tests" / "reference" / "unnormalized.jsonl"
FLAGS = ("-std=c++17", "-O0", "-w", "-DNDEBUG", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS", "-D_GLIBCXX_USE_CXX11_ABI=0")
HEADER = "stan_math.hpp"
BATCH = 10
ELEMENTS = {"vector": (1, "-1, 1"), "row_vector": (1, "1, -1"), "matrix": (2, "-1, -1")}

Call = dict[str, Any]


def key(call: Call) -> str:
    """Two lines with the same key are the same call."""
    return json.dumps([call["expr"], call["args"]], sort_keys=True)


def activities(call: Call) -> Iterator[tuple[str, ...]]:
    """Every choice of the arguments that are parameters; ints never are, and at least one argument is.

    Of more than four arguments each alone, and all of them.
    """
    names = [name for name, argument in call["args"].items() if "int" not in argument["type"]]
    for count in range(1, len(names) + 1) if len(names) <= 4 else (1, len(names)):
        yield from itertools.combinations(names, count)


def element(type_: str, scalar: str) -> str:
    """The C++ type of a Stan type over `scalar`."""
    if type_.startswith("array["):
        sizes, _, inner = type_.removeprefix("array[").partition("] ")
        text = element(inner, scalar)
        for _ in sizes.split(","):
            text = f"std::vector<{text}>"
        return text
    name = type_.partition("[")[0]
    if name in ELEMENTS:
        return f"Eigen::Matrix<{scalar}, {ELEMENTS[name][1]}>"
    return "int" if name == "int" else scalar


def value(type_: str, scalar: str, given: Any) -> str:
    """The C++ expression of a value."""
    text = element(type_, scalar)
    if type_.startswith("array["):
        inner = type_.partition("] ")[2]
        return f"{text}{{{', '.join(value(inner, scalar, v) for v in given)}}}"
    if type_.startswith("matrix"):
        entries = ", ".join(f"{scalar}({x!r})" for row in given for x in row)
        return f"({text}({len(given)}, {len(given[0])}) << {entries}).finished()"
    if "vector" in type_:
        return f"({text}({len(given)}) << {', '.join(f'{scalar}({x!r})' for x in given)}).finished()"
    return f"{text}({given!r})"


def statements(call: Call) -> str:
    """C++ statements that print the value for each activity."""
    lines = []
    for active in activities(call):
        arguments = [
            value(a["type"], "var" if name in active else "double", a["value"]) for name, a in call["args"].items()
        ]
        lines.append(f"  show([] {{ return stan::math::{call['function']}<true>({', '.join(arguments)}); }});")
    return "\n".join(lines)


def evaluate(calls: list[Call], httpstan: Path, folder: Path) -> list[list[float]]:
    """Values of each call, in the order of `activities`."""
    include = ["-isystem", str(httpstan / "include")]
    if not (folder / f"{HEADER}.gch").exists():
        (folder / HEADER).write_text("#include <stan/math.hpp>\n", encoding="utf-8")
        run(["g++", *FLAGS, *include, "-x", "c++-header", HEADER, "-o", f"{HEADER}.gch"], folder)
    text = "\n".join(map(statements, calls))
    (folder / "calls.cpp").write_text(
        f'#include "{HEADER}"\n#include <cstdio>\nusing stan::math::var;\n'
        "template <typename F> void show(F f) {\n"
        '  std::printf("%.17g\\n", (double)stan::math::value_of(f()));\n}\n'
        f"int main() {{\n{text}\n}}\n",
        encoding="utf-8",
    )
    libraries = [f"-L{httpstan / 'lib'}", f"-Wl,-rpath,{httpstan / 'lib'}", "-l:libtbb.so.2"]
    run(["g++", *FLAGS, *include, "calls.cpp", "-o", "calls", *libraries], folder)
    printed = iter(run([str(folder / "calls")], folder).splitlines())
    return [[float(next(printed)) for _ in activities(call)] for call in calls]


def evaluate_new(calls: list[Call], httpstan: Path, folder: Path) -> dict[str, list[float]]:
    """Values of all calls that Stan Math has, by their keys; those of a batch that fails are tried one by one."""
    kept = folder / "values.json"
    done: dict[str, list[float]] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    waiting = [call for call in calls if key(call) not in done]
    batches = [waiting[i : i + BATCH] for i in range(0, len(waiting), BATCH)]
    while batches:
        batch = batches.pop(0)
        try:
            found = evaluate(batch, httpstan, folder)
        except BuildError as problem:
            print(f"{', '.join(call['function'] for call in batch)}: {problem}", flush=True)
            if len(batch) > 1:
                batches += [[call] for call in batch]
            continue
        done.update(zip(map(key, batch), found, strict=True))
        kept.write_text(json.dumps(done), encoding="utf-8")
        print(f"{len(done)} calls, {len(batches)} batches left", flush=True)
    return done


def lines_of(call: Call, values: list[float]) -> Iterator[Call]:
    """The lines of a call."""
    for active, result in zip(activities(call), values, strict=True):
        described = {k: call[k] for k in ("function", "signature", "expr", "args")}
        yield {**described, "parameters": list(active), "value": result}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--httpstan", type=Path, help="folder of the package, or of an environment with it")
    parser.add_argument("--build", type=Path, required=True, help="folder for what is built; kept")
    parser.add_argument("--add", type=Path, help="further calls, JSON lines")
    parser.add_argument("--all", action="store_true", help="evaluate the calls of the file anew")
    options = parser.parse_args()
    httpstan = find_httpstan(options.httpstan)
    if httpstan is None:
        parser.error("httpstan is not there")
    options.build.mkdir(parents=True, exist_ok=True)
    texts = FILE.read_text(encoding="utf-8").splitlines()
    if options.add:
        texts += options.add.read_text(encoding="utf-8").splitlines()
    groups: dict[str, list[Call]] = {}
    for line in map(json.loads, texts):
        groups.setdefault(key(line), []).append(line)
    wanted = [group[0] for group in groups.values() if options.all or "value" not in group[0]]
    values = evaluate_new(wanted, httpstan, options.build)
    out: list[Call] = []
    for name, group in groups.items():
        known = values.get(name)
        out += lines_of(group[0], known) if known is not None else [line for line in group if "value" in line]
    FILE.write_text("".join(json.dumps(line) + "\n" for line in out), encoding="utf-8")


if __name__ == "__main__":
    main()
