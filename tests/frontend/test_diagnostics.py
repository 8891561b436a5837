"""Places in sources, includes among them, and what messages look like."""

from __future__ import annotations

from pathlib import Path

import pytest

from ulam.frontend.diagnostics import Diagnostic, DiagnosticCollector, DiagnosticError, Note, Severity, render
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.frontend.syntax import Span


def test_positions_with_all_kinds_of_line_ends() -> None:
    source = Source("ab\ncd\r\n\re", "m.stan")
    assert [source.position(i) for i in (0, 2, 3, 4, 7, 8)] == [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (4, 1)]
    assert [source.line(n) for n in (1, 2, 3, 4)] == ["ab", "cd", "", "e"]
    assert source.position(9) == (4, 2)  # the end of the text has a place, too
    with pytest.raises(IndexError):
        source.line(5)


def test_first_line_of_an_excerpt() -> None:
    source = Source("a\nb", "lib.stan", first_line=41)
    assert source.position(2) == (42, 1)
    assert source.line(42) == "b"


def test_rendered_message() -> None:
    text = "model {\n\ty ~ normal(mu, sigma);\n}\n"
    start = text.index("sigma")
    source = Source(text, "model.stan")
    diagnostic = Diagnostic(
        Severity.ERROR,
        "'sigma' is wrong",
        Span(start, start + 5),
        source,
        "some-code",
        "mend it",
        (Note("see", Span(0, 5)),),
    )
    assert render(diagnostic) == (
        "model.stan:2:17: error: 'sigma' is wrong [some-code]\n"
        "    2 | \ty ~ normal(mu, sigma);\n"
        "      | \t               ^^^^^\n"
        "   note: model.stan:1:1: see\n"
        "   help: mend it"
    )
    assert diagnostic.as_dict() == {
        "file": "model.stan", "line": 2, "column": 17, "end_line": 2, "end_column": 22, "severity": "error",
        "code": "some-code", "message": "'sigma' is wrong", "fix": "mend it",
    }  # fmt: skip


def test_span_over_several_lines_is_marked_on_the_first() -> None:
    source = Source("ab cd\nef", "m.stan")
    rendered = render(Diagnostic(Severity.WARNING, "w", Span(3, 8), source, "c"))
    assert rendered.splitlines()[2] == "      |    ^^"


def test_long_lines_are_cut_around_the_place() -> None:
    text = "x" * 1000 + "HERE" + "y" * 1000
    lines = render(Diagnostic(Severity.ERROR, "e", Span(1000, 1004), Source(text, "m.stan"), "c")).splitlines()
    column = lines[2].index("^")
    assert lines[1][column : column + 4] == "HERE" and lines[2].count("^") == 4
    assert len(lines[1]) < 200


def test_collector_raises_errors_in_order_but_not_warnings() -> None:
    collector = DiagnosticCollector(Source("abc", "m.stan"))
    collector.warning(Span(0, 1), "w", "code")
    collector.raise_errors()
    collector.error(Span(2, 3), "second", "code")
    collector.error(Span(1, 2), "first", "code")
    with pytest.raises(DiagnosticError) as caught:
        collector.raise_errors()
    assert [d.message for d in caught.value.diagnostics] == ["w", "first", "second"]


# ---------------------------------------------------------------- includes


def test_includes_nest_and_messages_name_the_chain(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "m.stan").write_text("functions {\n  #include lib/a.stan\n}\nmodel { }\n")
    (tmp_path / "lib/a.stan").write_text("real one() { return 1; }\n#include <b.stan>\n")
    (tmp_path / "lib/b.stan").write_text("// b\nreal two() { return ; 2 }\n")
    source = Source.read(tmp_path / "m.stan")
    assert [p.name for p in source.included_files] == ["a.stan", "b.stan"]
    with pytest.raises(DiagnosticError) as caught:
        parse_program(source)
    (diagnostic,) = caught.value.diagnostics
    rendered = render(diagnostic)
    assert rendered.startswith(f"{tmp_path / 'lib' / 'b.stan'}:2:23: error: an expression alone is not a statement")
    assert "    2 | real two() { return ; 2 }" in rendered
    assert f"included from {tmp_path / 'lib' / 'a.stan'}:2:1" in rendered
    assert f"included from {tmp_path / 'm.stan'}:2:3" in rendered


def test_include_paths_come_after_the_folder_of_the_file(tmp_path: Path) -> None:
    for folder in ("here", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.stan").write_text(f"// {folder}\n")
    (tmp_path / "path" / "g.stan").write_text("real g;\n")
    main = tmp_path / "here" / "m.stan"
    main.write_text("#include f.stan\ndata {\n#include g.stan\n}\n")
    source = Source.read(main, [tmp_path / "path"])
    assert source.included_files == [tmp_path / "here" / "f.stan", tmp_path / "path" / "g.stan"]
    assert parse_program(source).data is not None


def test_leading_slash_is_below_the_folders_searched(tmp_path: Path) -> None:
    (tmp_path / "pre").mkdir()
    (tmp_path / "pre" / "f.stan").write_text("// f\n")
    assert not Source("#include /pre/f.stan\n", str(tmp_path / "m.stan")).problems
    assert not Source("#include /pre/f.stan\n", "m.stan", [tmp_path]).problems
    assert not Source(f"#include {tmp_path}/pre/f.stan\n", "m.stan").problems


@pytest.mark.parametrize(
    "text",
    ["// #include f.stan\n", "/* #include f.stan */", 'model { print("#include f.stan"); }'],
)
def test_no_include_in_comments_and_strings(text: str) -> None:
    source = Source(text, "m.stan")
    assert source.text == text and not source.problems


def test_include_that_is_not_found(tmp_path: Path) -> None:
    source = Source("model { }\n#include nowhere.stan\n", str(tmp_path / "m.stan"))
    with pytest.raises(DiagnosticError) as caught:
        parse_program(source)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "include" and "'nowhere.stan' was not found" in diagnostic.message
    assert source.position(diagnostic.span.start) == (2, 1)
    assert diagnostic.help is not None and str(tmp_path) in diagnostic.help


def test_include_of_itself(tmp_path: Path) -> None:
    (tmp_path / "a.stan").write_text("#include b.stan\n")
    (tmp_path / "b.stan").write_text("#include a.stan\n")
    with pytest.raises(DiagnosticError, match="includes itself"):
        parse_program(Source.read(tmp_path / "a.stan"))


def test_a_file_may_be_included_twice(tmp_path: Path) -> None:
    (tmp_path / "f.stan").write_text("x += 1;\n")
    (tmp_path / "m.stan").write_text("model { real x = 0;\n#include f.stan\n#include f.stan\n}\n")
    source = Source.read(tmp_path / "m.stan")
    program = parse_program(source)
    assert program.model is not None and len(program.model.statements) == 3
    assert len(source.included_files) == 1
