"""A fit as text, HTML and JSON: the table, how the draws were made, the diagnosis."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ulam.runtime.results import SHOWN_ROWS, facts_text, html_table, number_text, seconds_text

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import SampleFit

SCHEMA_VERSION = 1
"""Version of the entries of `fit_record`. Goes up when an entry changes its meaning or disappears."""


def facts(fit: SampleFit) -> list[tuple[str, str]]:
    """How the draws were made: name and value of each fact."""
    settings, found = fit.settings, list[tuple[str, str]]()
    draws = f"{fit.n_chains} x {fit.n_draws}" + (f", each {settings.thin}th" if settings.thin > 1 else "")
    found.append(("draws", f"{draws}, after {settings.warmup} of warmup"))
    if not fit.is_fixed:
        found.append(("sampler", f"{settings.sampler}, metric {settings.metric}"))
        found.append(("step size", ", ".join(number_text(float(size), 3) for size in fit.step_size)))
    if "n_leapfrog" in fit.stats and fit.n_draws:
        found.append(("gradients per draw", number_text(float(fit.stats["n_leapfrog"].mean()), 3)))
    warmup, sampling = (float(time) for time in np.asarray(fit.seconds).max(axis=0))
    if fit.about.recipe.text:  # files of draws do not have it
        found.append(("compile time", seconds_text(fit.about.compile_seconds)))
    if np.isfinite([warmup, sampling]).all():
        found.append(("run time", f"{seconds_text(warmup)} warmup, {seconds_text(sampling)} draws (the slowest chain)"))
    return found


def fit_text(fit: SampleFit) -> str:
    """Table, facts, notes and diagnosis as plain text."""
    table = [str(fit.summary())] if fit.n_draws else []
    return "\n\n".join([*table, facts_text(facts(fit)), *fit.notes, str(fit.diagnose())])


def print_fit(fit: SampleFit, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
    """The same without the notes, by rich on a terminal; at most `limit` rows, all for None."""
    file = file or sys.stdout
    if fit.n_draws:
        fit.summary().print(limit, file)
        print(file=file)
    print(facts_text(facts(fit)), file=file)
    if fit.settings.keep:
        print(f"\n{fit.diagnose()}", file=file)


def fit_html(fit: SampleFit) -> str:
    """The same for notebooks, below whether the draws can be trusted and what to do first."""
    from ulam.runtime.html_report.verdict import TONES, verdict
    from ulam.runtime.markup import markup

    found = verdict(fit)
    first = f"<br>First: {markup(found.first)}" if found.first else ""
    style = f"border-left: 4px solid {TONES[found.level]}; padding: 2px 12px"
    table, diagnosis = (
        part._repr_html_()  # pyright: ignore[reportPrivateUsage]
        for part in (fit.summary(), fit.diagnose())
    )
    notes = "".join(f"<p>{markup(note)}</p>\n" for note in fit.notes)
    return (
        f'<p style="{style}"><b>{markup(found.sentence)}</b>{first}</p>\n{table if fit.n_draws else ""}\n'
        f"{html_table(('', ''), facts(fit))}\n{notes}{diagnosis}\n"
        "<p><small>report(&quot;fit.html&quot;) writes a page with traces, ranks and pairs.</small></p>"
    )


def fit_record(fit: SampleFit) -> dict[str, Any]:
    """What `SampleFit.to_dict` returns."""
    return {
        "schema_version": SCHEMA_VERSION,
        "method": "sample",
        "model": fit.about.name,
        "settings": asdict(fit.settings),
        "chains": fit.n_chains,
        "draws": fit.n_draws,
        "ended": fit.ended,
        "divergences": np.count_nonzero(fit.stats["divergent"], axis=1).tolist() if "divergent" in fit.stats else [],
        "step_size": np.asarray(fit.step_size).tolist(),
        "seconds": np.asarray(fit.seconds).tolist(),
        "summary": fit.summary().to_dict(),
        "diagnosis": fit.diagnose().to_dict(),
        "notes": list(fit.notes),
    }
