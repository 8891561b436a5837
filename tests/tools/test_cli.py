"""The command lines: output, messages, exit statuses. Models run on a program whose units are written in C."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import program_in_c as in_c
import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

from ulam.passes.remarks import Remark
from ulam.runtime import model as model_module
from ulam.runtime import program as program_module
from ulam.tools import stan_opt, ulam_main
from ulam.tools.stan_opt_explain import explain
from ulam.tools.verify_diagnostics import Message, differences, expected_messages
from ulam.tracing import session as _session  # noqa: F401 - not for the first time while the loader is another

THETA = [1.0, 0.3, 0.1, 0.2, 0.3, -0.4, 0.5, 0.6]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Path of a model; what it compiles to is the program in C."""
    monkeypatch.setattr(model_module, "_compiler", lambda *_: in_c.ProgramInC())
    monkeypatch.setattr(program_module, "load_object", in_c.Loaded)
    path = tmp_path / "c.stan"
    path.write_text("parameters { real x; }\n")
    (tmp_path / "c.json").write_text(json.dumps(in_c.DATA))
    return str(path)


@pytest.fixture
def data(model: str) -> str:
    return model.replace(".stan", ".json")


Capture = pytest.CaptureFixture[str]


def test_help_is_quick() -> None:
    start = time.perf_counter()
    code = "import sys; from ulam.tools.ulam_main import main; sys.exit(main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "optimize" in done.stdout
    assert time.perf_counter() - start < 2  # 0.08 s on a quiet machine


def test_commands_are_imported_lazily() -> None:
    heavy = "('numpy', 'xdsl', 'llvmlite', 'rich')"
    code = f"import sys, ulam.tools.ulam_main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_optimize(model: str, data: str, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "fit.csv"
    arguments = ["optimize", model, "--data", data, "--jacobian", "--seed", "3", "--output", str(output)]
    assert ulam_main.main([*arguments, "--refresh", "1"]) == 0
    printed = capsys.readouterr()
    for word in ("parameter", "sigma", "a[2,3]", "log density", "iterations", "gradient evaluations", "compile time"):
        assert word in printed.out
    assert "||grad||" in printed.err
    header = [line for line in output.read_text().splitlines() if not line.startswith("#")][0]
    assert header.startswith("lp__,converged__,mu,sigma,a.1.1,a.2.1")


def test_optimize_limits_rows(model: str, data: str, capsys: Capture) -> None:
    assert ulam_main.main(["optimize", model, "--data", data, "--jacobian", "--rows", "2"]) == 0
    assert "... and 12 more" in capsys.readouterr().out


