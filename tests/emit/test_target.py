"""Code for lower levels of the processor: chosen by the environment, never more than the machine has, cached apart."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ulam.emit import jit, target
from ulam.emit.errors import TargetError
from ulam.emit.function_attributes import LONG_VECTORS
from ulam.emit.object_file import ObjectFile
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "eight_schools"


def machine(cpu: str, level: str) -> target.Host:
    """A machine that has exactly this level."""
    return target.Host("x86_64-unknown-linux-gnu", cpu, ",".join(f"+{name}" for name in target.LEVELS[level]))


EVERYTHING = machine("some", "x86-64-v4")
AVX2 = machine("other", "x86-64-v3")

SUM = """
define double @f(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %y, i64 %i
  %value = load double, ptr %from
  %twice = fadd double %value, %value
  store double %twice, ptr %to
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 10000
  br i1 %done, label %end, label %loop
end:
  ret double 0.0
}
"""


@pytest.fixture
def host_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], target.Host]:
    """Sets the level of this machine that code is made for."""
    this = jit.host()

    def choose(level: str) -> target.Host:
        monkeypatch.setenv(target.VARIABLE, level)
        try:
            host = target.chosen(this)
        except TargetError as error:
            pytest.skip(str(error))
        monkeypatch.setattr(jit, "host", lambda: host)
        return host

    return choose


def test_without_a_level_it_is_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(target.VARIABLE, raising=False)
    assert target.chosen(EVERYTHING) is EVERYTHING


def test_levels_are_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = []
    for level in target.LEVELS:
        monkeypatch.setenv(target.VARIABLE, level)
        hosts.append(target.chosen(EVERYTHING))
    assert [host.cpu for host in hosts] == list(target.LEVELS)
    assert [host.fused for host in hosts] == [False, True, True]
    assert len({host.features for host in hosts}) == 3


def test_no_more_than_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(target.VARIABLE, "x86-64-v4")
    with pytest.raises(TargetError, match=r"x86-64-v4: this machine \(other\) is without \+avx512bw"):
        target.chosen(AVX2)
    arm = target.Host("aarch64-unknown-linux-gnu", "cortex-a72", "+neon")
    with pytest.raises(TargetError, match="this machine"):
        target.chosen(arm)
    assert arm.fused
    monkeypatch.setenv(target.VARIABLE, "avx2")
    with pytest.raises(TargetError, match="no such level; there are x86-64-v2, x86-64-v3, x86-64-v4"):
        target.chosen(EVERYTHING)


@pytest.mark.parametrize(("level", "widest"), [("x86-64-v2", "x"), ("x86-64-v3", "y"), ("x86-64-v4", "z")])
def test_loops_are_as_wide_as_the_level(level: str, widest: str, host_for: Callable[[str], target.Host]) -> None:
    host_for(level)
    registers = re.findall(r"\b([xyz])mm\d", jit.compile_assembly(SUM))
    assert registers and max(registers) == widest


_ASKING = SUM.replace("{\nentry", "#0 {\nentry") + f"\nattributes #0 = {{ nounwind{LONG_VECTORS} }}\n"


@pytest.mark.skipif(not jit.machine().triple.startswith("x86_64"), reason="of another architecture")
@pytest.mark.parametrize(
    "cpu", ["skylake-avx512", "icelake-server", "emeraldrapids", "znver4", "znver5", "haswell", "znver2"]
)
def test_vectors_are_those_that_llvm_takes(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By themselves, and where a function asks for the longest."""
    level = "x86-64-v3" if cpu in ("haswell", "znver2") else "x86-64-v4"
    host = target.Host(jit.machine().triple, cpu, machine(cpu, level).features)
    monkeypatch.setattr(jit, "host", lambda: host)
    for text, doubles in ((SUM, host.vectors.lanes), (_ASKING, host.vectors.longest)):
        registers = re.findall(r"\b([xyz])mm\d", jit.compile_assembly(text))
        assert max(registers) == {2: "x", 4: "y", 8: "z"}[doubles]


def test_code_of_levels_is_cached_apart(host_for: Callable[[str], target.Host]) -> None:
    def key(processor: str) -> str:
        compiler = CachedCompiler("model {}", "empty.stan", CompileOptions(target=processor))
        return compiler._keys.of("setup")  # pyright: ignore[reportPrivateUsage]

    made_for = {jit.host(): key("native")}
    for level in ("x86-64-v2", "x86-64-v3"):
        host = host_for(level)
        made_for[host] = key("native")
    assert len({key("generic"), *made_for.values()}) == 1 + len(made_for)


def test_targets_by_name() -> None:
    assert target.named(AVX2, "native") is AVX2
    assert target.named(AVX2, "x86-64-v4").cpu == "x86-64-v4"  # for others to run
    generic = target.named(AVX2, "generic")
    assert (generic.cpu, generic.features, generic.fused) == ("x86-64", "", False)
    arm = target.Host("aarch64-unknown-linux-gnu", "cortex-a72", "+neon")
    assert target.named(arm, "generic").fused
    with pytest.raises(TargetError, match="no target 'x86-64-v2'; there are native, generic$"):
        target.named(arm, "x86-64-v2")
    with pytest.raises(TargetError, match="no target 'z80'; there are native, generic, x86-64-v2,"):
        target.named(AVX2, "z80")


def test_functions_have_the_prefix() -> None:
    text = "define i32 @f() { ret i32 1 }\ndefine internal i32 @g() { ret i32 2 }\ndeclare double @exp(double)"
    data = jit.compile_object(text, prefix="unit.")
    assert [f.name for f in ObjectFile(data).functions if f.exported] == ["unit.f"]
    assert jit.load_object(data).function("unit.f")() == 1


@pytest.mark.parametrize("command", [("ulam_main", "optimize", "--data", f"{EXAMPLE}.json"), ("stan_opt", "-t", "asm")])
def test_commands_say_that_there_is_no_such_level(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(target.VARIABLE, "x86-64-v9")
    code = f"import sys; from ulam.tools.{command[0]} import main; sys.exit(main(sys.argv[1:]))"
    arguments = [sys.executable, "-c", code, *command[1:], f"{EXAMPLE}.stan"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "ULAM_TARGET_CPU=x86-64-v9: there is no such level" in done.stderr
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr
