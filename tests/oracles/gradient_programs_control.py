"""More of the table of `gradient_programs`: loops, branches, functions."""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

from gradient_programs import DATA, PROGRAMS, case, model, point, with_functions

__all__ = ["DATA", "PROGRAMS", "point"]

# ---------------------------------------------------------------- loops

model(
    "loop-carried-scalars",
    "real a; vector[N] v;",
    "real p = a; real q = 1; for (i in 1:N) { real t = p * q; p = q + v[i]; q = t * a; } target += p * q;",
)
model(
    "loop-carried-container",
    "vector[N] v; matrix[N, N] M;",
    "vector[N] u = v; for (i in 1:3) { u = M * u + sin(u); target += u[i]; } target += sum(square(u));",
)
model(
    "loop-carried-swapped-containers",
    "vector[N] v; vector[N] w;",
    "vector[N] p = v; vector[N] q = w; for (i in 1:5) { vector[N] t = p; p = q .* v; q = t + w; } target += sum(p .* q);",
)
model(
    "nested-loops-kept",
    "vector[N] v; matrix[N, K] M;",
    "real acc = 1; for (i in 1:N) { real inner = v[i]; for (j in 1:K) { inner = inner * M[i, j] + exp(inner * 0.1); acc += inner * acc * 0.1; } acc *= sin(inner); } target += acc;",
)
model(
    "triple-loops-kept",
    "vector[N] v;",
    "real acc = v[1]; for (i in 1:2) for (j in i:3) for (k in j:4) acc = sin(acc * v[k]) + v[i] * v[j]; target += acc; for (i in 1:2) { real t = 1; for (j in 1:i) { real w = t; for (k in 1:j) w *= v[k] + t; t += w; } target += t * t; }",
)
model(
    "loop-target-and-carry",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { p = p * v[i]; target += square(p - x[i]); v[i] ~ normal(p, 1); } target += p;",
)
model(
    "loop-zero-trips",
    "vector[N] v; real a;",
    "real p = a; vector[N] u = v; for (i in 1:Z) { p = p * v[1]; u[1] = p; } for (i in 5:3) { p = exp(p); u[i] = 2; } for (i in 3:2) for (j in 1:N) target += u[j]; target += p * u[1];",
)
model(
    "loop-bounds-change-inside",
    "real a;",
    "int n = 3; real p = a; for (i in 1:n) { n = 10; p *= a + i; } target += p + n;",
)
model(
    "loop-local-arrays-of-containers",
    "vector[N] v;",
    "real acc = 0; for (i in 1:N) { array[2] vector[2] q; for (j in 1:2) { q[j][1] = v[i] * j; q[j][2] = q[j][1] ^ 2; } acc += dot_product(q[1], q[2]); } target += acc ^ 2;",
)
model(
    "loop-index-as-value",
    "vector[N] v;",
    "real acc = 0; for (i in 2:N) { int k = i * 2 - 1; acc += v[i] * k + v[(k % N) + 1] / i; } target += acc ^ 2;",
)
model(
    "foreach-vector",
    "vector[N] v; row_vector[K] w; matrix[2, 3] M; array[3] real a;",
    "real p = 1; for (e in v) p = p * e + 1; for (e in w) p += e ^ 2; for (e in M) p = p * 0.5 + sin(e) * p; for (e in a) { target += e * p; p = e; } for (e in x) target += e * p; target += p;",
)
model(
    "foreach-array-of-containers",
    "array[3] vector[2] q; array[2] matrix[2, 2] M; array[2, 2] real a;",
    "vector[2] acc = [1, 2]'; for (e in q) acc = acc .* e + 1; for (m in M) acc = m * acc; for (row in a) for (e in row) acc *= e + 1; target += sum(square(acc)); for (k in jdx) target += k * acc[1];",
)
with_functions(
    "loop-prefix-sum-feeds-sum",
    "real f(vector w, real a) { real t = 0; for (i in 1:num_elements(w)) t += square(w[i] - a) * exp(w[i]); return t; }",
    "vector[N] v; real a;",
    "target += f(cumulative_sum(v), a); target += f(cumulative_sum(v .* x), a);",
)
model(
    "while-counted",
    "real a; vector[N] v;",
    "int i = 1; real p = a; while (i <= N) { p = p * v[i] + sin(p); i += 1; } target += p ^ 2;",
)
model(
    "while-on-parameters",
    "real<lower=0> a; real c;",
    "real p = a; int n = 0; while (p < 20) { p = p * 1.7 + c * p * 0.1 + 0.5; n += 1; } target += p ^ 2 + n;",
)
model(
    "while-with-container",
    "vector[N] v; real<lower=0> a;",
    "vector[N] u = v; real p = a; while (p < 9) { u[1] = u[1] * u[2] + p; u[2:3] = u[3:4] .* v[1:2]; p = p * 2 + 0.1; } target += sum(square(u)) + p;",
)
model(
    "while-carried-whole-container",
    "vector[N] v; real<lower=0> a;",
    "vector[N] u = v; real p = a; while (p < 10) { u = sin(u) .* v + p; p = 2 * p + 0.1; } target += sum(u);",
)
model("while-zero-trips", "real a;", "real p = a; while (p > 100) p = p * a; target += p ^ 2;")
model(
    "while-nested",
    "real<lower=0> a; vector[N] v;",
    "real p = a; int i = 0; while (i < 3) { real q = p; int j = 0; while (j < i) { q = q * v[j + 1] + sin(p); j += 1; } p += sin(q); i += 1; } target += p;",
)
model(
    "while-in-for-and-for-in-while",
    "vector[N] v; real<lower=0> a;",
    "real p = a; for (i in 1:3) { int j = i; while (j > 0) { p = p * sin(v[i]) + j; j -= 1; } } int m = 0; while (m < 2) { for (i in 1:N) p = sin(p) * v[i] + p; m += 1; } target += p;",
)
model(
    "while-target",
    "vector[N] v; real a;",
    "int i = 1; while (i <= N) { target += square(v[i] - a); v[i] ~ normal(a, 2); i += 1; }",
)
model(
    "break-in-for",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:10) { if (p > 5) break; p = p * 1.5 + square(v[1 + i % N]) + 0.3; } target += p ^ 2;",
)
model(
    "continue-in-for",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { if (v[i] < 0) continue; p = p * v[i] + 1; target += p; } target += p ^ 2;",
)
model(
    "break-and-continue-nested",
    "matrix[N, K] M; real a;",
    "real p = a; for (i in 1:N) { for (j in 1:K) { if (M[i, j] < -0.6) break; if (M[i, j] < -0.2) continue; p = p * (1 + 0.1 * M[i, j]) + 1; } if (p > 30) break; } target += p;",
)
model(
    "break-in-while",
    "real<lower=0> a;",
    "real p = a; int n = 0; while (1) { n += 1; if (p > 10) break; if (n == 2) { p += a; continue; } p = p * p + 1; } target += p;",
)
model(
    "break-with-partial-assignment",
    "vector[N] v;",
    "vector[N] u = rep_vector(1, N); for (i in 1:N) { u[i] = v[i] ^ 2; if (i == 3) break; u[i] = u[i] * v[1]; } target += sum(u .* v);",
)
model(
    "break-in-foreach",
    "vector[N] v; array[3] vector[2] q;",
    "real p = 0; for (e in v) { if (e > 2) break; if (e < 0) continue; p += e * e; } for (w in q) { p += sum(w) * p; if (p > 1e3) break; } target += p;",
)
model(
    "branch-active",
    "real a; real c;",
    "real p; if (a < c) p = a * a; else p = exp(c); if (p > 0.2) { p *= c; } else if (p > 0.1) { p += a; } target += p ^ 2; if (a > 0) target += a * c; else { real t = c ^ 2; target += t * a; }",
)
model(
    "branch-active-containers",
    "vector[N] v; real a;",
    "vector[N] u; if (a < 0) { u = v .* v; } else { vector[N] t = exp(v); u = t + a; } vector[N] w = u; if (v[1] > 0) w = u .* u; target += sum(w) + sum(u);",
)
model(
    "branch-in-loop-kept",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { if (v[i] * p > 0) { real t = sin(p); p = t * v[i] + t ^ 2; } else { p = p * p + v[i]; } } target += p;",
)
model(
    "branch-on-data-in-loop",
    "vector[N] v; real a;",
    "for (i in 1:N) { if (b[i] == 1) target += log_inv_logit(a * v[i]); else if (y[i] > 1) y[i] ~ poisson_log(v[i]); else target += square(v[i] - a); }",
)
model(
    "blocks-and-shadowing",
    "real a; vector[N] v;",
    "real p = a; { real q = p * 2; { vector[N] u = v * q; p += sum(u); } p *= q; } { real q = p; target += q ^ 2; }",
)
model(
    "active-and-data-mixed-branch",
    "vector[N] v; real a;",
    "vector[N] u; if (s > 10) u = v; else u = x; vector[N] w; if (a < 0.2) w = x; else w = v .* x; target += sum(u .* v) + sum(square(w)); real p = 1; if (a > 0.1) p = a; target += p * p;",
)
model(
    "container-data-then-active-in-loop",
    "vector[N] v;",
    "vector[N] u = x; for (i in 1:3) { target += sum(u); u = u .* v; } vector[N] w = x; for (i in 1:2) w = w + x; target += sum(w .* v);",
)

