// categorical(inv_logit(a)) became another distribution. [inv_logit(1), inv_logit(-1)] is a simplex.
generated quantities {
  vector[2] a = [1, -1]';
  real r = categorical_lpmf(1 | inv_logit(a));
  // outputs: [1, -1, -0.31326168751822286]
}
