"""What a program is compiled with: level or passes, and what of it is for this process only."""

from __future__ import annotations

from dataclasses import replace

from ulam.library.externals import ExternalForm
from ulam.library.records import record
from ulam.passes.pipeline_order import split
from ulam.passes.pipelines import PROFILING, level_pipeline


@record(frozen=True)
class CompileOptions:
    """`opt_level` 0 to 4; `include_paths` are searched for `#include`d files.

    `pipeline` names the passes that run instead of those of the level (see `passes.pipeline_order`).
    """

    opt_level: int = 3
    include_paths: tuple[str, ...] = ()
    pipeline: str | None = None
    profile: str = "on"
    """`on`: the program's profile statements record; `off`: they are not there; `statements`, `blocks`, `functions`:
    each of these is a region of its own instead (see `passes.insert_profiles`)."""
    target: str = "native"
    """The processor that code is made for (see `emit.target`); other code than `native` is for others to run."""
    lines: bool = False
    """Object code says which instructions belong to which line (see `runtime.line_profile`); they are the same."""
    externals: tuple[ExternalForm, ...] = ()
    """Functions that are given to programs that declare them without a body."""
    layouts: bool = True
    """Levels 3 and 4 choose layouts of the data when data are bound (see docs/layouts.md)."""
    level_name: str = ""
    """Of a level of one's own: its passes are the pipeline, and it is like `opt_level` in all else."""

    pieces: bool = False
    """Large programs are compiled in pieces (see `passes.pieces`), and units are found in the cache by what they are
    compiled from: for programs that run in this process."""
    few_passes: bool = True
    """Large programs that are compiled whole, for any data, have code that few passes make, those of the level not
    among them (see `passes.data_switches`): it is for others to run."""

    @property
    def has_contents(self) -> bool:
        """Whether units are found by what they are compiled from, wherever it stands."""
        return self.pieces and self.profile == "on" and not (self.lines or self.externals)

    @property
    def may_be_pieces(self) -> bool:
        """Whether a large program is to be taken to pieces. Below level 3 the order of additions is the program's."""
        return self.has_contents and self.opt_level == 3 and self.pipeline is None

    @property
    def may_have_few_passes(self) -> bool:
        """Whether that is so for a large program. Below level 3 the bits are to stay, level 4 knows the data."""
        return self.few_passes and not self.pieces and self.opt_level == 3 and self.pipeline is None

    @property
    def passes(self) -> str:
        """The passes to run, as pipeline text."""
        passes = level_pipeline(self.opt_level) if self.pipeline is None else self.pipeline
        return ",".join(filter(None, (PROFILING[self.profile], passes)))

    @property
    def unit_passes(self) -> str | None:
        """The passes of density units, where the pipeline has some."""
        return None if self.pipeline is None else split(self.pipeline)[1]

    @property
    def as_written(self) -> CompileOptions:
        """The same with no pass that changes the program."""
        return replace(self.of_part, opt_level=0, pipeline=None, level_name="")

    @property
    def of_part(self) -> CompileOptions:
        """The same for a program that is compiled whole, or a part of one, and runs in this process."""
        return replace(self, pieces=False, few_passes=False)

    @property
    def level_text(self) -> str:
        """What the passes of the model are, in words."""
        if self.level_name or self.pipeline is None:
            return f"level {self.level_name or self.opt_level}"
        return f"passes {self.pipeline or 'none'}"

    @property
    def about_level(self) -> str:
        """The same as a line of what is told about a model."""
        kind, _, which = self.level_text.partition(" ")
        return f"{'Optimization level' if kind == 'level' else 'Passes'}: {which}"

    @property
    def wants_data(self) -> bool:
        """Whether the passes specialise the program on its data."""
        return "specialize-data" in self.passes
