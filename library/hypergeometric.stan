/* Hypergeometric functions. Stan Functions Reference, "Hypergeometric functions". The series, of which also derivatives by the
 * parameters must have converged; where its terms would cancel, a transformation of its argument. */

/* (1 - z)^(-a) */
real hypergeometric_1F0(real a, real z) {
  require_less(abs(z), 1.0);
  return exp(-a * log1m(z));
}

real hypergeometric_2F1(real a, real b, real c, real z) {
  int is_polynomial = (a <= 0 && a == floor(a)) || (b <= 0 && b == floor(b));
  if (!is_polynomial) require_at_most(z, 1.0);
  if (!is_polynomial && z == 1) {
    require_greater(c - a - b, 0.0);
    return tgamma(c) / tgamma(c - a) * (tgamma(c - a - b) / tgamma(c - b));
  }
  if (z < -0.5 && !is_polynomial) {
    return b < a ? exp(-b * log1m(z)) * hypergeometric_near_1(b, c - a, c, z / (z - 1), 1 / (1 - z))
           : exp(-a * log1m(z)) * hypergeometric_near_1(a, c - b, c, z / (z - 1), 1 / (1 - z));
  }
  return is_polynomial ? hypergeometric_sum({a, b}, {c}, z) : hypergeometric_near_1(a, b, c, z, 1 - z);
}

/* y is 1 - z: close to 1 by the two series in it, unless both are infinite. */
real hypergeometric_near_1(real a, real b, real c, real z, real y) {
  real gap = c - a - b;
  if (z <= 0.9 || abs(gap - round(gap)) < 0.01) return hypergeometric_sum({a, b}, {c}, z);
  return tgamma(c) * (tgamma(gap) / tgamma(c - a) / tgamma(c - b) * hypergeometric_sum({a, b}, {1 - gap}, y)
                      + tgamma(-gap) / tgamma(a) / tgamma(b) * exp(gap * log(y)) * hypergeometric_sum({c - a, c - b}, {1 + gap}, y));
}

real hypergeometric_pFq(array[] real a, array[] real b, real z) {
  int p = size(a);
  int q = size(b);
  int is_polynomial = 0;
  for (i in 1:p) is_polynomial = is_polynomial || (a[i] <= 0 && a[i] == floor(a[i]));
  if (!is_polynomial && z != 0) {
    require_no_more(p, q + 1);
    if (p == q + 1) require_at_most(abs(z), 1.0);
    if (p == q + 1 && p > 2 && z == 1) return hypergeometric_at_1(a, b, z);
    if (p == q + 1 && p > 2 && z == -1) return hypergeometric_at_minus_1(a, b, z);
  }
  if (p == 2 && q == 1) return hypergeometric_2F1(a[1], a[2], b[1], z);
  if (p == 1 && q == 1 && z < 0) return exp(z) * hypergeometric_sum({b[1] - a[1]}, b, -z);
  return hypergeometric_sum(a, b, z);
}

/* At 1 the terms fall as a power of their number, 1 + excess: sums of more and more terms are extrapolated. The slope in z
 * is the function whose parameters are all greater by 1, or infinite. */
real hypergeometric_at_1(array[] real a, array[] real b, real z) {
  real excess = sum(b) - sum(a);
  require_greater(excess, 0.0);
  real result = hypergeometric_extrapolated(a, b);
  real slope = prod(a) / prod(b);
  if (excess > 1) return result + slope * hypergeometric_extrapolated(all_greater_by_1(a), all_greater_by_1(b)) * (z - value_of(z));
  return result + (slope < 0 ? 1 : -1) * sqrt(1 - z);
}

/* With terms of alternating sign weights take the place of a limit (Cohen, Rodriguez Villegas, Zagier: Convergence
 * acceleration of alternating series, 2000). */
real hypergeometric_at_minus_1(array[] real a, array[] real b, real z) {
  require_greater(sum(b) - sum(a), -1.0);
  real slope = prod(a) / prod(b) * hypergeometric_alternating(all_greater_by_1(a), all_greater_by_1(b));
  return hypergeometric_alternating(a, b) + slope * (z - value_of(z));
}

array[] real all_greater_by_1(array[] real x) { return to_array_1d(to_vector(x) + 1); }

/* From where on terms go as their asymptotic series; with parameters that are larger they have long been small by then. */
int hypergeometric_first_terms(array[] real a, array[] real b) {
  real largest = 10;
  for (i in 1:size(a)) largest = fmax(largest, abs(a[i]));
  for (i in 1:size(b)) largest = fmax(largest, abs(b[i]));
  int n = 0;
  while (n < 2 * largest && n < 40000) n += 1;
  return n;
}

