"""Programs of the trace tests, and what their traces look like."""

PROGRAM = """functions {
  real f(real x) { return sin(x) + x; }
  real zero(real x) { return 0.0; }
  real h(real x, int n) {
    int i = 0;
    real r = zero(x);
    while (i < n) {
      r += x ^ i;
      i += 1;
    }
    return r;
  }
  real rand_rng() { return uniform_rng(0, 1); }
  int geom_rng(int n, real beta) {
    if (rand_rng() < beta)
      return n;
    else
      return geom_rng(n + 1, beta);
  }
  int geomt_rng(int n, real beta) {
    return rand_rng() < beta ? n : geomt_rng(n + 1, beta);
  }
  int geomb_rng(int n, real beta) {
    return bernoulli_rng(beta) ? n : geomb_rng(n + 1, beta);
  }
}
"""

# Containers that are read, changed and handed on.
READING = """functions {
  vector g(vector x, matrix A) {
    vector[rows(A)] y = A * x;
    for (i in 1:rows(A)) if (y[i] > 1) y[i] = exp(-y[i]);
    return y;
  }
  real top(vector x, matrix A, array[] int n) {
    real s = 0;
    for (k in n) s += sum(g(x, A)) * k;
    return s;
  }
}
"""

UNIFORMS = [0.7595635877474407, 0.8639835284162187, 0.25]

F = """\
⟨f⟩(⟨1.0⟩) = 1.8414709848078965
  @1: [Arg:§1:%1] f
  @2: [Arg:§1:%2] 1.0
  @3: [§1:%3] ⟨sin⟩(@2) = 0.8414709848078965
  @4: [§1:%4] ⟨+⟩(@3, @2) = 1.8414709848078965
  @5: [§1:&1] return @4 = 1.8414709848078965"""

H = """\
⟨h⟩(⟨2.0⟩, ⟨2⟩) = 3.0
  @1: [Arg:§1:%1] h
  @2: [Arg:§1:%2] 2.0
  @3: [Arg:§1:%3] 2
  @4: [§1:%4] ⟨zero⟩(@2) = 0.0
  @5: [§1:&1] goto §2 (⟨0⟩, @4)
  @6: [Arg:§2:%5] @5#1 = 0
  @7: [Arg:§2:%6] @5#2 = 0.0
  @8: [§2:%7] ⟨<⟩(@6, @3) = true
  @9: [§2:&2] goto §3
  @10: [§3:%8] ⟨^⟩(@2, @6) = 1.0
  @11: [§3:%9] ⟨+⟩(@7, @10) = 1.0
  @12: [§3:%10] ⟨+⟩(@6, ⟨1⟩) = 1
  @13: [§3:&1] goto §2 (@12, @11)
  @14: [Arg:§2:%5] @13#1 = 1
  @15: [Arg:§2:%6] @13#2 = 1.0
  @16: [§2:%7] ⟨<⟩(@14, @3) = true
  @17: [§2:&2] goto §3
  @18: [§3:%8] ⟨^⟩(@2, @14) = 2.0
  @19: [§3:%9] ⟨+⟩(@15, @18) = 3.0
  @20: [§3:%10] ⟨+⟩(@14, ⟨1⟩) = 2
  @21: [§3:&1] goto §2 (@20, @19)
  @22: [Arg:§2:%5] @21#1 = 2
  @23: [Arg:§2:%6] @21#2 = 3.0
  @24: [§2:%7] ⟨<⟩(@22, @3) = false
  @25: [§2:&1] goto §4 since @24 == false
  @26: [§4:&1] return @23 = 3.0"""

ZERO_INSIDE = """\
    @1: [Arg:§1:%1] zero
    @2: [Arg:§1:%2] 2.0
    @3: [§1:&1] return ⟨0.0⟩"""

GEOM = """\
⟨geom_rng⟩(⟨1⟩, ⟨0.5⟩) = 3
  @1: [Arg:§1:%1] geom_rng
  @2: [Arg:§1:%2] 1
  @3: [Arg:§1:%3] 0.5
  @4: [§1:%4] ⟨rand_rng⟩() = 0.7595635877474407
    @1: [Arg:§1:%1] rand_rng
    @2: [§1:%2] ⟨uniform_rng⟩(⟨0.0⟩, ⟨1.0⟩) = 0.7595635877474407
    @3: [§1:&1] return @2 = 0.7595635877474407
  @5: [§1:%5] ⟨<⟩(@4, @3) = false
  @6: [§1:&1] goto §3 since @5 == false
  @7: [§3:%6] ⟨+⟩(@2, ⟨1⟩) = 2
  @8: [§3:%7] ⟨geom_rng⟩(@7, @3) = 3
    @1: [Arg:§1:%1] geom_rng
    @2: [Arg:§1:%2] 2
    @3: [Arg:§1:%3] 0.5
    @4: [§1:%4] ⟨rand_rng⟩() = 0.8639835284162187
    @5: [§1:%5] ⟨<⟩(@4, @3) = false
    @6: [§1:&1] goto §3 since @5 == false
    @7: [§3:%6] ⟨+⟩(@2, ⟨1⟩) = 3
    @8: [§3:%7] ⟨geom_rng⟩(@7, @3) = 3
    @9: [§3:&1] return @8 = 3
  @9: [§3:&1] return @8 = 3"""

GEOM_TERNARY = """\
⟨geomt_rng⟩(⟨1⟩, ⟨0.5⟩) = 3
  @1: [Arg:§1:%1] geomt_rng
  @2: [Arg:§1:%2] 1
  @3: [Arg:§1:%3] 0.5
  @4: [§1:%4] ⟨rand_rng⟩() = 0.7595635877474407
  @5: [§1:%5] ⟨<⟩(@4, @3) = false
  @6: [§1:&1] goto §3 since @5 == false
  @7: [§3:%6] ⟨+⟩(@2, ⟨1⟩) = 2
  @8: [§3:%7] ⟨geomt_rng⟩(@7, @3) = 3
  @9: [§3:&1] goto §4 (@8)
  @10: [Arg:§4:%8] @9#1 = 3
  @11: [§4:&1] return @10 = 3"""

GEOM_ONE_LEVEL = "\n".join(line for line in GEOM.split("\n") if not line.startswith("    "))
