// RUN: stan-opt %s -O3 -t llvm | filecheck %s

// The additions of adjoints, and no others, may be re-associated.
// CHECK-LABEL: define i32 @accumulate(
// CHECK:         [[AT:%.*]] = getelementptr inbounds double, ptr %a, i64 %i
// CHECK-NEXT:    [[OLD:%.*]] = load double, ptr [[AT]], align 8
// CHECK-NEXT:    [[NEW:%.*]] = fadd reassoc contract double [[OLD]], %x
// CHECK-NEXT:    store double [[NEW]], ptr [[AT]], align 8
// CHECK:         %y = load double, ptr [[TAKEN:%.*]], align 8
// CHECK-NEXT:    store double 0.0, ptr [[TAKEN]], align 8
func.func @accumulate(%a: !rt.buf<f64>, %i: i64, %x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  ad.accumulate %a[%i], %x
  %y = ad.take %a[%i]
  func.return %y : f64
}

// A record: the one below, then the values.
// CHECK-LABEL: define i32 @records(
// CHECK:         %top = phi ptr
// CHECK-NEXT:    store ptr null, ptr %top, align 8
// CHECK-NEXT:    [[FIRST:%.*]] = getelementptr inbounds i8, ptr %top, i64 8
// CHECK-NEXT:    store double %x, ptr [[FIRST]], align 8
// CHECK-NEXT:    [[SECOND:%.*]] = getelementptr inbounds i8, ptr %top, i64 16
// CHECK-NEXT:    store i64 %n, ptr [[SECOND]], align 8
// CHECK-NEXT:    %below = load ptr, ptr %top, align 8
// CHECK:         %y = load double
// CHECK:         %m = load i64
func.func @records(%x: f64, %n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %null = rt.null : !rt.buf<f64>
  %top = ad.push %null, %x, %n : f64, i64
  %below, %y, %m = ad.pop %top : !rt.buf<f64>, f64, i64
  func.return %y : f64
}
