"""What modules of long programs call where others have it in place: taking memory of the arena, noting an error.

In place, each is ten to twenty lines and up to three basic blocks, of which a long module has hundreds; LLVM's time is
in proportion to them, or more. What they do stays the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ulam.emit.llvm_text import ModuleEmitter

LONG_MODULE_OPS = 1500
"""Ops of a module from which it has these functions; what is not split and has layouts of data is seldom as long."""

ARENA_END = 8
ERROR_SITE = 16
ERROR_VALUES = 24

ALLOCATE = "ulam.allocate"
_ALLOCATE = f"""\
define internal ptr @{ALLOCATE}(ptr %context, i64 %size, i64 %site) noinline #0 {{
  %cursor = load ptr, ptr %context, align 8
  %end.address = getelementptr inbounds i8, ptr %context, i64 {ARENA_END}
  %end = load ptr, ptr %end.address, align 8
  %start.int = ptrtoint ptr %cursor to i64
  %end.int = ptrtoint ptr %end to i64
  %room = sub i64 %end.int, %start.int
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %bump, label %grow
bump:
  %moved = getelementptr inbounds i8, ptr %cursor, i64 %size
  store ptr %moved, ptr %context, align 8
  ret ptr %cursor
grow:
  %site.address = getelementptr inbounds i8, ptr %context, i64 {ERROR_SITE}
  store i64 %site, ptr %site.address, align 8
  %grown = call ptr @ulam_arena_grow(ptr %context, i64 %size)
  store i64 -1, ptr %site.address, align 8
  ret ptr %grown
}}"""
GROW = "ulam_arena_grow"


def declare_grow(module: ModuleEmitter) -> None:
    """Declares what asks the runtime for memory of the arena: seldom, unless each block is asked for."""
    module.declare(GROW, f"declare ptr @{GROW}(ptr, i64) #{0 if module.options.exact_blocks else 2}")


def allocation_function(module: ModuleEmitter) -> str:
    """The name of the function that takes memory of the arena, for an error about a site, or -1."""
    declare_grow(module)
    module.helpers.setdefault(ALLOCATE, _ALLOCATE)
    return ALLOCATE


def failure_function(module: ModuleEmitter, values: int) -> str:
    """The name of the function that notes a site and so many values, and returns the status that it is given."""
    name = f"ulam.fail.{values}"
    if name not in module.helpers:
        formals = "".join(f", double %value.{n}" for n in range(values))
        lines = [
            f"define internal i32 @{name}(ptr %context, i64 %site, i32 %status{formals}) noinline #2 {{",
            f"  %address = getelementptr inbounds i8, ptr %context, i64 {ERROR_SITE}",
            "  store i64 %site, ptr %address, align 8",
        ]
        for n in range(values):
            lines.append(f"  %address.{n} = getelementptr inbounds i8, ptr %context, i64 {ERROR_VALUES + 8 * n}")
            lines.append(f"  store double %value.{n}, ptr %address.{n}, align 8")
        module.helpers[name] = "\n".join([*lines, "  ret i32 %status", "}"])
    return name
