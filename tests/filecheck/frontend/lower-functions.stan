// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// Functions: overloads, forward declarations, recursion, exits; what follows an exit is dropped.

functions {
  real f(real x);
  int f(int n) {
    if (n > 1) {
      return n * f(n - 1);
    } else {
      return 1;
      print("never");
    }
  }
  real f(real x) {
    for (i in 1:3) {
      if (i > x) break;
      else continue;
    }
    return x;
  }
  void g(data vector v) {
    print("v = ", v);
  }
  real h(int n) {
    while (n) return 1;
  }
  real k(int n) {
    if (n) return 1;
    reject("n is ", n);
  }
}
transformed data {
  real x = f(2);
  real y = f(2.5);
  g([x, y]');
}

// CHECK:      stan.func @f(n %n: !stan.int) -> (!stan.int) {
// CHECK:        stan.if %{{.*}} {
// CHECK:          %[[R:.*]] = stan.call f(%{{.*}}) user autodiff [0] : (!stan.int) -> !stan.int
// CHECK:          stan.return
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[ONE:.*]] = stan.constant 1 : i32
// CHECK-NEXT:   stan.return %[[ONE]] : !stan.int
// CHECK-NEXT: }
// CHECK-NEXT: stan.func @f.1({{.*}} stan_name f {
// CHECK:          stan.if %{{.*}} {
// CHECK-NEXT:       stan.break
// CHECK-NEXT:     }
// CHECK-NEXT:     stan.continue
// CHECK:      stan.func @g(data v %v: !stan.vector) {
// CHECK:        stan.return
// CHECK:      stan.func @h(
// CHECK:        stan.print fatal_error({{.*}}
// CHECK-NEXT:   %[[U:.*]] = stan.uninitialized : !stan.real
// CHECK-NEXT:   stan.return %[[U]] : !stan.real
// CHECK:      stan.func @k(
// CHECK:        stan.print reject({{.*}}
// CHECK-NEXT:   %[[U:.*]] = stan.uninitialized : !stan.real
// CHECK-NEXT:   stan.return %[[U]] : !stan.real
// CHECK:      stan.block transformed_data {
// CHECK:        stan.call f(%{{.*}}) user autodiff [0] : (!stan.int) -> !stan.int
// CHECK:        stan.call f.1(%{{.*}}) user autodiff [0] : (!stan.real) -> !stan.real
// CHECK:        stan.call g(%{{.*}}) user autodiff [0] : (!stan.vector) -> ()

// TEXT:      int f(int n) {
// TEXT-NEXT:   if (n > 1) {
// TEXT-NEXT:     return n * f(n - 1);
// TEXT-NEXT:   }
// TEXT-NEXT:   return 1;
// TEXT-NEXT: }
// TEXT:      real x = f(2);
// TEXT-NEXT: real y = f(2.5);
// TEXT-NEXT: g([x, y]');