def test_optimize_failures(model: str, data: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = '{"mu": 101, "sigma": 1, "a": [[0, 0, 0], [0, 0, 0]]}'
    assert ulam_main.main(["optimize", model, "--data", data, "--init", outside]) == 1
    assert "initialization failed" in capsys.readouterr().err
    assert ulam_main.main(["optimize", model, "--data", data, "--init", "nowhere.json"]) == 1
    assert "nowhere.json" in capsys.readouterr().err
    assert ulam_main.main(["optimize", model, "--data", data, "--algorithm", "newton", "--tol-obj", "1"]) == 2
    assert "tol_obj" in capsys.readouterr().err
    assert ulam_main.main(["optimize", model, "--data", data, "--algorithm", "nonsense"]) == 2
    assert ulam_main.main(["optimize", model, "--data", data, "--tol-obj", "-1"]) == 2
    assert "tol_obj" in capsys.readouterr().err
    # Without the Jacobian this density has no mode: sigma runs to 0.
    assert ulam_main.main(["optimize", model, "--data", data, "--jacobian", "--iter", "1"]) == 0
    assert "warning: Maximum number of iterations" in capsys.readouterr().err


def test_data_problems(model: str, tmp_path: Path, capsys: Capture) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({**in_c.DATA, "z": [0, 1], "x": [[1, 2], [3, 4]]}))
    assert ulam_main.main(["optimize", model, "--data", str(bad)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and all(word in lines[0] for word in ("bad.json", "'z'", "declared=(3)", "found=(2)"))
    bad.write_text("{")
    assert ulam_main.main(["optimize", model, "--data", str(bad)]) == 1
    assert "not valid JSON" in capsys.readouterr().err


def test_interruption_reports_the_best_point(
    model: str, data: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ulam.runtime.optimizers import progress

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "__call__", interrupt)
    output = tmp_path / "fit.csv"
    assert ulam_main.main(["optimize", model, "--data", data, "--refresh", "1", "--output", str(output)]) == 130
    printed = capsys.readouterr()
    assert "interrupted" in printed.err and "Interrupted" in printed.out
    assert output.read_text().endswith("# Interrupted\n")


def test_log_density(model: str, data: str, tmp_path: Path, capsys: Capture) -> None:
    params = tmp_path / "u.json"
    params.write_text(json.dumps(THETA))
    assert ulam_main.main(["log-density", model, "--data", data, "--params", str(params), "--no-jacobian"]) == 0
    report = json.loads(capsys.readouterr().out)
    value = -0.5 * (1 - in_c.SUM) ** 2 - math.exp(0.3) - 0.5 * sum(x * x for x in THETA[2:])
    assert report["log_density"] == pytest.approx(value, rel=1e-14)
    assert report["gradient"][0] == in_c.SUM - 1
    plain = ", ".join(map(str, THETA))
    assert ulam_main.main(["log-density", model, "--data", data, f"--params={plain}", "--no-jacobian"]) == 0
    assert json.loads(capsys.readouterr().out) == report
    both = json.dumps({"params_r": [THETA, THETA]})
    assert ulam_main.main(["log-density", model, "--data", data, "--params", both, "--no-propto"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0])["log_density"] == pytest.approx(value + 0.3 + in_c.FULL_CONSTANT)
    for wrong in ("[1, 2]", "[", '{"a": 1}', '["x"]', str(tmp_path / "none.json")):
        assert ulam_main.main(["log-density", model, "--data", data, "--params", wrong]) == 1
        assert capsys.readouterr().err.startswith("ulam: error: ")
    outside = json.dumps([200.0, *THETA[1:]])
    assert ulam_main.main(["log-density", model, "--data", data, "--params", outside]) == 1
    assert "(in 'c.stan', line 4, column 3)" in capsys.readouterr().err


def test_usage_and_internal_errors(model: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ulam_main.main(["nonsense"]) == 2
    assert ulam_main.main(["optimize"]) == 2
    assert ulam_main.main(["optimize", model, "--seed", "x"]) == 2
    capsys.readouterr()

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(model_module, "_compiler", fail)
    assert ulam_main.main(["optimize", model]) == 70
    printed = capsys.readouterr().err
    assert "internal error: ZeroDivisionError: a mistake of ours" in printed and "report" in printed
    assert "Traceback" not in printed
    assert ulam_main.main(["optimize", "nowhere.stan"]) == 1
    assert capsys.readouterr().err == "ulam: error: Stan program 'nowhere.stan' does not exist\n"


def test_check(tmp_path: Path, capsys: Capture) -> None:
    good, bad = tmp_path / "good.stan", tmp_path / "bad.stan"
    good.write_text("parameters { real x; }\nmodel { x ~ normal(0, 1); }\n")
    bad.write_text("parameters { real x; }\nmodel {\n  y ~ normal(0, 1);\n}\n")
    assert ulam_main.main(["check", str(good)]) == 0
    assert capsys.readouterr() == ("", "")
    assert ulam_main.main(["check", str(good), str(bad)]) == 1
    assert f"{bad}:3:3: error: " in capsys.readouterr().err
    assert ulam_main.main(["check", "--json", str(bad)]) == 1
    message = json.loads(capsys.readouterr().out)
    assert (message["line"], message["column"], message["severity"]) == (3, 3, "error")
    assert ulam_main.main(["check", str(tmp_path / "none.stan")]) == 1


def test_info(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.stan"
    path.write_text("data { int N; array[N] vector[2] y; }\nparameters { simplex[3] p; }\nmodel { }\n")
    assert ulam_main.main(["info", str(path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["inputs"] == {"N": {"type": "int"}, "y": {"type": "array[] vector"}}
    assert report["parameters"] == {"p": {"type": "vector", "constraint": "simplex"}}


# ---------------------------------------------------------------- stan-opt


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.stan"
    path.write_text("parameters { real x; }\nmodel { x ~ normal(0, 1); }\n")
    return str(path)


def test_stan_opt_round_trips(program: str, tmp_path: Path, capsys: Capture) -> None:
    assert stan_opt.main([program, "--generic"]) == 0
    first = capsys.readouterr().out
    assert '"stan.parameter"' in first
    again = tmp_path / "again.mlir"
    again.write_text(first)
    assert stan_opt.main([str(again), "--generic", "--verify-each"]) == 0
    assert capsys.readouterr().out == first


def test_stan_opt_pipelines(program: str, capsys: Capture) -> None:
    text = "structure-exits,promote-variables"
    assert stan_opt.main(["-p", text, "--print-pipeline"]) == 0
    assert capsys.readouterr().out == f"{text}\n"
    assert stan_opt.main([program, "-p", text, "--print-ir-after-all", "--verify-each"]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("// -----// IR Dump After") == 2 and "IR Dump" not in printed.out
    for level in range(5):
        assert stan_opt.main([f"-O{level}", "--print-pipeline"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "promote-variable"], "unknown pass 'promote-variable'; did you mean 'promote-variables'?"),
        (["-p", "promote-variables{x=1}"], "wrong options for pass 'promote-variables'"),
        (["-p", "promote-variables{"], "cannot read the pass pipeline"),
        (["-p", ",,"], "cannot read the pass pipeline"),
    ],
)
def test_stan_opt_usage(arguments: list[str], message: str, capsys: Capture) -> None:
    assert stan_opt.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and message in printed.err and printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0\xd0\xff\xfe\0\0\0", "this is not text"),
        ("parameters { real x; }".encode("utf-16"), "this is UTF-16 text"),
    ],
)
def test_stan_opt_of_other_files(content: bytes, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.stan"
    path.write_bytes(content)
    assert stan_opt.main([str(path)]) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and message in printed.err and printed.err.count("\n") == 1


def test_stan_opt_wrong_options(capsys: Capture) -> None:
    assert stan_opt.main(["-O7"]) == 2
    assert stan_opt.main(["-t", "wasm"]) == 2


def test_stan_opt_debug_output(program: str, capsys: Capture) -> None:
    mir = 'log_prob {\n  real x = FnReadParam__("x");\n  target += normal_lupdf(x, 0, 1);\n}\n'
    assert stan_opt.main([program, "--debug-transformed-mir-pretty"]) == 0
    assert capsys.readouterr().out == mir
    both = ["--debug-transformed-mir-pretty", "--debug-optimized-mir-pretty"]
    assert stan_opt.main([program, *both, "-p", "structure-exits"]) == 0
    assert capsys.readouterr().out == f"{mir}\n{mir}"
    assert stan_opt.main([program, "--explain"]) == 0
    assert capsys.readouterr().out == "no passes ran: choose them by -O or -p\n"
    assert stan_opt.main([program, "--explain", "-p", "structure-exits"]) == 0
    assert capsys.readouterr().out == "no pass had anything to decide\n"
    assert stan_opt.main([program, "--explain=yaml"]) == 2


def test_stan_opt_memory_patterns(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.stan"
    path.write_text("parameters { vector[2] a; }\nmodel {\n  vector[2] b = a;\n  b[1] = 0;\n  target += sum(b);\n}\n")
    assert stan_opt.main([str(path), "--debug-mem-patterns"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:1:24: vector a: static: it is a parameter",
        f"{path}:4:3: vector b: dynamic: assigned in part: b[1] = 0",
    ]


def test_stan_opt_data(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "d.stan"
    path.write_text('data { int N; }\ntransformed data { print("n ", N); }\nmodel { target += N; }\n')
    (tmp_path / "d.json").write_text('{"N": 3}')
    for data in ('{"N": 3}', str(tmp_path / "d.json")):
        assert stan_opt.main([str(path), "-O4", "--data", data, "-t", "stan"]) == 0
        printed = capsys.readouterr()
        assert "target += 3;" in printed.out and printed.err == "n 3\n"
    pipeline = f'specialize-data{{data="{tmp_path / "d.json"}"}}'
    assert stan_opt.main([str(path), "-p", pipeline, "-t", "stan"]) == 0
    assert "target += 3;" in capsys.readouterr().out
    for options in (["-O4"], ["-p", "specialize-data"]):
        assert stan_opt.main([str(path), *options]) == 2
        assert "specialises the program on its data: give them with --data FILE" in capsys.readouterr().err
    assert stan_opt.main([str(path), "--data", str(tmp_path / "none.json")]) == 1
    assert "none.json' does not exist" in capsys.readouterr().err
    assert stan_opt.main([str(path), "--data", '{"N": 0.5}']) == 1
    assert "N" in capsys.readouterr().err


def test_stan_opt_debug_output_of_mlir(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "no_program.mlir"
    path.write_text("func.func @f() {\n  func.return\n}\n")
    assert stan_opt.main([str(path), "--debug-optimized-mir-pretty"]) == 1
    assert "only a stan.program is printed this way, not func.func" in capsys.readouterr().err


def test_explanation_of_lowered_programs(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "twice.stan"
    path.write_text(
        "parameters { cov_matrix[3] S; vector[3] a; }\nmodel {\n  target += sum(eigenvalues_sym(S));\n"
        "  target += sum(eigenvectors_sym(S) * a);\n}\n"
    )
    told = "share-kernels: 'eigenvectors_sym' of the same arguments is computed once"
    for options in (["-O3"], ["--unit", "value_propto"], ["-p", "structure-exits", "--unit", "value_propto"]):
        assert stan_opt.main([str(path), "--explain", *options]) == 0
        shown = capsys.readouterr().out.splitlines()
        at = next(number for number, line in enumerate(shown) if told in line)
        assert "eigenvectors_sym(S) * a" in "".join(shown[max(at - 4, 0) : at])
    assert stan_opt.main([str(path), "--explain", "-p", "structure-exits"]) == 0
    assert told not in capsys.readouterr().out


def test_explanation() -> None:
    def made(line: int, done: bool, subject: str, message: str, file: str = "m.stan") -> Remark:
        location = FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(3))
        return Remark("constant-propagation", done, subject, message, location)

    first, second = made(2, True, "variable n", "replaced by 3"), made(1, False, "loop over i", "its bounds are data")
    included = made(1, True, "variable k", "replaced by 2", "k.stan")
    unknown = Remark("repeat", False, "passes", "limit reached", UnknownLoc())
    temporary = made(2, True, "variable lcm_sym1__", "needs no gradient")
    remarks = [first, unknown, included, second, first, temporary]
    lines = {("m.stan", 1): "for (i in 1 : N) {", ("m.stan", 2): "  int n = 3;"}
    text = explain(remarks, lambda file, line: lines.get((file, line)))
    assert text.splitlines() == [
        "m.stan",
        "    1 | for (i in 1 : N) {",
        "          loop over i",
        "            not done  constant-propagation: its bounds are data",
        "    2 |   int n = 3;",
        "          variable n",
        "            done      constant-propagation: replaced by 3",
        "k.stan",
        "    1 |",
        "          variable k",
        "            done      constant-propagation: replaced by 2",
        "without a place in the program",
        "          passes",
        "            not done  repeat: limit reached",
    ]
    assert "\033" in explain(remarks, lambda *_: None, styled=True)
    records = [json.loads(line) for line in explain(remarks, lambda *_: None, form="json").splitlines()]
    assert [r["line"] for r in records] == [1, 2, 2, 1, None]
    assert records[1] == {
        "file": "m.stan", "line": 2, "column": 3, "subject": "variable n", "pass": "constant-propagation",
        "done": True, "message": "replaced by 3",
    }  # fmt: skip


def test_stan_opt_errors(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "bad.stan"
    path.write_text("model { x = 1; }\n// -----\nparameters { real y; }\n")
    assert stan_opt.main([str(path), "--split-input-file"]) == 1
    printed = capsys.readouterr()
    assert f"{path}:1:9: error:" in printed.err and "stan.parameter" in printed.out
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text('builtin.module {\n  "stan.nonsense"() : () -> ()\n}\n')
    assert stan_opt.main([str(wrong)]) == 1
    printed = capsys.readouterr()
    assert f"{wrong}:2: error:" in printed.err and printed.out == ""
    assert stan_opt.main([str(tmp_path / "none.mlir")]) == 1


def test_stan_opt_verify_diagnostics(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "d.stan"
    first, second = (
        "model {\n  x = 1; // expected-error {{x}}\n}\n",
        "// expected-error @below {{y}}\nmodel { y = 1; }\n",
    )
    path.write_text(f"{first}// -----\n{second}")
    assert stan_opt.main([str(path), "--split-input-file", "--verify-diagnostics"]) == 0
    path.write_text("model { x = 1; }\n// -----\n// expected-error {{never}}\nmodel { }\n")
    assert stan_opt.main([str(path), "--split-input-file", "--verify-diagnostics"]) == 1
    printed = capsys.readouterr().err.splitlines()
    assert f"{path}:1: error: unexpected error" in printed[0]
    assert f'{path}:3: error: expected error "never" was not produced' in printed[1]


def test_expected_messages() -> None:
    text = "a // expected-error {{one}} expected-warning @+2 {{two}}\n// expected-note @above {{three}}\n"
    expected = [Message(5, "error", "one"), Message(7, "warning", "two"), Message(5, "note", "three")]
    assert expected_messages(text, 5) == expected
    reported = [Message(5, "error", "number one"), Message(None, "warning", "two"), Message(5, "note", "three")]
    assert differences(expected, reported) == []
    assert differences(expected, reported[1:]) == [(5, 'expected error "one" was not produced')]
    assert differences([], reported[:1]) == [(5, "unexpected error: number one")]


def test_stan_opt_machine_code(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(
        "func.func @twice(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {\n"
        "  %y = arith.addf %x, %x : f64\n  func.return %y : f64\n}\n"
    )
    assert stan_opt.main([str(path), "-t", "llvm"]) == 0
    assert "@twice" in capsys.readouterr().out
    assert stan_opt.main([str(path), "-t", "asm"]) == 0
    assert "twice:" in capsys.readouterr().out
