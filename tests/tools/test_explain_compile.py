"""`ulam explain-compile`: the page has every pass and every line, says where IR and instructions are from, and is
safe."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ulam.runtime import compile_record
from ulam.runtime.assembly_listing import read_assembly
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compile_record import IrLine, changed_lines, llvm_lines, record_compile
from ulam.tools import ulam_explain_compile
from ulam.tools.ulam_main import main

NASTY = "</script><img src=x onerror=alert(1)>&amp;"
PROGRAM = f"""#include half.stan
data {{ int<lower=0> N; vector[N] y; }}
parameters {{ real mu; real<lower=0> sigma; }}
model {{
  for (n in 1:N) {{
    y[n] ~ normal(half(mu), sigma);
  }}
  if (mu > 1e300) print("{NASTY}"); // {NASTY}
}}
"""
INCLUDED = "functions {\n  real half(real x) {\n    return x / 2;\n  }\n}\n"
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """The elements of a page: tag, attributes, text. Every element that is opened is closed, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for place in self._open:
            self.elements[place][2].append(data)

    def all(self, tag: str, kind: str = "") -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, "".join(text))
            for name, attributes, text in self.elements
            if name == tag and (not kind or kind in (attributes.get("class") or "").split())
        ]

    @property
    def data(self) -> dict[str, Any]:
        (found,) = [text for attributes, text in self.all("script") if attributes.get("id") == "data"]
        return json.loads(found)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Page]:
    folder = tmp_path_factory.mktemp("explained")
    (folder / "half.stan").write_text(INCLUDED)
    program = folder / "a<b>&.stan"
    program.write_text(PROGRAM)
    page = folder / "page.html"
    assert main(["explain-compile", str(program), "--html", str(page)]) == 0
    return page.read_text(encoding="utf-8"), Page(page.read_text(encoding="utf-8"))


def test_it_is_one_file(written: tuple[str, Page]) -> None:
    text, page = written
    assert not re.search(r'(?:src|href)="(?!#)', text) and "url(" not in text and "@import" not in text
    assert not re.search(r"\bfetch\(|XMLHttpRequest|innerHTML|eval\(", text)
    (policy,) = [a["content"] for a, _ in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none'") and "script-src 'sha256-" in policy


def test_nothing_of_the_program_is_markup(written: tuple[str, Page]) -> None:
    text, page = written
    assert "<img" not in text and "a<b>" not in text
    assert [attributes.get("id") for attributes, _ in page.all("script")] == ["data", None]
    shown = "\n".join(text for _, text in page.all("code"))
    assert shown.count(NASTY) == 2
    lines = [line if isinstance(line, str) else line[0] for line in page.data["lines"]]
    assert any(NASTY in line for line in lines)


def test_every_line_is_there_with_its_remarks(written: tuple[str, Page]) -> None:
    _, page = written
    assert [name.rpartition("/")[2] for name in page.data["files"]] == ["a<b>&.stan", "half.stan"]
    rows = [(a["data-file"], a["data-line"], text) for a, text in page.all("div", "line")]
    assert [(file, line) for file, line, _ in rows] == [
        (str(file), str(line + 1))
        for file, source in enumerate((PROGRAM, INCLUDED))
        for line in range(len(source.splitlines()))
    ]
    loop = next(text for file, line, text in rows if (file, line) == ("0", "5"))
    assert "loop-vectorization" in loop and "an expression in it is evaluated ahead" in loop


def test_every_pass_is_there(written: tuple[str, Page], tmp_path: Path) -> None:
    _, page = written
    (tmp_path / "half.stan").write_text(INCLUDED)
    record = record_compile(PROGRAM, str(tmp_path / "model.stan"), CompileOptions(3, lines=True))
    assert [text for _, text in _named(page)] == [run.name for run in record.runs]
    chosen = {int(a["data-stage"] or "") for a, _ in page.all("button", "name")}
    assert chosen == {int(stage) for stage in page.data["stages"]}
    assert {record.runs[k].name for k in chosen} >= {
        "parse, check, lower", "function-inlining", "convert-stan-to-loops", "reverse-mode",
        "emit LLVM IR", "LLVM's passes", "LLVM's code generation",
    }  # fmt: skip
    assert all((run.listing is not None) == (k in chosen) for k, run in enumerate(record.runs))
    assert sum(run.seconds for run in record.runs if run.depth == 0) == pytest.approx(record.seconds)
    for run in record.runs:
        assert run.seconds >= 0 and (run.has_steps or run.changed is not None)


def _named(page: Page) -> list[tuple[dict[str, str | None], str]]:
    found = [(tag, a, "".join(text)) for tag, a, text in page.elements if a.get("class") == "name"]
    return [(a, text) for _, a, text in found]


def test_lines_of_ir_are_of_lines_of_the_program(written: tuple[str, Page]) -> None:
    _, page = written
    data = page.data
    texts = {k: line for k, line in enumerate(data["lines"])}

    def of(stage: dict[str, Any], file: int, line: int) -> list[str]:
        return [texts[k][0] for k in stage["ids"] if isinstance(texts[k], list) and texts[k][1:] == [file, line]]

    stages = list(data["stages"].values())
    assert any("stan.for" in text for text in of(stages[0], 0, 5))
    assert any("normal_lpdf" in text for text in of(stages[0], 0, 6))
    assert any("stan.div" in text for text in of(stages[0], 1, 3))
    by_name = {stage["name"]: stage for stage in stages}
    assert of(by_name["reverse-mode"], 0, 6) and of(by_name["emit LLVM IR"], 0, 6)
    assert of(by_name["LLVM's code generation"], 0, 6)
    inlined = by_name["function-inlining"]
    assert inlined["new"] and inlined["gone"]
    assert all(0 <= first < end <= len(inlined["ids"]) for first, end in inlined["new"])
    assert data["loops"] and any([0, 6] in loop["places"] for loop in data["loops"])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["3", "4"])