# ---------------------------------------------------------------- functions

with_functions(
    "function-simple",
    "real f(real a, vector v) { return a * sum(v .* v); }",
    "real a; vector[N] v;",
    "target += f(a, v) + f(2, v) + f(a, x) + f(s, x) + f(f(a, v), v + 1);",
)
with_functions(
    "function-early-return",
    """
real f(real a) { if (a > 0.3) return a ^ 2; if (a > 0) { return exp(a); } else { real t = a * 3; if (t < -1) return t; } return sin(a); }
""",
    "vector[N] v; real a;",
    "for (i in 1:N) target += f(v[i]) * i; target += f(a) * f(-a);",
)
with_functions(
    "function-return-in-loop",
    """
real first_above(vector v, real t) { for (i in 1:num_elements(v)) { if (v[i] > t) return v[i] * t; for (j in 1:2) if (v[i] * j > 0.9) return v[i] ^ 2; } return t ^ 2; }
real steps(real a) { real p = a; while (p < 50) { p = p * 2 + 1; if (p > 13) return p * a; } return p; }
""",
    "vector[N] v; real<lower=0> a;",
    "target += first_above(v, 0.1) + first_above(v, 100) * a + first_above(x, a) + steps(a) + steps(60 * a);",
)
with_functions(
    "function-returns-containers",
    """
vector f(vector v, int n) { vector[n] u; for (i in 1:n) u[i] = v[i] * v[n + 1 - i]; return u; }
matrix g(vector v) { return v * v'; }
array[] vector h(vector v) { return {v, 2 * v, v .* v}; }
tuple_real(vector v) 
""".replace("tuple_real(vector v) \n", ""),
    "vector[N] v;",
    "target += sum(square(f(v, 3))) + sum(square(g(v) * f(f(v, N), N))) + sum(h(v)[3]) + sum(h(v[2:3])[2] .* v[:2]);",
)
with_functions(
    "function-void-and-lp",
    """
void check(real a) { if (a > 1e6) reject("too large: ", a); }
void add_lp(vector v, real m) { target += sum(square(v)) * m; v ~ normal(m, 2); }
real get_lp(real a) { target += a ^ 2; a ~ std_normal(); return a * 3; }
""",
    "vector[N] v; real a;",
    "check(a); add_lp(v, a); add_lp(x, a); real p = get_lp(a); target += p * get_lp(p); for (i in 1:2) add_lp(v[i:i + 1], v[i]);",
)
with_functions(
    "while-condition-adds-to-target",
    """
real half_lp(real x) { target += -x ^ 2; return x * 0.5; }
vector halves_lp(vector x) { target += -dot_self(x); return 0.5 * x; }
""",
    "vector[N] v; real a;",
    "real p = exp(a) + 2; while (half_lp(p) > 0.1) p *= 0.7; vector[N] u = v + 3; while (sum(halves_lp(u)) > 1) u = halves_lp(u) * 0.7; while (target() > -200 && half_lp(u[1]) < 40) { u *= 2; target += -u[1] * a; } while (half_lp(p) > 0.01) { p *= 0.5; while (half_lp(a + 3) + p > 2.2) p *= p; } target += u[2] * p;",
)
with_functions(
    "function-user-density",
    """
real mine_lpdf(vector v, real m, real t) { return normal_lpdf(v | m, t) + normal_lupdf(v | m, 1) - t ^ 2; }
real other_lpdf(real v, vector m) { real acc = 0; for (i in 1:num_elements(m)) acc += cauchy_lupdf(v | m[i], 1.5); return acc; }
real plain_lpmf(array[] int n, real l) { return poisson_lupmf(n | l) + poisson_lpmf(n | 2 * l); }
""",
    "vector[N] v; real a; real<lower=0> t;",
    "v ~ mine(a, t); target += mine_lpdf(v | a, t) + mine_lupdf(x | a, t); a ~ other(v); target += other_lupdf(a | x); y ~ plain(t); target += plain_lpmf(y | t) + plain_lupmf(y | 3.5);",
)
with_functions(
    "function-calls-functions",
    """
real sq(real a) { return a * a; }
real both(real a, real c) { real t = sq(a) + sq(c); return t > 1 ? sq(t) : t; }
vector map_(vector v, real a) { vector[num_elements(v)] u = v; for (i in 1:num_elements(v)) u[i] = both(u[i], a); return u; }
""",
    "vector[N] v; real a;",
    "target += sum(map_(v, a)) + sum(map_(map_(v, 1), a)) + both(a, 3);",
)
with_functions(
    "function-argument-is-variable",
    "real f(vector u, vector v) { return dot_product(u, v); }\nvector g(vector u) { vector[num_elements(u)] w = u; w[1] = w[2] * 2; return w; }",
    "vector[N] v;",
    "vector[N] u = v; u[1] = 2; real p = f(u, u); u[2] = v[1] * p; vector[N] q = g(u); u[2] = 0.5; target += f(u, q) + f(q[1:2], u[2:3]); u = g(u); target += sum(u);",
)
with_functions(
    "function-data-argument",
    "real f(data vector u, vector v, data real c) { return dot_product(u, v) * c; }",
    "vector[N] v;",
    "target += f(x, v, s) + f(x, v .* v, 2);",
)
with_functions(
    "function-int-results",
    "int count_(vector v) { int n = 0; for (e in v) if (e > 0) n += 1; return n; }\narray[] int order_(int n) { array[n] int k; for (i in 1:n) k[i] = n + 1 - i; return k; }",
    "vector[N] v;",
    "target += count_(v) * v[1] + sum(v[order_(3)] .* v[1:3]) + v[count_(x)];",
)
with_functions(
    "function-arrays-of-containers",
    "real f(array[] vector q, array[,] real a) { real t = 0; for (i in 1:size(q)) t += sum(q[i]) * a[i, 1]; return t; }\narray[,] real g(real a) { return {{a, 2 * a}, {a ^ 2, 1}}; }",
    "array[2] vector[3] q; real a;",
    "target += f(q, g(a)) + f({q[2], q[1]}, {{1, 2}, {a, 3}});",
)
with_functions(
    "function-many-locals",
    "real f(real a, real c) { real p = a; real q = c; for (i in 1:3) { real t = p * q; if (t > 0) { q = p + 1; p = t; } else { p = q * q; q = t - 1; } } return p * q; }",
    "real a; real c;",
    "target += f(a, c) * f(c, a); real z = 0; for (i in 1:2) z = f(sin(z), a); target += z * 1e-3;",
)

