// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What has a place in the language but no lowering yet says so.

parameters {
  tuple(real<lower=0>, real) t; // expected-error {{a tuple with constraints as parameter is not supported yet}}
}

// -----

transformed data {
  tuple(vector[2], real) t;
  t.1[2] = 3; // expected-error {{assigning to elements inside of a tuple is not supported yet}}
}