def test_costs_and_layouts_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setattr(ulam_explain_compile, "SAMPLED_SECONDS", 0.1)
    page = tmp_path / "page.html"
    example = ["examples/hierarchical.stan", "--data", "examples/hierarchical.json", "-O", level]
    assert main(["explain-compile", *example, "--html", str(page)]) == 0
    found = Page(page.read_text(encoding="utf-8"))
    assert any("samples" in text or "could not be measured" in text for _, text in found.all("p", "told"))
    assert any("reduced rows: taken" in text for _, text in found.all("li"))
    assert ("specialize-data" in {text for _, text in _named(found)}) == (level == "4")


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "model.stan"
    program.write_text("parameters { real x; } model { x ~ normal(0, 1); }")
    assert main(["explain-compile", str(program), "-O1", "--unit", "value_full"]) == 0
    printed = capsys.readouterr().out
    assert "dead-code-elimination" in printed and "loop-vectorization" not in printed and "reverse-mode" in printed
    for wrong, said in ((["--unit", "gradient"], "there is no unit 'gradient'"), (["--title", "x"], "--html")):
        assert main(["explain-compile", str(program), *wrong]) == 2
        assert said in capsys.readouterr().err


def test_mistakes_are_told_as_by_other_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    for text, said in (
        ("parameters { real x; } model { y ~ normal(0, 1); }", "'y' is not declared"),
        ("functions { real f(real x); } parameters { real x; } model { target += f(x); }", "declared but not defined"),
        ("model {", "error"),
    ):
        program = tmp_path / "wrong.stan"
        program.write_text(text)
        assert main(["explain-compile", str(program), "--html", str(page)]) == 1
        printed = capsys.readouterr().err
        assert said in printed and "internal error" not in printed and not page.exists()
    assert main(["explain-compile", "examples/logistic.stan", "-O4"]) == 1
    assert "variable 'N' does not exist" in capsys.readouterr().err
    module = tmp_path / "wrong.mlir"
    module.write_text("builtin.module {\n}\n")
    assert main(["explain-compile", str(module)]) == 1
    assert "there is none" in capsys.readouterr().err


def test_large_programs_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from ulam.runtime.html_report import compile_listings
    from ulam.runtime.html_report.compile_page import compile_page

    program = "parameters { real x; } model { x ~ normal(0, 1); }"
    record = record_compile(program, "m.stan", CompileOptions(3, lines=True))
    whole = Page(compile_page(record, [], "", [])).data["stages"]
    monkeypatch.setattr(compile_listings, "LINES", 5)
    monkeypatch.setattr(compile_listings, "ROOM", 40)
    page = Page(compile_page(record, [], "", []))
    assert len(page.data["stages"]) < len(whole) and all(len(s["ids"]) <= 5 for s in page.data["stages"].values())
    (said,) = [text for _, text in page.all("p", "told") if "left out" in text]
    assert "first 5 lines are shown" in said
    assert [text for _, text in _named(page)] == [run.name for run in record.runs]


