// The sizes of data whose size is not a plain variable were never stored: every index was out of range.
// data: {"n": 4, "x": [1, 2, 3], "m": [[1, 2], [3, 4], [5, 6]]}
data {
  int n;
  vector[n - 1] x;
  array[n - 1, 2] int m;
}
transformed data {
  real sum_m = 0;
  for (i in 1 : n - 1) {
    sum_m += sum(m[i]);
  }
}
parameters {
  real a;
}
model {
  for (i in 1 : n - 1) {
    a ~ normal(x[i], sum_m);
  }
}
