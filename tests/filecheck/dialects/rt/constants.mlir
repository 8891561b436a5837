// Elements that are constants: the bits survive printing, equal ones are emitted once.
// RUN: stan-opt %s | stan-opt | filecheck %s
// RUN: stan-opt %s -t llvm | filecheck %s --check-prefix=LLVM

// CHECK-LABEL: func.func @evaluate
// LLVM: @.constants.0 = private unnamed_addr constant [5 x double] [double 0.5, double -0.0, double 0x3FD5555555555555, double 0x7FE1CCF385EBC8A0, double 0x0000000000000001], align 8
// LLVM-NEXT: @.constants.1 = private unnamed_addr constant [2 x i32] [i32 7, i32 -2147483648], align 8
// LLVM-NOT: @.constants.2
func.func @evaluate(%out: !rt.buf<f64>, %whole: !rt.buf<i32>, %n: i64) attributes {rt.entry = #rt.entry} {
  // CHECK: rt.constants array<f64: 5.000000e-01, -0.000000e+00, 0.33333333333333331, 1.000000e+308, 4.940660e-324> : !rt.buf<f64>
  %a = rt.constants array<f64: 0.5, -0.0, 0.3333333333333333, 1.000000e+308, 5.0e-324> : !rt.buf<f64>
  %b = rt.constants array<f64: 0.5, -0.0, 0.3333333333333333, 1.000000e+308, 5.0e-324> : !rt.buf<f64>
  // CHECK: rt.constants array<i32: 7, -2147483648> : !rt.buf<i32>
  %c = rt.constants array<i32: 7, -2147483648> : !rt.buf<i32>
  // LLVM: call void @llvm.memcpy.p0.p0.i64(ptr align 8 %{{.*}}, ptr align 8 @.constants.0, i64
  rt.copy %a to %out, %n : !rt.buf<f64>
  rt.copy %b to %out, %n : !rt.buf<f64>
  rt.copy %c to %whole, %n : !rt.buf<i32>
  func.return
}
