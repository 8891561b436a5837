"""CmdStan's command line is read, told again and explained as its table has it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ulam.runtime.cmdstan_csv import comment
from ulam.runtime.optimizers.algorithms import ALGORITHMS
from ulam.runtime.sampling.pathfinder import PathfinderSettings
from ulam.runtime.sampling.settings import SamplingSettings
from ulam.tools.cmdstan.arguments import (
    METHOD,
    TREE,
    Argument,
    ArgumentChoice,
    ArgumentGroup,
    Arguments,
    ArgumentValue,
    index,
    walk,
)
from ulam.tools.cmdstan.command import METHODS, run
from ulam.tools.cmdstan.help_text import help_text
from ulam.tools.cmdstan.parser import CommandLineError, HelpAsked, parse
from ulam.tools.cmdstan.settings import config, given_paths, numbered_paths, told

Capture = pytest.CaptureFixture[str]

GOOD = {int: "7", float: "0.25", str: "some.json"}
BAD = {
    int: ["0.5", "x", "", "1e3", "-2", "9" * 5000],
    float: ["x", "", "nan", "inf", "1_0", "1e999"],
    bool: ["2", "yes", ""],
}

VALUES = [(path, node) for path, node in walk() if isinstance(node, ArgumentValue)]
OTHERS = [(path, node) for path, node in walk() if not isinstance(node, ArgumentValue)]


def words_to(path: str) -> list[str]:
    """The words that lead to an argument, without its own."""
    parts, words = path.split("."), list[str]()
    for k in range(1, len(parts)):
        node = index()[".".join(parts[:k])]
        if isinstance(node, ArgumentChoice):
            words.append(f"{node.name}={parts[k]}")
        elif not words or words[-1].partition("=")[2] != node.name:
            words.append(node.name)
    return words


def test_values() -> None:
    """Each is found where the table has it, has its default, refuses what it says it refuses, and is told again."""
    for path, node in VALUES:
        check_value(path, node)


def check_value(path: str, node: ArgumentValue) -> None:
    before = words_to(path)
    after = [] if before and before[0].startswith("method") else ["sample"]
    good = GOOD.get(node.rule.type) or str(not node.default).lower()
    found = parse([*before, f"{node.name}={good}", *after])
    expected = not node.default if node.rule.type is bool else node.rule.type(good)
    assert found[path] == expected and type(found[path]) is node.rule.type and found.method in METHODS
    assert parse([*before, *after])[path] == node.default
    for text in BAD.get(node.rule.type, []):
        with pytest.raises(CommandLineError) as wrong:
            parse([*before, f"{node.name}={text}", *after])
        assert wrong.value.lines == [f'{text} is not a valid value for "{node.name}"', f"  Valid values: {node.valid}"]
    with pytest.raises(CommandLineError, match=f'^"{node.name}" needs a value: {node.name}=<'):
        parse([*before, node.name])
    lines = [comment(setting).removeprefix("# ").strip() for setting in told(found, 11)]
    assert any(line.startswith(f"{node.name} = {good}") and "(Default)" not in line for line in lines)


def test_help_everywhere(capsys: Capture) -> None:
    """`help` tells of the argument before it, `help-all` also of all below it."""
    for path, node in walk():
        if node.name != "variational":
            check_help(path, node, capsys)


def check_help(path: str, node: Argument, capsys: Capture) -> None:
    own = [] if words_to(path)[-1:] and words_to(path)[-1].endswith(f"={node.name}") else [node.name]
    for word in ("help", "help-all"):
        assert run("m.stan", [*words_to(path), *own, word]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(node.name) and node.help in out and not err
        if word == "help-all":
            assert all(f"{below.name}" in out and below.help in out for _, below in walk(node))
    with pytest.raises(HelpAsked) as asked:
        parse([*words_to(path), *own, "info"])
    assert asked.value.word == "info" and asked.value.node is node


def test_help_at_the_top(capsys: Capture) -> None:
    assert run("m.stan", ["help"]) == 0 and run("m.stan", []) == 1
    shown, again = capsys.readouterr().out.split("Usage: m ")[1:]
    assert shown == again and all(option.name in shown for option in METHOD.options)
    everything = help_text("help-all", TREE, "m")
    assert all(node.help in everything for _, node in walk())
    assert run("m.stan", ["info"]) == 0
    assert "stan_version_major = 2\n" in (out := capsys.readouterr().out) and "STAN_THREADS=true\n" in out


WRONG = {
    "sample num_sample=3": ("num_sample=3 is either mistyped", "  method=sample num_samples=<int>"),
    "delta=0.9 sample": ("delta=0.9 is either mistyped or misplaced.", "  method=sample adapt delta=<double>"),
    "optimize num_samples=3": ("num_samples=3 is either mistyped", "  method=sample num_samples=<int>"),
    "sample adapt delta=0.9 num_samples=5 delta=0.8": ("delta=0.8 is either", "  method=sample adapt delta=<double>"),
    "sample data file=a.json data file=b.json": ("data is either mistyped or misplaced.", "  data"),
    "sample algorithm=gibbs": ('gibbs is not a valid value for "algorithm"', "  Valid values: hmc, fixed_param"),
    "sample adapt=1": ('"adapt" takes no value: it opens a group.', "  Perhaps you meant adapt engaged=<boolean>?"),
    "sample algorithm=hmc engine": ('"engine" needs a value: engine=<static|nuts>',),
    "data file=d.json": ("A method must be specified!", "  Methods: sample, optimize"),
    "method=variational": ("Error: the method variational is not there. Use pathfinder",),
    "variational iter=10": ("Error: the method variational is not there. Use pathfinder",),
    "sample random seed=4294967296": ('4294967296 is not a valid value for "seed"', "  Valid values: An integer"),
    "xyzzy": ("xyzzy is either mistyped or misplaced.",),
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_lines(line: str, capsys: Capture) -> None:
    assert run("m.stan", line.split()) == 1
    out, err = capsys.readouterr()
    for text in WRONG[line]:
        assert any(told_line.startswith(text) for told_line in err.splitlines())
    assert err.endswith("Failed to parse command arguments, cannot run model.\n") and not out


def test_order_of_groups() -> None:
    """What follows a group's name is its own as far as it knows the words."""
    line = "id=3 sample adapt delta=0.9 algorithm=hmc engine=nuts max_depth=4 metric=unit_e num_chains=2"
    found = parse(line.split())
    assert found["id"] == 3 and found["method.sample.adapt.delta"] == 0.9 and found["method.sample.num_chains"] == 2
    assert found["method.sample.algorithm.hmc.engine.nuts.max_depth"] == 4
    assert found["method.sample.algorithm.hmc.metric"] == "unit_e"
    twice = parse("diagnose test=gradient epsilon=0.1 epsilon=0.2".split())  # the last one counts
    assert twice["method.diagnose.test.gradient.epsilon"] == 0.2


