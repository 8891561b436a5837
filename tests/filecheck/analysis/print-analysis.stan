// RUN: stan-opt -p 'print-analysis{name=reaching-definitions}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=REACHING
// RUN: stan-opt -p 'print-analysis{name=live-variables}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=LIVE
// RUN: stan-opt -p 'print-analysis{name=initialized-variables}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=INIT
// RUN: stan-opt -p 'print-analysis{name=constants}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=CONSTANTS
// RUN: stan-opt -p 'print-analysis{name=available-assignments}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=AVAILABLE
// RUN: stan-opt -p 'print-analysis{name=needed}' %s 2>&1 >/dev/null | filecheck %s --check-prefix=NEEDED
model {
  int a = 1;
  int b = 2;
  for (i in 1 : 3) {
    if (i > 2) {
      b = a;
      continue;
    }
    a = i;
  }
  int c;
  int unused = 4;
  print(a + b);
}
// REACHING:      reaching-definitions of model
// REACHING:        12:7 assign b: {a@8:3, b@9:3, b@12:7, a@15:5}
// REACHING:        19:3 print: {a@8:3, b@9:3, b@12:7, a@15:5, c@17:7, unused@18:3}

// LIVE:          live-variables of model
// LIVE-NEXT:       8:7 declare a: {}
// LIVE-NEXT:       8:3 assign a: {a}
// LIVE:            15:5 assign a: {a, b}
// LIVE:            18:3 assign unused: {a, b}
// LIVE-NEXT:       19:3 print: {}

// INIT:          initialized-variables of model
// INIT:            17:7 declare c: {a, b}
// INIT:            19:3 print: {a, b, unused}

// CONSTANTS:     constants of model
// CONSTANTS:       12:7 assign b: {}

// AVAILABLE:     available-assignments of model
// AVAILABLE:       9:3 assign b: {a = 1}
// AVAILABLE:       13:7 continue: {b = a}
// AVAILABLE:       19:3 print: {unused = 4}

// NEEDED:        needed of model
// NEEDED:          8:3 assign a: {needed}
// NEEDED:          18:3 assign unused: {}
// NEEDED-NEXT:     19:3 print: {needed}
