// Each instruction has the place of the statement that it was written for: library functions that of the user's call,
// the reverse sweep a discriminator. Without --locations there is none of it.
// RUN: stan-opt %s -t llvm --unit gradient_propto --locations | filecheck %s
// RUN: stan-opt %s -t llvm --unit gradient_propto | filecheck %s --check-prefix=OFF
functions {
  real twice(real x) {
    return 2
      * sinh(x);
  }
}
parameters {
  real a;
  matrix[2, 2] m;
}
model {
  target += twice(a);
  a ~ gamma(2, 3);
  target += log_determinant(m);
}

// CHECK:      define i32 @evaluate({{.*}}) #0 !dbg [[EVALUATE:![0-9]+]] {
// CHECK:      call double @sinh(double {{.*}}) nobuiltin #1, !dbg [[SINH:![0-9]+]]
// CHECK:      call void @ulam_log_determinant_fast({{.*}}), !dbg [[KERNEL:![0-9]+]]
// CHECK:      call void @ulam_log_determinant_pullback_fast({{.*}}), !dbg [[PULLBACK:![0-9]+]]
// CHECK:      call double @cosh(double {{.*}}) nobuiltin #1, !dbg [[COSH:![0-9]+]]

// CHECK:      !llvm.dbg.cu = !{[[UNIT:![0-9]+]]}
// CHECK:      !DIFile(filename: "{{.*}}debug-info.stan", directory: "")
// CHECK:      [[EVALUATE]] = distinct !DISubprogram(name: "gradient_propto.evaluate"
// CHECK:      [[SINH]] = !DILocation(line: 8, column: 9, scope: [[EVALUATE]])
// CHECK:      !DILocation(line: 17, column: 3, scope: [[EVALUATE]])
// CHECK:      [[KERNEL]] = !DILocation(line: 18, column: 13, scope: [[EVALUATE]])
// CHECK:      [[REVERSE:![0-9]+]] = !DILexicalBlockFile(scope: [[EVALUATE]], file: {{.*}}, discriminator: 1)
// CHECK:      [[PULLBACK]] = !DILocation(line: 18, column: 13, scope: [[REVERSE]])
// CHECK:      [[COSH]] = !DILocation(line: 8, column: 9, scope: [[REVERSE]])

// No place in the library:
// CHECK-NOT:  .stan"
// OFF-NOT:    !dbg
// OFF-NOT:    !DI
// OFF:        define i32 @evaluate({{.*}}) #0 {
// OFF-NOT:    !dbg
// OFF-NOT:    !DI
