// RUN: stan-opt -p 'print-analysis{name=anticipated-expressions}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=ANTICIPATED
// RUN: stan-opt -p 'print-analysis{name=available-expressions}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=AVAILABLE
// RUN: stan-opt -p 'print-analysis{name=postponable-expressions}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=POSTPONABLE
// RUN: stan-opt -p 'print-analysis{name=used-expressions}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=USED

// The four analyses of lazy code motion.
data {
  int c;
  matrix[2, 2] A;
}
parameters {
  vector[2] v;
}
model {
  real x = 1;
  if (c > 0) {
    x = sum(exp(v));
  } else {
    x = 2;
  }
  print(x);
  target += sum(exp(v));
  target += sum(A * v);
  target += sum(A * v);
}
// ANTICIPATED:      anticipated-expressions of model
// ANTICIPATED:      if: {exp(v), sum(exp(v))}
// What may fail is not anticipated before a print.
// ANTICIPATED:      print: {exp(v), sum(exp(v)), (A * v), sum((A * v))}
// ANTICIPATED-NEXT: target_add: {(A * v), sum((A * v))}
// ANTICIPATED-NEXT: target_add: {(A * v), sum((A * v))}
// ANTICIPATED-NEXT: target_add: {}

// AVAILABLE:      available-expressions of model
// AVAILABLE:      print: {}
// AVAILABLE-NEXT: target_add: {}
// AVAILABLE-NEXT: target_add: {exp(v), sum(exp(v))}
// AVAILABLE-NEXT: target_add: {exp(v), sum(exp(v)), (A * v), sum((A * v))}

// POSTPONABLE:      postponable-expressions of model
// POSTPONABLE:      if: {exp(v), sum(exp(v))}
// POSTPONABLE-NEXT: assign x: {exp(v), sum(exp(v))}
// POSTPONABLE-NEXT: assign x: {exp(v), sum(exp(v))}
// POSTPONABLE-NEXT: print: {}

// USED:      used-expressions of model
// USED:      if: {}
// USED-NEXT: assign x: {sum(exp(v))}
// USED-NEXT: assign x: {sum(exp(v))}
// USED-NEXT: print: {sum(exp(v))}
// USED-NEXT: target_add: {}
// USED-NEXT: target_add: {sum((A * v))}
// USED-NEXT: target_add: {}
