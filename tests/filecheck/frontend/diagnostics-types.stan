// RUN: stan-opt %s --split-input-file --verify-diagnostics

// What operators, indices and literals accept, and what may be assigned to what.
data { vector[3] v; matrix[3, 3] m; real x; int n; array[3] int k; }
model {
  print(v * v);  // expected-error {{operator '*' is not defined for a vector and a vector}}
  print(x % 2);  // expected-error {{operator '%' is not defined for a real and an int}}
  print(!x);  // expected-error {{prefix '!' cannot be applied to a real}}
  print(x');  // expected-error {{postfix ''' cannot be applied to a real}}
  print(v[x]);  // expected-error {{an index must be an int, an array of int or a range, but this is a real}}
  print(v[1:x]);  // expected-error {{the bound of an index range must be an int}}
  print(v[1, 2]);  // expected-error {{a vector takes at most one index, but there are 2}}
  print(x[1]);  // expected-error {{a real cannot be indexed}}
  print(n ? x : v);  // expected-error {{the two values of '?:' must have one type, but these are a real and a vector}}
  print({x, v});  // expected-error {{the elements of an array must have one type, but this is a vector after a real}}
  print([x, v]);  // expected-error {{must all be int or real, but this is a vector}}
  print([[x], x]);  // expected-error {{must all be row_vector, but this is a real}}
  print((1, 2).3);  // expected-error {{there is no element 3: this tuple has 2}}
  print(x.1);  // expected-error {{takes an element of a tuple, but this is a real}}
  print(2147483648);  // expected-error {{does not fit in an int}}
  if (x) { }  // expected-error {{the condition of 'if' must be an int}}
  while (v) { }  // expected-error {{the condition of 'while' must be an int}}
  for (i in 1:x) { }  // expected-error {{the upper bound of a loop must be an int}}
  for (e in n) { }  // expected-error {{a loop can go over an array}}
}

// -----
data { vector[3] v; real x; }
transformed data {
  int i = x;  // expected-error {{'i' is an int and cannot take a real}}
  int a;
  row_vector[3] r;
  array[2] int k;
  a = x;  // expected-error {{a real cannot be assigned to an int}}
  r = v;  // expected-error {{a vector cannot be assigned to a row_vector}}
  a += x;  // expected-error {{'+=' cannot change an int by a real}}
  (a, a) = (1, 2);  // expected-error {{'a' is assigned twice in one statement}}
  k[k[1]] = 1;  // expected-error {{'k' is read in an index of the statement that assigns it}}
  k[1:2][1] = 1;  // expected-error {{a part that several indices name cannot be indexed again}}
}

// -----
// What was reported once gives no further messages.
data { real x; }
model {
  real s = x + unknown;  // expected-error {{'unknown' is not declared here}}
  s = exp(unknown) * 2 + s;
  unknown ~ normal(s, unknown);
}
