// Int arithmetic in sizes, indices and bounds went through a fused multiply-add of reals.
// data: {"a": 2, "b": 3, "c": 4, "v": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]}
data {
  int a;
  int b;
  int c;
  array[20] int v;
}
transformed data {
  int d = a * b + c;
}
generated quantities {
  int e = v[a * b + c];
  int s = 0;
  for (i in 1:(a * b + c)) s += i;
  vector[a * b + c] w = rep_vector(d, d);
  // outputs: [10, 55, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
}
