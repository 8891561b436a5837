"""A program that keeps the compiler's side of the interface, with its units written in C, to test the runtime alone.

data { int<lower=0> N; array[N] int<lower=0, upper=1> z; matrix[2, N] x; real s; }
parameters { real mu; real<lower=0> sigma; array[2] vector[3] a; }
transformed parameters { real v = sigma^2; }
model { mu ~ normal(sum(x), 1); target += -sigma; a ~ standard normal; mu > 100 is rejected }
generated quantities { matrix[2, 2] m = [[1, 2], [3, 4]]; real u = a uniform draw; }
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = r"""
#include <stdint.h>
#include <math.h>
typedef struct { void *state; uint64_t (*u64)(void *); uint32_t (*u32)(void *); double (*real)(void *); } bitgen;
typedef struct { char *cursor, *end; int64_t site; double values[4]; char *start; double value; int64_t length;
  bitgen *rng; } context;
typedef union { int32_t i; double d; void *p; int64_t word; } slot;
enum { N, Z, X, S, SUM };

static int32_t fail(context *ctx, int64_t site, double a, double b, int32_t status) {
  ctx->site = site; ctx->values[0] = a; ctx->values[1] = b; return status;
}

#ifdef SETUP
int32_t data_dims(context *ctx, slot *bound, int64_t k, int64_t *out) {
  switch (k) {
    case 1: out[0] = bound[N].i; break;
    case 2: out[0] = 2; out[1] = bound[N].i; break;
    case 4: case 5: out[0] = 1; break; /* of a parameter: also the number of unconstrained values */
    case 6: out[0] = 2; out[1] = 3; out[2] = 6; break;
    case 8: out[0] = 2; out[1] = 2; break;
  }
  return 0;
}
int32_t prepare(context *ctx, slot *bound) {
  const int32_t *z = bound[Z].p;
  for (int32_t i = 0; i < bound[N].i; i++)
    if (z[i] < 0 || z[i] > 1) return fail(ctx, 0, i + 1, z[i], 1);
  return 0;
}
#endif

#ifdef DENSITY
int32_t bind(context *ctx, slot *bound) {
  const double *x = bound[X].p;
  bound[SUM].d = 0;
  for (int32_t i = 0; i < 2 * bound[N].i; i++) bound[SUM].d += x[i];
  return 0;
}
static int32_t density(context *ctx, slot *bound, const double *t, double *g, int32_t jacobian, double *out) {
  double mu = t[0], sigma = exp(t[1]), target = 0;
  if (mu > 100) return fail(ctx, 0, mu, 0, 1);
  if (mu < -100) return fail(ctx, 1, 0, 0, 2);
  target += -0.5 * (mu - bound[SUM].d) * (mu - bound[SUM].d) - sigma;
  for (int i = 0; i < 6; i++) target -= 0.5 * t[2 + i] * t[2 + i];
  if (DENSITY == 2) target -= 7 * 0.91893853320467274178;
  if (jacobian) target += t[1];
  if (g) {
    g[0] = bound[SUM].d - mu;
    g[1] = -sigma + (jacobian ? 1 : 0);
    for (int i = 0; i < 6; i++) g[2 + i] = -t[2 + i];
  }
  *out = target;
  return 0;
}
#if defined(HESSIAN)
int32_t evaluate(context *ctx, slot *bound, const double *t, const double *v, double *g, double *hv, int32_t jacobian,
                 double *out) {
  hv[0] = -v[0];
  hv[1] = -exp(t[1]) * v[1];
  for (int i = 0; i < 6; i++) hv[2 + i] = -v[2 + i];
  return density(ctx, bound, t, g, jacobian, out);
}
#elif defined(GRADIENT)
int32_t evaluate(context *ctx, slot *bound, const double *t, double *g, int32_t jacobian, double *out) {
  return density(ctx, bound, t, g, jacobian, out);
}
#else
int32_t evaluate(context *ctx, slot *bound, const double *t, int32_t jacobian, double *out) {
  return density(ctx, bound, t, 0, jacobian, out);
}
#endif
#endif

#ifdef CONSTRAIN
int32_t bind(context *ctx, slot *bound) { return 0; }
int32_t evaluate(context *ctx, slot *bound, const double *t, double *out, int32_t tp, int32_t gq) {
  *out++ = t[0]; *out++ = exp(t[1]);
  for (int i = 0; i < 6; i++) *out++ = t[2 + i];
  if (tp) *out++ = exp(2 * t[1]);
  if (gq) {
    *out++ = 1; *out++ = 3; *out++ = 2; *out++ = 4;
    *out++ = ctx->rng->real(ctx->rng->state);
  }
  return 0;
}
#endif

