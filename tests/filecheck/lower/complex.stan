// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt -O 3 --unit gradient_propto -t llvm %s | filecheck %s --check-prefix=LLVM
// Complex numbers are pairs of reals before any pass sees them: two variables, two arguments, a tuple as a result.

// CHECK:      stan.func @turned(z.real %{{.*}}: !stan.real, z.imag %{{.*}}: !stan.real) -> (!stan.tuple<[!stan.real, !stan.real]>)
// CHECK-NOT:  stan.complex
// CHECK:      stan.parameter v.real[%{{.*}}] : !stan.var<!stan.vector>
// CHECK:      stan.parameter v.imag[%{{.*}}] : !stan.var<!stan.vector>
// CHECK-NOT:  stan.complex
// CHECK:      stan.call turned(%{{.*}}, %{{.*}}) user
// CHECK:      stan.field 2 of
// CHECK-NOT:  stan.complex
// LLVM:       fmul
functions {
  complex turned(complex z) {
    return 1i * z;
  }
}
parameters {
  complex_vector[4] v;
}
model {
  target += -norm(turned(v[1]) - v[2]);
}