def test_of_very_large_programs_the_ends_of_phases_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "data { int N; vector[N] y; } parameters { real x; } model { for (n in 1:N) y[n] ~ normal(x, 1); }"
    options = CompileOptions(3, lines=True)
    whole = record_compile(program, "m.stan", options).runs
    monkeypatch.setattr(compile_record, "MOST_PRINTED_OPS", 0)
    found = record_compile(program, "m.stan", options).runs
    assert [run.name for run in found] == [run.name for run in whole]
    for phase in ("level", "values", "loops"):
        runs = [run for run in found if run.phase == phase]
        (kept,) = [run.listing for run in runs if run.listing is not None]
        state = [run.listing for run in whole[: found.index(runs[-1]) + 1] if run.listing is not None][-1]
        assert [line.text for line in kept] == [line.text for line in state]


# ---------------------------------------------------------------- parts


def test_numbers_of_values_are_no_change() -> None:
    before = [IrLine("%0 = a"), IrLine("%1 = b %0"), IrLine("c %1"), IrLine("%x_1 = d")]
    after = [IrLine("%0 = a"), IrLine("%1 = new"), IrLine("%2 = b %0"), IrLine("c %2"), IrLine("%x_2 = d")]
    codes = [code for code in changed_lines(before, after) if code[0] != "equal"]
    assert codes == [("insert", 1, 1, 1, 2)]


def test_places_of_llvm_ir() -> None:
    text = """define void @f() !dbg !2 {
  %a = add i64 1, 2, !dbg !3
  ret void, !dbg !4
}
!0 = !DIFile(filename: "m\\C3\\A4.stan", directory: "")
!2 = distinct !DISubprogram(name: "f", scope: !0, file: !0, line: 0)
!3 = !DILocation(line: 7, column: 3, scope: !2)
!4 = !DILocation(line: 0, scope: !2)
"""
    assert llvm_lines(text) == [
        IrLine("define void @f() {"), IrLine("  %a = add i64 1, 2", ("mä.stan", 7)), IrLine("  ret void"), IrLine("}"),
    ]  # fmt: skip


X86 = """\t.text
\t.file\t0 "m.stan"
f:
.Lfunc_begin0:
\t.loc\t0 3 1
\tmovq\t%rdi, %rax
.LBB0_1:
\t.loc\t0 4 1
\tvaddpd\t%zmm0, %zmm1, %zmm1
\tja\t.LBB0_3
.LBB0_2:
\tcallq\texp@PLT
\tjne\t.LBB0_1
\tretq
.LBB0_3:
\tcallq\tgrow
\tjmp\t.LBB0_2
\t.section\t.debug_line
\t.long\t1
"""
ARM = """\t.text
\t.file\t0 "m.stan"
f:
\tmov\tx0, x1
.LBB0_1:
\t.loc\t0 4 1
\tfadd\tv0.2d, v1.2d, v2.2d
\tcbnz\tx0, .LBB0_1
\tb\t.LBB0_2
.LBB0_2:
\tret
"""


def test_loops_of_assembly() -> None:
    found = read_assembly(X86)
    (loop,) = found.loops
    assert [line.text.split()[0] for line in found.lines if line.depth == 0] == ["f:", "movq", "retq"]
    assert loop.registers == "zmm" and loop.calls == ("exp", "grow") and loop.places == (("m.stan", 4),)
    assert loop.instructions == 6 and len(loop.ranges) == 2, "what is out of line belongs to it"
    (loop,) = read_assembly(ARM).loops
    assert loop.registers == "2d" and loop.instructions == 2


def test_pipelines_of_ones_own(tmp_path: Path) -> None:
    program, page = tmp_path / "model.stan", tmp_path / "page.html"
    program.write_text("parameters { real x; } model { real y = x; y ~ normal(0, 1); }")
    passes = "copy-propagation,convert-stan-to-loops,cse"
    assert main(["explain-compile", str(program), "--passes", passes, "--html", str(page)]) == 0
    found = Page(page.read_text(encoding="utf-8"))
    names = [text for _, text in _named(found)]
    assert names[1] == "copy-propagation" and "cse" in names and "dead-code-elimination" not in names
    assert any(passes in text for _, text in found.all("dd"))