#ifdef UNCONSTRAIN
int32_t evaluate(context *ctx, slot *bound, const double *in, double *t) {
  t[0] = in[0];
  if (!(in[1] >= 0)) return fail(ctx, 0, in[1], 0, 1);
  t[1] = log(in[1]);
  for (int i = 0; i < 6; i++) t[2 + i] = in[2 + i];
  return 0;
}
#endif
"""

DEFINITIONS = {
    "setup": ["SETUP"],
    "value_propto": ["DENSITY=1"],
    "value_full": ["DENSITY=2"],
    "gradient_propto": ["DENSITY=1", "GRADIENT"],
    "gradient_full": ["DENSITY=2", "GRADIENT"],
    "hessian_vector_propto": ["DENSITY=1", "HESSIAN"],
    "hessian_vector_full": ["DENSITY=2", "HESSIAN"],
    "constrain": ["CONSTRAIN"],
    "unconstrain": ["UNCONSTRAIN"],
    "locate": ["DENSITY=2"],
}


def variable(name: str, block: str, kind: str, slot: int | None = None, constraint: str = "none") -> dict[str, Any]:
    """`kind` is an unsized type such as `array[] int` or `matrix`."""
    prefix, _, base = kind.rpartition("] ") if kind.startswith("array") else ("", "", kind)
    return {
        "name": name,
        "block": block,
        "type": kind,
        "element": "int" if base == "int" else "real",
        "array_rank": prefix.count(",") + 1 if prefix else 0,
        "inner": "scalar" if base in ("int", "real") else base,
        "slot": slot,
        "constraint": constraint,
    }


GLOBALS = [
    variable("N", "data", "int", 0, "bounds"),
    variable("z", "data", "array[] int", 1, "bounds"),
    variable("x", "data", "matrix", 2),
    variable("s", "data", "real", 3),
    variable("mu", "parameters", "real"),
    variable("sigma", "parameters", "real", None, "bounds"),
    variable("a", "parameters", "array[] vector"),
    variable("v", "transformed_parameters", "real"),
    variable("m", "generated_quantities", "matrix"),
    variable("u", "generated_quantities", "real"),
]


def site(status: int, message: str, line: int, function: str = "") -> dict[str, Any]:
    return {"status": status, "message": message, "file": "c.stan", "line": line, "column": 3, "function": function}


SITES = {
    "setup": [site(1, "z[{0}] is {1}, but must be less than or equal to 1", 1)],
    "unconstrain": [site(1, "sigma is {0}, but must be greater than or equal to 0", 2)],
}
DENSITY_SITES = [site(1, "mu is {0}, but must be at most 100", 4, "normal_lpdf"), site(2, "index out of range", 5)]


@dataclass
class UnitInC:
    code: bytes
    sites: list[dict[str, Any]]
    n_slots: int = 5
    draws: bool = False
    pieces: tuple[()] = ()
    layouts: tuple[Any, ...] = ()


class ProgramInC:
    """Compiles units as shared libraries and counts them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def metadata(self) -> Mapping[str, Any]:
        return {"name": "c", "globals": GLOBALS}

    def compiled(self, name: str) -> UnitInC:
        self.asked.append(name)
        return UnitInC(_library(name), SITES.get(name, DENSITY_SITES))


@cache
def _library(name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "unit.c"), Path(folder, "unit.so")
        source.write_text(SOURCE)
        options = [f"-D{definition}" for definition in DEFINITIONS[name]]
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", *options, "-o", target, source, "-lm"], check=True)
        return target.read_bytes()


class Loaded:
    def __init__(self, code: bytes, externals: object = None) -> None:
        del externals
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(code)
            file.flush()
            self.library = ctypes.CDLL(file.name)

    def address(self, symbol: str) -> int:
        name = symbol.rpartition(".")[2]  # of one unit, whose name stands before it
        found = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        assert found is not None
        return found


DATA: dict[str, Any] = {"N": 3, "z": [0, 1, 1], "x": [[1, 2, 3], [4, 5, 6.5]], "s": 0.5}
SUM = 21.5
FULL_CONSTANT = 7 * -0.5 * math.log(2 * math.pi)
