// RUN: stan-opt %s -O2 -t llvm | filecheck %s --check-prefixes CHECK,STRICT
// RUN: stan-opt %s -O3 -t llvm | filecheck %s --check-prefixes CHECK,LOOSE

// Where nothing can be widened, level 3 calls libm rather than have LLVM compile our functions for one call.
// CHECK-LABEL: define i32 @kinds(
// STRICT:        %square = fmul double %x, %x
// LOOSE:         %square = fmul contract double %x, %x
// CHECK-NEXT:    %root = call double @llvm.sqrt.f64(double %square)
// STRICT-NEXT:   %e = call double @ulam.exp(double %root) noinline
// LOOSE-NEXT:    %e = call double @exp(double %root) nobuiltin #1
// CHECK-NEXT:    %s = call double @sin(double %e) nobuiltin #1
// CHECK-NEXT:    %d = call double @ulam_digamma(double %s)
func.func @kinds(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %square = rt.math square(%x) : (f64) -> f64
  %root = rt.math sqrt(%square) : (f64) -> f64
  %e = rt.math exp(%root) : (f64) -> f64
  %s = rt.math sin(%e) : (f64) -> f64
  %d = rt.math digamma(%s) : (f64) -> f64
  func.return %d : f64
}

// So do forms that are written at the call, of which our functions are a part.
// CHECK-LABEL: define i32 @forms(
// CHECK:         call double @ulam.log1m_exp(double %{{[.0-9]+}}) noinline
// CHECK:         call double @ulam.log(double %y) noinline
func.func @forms(%x: f64, %y: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %d = rt.math log_diff_exp(%x, %y) : (f64, f64) -> f64
  %m = rt.math lmultiply(%d, %y) : (f64, f64) -> f64
  func.return %m : f64
}

// Within a loop our functions are inlined, so that it can be widened.
// CHECK-LABEL: define i32 @loop(
// CHECK:         %y = call double @ulam.exp(double %x){{$}}
// CHECK:         call double @ulam.log(double %y){{$}}
func.func @loop(%n: i64, %a: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %x = rt.load %a[%i] : f64
    %y = rt.math exp(%x) : (f64) -> f64
    %m = rt.math lmultiply(%x, %y) : (f64, f64) -> f64
    rt.store %m, %a[%i] : f64
  }
  func.return
}

// On a loop-carried chain libm's scalar functions are faster; strict levels use one form everywhere.
// CHECK-LABEL: define i32 @chain(
// STRICT:        %y = call double @ulam.exp(double %x)
// LOOSE:         %y = call double @exp(double %x) nobuiltin #1
func.func @chain(%n: i64, %start: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %start) -> (f64) : i64 {
    %y = rt.math exp(%x) : (f64) -> f64
    scf.yield %y : f64
  } {rt.loop = #rt.loop<serial>}
  func.return %r : f64
}

// Only what is used is defined.
// CHECK:     define internal double @ulam.exp(double %x) alwaysinline
// CHECK:     define internal double @ulam.log(double %x) alwaysinline
// CHECK:     define internal double @ulam.log1m_exp(double %x) alwaysinline
// CHECK-NOT: define internal double