# ---------------------------------------------------------------- target

model(
    "target-of-containers",
    "vector[N] v; matrix[N, K] M; array[3] real a; row_vector[K] w;",
    "target += v; target += M .* A; target += a; target += w .* w; target += exp(v); target += {v[1] ^ 2, v[2]}; target += append_row(v, v);",
)
model(
    "target-in-branches-and-loops",
    "vector[N] v; real a;",
    "if (a > -5) { target += a ^ 2; for (i in 1:N) { if (v[i] > 0) target += v[i] ^ 3; else for (j in 1:i) target += v[j] * a; } }",
)
model(
    "target-read",
    "real a; vector[N] v;",
    "target += a ^ 2; target += target() * a; for (i in 1:N) { v[i] ~ normal(a, 1); } if (target() > -1000) target += target() ^ 2 * 0.01;",
)
model("target-unused-parameter", "real a; real unused; vector[N] nothing; real<lower=0> positive;", "target += a ^ 2;")
model("target-empty-model", "real a; real<lower=0, upper=2> c;", "")
model("parameters-none-active", "real a;", "target += s * sum(x); x ~ normal(0, 1);")
model(
    "zero-size-containers",
    "vector[Z] e; matrix[Z, 3] E; matrix[3, Z] F; array[Z] vector[2] q; simplex[1] one; real a;",
    "target += sum(e) + sum(E * F * E) + sum(F * E) * a + a ^ 2; e ~ normal(a, 1); for (k in q) target += sum(k); for (t in e) target += t; target += dot_product(e, e) + log_sum_exp(append_row(e, a)); vector[Z] u = e .* e; u[1:Z] = e; target += sum(u[:Z]);",
)
case("no-parameters", "model { target += sum(x) + normal_lpdf(s | 0, 1); }\n")
