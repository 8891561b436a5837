// to_matrix took only a literal as its order.
// data: {"by_column": 0}
data {
  int by_column;
}
parameters {
  vector[6] x;
}
model {
  matrix[2, 3] a = to_matrix(x, 2, 3, by_column);
  matrix[2, 3] b = to_matrix(x, 2, 3, 1 - by_column);
  target += a[1, 2] * 3 - square(b[1, 2]) + dot_product(a[2], b[1]);
}
