/* Sums and other reductions of containers. Stan Functions Reference, "Array operations" and "Matrix operations". */

real mean(vector x) {
  require_nonempty(num_elements(x));
  return sum(x) / num_elements(x);
}

real mean(row_vector x) {
  require_nonempty(num_elements(x));
  return sum(x) / num_elements(x);
}

real mean(matrix x) {
  require_nonempty(num_elements(x));
  return sum(x) / num_elements(x);
}

real mean(array[] real x) {
  require_nonempty(num_elements(x));
  return sum(x) / num_elements(x);
}

/* The variance with divisor n - 1; of one element 0. Two passes, so that a large mean does no harm. */
real variance(vector x) {
  int n = num_elements(x);
  require_nonempty(n);
  return n == 1 ? 0 : dot_self(x - sum(x) / n) / (n - 1);
}

real variance(row_vector x) { return variance(x'); }

real variance(matrix x) { return variance(to_vector(x)); }

real variance(array[] real x) { return variance(to_vector(x)); }

real sd(vector x) {
  require_nonempty(num_elements(x));
  return num_elements(x) == 1 ? 0 : sqrt(variance(x));
}

real sd(row_vector x) { return sd(x'); }

real sd(matrix x) { return sd(to_vector(x)); }

real sd(array[] real x) { return sd(to_vector(x)); }

real prod(vector x) {
  real result = 1;
  for (i in 1:num_elements(x)) result *= x[i];
  return result;
}

real prod(row_vector x) { return prod(x'); }

real prod(matrix x) { return prod(to_vector(x)); }

real prod(array[] real x) {
  real result = 1;
  for (i in 1:size(x)) result *= x[i];
  return result;
}

int prod(array[] int x) {
  int result = 1;
  for (i in 1:size(x)) result *= x[i];
  return result;
}

/* The largest element is taken out, so that nothing overflows; minus infinity for no elements. The shift cancels in the
 * derivative, so it is taken as a constant (value_of). */
real log_sum_exp(vector x) {
  real high = value_of(max(x));
  real shift = is_inf(high) ? 0 : high;
  return shift + log(sum(exp(x - shift)));
}

real log_sum_exp(row_vector x) { return log_sum_exp(x'); }

real log_sum_exp(matrix x) { return log_sum_exp(to_vector(x)); }

real log_sum_exp(array[] real x) { return log_sum_exp(to_vector(x)); }

vector softmax(vector x) {
  vector[num_elements(x)] e = exp(x - value_of(max(x)));
  return e / sum(e);
}

row_vector softmax(row_vector x) { return softmax(x')'; }

array[] vector softmax(array[] vector x) {
  array[size(x)] vector[dims(x)[2]] result;
  for (n in 1:size(x)) result[n] = softmax(x[n]);
  return result;
}

array[] row_vector softmax(array[] row_vector x) {
  array[size(x)] row_vector[dims(x)[3]] result;
  for (n in 1:size(x)) result[n] = softmax(x[n]);
  return result;
}

vector log_softmax(vector x) {
  require_nonempty(num_elements(x));
  return x - log_sum_exp(x);
}

row_vector log_softmax(row_vector x) { return log_softmax(x')'; }

array[] vector log_softmax(array[] vector x) {
  array[size(x)] vector[dims(x)[2]] result;
  for (n in 1:size(x)) result[n] = log_softmax(x[n]);
  return result;
}

array[] row_vector log_softmax(array[] row_vector x) {
  array[size(x)] row_vector[dims(x)[3]] result;
  for (n in 1:size(x)) result[n] = log_softmax(x[n]);
  return result;
}

/* log of a mixture with weights theta of components with log densities lps; a sum of one for each element of an array
 * of lps. */
real log_mix(vector theta, vector lps) {
  require_same_size(num_elements(theta), num_elements(lps));
  require_probability(theta);
  return log_sum_exp(log(theta) + lps);
}

real log_mix(vector theta, array[] vector lps) {
  real total = 0;
  for (n in 1:size(lps)) total += log_mix(theta, lps[n]);
  return total;
}

real log_mix(vector theta, array[] row_vector lps) {
  real total = 0;
  for (n in 1:size(lps)) total += log_mix(theta, lps[n]');
  return total;
}

real log_mix(vector theta, row_vector lps) { return log_mix(theta, lps'); }

real log_mix(vector theta, array[] real lps) { return log_mix(theta, to_vector(lps)); }

real log_mix(row_vector theta, vector lps) { return log_mix(theta', lps); }

real log_mix(row_vector theta, row_vector lps) { return log_mix(theta', lps'); }

real log_mix(row_vector theta, array[] real lps) { return log_mix(theta', to_vector(lps)); }

real log_mix(row_vector theta, array[] vector lps) { return log_mix(theta', lps); }

real log_mix(row_vector theta, array[] row_vector lps) { return log_mix(theta', lps); }

real log_mix(array[] real theta, vector lps) { return log_mix(to_vector(theta), lps); }

real log_mix(array[] real theta, row_vector lps) { return log_mix(to_vector(theta), lps'); }

real log_mix(array[] real theta, array[] real lps) { return log_mix(to_vector(theta), to_vector(lps)); }

real log_mix(array[] real theta, array[] vector lps) { return log_mix(to_vector(theta), lps); }

real log_mix(array[] real theta, array[] row_vector lps) { return log_mix(to_vector(theta), lps); }

vector cumulative_sum(vector x) {
  vector[num_elements(x)] result;
  real total = 0;
  for (i in 1:num_elements(x)) {
    total += x[i];
    result[i] = total;
  }
  return result;
}

row_vector cumulative_sum(row_vector x) { return cumulative_sum(x')'; }

array[] real cumulative_sum(array[] real x) { return to_array_1d(cumulative_sum(to_vector(x))); }

array[] int cumulative_sum(array[] int x) {
  array[size(x)] int result;
  int total = 0;
  for (i in 1:size(x)) {
    total += x[i];
    result[i] = total;
  }
  return result;
}

real dot_self(vector x) { return dot_product(x, x); }

real dot_self(row_vector x) { return dot_product(x, x); }

real squared_distance(vector x, vector y) { return dot_self(x - y); }

real squared_distance(row_vector x, row_vector y) { return dot_self(x - y); }

real squared_distance(vector x, row_vector y) { return dot_self(x - y'); }

real squared_distance(row_vector x, vector y) { return dot_self(x' - y); }

real squared_distance(real x, real y) { return square(x - y); }

real distance(vector x, vector y) { return sqrt(squared_distance(x, y)); }

real distance(row_vector x, row_vector y) { return sqrt(squared_distance(x, y)); }

real distance(vector x, row_vector y) { return sqrt(squared_distance(x, y)); }

real distance(row_vector x, vector y) { return sqrt(squared_distance(x, y)); }

real norm1(vector x) { return sum(abs(x)); }

real norm1(row_vector x) { return sum(abs(x)); }

real norm1(array[] real x) { return sum(abs(x)); }

real norm2(vector x) { return sqrt(dot_self(x)); }

real norm2(row_vector x) { return sqrt(dot_self(x)); }

real norm2(array[] real x) { return norm2(to_vector(x)); }

/* How many elements are smaller than element s. */
int rank(vector x, int s) {
  int count = 0;
  for (i in 1:num_elements(x)) count += x[i] < x[s];
  return count;
}

int rank(row_vector x, int s) { return rank(x', s); }

int rank(array[] real x, int s) { return rank(to_vector(x), s); }

int rank(array[] int x, int s) {
  int count = 0;
  for (i in 1:size(x)) count += x[i] < x[s];
  return count;
}

/* Quantiles by linear interpolation between order statistics (R's type 7). */
real quantile(data vector x, data real p) {
  require_nonempty(num_elements(x));
  require_not_nan(x);
  require_probability(p);
  return quantile_of_sorted(sort_asc(x), p);
}

real quantile_of_sorted(data vector x, data real p) {
  int n = num_elements(x);
  real position = (n - 1) * p;
  int below = 0;
  while (below + 1 <= position) below += 1;
  return below + 1 >= n ? x[n] : x[below + 1] + (position - below) * (x[below + 2] - x[below + 1]);
}

real quantile(data row_vector x, data real p) { return quantile(x', p); }

real quantile(data array[] real x, data real p) { return quantile(to_vector(x), p); }

array[] real quantile(data vector x, data array[] real p) {
  require_nonempty(num_elements(x));
  require_not_nan(x);
  require_probability(p);
  vector[num_elements(x)] sorted = sort_asc(x);
  array[size(p)] real result;
  for (i in 1:size(p)) result[i] = quantile_of_sorted(sorted, p[i]);
  return result;
}

array[] real quantile(data row_vector x, data array[] real p) { return quantile(x', p); }

array[] real quantile(data array[] real x, data array[] real p) { return quantile(to_vector(x), p); }
