// A matrix product with a logarithm became the element-wise lmultiply.
// data: {"A": [[1, 2], [3, 4]], "B": [[1, 2.718281828459045], [1, 1]]}
data {
  matrix[2, 2] A;
  matrix<lower=0>[2, 2] B;
}
generated quantities {
  matrix[2, 2] C;
  C = A * log(B);
  // outputs: [0, 0, 1, 3]
}
