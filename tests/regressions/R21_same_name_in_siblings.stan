// Code motion took variables of sibling scopes with the same name, but other types and values, for one.
// point: [0.5, 0.25]
// value: 9.5
parameters {
  real p;
  real q;
}
model {
  {
    real x = p * 2;
    target += x + x * q;
  }
  {
    vector[2] x = [p, q]';
    target += sum(x) + x[1] * 2;
  }
  {
    int x = 3;
    target += x + x * q;
  }
  for (n in 1:2) {
    array[2] int x = {n, 1};
    target += x[1] * 0.5 + p * 2 * x[2] / 4;
  }
  for (x in {p, q}) {
    target += x;
  }
}
generated quantities {
  real a;
  int b;
  {
    real y = p * 2;
    a = y + 1;
  }
  {
    int y = 7;
    b = y + 1;
  }
  {
    row_vector[3] y = [p, q, p];
    a += sum(y * 2);
  }
  // outputs: [4.5, 8]
}
