// A temporary for a matrix that is used as one value here, and by its elements there, had two representations.
// point: [0.5, -0.25, 1, 2]
parameters {
  matrix[2, 2] A;
}
model {
  matrix[2, 2] B = A * 2 + 1;
  matrix[2, 2] C = A * 2 + 1;
  target += sum(B * B);
  for (i in 1:2) {
    for (j in 1:2) {
      C[i, j] = (A * 2 + 1)[j, i] * i;
    }
  }
  target += sum(C * B) + trace(A * 2 + 1);
  A[1] ~ normal(0, 1);
}
