// Errors of expressions that nothing uses were lost. Here they are kept: that of the first of the three is raised.
// data: {"n": 9, "S": [[1, 2], [2, 1]]}
// fails: cholesky_decompose
data {
  int n;
  matrix[2, 2] S;
}
generated quantities {
  {
    matrix[2, 2] L = cholesky_decompose(S);
    vector[3] v;
    v[n] = 1;
    int k = n %/% 0;
  }
}
