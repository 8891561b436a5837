// RUN: stan-opt %s -O2 -t llvm | filecheck %s --check-prefixes CHECK,STRICT
// RUN: stan-opt %s -O3 -t llvm | filecheck %s --check-prefixes CHECK,LOOSE

// Values keep their names; constants are written where they are used.
// CHECK:      define i32 @reals(ptr noalias %context, ptr noalias %bound, double %x, double %y, ptr noalias %out.0) #0 {
// STRICT:       %product = fmul double %x, %y
// STRICT-NEXT:  %sum = fadd double %product, 1.1
// STRICT-NEXT:  %total = fsub double %sum, 2.5
// LOOSE:        %product = fmul contract double %x, %y
// LOOSE-NEXT:   %sum = fadd reassoc contract double %product, 1.1
// LOOSE-NEXT:   %total = fsub contract double %sum, 2.5
// CHECK-NEXT:   %quotient = fdiv double %total, %y
// CHECK-NEXT:   store double %quotient, ptr %out.0, align 8
// CHECK-NEXT:   ret i32 0
func.func @reals(%x: f64, %y: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %c = arith.constant 1.1 : f64
  %d = arith.constant 2.5 : f64
  %product = arith.mulf %x, %y : f64
  %sum = arith.addf %product, %c fastmath<reassoc> : f64
  %total = arith.subf %sum, %d : f64
  %quotient = arith.divf %total, %y : f64
  func.return %quotient : f64
}

// A division by what may be -1 wraps where the instruction would trap.
// CHECK-LABEL: define i32 @division(
// CHECK:         [[MINUS:%.*]] = icmp eq i32 %b, -1
// CHECK-NEXT:    [[SAFE:%.*]] = select i1 [[MINUS]], i32 1, i32 %b
// CHECK-NEXT:    [[Q:%.*]] = sdiv i32 %a, [[SAFE]]
// CHECK-NEXT:    [[NEG:%.*]] = sub i32 0, %a
// CHECK-NEXT:    %q = select i1 [[MINUS]], i32 [[NEG]], i32 [[Q]]
// CHECK-NEXT:    %third = sdiv i32 %q, 3
func.func @division(%a: i32, %b: i32) -> i32 attributes {rt.entry = #rt.entry} {
  %three = arith.constant 3 : i32
  %q = arith.divsi %a, %b : i32
  %third = arith.divsi %q, %three : i32
  func.return %third : i32
}

// CHECK-LABEL: define i32 @conversions(
// CHECK:         %wide = sext i32 %i to i64
// CHECK-NEXT:    %real = sitofp i64 %wide to double
// CHECK-NEXT:    %near = call i32 @llvm.fptosi.sat.i32.f64(double %real)
// CHECK-NEXT:    %less = icmp slt i32 %near, %i
// CHECK-NEXT:    %ordered = fcmp ole double %real, 1.0
// CHECK-NEXT:    %r = select i1 %ordered, i1 %less, i1 true
func.func @conversions(%i: i32) -> i1 attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1.0 : f64
  %true = arith.constant true
  %wide = arith.extsi %i : i32 to i64
  %real = arith.sitofp %wide : i64 to f64
  %near = arith.fptosi %real : f64 to i32
  %less = arith.cmpi slt, %near, %i : i32
  %ordered = arith.cmpf ole, %real, %one : f64
  %r = arith.select %ordered, %less, %true : i1
  func.return %r : i1
}