real hypergeometric_extrapolated(array[] real a, array[] real b) {
  int doublings = 8;
  int first = hypergeometric_first_terms(a, b);
  real excess = sum(b) - sum(a);
  vector[doublings + 1] sums;
  real total = 0;
  real term = 1;
  int k = 0;
  int end = first;
  for (j in 1:(doublings + 1)) {
    while (k < end && (k < first || abs(term) > 1e-20 * abs(total))) {
      total += term;
      term /= k + 1;
      for (i in 1:size(a)) term *= a[i] + k;
      for (i in 1:size(b)) term /= b[i] + k;
      k += 1;
    }
    sums[j] = total;
    end *= 2;
  }
  for (j in 1:doublings) {
    real factor = expm1((excess + j - 1) * log2());
    for (i in 1:(doublings + 1 - j)) sums[i] = sums[i + 1] + (sums[i + 1] - sums[i]) / factor;
  }
  return sums[1];
}

real hypergeometric_alternating(array[] real a, array[] real b) {
  int n = 24;
  int first = hypergeometric_first_terms(a, b);
  real total = 0;
  real term = 1;
  real all_weights = (3 + sqrt(8)) ^ n;
  all_weights = 0.5 * (all_weights + 1 / all_weights);
  real weight = -1;
  real rest = -all_weights;
  for (k in 0:(first + n - 1)) {
    if (k < first) {
      total += term;
    } else {
      int j = k - first;
      rest = weight - rest;
      total += abs(rest) / all_weights * term;
      weight *= (j + n) * (j - n) / ((j + 0.5) * (j + 1));
    }
    term /= -(k + 1);
    for (i in 1:size(a)) term *= a[i] + k;
    for (i in 1:size(b)) term /= b[i] + k;
  }
  return total;
}

/* `magnitude` is that of a term and of its slopes: these go on where a parameter is a negative integer and terms are 0, if
 * they are small in the end. */
real hypergeometric_sum(array[] real a, array[] real b, real z) {
  int is_finite = size(a) > size(b) + 1 || (size(a) == size(b) + 1 && abs(z) >= 1);
  real total = 1;
  real term = 1;
  real magnitude = 1;
  int k = 0;
  int small = 0;
  while (small < 3 && k < 1000000 && !(is_finite && term == 0)) {
    term *= z / (k + 1);
    magnitude *= abs(value_of(z)) / (k + 1);
    for (i in 1:size(a)) {
      term *= a[i] + k;
      if (a[i] + k != 0) magnitude *= abs(value_of(a[i]) + k);
    }
    for (i in 1:size(b)) {
      term /= b[i] + k;
      magnitude /= abs(value_of(b[i]) + k);
    }
    total += term;
    k += 1;
    small = magnitude * k <= 1e-17 * abs(total) ? small + 1 : 0;
  }
  return total;
}

real hypergeometric_3F2(array[] real a, array[] real b, real z) {
  require_same_size(size(a), 3);
  require_same_size(size(b), 2);
  return hypergeometric_pFq(a, b, z);
}

real hypergeometric_pFq(vector a, vector b, real z) { return hypergeometric_pFq(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_pFq(vector a, row_vector b, real z) { return hypergeometric_pFq(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_pFq(vector a, array[] real b, real z) { return hypergeometric_pFq(to_array_1d(a), b, z); }

real hypergeometric_pFq(row_vector a, vector b, real z) { return hypergeometric_pFq(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_pFq(row_vector a, row_vector b, real z) { return hypergeometric_pFq(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_pFq(row_vector a, array[] real b, real z) { return hypergeometric_pFq(to_array_1d(a), b, z); }

real hypergeometric_pFq(array[] real a, vector b, real z) { return hypergeometric_pFq(a, to_array_1d(b), z); }

real hypergeometric_pFq(array[] real a, row_vector b, real z) { return hypergeometric_pFq(a, to_array_1d(b), z); }

real hypergeometric_3F2(vector a, vector b, real z) { return hypergeometric_3F2(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_3F2(vector a, row_vector b, real z) { return hypergeometric_3F2(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_3F2(vector a, array[] real b, real z) { return hypergeometric_3F2(to_array_1d(a), b, z); }

real hypergeometric_3F2(row_vector a, vector b, real z) { return hypergeometric_3F2(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_3F2(row_vector a, row_vector b, real z) { return hypergeometric_3F2(to_array_1d(a), to_array_1d(b), z); }

real hypergeometric_3F2(row_vector a, array[] real b, real z) { return hypergeometric_3F2(to_array_1d(a), b, z); }

real hypergeometric_3F2(array[] real a, vector b, real z) { return hypergeometric_3F2(a, to_array_1d(b), z); }

real hypergeometric_3F2(array[] real a, row_vector b, real z) { return hypergeometric_3F2(a, to_array_1d(b), z); }
