// RUN: stan-opt %s --split-input-file --verify-diagnostics

// Names: declared once, before use, and not reserved. Each unknown name is reported once.
data { real x; real x; }  // expected-error {{'x' is declared already}}

// -----
transformed data {
  real a = b;  // expected-error {{'b' is not declared here}}
  real c = b + b;
  real b;
}

// -----
model {
  real x;
  for (x in 1:3) { }  // expected-error {{'x' is declared already}}
}

// -----
// The scope of a local variable ends with its block.
model {
  { real x = 1; }
  print(x);  // expected-error {{'x' is not declared here}}
}

// -----
transformed data { real static; }  // expected-error {{it is a reserved word}}

// -----
transformed data { real x__; }  // expected-error {{names that end in two underscores are reserved}}

// -----
transformed data { real x_lupdf; }  // expected-error {{the name of a variable cannot end in '_lupdf'}}

// -----
model { print(exp); }  // expected-error {{'exp' is a function and cannot be used as a value}}

// -----
data { real x; }
model { print(x(1)); }  // expected-error {{'x' is a variable and cannot be called}}

// -----
model { print(nosuch(1)); }  // expected-error {{there is no function 'nosuch'}}

// -----
model { 1 ~ nosuch(2); }  // expected-error {{there is no distribution 'nosuch'}}

// -----
data { real x; }
model { x = 1; }  // expected-error {{'x' belongs to data and cannot be assigned to here}}

// -----
model { for (i in 1:3) i = 2; }  // expected-error {{'i' is a loop variable and cannot be assigned to}}

// -----
functions { void f(real a) { a = 2; } }  // expected-error {{'a' is a function argument and cannot be assigned to}}

// -----
model { exp = 2; }  // expected-error {{'exp' is a function and cannot be assigned to}}
