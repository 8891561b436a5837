// Code motion read a value that was to be stored by an expression which it then left out itself.
functions {
  real over(real u) {
    real v = u;
    return -v;
  }
  real fn_lp(matrix A) {
    vector[3] x = [0.3, -0.7, 0.6]';
    1 ~ normal(log(inv_logit(inv_logit(over(A[2, 3])))),
               1 + abs(tanh(0.5 + 0.4 * x[1]
                            - log(1 - (0.5 + 0.4 * sin(log(inv_logit(inv_logit(over(A[2, 3]))))))))));
    return x[1];
  }
}
parameters {
  matrix[3, 3] M;
}
model {
  target += fn_lp(M);
}
