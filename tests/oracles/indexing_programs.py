"""Random Stan programs full of indexing, with data that fit and data that do not: sizes of 0, -1 and 2^31 - 1, indices
that are out of range.

    program = indexing_program(seed)         # always the same for a seed
    program.text, program.data               # one mapping that fits, then hostile ones

Sizes have names: `N` and `M` of data containers, `K`, `L` and `P` of parameters and local variables only, so that data
of any size can be given. Forms are tables by type; in `<vector s>`, `s` is one of these names, and all forms of a type
and size fit each other if data do. Letters that a form does not bind stand for any size. Now and then a size is
exchanged for another, on purpose.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source

DATA_SIZES = ("N", "M")
SIZES = (*DATA_SIZES, "K", "L", "P")
BENIGN = (2, 3, 5)
HOSTILE = (0, -1, 1, 2**31 - 1)
HOSTILE_INDICES = (0, -1, 1, 3, 4, 6, 7, 2**31 - 1, -(2**31))
HAZARD = 0.015
"""How often a size stands where another should."""

# What is declared of each type; s and t are sizes.
_DECLARED = {
    "int": "int {}", "real": "real {}", "vector": "vector[<s>] {}", "row": "row_vector[<s>] {}", "matrix": "matrix[<s>, <t>] {}", "ints": "array[<s>] int {}",
    "reals": "array[<s>] real {}", "vectors": "array[<s>] vector[<t>] {}", "grid": "array[<s>, <t>] real {}", "rows": "array[<s>] row_vector[<t>] {}",
    "matrices": "array[2] matrix[<s>, <t>] {}", "pair": "tuple(vector[<s>], int) {}",
}  # fmt: skip
_RANK = {"int": 0, "real": 0, "vector": 1, "row": 1, "ints": 1, "reals": 1, "pair": 1} | dict.fromkeys(
    ("matrix", "vectors", "grid", "rows", "matrices"), 2)  # fmt: skip

_FORMS: dict[str, Sequence[str]] = {
    "real": (
        "<vector s>[<index s>]", "<vector s>[<index s>]", "<row s>[<index s>]", "<matrix s t>[<index s>, <index t>]", "<vectors s t>[<index s>, <index t>]", "<vectors s t>[<index s>][<index t>]",
        "<reals s>[<index s>]", "<grid s t>[<index s>, <index t>]", "<grid s t>[<index s>][<index t>]", "<matrices s t>[<half>, <index s>, <index t>]", "<rows s t>[<index s>][<index t>]",
        "<matrix s t>[<index s>][<index t>]", "<pair s>.1[<index s>]", "sum(<vector s>)", "sum(<vector s>[<range s>])", "sum(<vector s>[<part s>])", "sum(<matrix s t>[<part s>, <index t>])", "sum(<matrix s t>)", "sum(<reals s>)", "dot_product(<vector s>, <vector s>)", "dot_self(<vector s>)",
        "log_sum_exp(<vector s>)", "(<row s> * <vector s>)", "(<real> + <real>)", "(<real> * <real>)", "sin(<real>)", "tanh(<real>)", "max(<vector s>)", "min(<reals s>)", "mean(<vector s>)", "sd(<vector s>)",
        "trace(<matrix s s>)", "quad_form(<matrix s s>, <vector s>)", "quad_form_sym(add_diag(tcrossprod(<matrix s s>), 1), <vector s>)", "log_determinant(add_diag(tcrossprod(<matrix s t>), 1.5))", "determinant(<matrix s s>)", "norm2(<vector s>)", "distance(<vector s>, <vector s>)",
        "trace_quad_form(<matrix s s>, <matrix s t>)", "<vector s>[<multi s>][<index t>]", "<matrix s t>[<range s>, <index t>][1]", "<vector s>[<range s>][<half>]", "variance(<reals s>)",
        "mine(<vector s>, <int>)", "picked(<matrix s t>, <ints s>, <int>)", "(<int> > <int> ? <real> : <real>)", "<real>", "log_mix(0.3, <real>, <real>)", "rank(<vector s>, <index s>) * 0.1",
        "trace_gen_quad_form(<matrix t t>, <matrix s s>, <matrix s t>)", "to_array_1d(<grid s t>)[<index s>]", "to_vector(<matrix s t>)[<index s>]", "prod(<vector s>)", "log_softmax(<vector s>)[<index s>]",
    ),
    "vector": (
        "(<vector s> + <vector s>)", "(<vector s> .* <vector s>)", "(<real> * <vector s>)", "sin(<vector s>)", "(<matrix s t> * <vector t>)", "<matrix s t>[, <index t>]", "<matrix s t>[:, <index t>]", "<matrix t s>[<index t>]'",
        "<matrix t s>[<index t>, :]'", "<vector t>[<ints s>]", "<vector t>[<ints s>]", "<vector s>[<multi s>]", "<vector s>[<ints s>[<range s>]]", "<vectors t s>[<index t>]", "<vectors t s>[<index t>]", "<vectors t s>[<index t>, :]", "<matrices s t>[<half>][, <index t>]", "to_vector(<reals s>)", "to_vector(<grid s t>[, <index t>])",
        "rep_vector(<real>, <s>)", "cumulative_sum(<vector s>)", "reverse(<vector s>)", "softmax(<vector s>)", "sort_asc(<vector s>)", "diagonal(<matrix s s>)", "<row s>'", "append_row(<vector s>[1:<s> - 1], <real>)", "append_row(<real>, <vector s>[2:])", "append_row(head(<vector s>, <s> - <half>), tail(<vector s>, <half>))",
        "segment(append_row(<vector t>, <vector s>), <index t>, <s>)", "head(append_row(<vector s>, <vector t>), <s>)", "tail(append_row(<vector t>, <vector s>), <s>)", "sub_col(<matrix s u>, 1, <index u>, <s>)", "col(<matrix s t>, <index t>)", "<vectors t s>[<multi t>][<index t>]", "<matrix t s>[<multi t>][<index t>]'",
        "(<real> > 0 ? <vector s> : <vector s>)", "rows_dot_product(<matrix s t>, <matrix s t>)", "columns_dot_self(<matrix t s>)'", "mdivide_left_spd(add_diag(tcrossprod(<matrix s t>), 1.5), <vector s>)", "mdivide_left_tri_low(add_diag(cholesky_decompose(add_diag(tcrossprod(<matrix s t>), 1)), 0.1), <vector s>)",
        "block(<matrix s u>, 1, <index u>, <s>, 1)[, 1]", "linspaced_vector(<s>, 0, 1)", "one_hot_vector(<s>, <index s>)", "<pair s>.1", "shifted(<vector s>, <int>)", "shifted(<vector s>, <int>)", "filled(<s>, <real>)", "(<vector s> - mean(<vector s>))", "sparse(<matrix s t>, <vector t>)",
        "eigenvalues_sym(add_diag(tcrossprod(<matrix s t>), 1))", "(<matrix t s>' * <vector t>)", "(<vector s> / 2)[1:<s>]", "append_row(<vector t>, <vector s>)[<t> + 1 : ]", "<vector s>", "cholesky_decompose(add_diag(tcrossprod(<matrix s t>), 2)) * <vector s>",
        "head(append_row(<vector s>, <vector t>), <s>)", "(<vectors t s>[<index t>] + <vector s>)", "to_vector(<rows t s>[<index t>])", "qr_thin_Q(append_row(add_diag(crossprod(<matrix t s>), 1), <matrix t s>))[1]'",
    ),
    "row": ("<vector s>'", "<matrix t s>[<index t>]", "<matrix t s>[<index t>, ]", "(<row s> + <row s>)", "(<row t> * <matrix t s>)", "row(<matrix t s>, <index t>)", "<rows t s>[<index t>]", "<row t>[<ints s>]", "rep_row_vector(<real>, <s>)", "to_row_vector(<reals s>)", "append_col(<row s>[:<s> - 1], <real>)", "sub_row(<matrix t s>, <index t>, 1, <s>)", "reverse(<row s>)"),
    "matrix": (
        "(<matrix s t> + <matrix s t>)", "(<real> * <matrix s t>)", "(<matrix s u> * <matrix u t>)", "<matrix t s>'", "(<vector s> * <row t>)", "<matrix u t>[<ints s>]", "<matrix u t>[<ints s>, ]", "<matrix s u>[, <ints t>]", "<matrix u t>[<ints s>, :]", "<matrix s t>[<multi s>, <multi t>]", "<matrices s t>[<half>]", "rep_matrix(<real>, <s>, <t>)", "rep_matrix(<vector s>, <t>)", "rep_matrix(<row t>, <s>)",
        "diag_pre_multiply(<vector s>, <matrix s t>)", "diag_post_multiply(<matrix s t>, <vector t>)", "sin(<matrix s t>)", "(<matrix s t> .* <matrix s t>)", "to_matrix(<grid s t>)", "to_matrix(to_vector(<matrix t s>), <s>, <t>)", "append_col(<matrix s t>[, 1:<t> - 1], <vector s>)", "append_row(<row t>, <matrix s t>[2:, ])", "block(append_row(<matrix u t>, <matrix s t>), <index u>, 1, <s>, <t>)", "<matrix s t>[1:<s>, :<t>]",
        "mdivide_left_spd(add_diag(tcrossprod(<matrix s u>), 1.5), <matrix s t>)", "mdivide_right(<matrix s t>, add_diag(tcrossprod(<matrix t u>), 2))", "multiply_lower_tri_self_transpose(<matrix s s>)[, rep_array(1, <t>)]", "gp_exp_quad_cov(<reals s>, <reals t>, 1.1, 0.7)", "<matrix s t>", "columns_of(<matrix s t>, <ints t>)", "add_diag(<matrix s t>, <real>)", "cov_exp(<vector s>)[, rep_array(<index s>, <t>)]", "(<matrix s t> - <matrix s t>)[<range s>, <range t>]",
    ),
    "int": ("<s>", "<s>", "1", "2", "3", "<index s>", "(<int> + 1)", "(<int> - 1)", "(<int> * <int>)", "<ints s>[<index s>]", "size(<vectors s t>)", "rows(<matrix s t>)", "cols(<matrix s t>)", "num_elements(<grid s t>)", "min({<int>, <int>})", "max(<ints s>)", "sum(<ints s>)", "(<int> %/% 2)", "abs(<int>)", "<pair s>.2", "size(<vector s>[<range s>])", "dims(<matrix s t>)[2]", "(<int> > 1)"),
    "ints": ("<ints s>[<multi s>]", "rep_array(<half>, <s>)", "<ints t>[<ints s>]", "reverse(<ints s>)", "sort_desc(<ints s>)", "<ints s>", "append_array(<ints s>[1:<s> - 1], {<half>})", "segment(append_array(<ints t>, <ints s>), <index t>, <s>)", "sort_asc(<ints s>)"),
    "reals": ("to_array_1d(<vector s>)", "<grid t s>[<index t>]", "rep_array(<real>, <s>)", "<reals t>[<ints s>]", "sin(<reals s>)", "sort_asc(<reals s>)", "reverse(<reals s>)", "<grid s t>[, <index t>]", "<reals s>[<range s>]", "to_array_1d(<row s>)", "append_array(<reals s>[2:], {<real>})", "<vectors s t>[, <index t>]"),
    "vectors": ("<vectors u t>[<ints s>]", "rep_array(<vector t>, <s>)", "<vectors s u>[, <ints t>]", "<vectors s t>[<multi s>, <multi t>]", "<vectors s t>", "each(<vectors s t>, <real>)", "<vectors s t>[<range s>]"),
    "grid": ("<grid u t>[<ints s>]", "rep_array(<real>, <s>, <t>)", "<grid s t>[<multi s>, <multi t>]", "to_array_2d(<matrix s t>)", "rep_array(<reals t>, <s>)", "<grid s t>", "sin(<grid s t>)"),
    "rows": ("<rows u t>[<ints s>]", "rep_array(<row t>, <s>)", "<rows s t>[<range s>, <range t>]", "<rows s t>"),
    "matrices": ("<matrices s t>[{2, 1}]", "{<matrix s t>, <matrix s t>}", "rep_array(<matrix s t>, 2)", "<matrices s t>[, <multi s>, <multi t>]"),
    "pair": ("(<vector s>, <index s>)", "<pair s>"),
    # indices that fit a size if the data do
    "index": ("1", "1", "2", "<s>", "(1 + abs(<int>) % <s>)", "min({<s>, max({1, <int>})})", "<ints s>[<index s>]", "<ints t>[<index t>]", "(<s> - 1)", "(<s> - <index s> + 1)"),
    "half": ("1", "2"),
    "multi": ("<ints s>", ":", "linspaced_int_array(<s>, 1, <s>)", "sort_indices_desc(<vector s>)", "rep_array(<index s>, <s>)", "1:<s>"),
    "range": (":", "1:<s>", "1:", ":<s>", "1 : <s> %/% 1", "min({1, <s>}):<s>"),
    "part": ("<s>:<s>", "<s>:", "<index s>:<s>", "<index s>:", ":<index s>", "<index s>:<index s>", "<s> - 1:<s>"),
}  # fmt: skip
_FORMS["reals"] = [form for form in _FORMS["reals"] if not form.startswith("<vectors s t>[,")]
_FORMS["grid"] = [form for form in _FORMS["grid"] if "to_array_2d" not in form and not form.startswith("sin")]
_LEAVES = {
    "int": ("1", "2", "3"), "real": ("0.3", "-0.7", "p"), "vector": ("rep_vector(0.4, <s>)", "linspaced_vector(<s>, -1, 1)"), "row": ("rep_row_vector(0.4, <s>)",), "matrix": ("rep_matrix(0.2, <s>, <t>)",),
    "ints": ("rep_array(1, <s>)", "rep_array(2, <s>)"), "reals": ("rep_array(0.1, <s>)",), "vectors": ("rep_array(rep_vector(p, <t>), <s>)",), "grid": ("rep_array(0.6, <s>, <t>)",), "rows": ("rep_array(rep_row_vector(p, <t>), <s>)",),
    "matrices": ("rep_array(rep_matrix(p, <s>, <t>), 2)",), "pair": ("(rep_vector(p, <s>), 2)",), "index": ("1", "2", "<s>"), "half": ("1", "2"), "multi": (":", "1:<s>"), "range": (":", "1:<s>"), "part": ("<s>:", ":<s>"),
}  # fmt: skip

_STATEMENTS = (
    "<:vector s>[<index s>] = sin(<real>);", "<:vector s>[<index s>] += <real>;", "<:vector s> = sin(<vector s>);", "<:vector s>[2:<s>] = <same>[1:<s> - 1];", "<:vector s>[1:<s> - 1] = <same>[2:];", "<:vector s>[<ints s>] = <same>;", "<:vector s>[<multi s>] = <vector s>;", "<:vector s>[<range s>] = tanh(<vector s>);", "<:vector s>[<s>:<s>] = rep_vector(<real>, 1);",
    "<:vector s>[<ints t>] = <vector t>;", "<:vector s>[{2, 1}] = <same>[1:2];", "<:vector s> = reverse(<same>);", "<:vector s>[<ints s>] = <same>[<ints s>];",
    "<:row s>[<index s>] = <real>;", "<:row s>[<multi s>] = <row s>;", "<:matrix s t>[<index s>, <index t>] = sin(<real>);", "<:matrix s t>[<index s>, <index t>] += <real>;", "<:matrix s t>[<index s>] = <row t>;", "<:matrix s t>[<index s>, ] = <row t>;", "<:matrix s t>[, <index t>] = <vector s>;", "<:matrix s t>[<index s>][<index t>] = <real>;",
    "<:matrix s t>[<multi s>, <multi t>] = <matrix s t>;", "<:matrix s t>[2:<s>, ] = <same>[1:<s> - 1, ];", "<:matrix s t>[<ints s>] = <matrix s t>;", "<:matrix s t>[<range s>, <index t>] = <vector s>;", "<:matrix s t>[<index s>, <multi t>] = <row t>;", "<:matrix s s> = <same>';", "<:matrix s t>[, {2, 1}] = <same>[, 1:2];", "<:matrix s t>[1:2, 1:2] = <same>[{2, 1}, {1, 2}];",
    "<:ints s>[<index s>] = <half>;", "<:ints s> = <ints s>;", "<:ints s>[<range s>] = <ints s>;", "<:ints s>[2:] = <same>[:<s> - 1];", "<:reals s>[<index s>] = <real>;", "<:reals s>[<multi s>] = <reals s>;", "<:grid s t>[<index s>, <index t>] = <real>;", "<:grid s t>[<index s>] = <reals t>;", "<:grid s t>[<multi s>] = <grid s t>;", "<:grid s t>[<index s>][<index t>] = <real>;",
    "<:vectors s t>[<index s>] = <vector t>;", "<:vectors s t>[<index s>, <index t>] = <real>;", "<:vectors s t>[<index s>][<index t>] += <real>;", "<:vectors s t>[<multi s>] = <vectors s t>;", "<:vectors s t>[<index s>][<multi t>] = <vector t>;", "<:vectors s t>[<multi s>, <multi t>] = <vectors s t>;", "<:vectors s t>[2:] = <same>[1:<s> - 1];", "<:rows s t>[<index s>] = <row t>;", "<:rows s t>[<index s>, <index t>] = <real>;",
    "<:matrices s t>[<half>] = <matrix s t>;", "<:matrices s t>[<half>, <index s>, <index t>] = <real>;", "<:matrices s t>[<half>][, <index t>] = <vector s>;", "<:pair s> = (<vector s>, <index s>);", "<:int> = <int>;", "<:real> = sin(<real>);",
    "for (<new> in 1:<s>) <:vector s>[<at>] = sin(<real> + <vector s>[<at>]);", "for (<new> in 2:<s>) { <:vector s>[<at>] += 0.5 * <same>[<at> - 1]; }", "for (<new> in 1:<s>) for (<newer> in 1:<t>) <:matrix s t>[<at>, <att>] = sin(<matrix t s>[<att>, <at>] + <real>);",
    "for (<new> in 1:<s>) for (<newer> in 1:<at>) <:matrix s s>[<at>, <att>] = <vector s>[<at>] * <vector s>[<att>];", "for (<new> in 1:<s>) <:vector t>[<ints s>[<at>]] += <vector s>[<at>];", "for (<new> in 1:<s>) <:vectors s t>[<at>] = <matrix s t>[<at>]';", "for (<new> in 1:<s>) { <:ints s>[<at>] = <ints s>[<s> - <at> + 1]; }",
    "for (<new> in 1:<s>) <:matrix s t>[<at>] = <rows s t>[<at>];", "for (<new> in <vector s>) <:real> = sin(<:real> + <new>);", "for (<new> in <ints s>) <:vector t>[<at>] += 0.1;", "for (<new> in <vectors s t>) <:real> = sin(<new>[<index t>]);", "for (<new> in 1:<int>) <:vector s>[<at>] = <real>;", "for (<new> in <ints s>) <:real> = tanh(<matrix t u>[<at>, <index u>]);",
)  # fmt: skip
_TARGETS = (
    "target += <real>;", "target += <real>;", "target += sum(<vector s>[<multi s>]);", "<vector s> ~ normal(<vector s>, 1.5);", "<vector s> ~ normal(<real>, exp(sin(<vector s>)));", "to_vector(<matrix s t>) ~ std_normal();", "<vector s> ~ multi_normal(<vector s>, add_diag(tcrossprod(<matrix s t>), 1));", "<vector s> ~ multi_normal_cholesky(<vector s>, cholesky_decompose(add_diag(tcrossprod(<matrix s s>), 1)));", "<vectors s t> ~ multi_normal(<vector t>, add_diag(tcrossprod(<matrix t u>), 1));",
    "<ints s> ~ categorical(softmax(<vector t>));", "<ints s> ~ poisson_log(<vector s>);", "<index t> ~ categorical_logit(<vector t>);", "<ints s> ~ poisson_log_glm(<matrix s t>, <real>, <vector t>);", "<vector s> ~ normal_id_glm(<matrix s t>, <vector s>, <vector t>, 1.2);", "for (<new> in 1:<s>) <vector s>[<at>] ~ normal(<vector t>[<ints s>[<at>]], 1);", "for (<new> in 1:<s>) target += normal_lpdf(<reals s>[<at>] | <matrix s t>[<at>, <index t>], 1.1);", "for (<new> in 1:<s>) { vector[<t>] w = <vector t>; for (<newer> in 1:<t>) w[<att>] += normal_lpdf(<vector s>[<at>] | <vector t>[<att>], 1); target += log_sum_exp(w); }",
    "softmax(<vector s>) ~ dirichlet(exp(sin(<vector s>)));", "<ints s> ~ multinomial(softmax(<vector s>));", "<index s> ~ ordered_logistic(<real>, cumulative_sum(exp(sin(<vector t>))));", "target += hmm_marginal(<matrix s t>, rep_matrix(inv(<s>), <s>, <s>), softmax(<vector s>));", "target += lkj_corr_cholesky_lpdf(identity_matrix(<s>) | 2);", "rep_array(1, <s>) ~ bernoulli_logit(<vector s>[<ints s>]);", "target += wishart_lpdf(add_diag(tcrossprod(<matrix s t>), 1) | 9, add_diag(tcrossprod(<matrix s u>), 1));",
    "target += gaussian_dlm_obs_lpdf(<matrix s t> | <matrix u s>, <matrix u u>, add_diag(tcrossprod(<matrix s u>), 1), add_diag(tcrossprod(<matrix u t>), 1), <vector u>, identity_matrix(<u>));", "target += multi_gp_lpdf(<matrix s t> | add_diag(tcrossprod(<matrix t u>), 1), exp(sin(<vector s>)));", "target += categorical_logit_glm_lpmf(<ints s> | <matrix s t>, <vector u>, <matrix t u>);", "target += bernoulli_logit_glm_lpmf({1, 0} | <matrix s t>[1:2], <real>, <vector t>);", "target += ordered_probit_lpmf(<ints s> | <vector s>, cumulative_sum(exp(<vector t>)));",
    "<ints s> ~ beta_binomial(<ints s>, exp(<vector s>), 2);", "target += multi_student_t_lpdf(<vector s> | 5, <vector s>, add_diag(tcrossprod(<matrix s t>), 1));", "target += reduce_sum(part_lupdf, <reals s>, 1, <vector s>);",
)  # fmt: skip
_PARAMETERS = (
    ("vector", "vector[<s>]"), ("vector", "vector[<s>]"), ("vector", "vector<lower=0>[<s>]"), ("vector", "vector<lower=-1, upper=1>[<s>]"), ("vector", "simplex[<s>]"), ("vector", "ordered[<s>]"), ("vector", "positive_ordered[<s>]"), ("vector", "unit_vector[<s>]"), ("vector", "sum_to_zero_vector[<s>]"), ("vector", "vector<multiplier=2>[<s>]"),
    ("row", "row_vector[<s>]"), ("matrix", "matrix[<s>, <t>]"), ("matrix", "matrix[<s>, <t>]"), ("matrix", "matrix<lower=0>[<s>, <t>]"), ("matrix", "cholesky_factor_cov[<s>, <t>]"), ("square", "cholesky_factor_corr[<s>]"), ("square", "corr_matrix[<s>]"), ("square", "cov_matrix[<s>]"), ("matrix", "column_stochastic_matrix[<s>, <t>]"), ("matrix", "row_stochastic_matrix[<s>, <t>]"), ("matrix", "sum_to_zero_matrix[<s>, <t>]"),
    ("reals", "array[<s>] real"), ("vectors", "array[<s>] vector[<t>]"), ("vectors", "array[<s>] simplex[<t>]"), ("vectors", "array[<s>] ordered[<t>]"), ("grid", "array[<s>, <t>] real<lower=0>"), ("rows", "array[<s>] row_vector[<t>]"), ("matrices", "array[2] matrix[<s>, <t>]"), ("squares", "array[2] cov_matrix[<s>]"), ("squares", "array[2] cholesky_factor_corr[<s>]"),
)  # fmt: skip
_FUNCTIONS = """functions {
  real mine(vector w, int n) {
    real a = 0;
    for (i in 1:min({n, 20})) a += sin(w[i]);
    return a + sum(w[1:size(w)]);
  }
  real picked(matrix X, array[] int at, int j) {
    real a = 0;
    for (i in 1:rows(X)) if (at[i] <= cols(X)) a += X[i, at[i]];
    if (j > 2) return a;
    return tanh(a) * X[1, 1];
  }
  vector shifted(vector w, int n) {
    vector[num_elements(w)] z = w;
    for (i in 2:num_elements(w)) {
      if (i == n) break;
      z[i] = w[i - 1] + 0.5 * z[i];
    }
    return z;
  }
  vector filled(int n, real a) {
    vector[n] z;
    int i = 1;
    while (i <= n) {
      z[i] = a * i;
      i += 1;
    }
    return z;
  }
  matrix columns_of(matrix X, array[] int at) {
    matrix[rows(X), size(at)] Z;
    for (j in 1:size(at)) Z[, j] = X[, at[j]];
    return Z;
  }
  matrix cov_exp(vector w) {
    int n = size(w);
    matrix[n, n] Z;
    for (i in 1:n) {
      Z[i, i] = 1.1;
      for (j in (i + 1):n) {
        Z[i, j] = exp(-abs(w[i] - w[j]));
        Z[j, i] = Z[i, j];
      }
    }
    return Z;
  }
  array[] vector each(array[] vector w, real a) {
    array[size(w)] vector[num_elements(w[1])] z = w;
    for (i in 1:size(w)) z[i][2:] = a * w[i][1:(num_elements(w[i]) - 1)];
    return z;
  }
  vector sparse(matrix X, vector w) {
    return csr_matrix_times_vector(rows(X), cols(X), csr_extract_w(X), csr_extract_v(X), csr_extract_u(X), w);
  }
  real part_lpdf(array[] real part, int first, int last, vector w) {
    return normal_lupdf(part | w[first:last], 1.3);
  }
}
"""
_PLACEHOLDER = re.compile(r"<(:?)([a-z]+)((?: [a-z]+)*)>")
_NAMES = tuple(f"{letter}{n}" for n in range(1, 9) for letter in "abcdefgh")


class _DoesNotFit(Exception):
    """Something cannot be declared here."""


@dataclass(frozen=True)
class IndexingProgram:
    """A program and its data sets, the first of which fits."""

    text: str
    data: tuple[Mapping[str, object], ...]


@dataclass(frozen=True)
class _Variable:
    name: str
    kind: str
    sizes: tuple[str, ...]
    assignable: bool = True


class _Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables: list[_Variable] = []
        self.names = iter(_NAMES)
        self.before: list[str] = []
        """Declarations that the statement being written needs."""
        self.kinds = tuple(kind for kind in _DECLARED if kind not in ("int", "real"))
        """What may be declared here."""

    # ------------------------------------------------------------ expressions

    def fill(self, form: str, depth: int, sizes: Mapping[str, str] | None = None) -> str:
        """A form with its placeholders replaced; `sizes` says what some letters stand for."""
        known = dict(sizes or {})
        local: dict[str, str] = {}

        def size(letter: str) -> str:
            name = known.setdefault(letter, self.random.choice(SIZES))
            return self.random.choice(SIZES) if self.random.random() < HAZARD else name

        def put(match: re.Match[str]) -> str:
            assigned, kind, letters = match[1], match[2], match[3].split()
            if assigned:
                local["same"] = self.assignable(kind, [known.setdefault(s, self.random.choice(SIZES)) for s in letters])
                return local["same"]
            if kind in ("new", "newer"):
                if kind not in local:
                    local[kind] = local["at" if kind == "new" else "att"] = "i" + next(self.names)
                return local[kind]
            if kind in local:
                return local[kind]
            if not letters and kind in "stuv":
                return size(kind)
            text = self.choose(kind, tuple(size(s) for s in letters), depth - 1)
            return f"({text})" if text.endswith("'") else text

        return _PLACEHOLDER.sub(put, form)

    def choose(self, kind: str, sizes: tuple[str, ...], depth: int) -> str:
        """An expression of a type and size."""
        named = dict(zip("st", sizes, strict=False))
        fitting = [v.name for v in self.variables if v.kind == kind and v.sizes == sizes]
        if fitting and (depth <= 0 or self.random.random() < 0.55):
            return self.random.choice(fitting)
        return self.fill(self.random.choice(_LEAVES[kind] if depth <= 0 else _FORMS[kind]), depth, named)

    def assignable(self, kind: str, sizes: Sequence[str]) -> str:
        """A local variable of a type and size; declared, in front of the statement, if there is none."""
        wanted = tuple(sizes)
        found = [v.name for v in self.variables if v.kind == kind and v.sizes == wanted and v.assignable]
        if not found:
            if kind not in self.kinds and kind != "real":
                raise _DoesNotFit
            self.before.append(self.declaration(kind, wanted))
            return self.variables[-1].name
        return self.random.choice(found)

    def declaration(self, kind: str, sizes: tuple[str, ...]) -> str:
        name = next(self.names)
        named = dict(zip("st", sizes, strict=False))
        value = self.choose(kind, sizes, 2)
        self.variables.append(_Variable(name, kind, sizes))
        return f"{self.fill(_DECLARED[kind], 0, named).format(name)} = {value};"

    # ------------------------------------------------------------ statements

    def statements(self, count: int, table: Sequence[str], pad: str = "  ") -> str:
        lines: list[str] = []
        for _ in range(count):
            chance = self.random.random()
            if chance < 0.15:
                kind = self.random.choice(self.kinds)
                text = self.declaration(kind, tuple(self.random.choices(SIZES, k=_RANK[kind])))
            elif chance < 0.22 and len(pad) < 6:
                condition = self.fill(self.random.choice(("<int> > 1", "<real> > 0.1", "<index s> == 2")), 2)
                outside = len(self.variables)
                inside = self.statements(2, table, pad + "  ")
                del self.variables[outside:]
                text = f"if ({condition}) {{\n{inside}{pad}}}"
            else:
                text = self.fill(self.random.choice(table), 3)
            lines += [*self.before, text]
            self.before = []
        return "".join(f"{pad}{line}\n" for line in lines)

    def program(self) -> IndexingProgram:
        pick = self.random
        sizes = "".join(f"  int {name};\n" for name in SIZES)
        containers = {
            "vector": ("x", "vector[N] x", ("N",)), "matrix": ("X", "matrix[N, M] X", ("N", "M")), "ints": ("at", "array[N] int at", ("N",)), "vectors": ("xs", "array[M] vector[N] xs", ("M", "N")),
            "grid": ("g", "array[N, M] real g", ("N", "M")), "row": ("r", "row_vector[M] r", ("M",)),
        }  # fmt: skip
        kept = {"ints": containers["ints"], **dict(pick.sample(sorted(containers.items()), 3))}
        data = "".join(f"  {text};\n" for _, text, _ in kept.values()) + "  array[M] int by;\n"
        self.variables = [_Variable(name, kind, dims, False) for kind, (name, _, dims) in kept.items()]
        self.variables += [_Variable("by", "ints", ("M",), False)]
        blocks = [_FUNCTIONS, f"data {{\n{sizes}{data}}}\n"]
        if pick.random() < 0.4:
            text = self.statements(pick.randint(1, 3), _STATEMENTS)
            text = re.sub(r"\bp\b", "0.2", text)  # the parameter is not there yet
            blocks.append(f"transformed data {{\n{text}}}\n")
            self.variables = [_Variable(v.name, v.kind, v.sizes, False) for v in self.variables]
        blocks.append(self.parameters())
        self.variables = [_Variable(v.name, v.kind, v.sizes, False) for v in self.variables]
        if pick.random() < 0.5:
            everywhere, self.kinds = self.kinds, tuple(kind for kind in self.kinds if kind not in ("ints", "pair"))
            blocks.append(f"transformed parameters {{\n{self.statements(pick.randint(1, 3), _STATEMENTS)}}}\n")
            self.kinds = everywhere
            self.variables = [_Variable(v.name, v.kind, v.sizes, False) for v in self.variables]
        outside = list(self.variables)
        table = (*_STATEMENTS, *_TARGETS * 2)
        blocks.append(f"model {{\n{self.statements(pick.randint(3, 7), table)}  target += p;\n}}\n")
        self.variables = outside
        if pick.random() < 0.5:
            blocks.append(f"generated quantities {{\n{self.statements(pick.randint(1, 3), _STATEMENTS)}}}\n")
        return IndexingProgram("".join(blocks), self.data_sets(kept))

    def parameters(self) -> str:
        lines = ["  real p;\n"]
        for _ in range(self.random.randint(1, 3)):
            kind, declared = self.random.choice(_PARAMETERS)
            s, t = self.random.choice(SIZES), self.random.choice(SIZES)
            if declared.startswith("cholesky_factor_cov") and self.random.random() < 0.7:
                t = s
            name = next(self.names)
            lines.append(f"  {self.fill(declared, 0, {'s': s, 't': t})} {name};\n")
            dims = {"square": (s, s), "squares": (s, s)}.get(kind) or ((s,) if _RANK[kind] == 1 else (s, t))
            known = {"square": "matrix", "squares": "matrices"}.get(kind, kind)
            self.variables.append(_Variable(name, known, dims, False))
        return f"parameters {{\n{''.join(lines)}}}\n"

    # ------------------------------------------------------------ data

    def data_sets(self, containers: Mapping[str, tuple[str, str, tuple[str, ...]]]) -> tuple[Mapping[str, object], ...]:
        pick = self.random
        alike = pick.choice(BENIGN)
        fits = {name: alike if pick.random() < 0.5 else pick.choice(BENIGN) for name in SIZES}
        free, bound = [s for s in SIZES if s not in DATA_SIZES], list(DATA_SIZES)
        sets = [
            (fits, (1, 2)),
            ({**fits, pick.choice(free): pick.choice(HOSTILE)}, (1, 2)),
            (fits, HOSTILE_INDICES),
            ({**fits, pick.choice(bound): pick.choice((0, 1))}, (1, 2)),
            ({**{s: pick.choice((*HOSTILE, *BENIGN)) for s in free}, **{s: pick.choice((0, 1, 2, 3)) for s in bound}}, (0, 1, 2, 3)),
        ]  # fmt: skip
        return tuple(self.values(containers, sizes, indices) for sizes, indices in sets)

    def values(
        self,
        containers: Mapping[str, tuple[str, str, tuple[str, ...]]],
        sizes: Mapping[str, int],
        indices: Sequence[int],
    ) -> dict[str, object]:
        def array(kind: str, dims: Sequence[str]) -> object:
            if not dims:
                # mostly what fits, so that what comes later is reached
                return (
                    self.random.choice(indices if self.random.random() < 0.4 else (1, 2))
                    if kind == "ints"
                    else round(self.random.uniform(-1, 1), 3)
                )
            return [array(kind, dims[1:]) for _ in range(sizes[dims[0]])]

        values = {name: array(kind, dims) for kind, (name, _, dims) in containers.items()}
        return {**sizes, **values, "by": array("ints", ("M",))}


def _is_right(text: str) -> bool:
    """Whether the compiler's front end finds nothing wrong with a program."""
    source = Source(text, "program.stan")
    try:
        check_program(parse_program(source), source)
    except DiagnosticError:
        return False
    return True


def indexing_program(seed: int) -> IndexingProgram:
    """A program and its data, always the same for a seed."""
    for attempt in range(100):
        try:
            program = _Generator(seed * 100 + attempt).program()
        except _DoesNotFit:
            continue
        if _is_right(program.text):
            return program
    raise AssertionError(f"no program for seed {seed} in 100 attempts")