def test_told_again() -> None:
    found = parse("method=optimize algorithm=bfgs tol_obj=1e-9 random seed=5 output file=a.csv".split())
    text = "".join(comment(setting) for setting in told(found, 5))
    beginning = ["# method = optimize", "#   optimize", "#     algorithm = bfgs", "#       bfgs"]
    assert text.startswith("\n".join([*beginning, "#         init_alpha = 0.001 (Default)\n"]))
    assert "#         tol_obj = 1e-09\n" in text and "# id = 1 (Default)\n# data\n#   file =  (Default)\n" in text
    assert "# random\n#   seed = 5\n# output\n#   file = a.csv\n" in text and "history_size" not in text
    assert "#   seed = 77 (Default)\n" in "".join(map(comment, told(parse(["sample"]), 77)))
    record = config(found, "m_model", 5)
    assert record["method"]["value"] == "optimize" and record["random"] == {"seed": 5}
    assert record["method"]["optimize"]["algorithm"]["bfgs"]["tol_obj"] == 1e-9
    assert config(parse(["sample"]), "m", 77)["random"] == {"seed": 77}


def test_defaults_are_those_of_the_library() -> None:
    """So that a command line without arguments and a call without options are the same run."""
    arguments = Arguments()
    for name, algorithm in ALGORITHMS.items():
        for option in dataclasses.fields(algorithm.options):
            place = "method.optimize" if option.name == "iter" else f"method.optimize.algorithm.{name}"
            if f"{place}.{option.name}" in index():
                assert arguments[f"{place}.{option.name}"] == option.default
    assert arguments.below("method.pathfinder") == dataclasses.asdict(PathfinderSettings())
    settings, adapt = SamplingSettings(), arguments.below("method.sample.adapt")
    assert adapt.pop("delta") == settings.target_accept and adapt.pop("save_metric") is False
    assert adapt == dataclasses.asdict(settings.adapt)


def test_groups_of_all_methods() -> None:
    assert set(METHODS) == {option.name for option in METHOD.options if not option.missing}
    assert all(node.help for _, node in walk()) and len(index()) == len(list(walk()))
    assert all(isinstance(node, ArgumentGroup | ArgumentChoice) for _, node in OTHERS)


FILES: list[tuple[tuple[Any, ...], list[str]]] = [
    (("out.csv", 1), ["out.csv"]),
    (("out.csv", 2), ["out_1.csv", "out_2.csv"]),
    (("out", 2, 5), ["out_5.csv", "out_6.csv"]),
    (("a.b/out.txt", 2, 0), ["a.b/out_0.txt", "a.b/out_1.txt"]),
    (("out.csv", 2, 1, "_path"), ["out_path_1.csv", "out_path_2.csv"]),
    (("out.csv", 1, 1, "_metric", ".json"), ["out_metric.json"]),
]


@pytest.mark.parametrize(("given", "expected"), FILES)
def test_names_of_files(given: tuple[Any, ...], expected: list[str]) -> None:
    assert numbered_paths(*given) == expected


def test_files_for_each_chain(tmp_path: Any) -> None:
    file = tmp_path / "init.json"
    assert given_paths(str(file), 2, 1) == [str(file)] * 2
    (tmp_path / "init_3.json").write_text("{}")
    assert given_paths(str(file), 2, 3) == [str(tmp_path / "init_3.json"), str(tmp_path / "init_4.json")]
    assert given_paths(str(file), 1, 3) == [str(file)]
