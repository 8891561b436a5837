// RUN: stan-opt %s -O3 -t llvm | filecheck %s

// CHECK-LABEL: define i32 @sum(
// CHECK:         br label %for
// CHECK-NEXT:  for:
// CHECK-NEXT:    %i = phi i64 [ 0, %entry ], [ [[NEXT:%.*]], %for.body ]
// CHECK-NEXT:    %acc = phi double [ 0.0, %entry ], [ %more, %for.body ]
// CHECK-NEXT:    [[GO:%.*]] = icmp slt i64 %i, %n
// CHECK-NEXT:    br i1 [[GO]], label %for.body, label %for.end
// CHECK-NEXT:  for.body:
// CHECK-NEXT:    %x = sitofp i64 %i to double
// CHECK-NEXT:    %more = fadd reassoc contract double %acc, %x
// CHECK-NEXT:    [[NEXT]] = add nsw i64 %i, 1
// CHECK-NEXT:    br label %for, !llvm.loop [[LOOP:!.*]]
// CHECK-NEXT:  for.end:
// CHECK-NEXT:    store double %acc, ptr %out.0, align 8
func.func @sum(%n: i64) -> f64 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %start = arith.constant 0.0 : f64
  %total = scf.for %i = %zero to %n step %one iter_args(%acc = %start) -> (f64) : i64 {
    %x = arith.sitofp %i : i64 to f64
    %more = arith.addf %acc, %x fastmath<reassoc> : f64
    scf.yield %more : f64
  }
  func.return %total : f64
}

// CHECK-LABEL: define i32 @choose(
// CHECK:         br i1 %t, label %then, label %else
// CHECK-NEXT:  then:
// CHECK-NEXT:    %twice = fadd contract double %x, %x
// CHECK-NEXT:    br label %endif
// CHECK-NEXT:  else:
// CHECK-NEXT:    br label %endif
// CHECK-NEXT:  endif:
// CHECK-NEXT:    %r = phi double [ %twice, %then ], [ %x, %else ]
func.func @choose(%t: i1, %x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %r = scf.if %t -> (f64) {
    %twice = arith.addf %x, %x : f64
    scf.yield %twice : f64
  } else {
    scf.yield %x : f64
  }
  func.return %r : f64
}

// CHECK-LABEL: define i32 @halve(
// CHECK:       while:
// CHECK-NEXT:    %x.1 = phi double [ %x, %entry ], [ %y, %while.body ]
// CHECK-NEXT:    %go = fcmp ogt double %x.1, 1.0
// CHECK-NEXT:    br i1 %go, label %while.body, label %while.end
// CHECK-NEXT:  while.body:
// CHECK-NEXT:    %y = fmul contract double %x.1, 0.5
// CHECK-NEXT:    br label %while
// CHECK-NEXT:  while.end:
// CHECK-NEXT:    store double %x.1, ptr %out.0, align 8
func.func @halve(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %one = arith.constant 1.0 : f64
  %half = arith.constant 0.5 : f64
  %r = scf.while (%x_1 = %x) : (f64) -> (f64) {
    %go = arith.cmpf ogt, %x_1, %one : f64
    scf.condition(%go) %x_1 : f64
  } do {
  ^bb0(%x_2: f64):
    %y = arith.mulf %x_2, %half : f64
    scf.yield %y : f64
  }
  func.return %r : f64
}

// A call tests the status; results come through stack slots of the entry block.
// CHECK-LABEL: define i32 @caller(
// CHECK-NEXT:  entry:
// CHECK-NEXT:    [[SLOT:%.*]] = alloca double, align 8
// CHECK-NEXT:    [[STATUS:%.*]] = call i32 @callee(ptr %context, ptr %bound, double %x, ptr [[SLOT]])
// CHECK-NEXT:    [[FINE:%.*]] = icmp eq i32 [[STATUS]], 0
// CHECK-NEXT:    br i1 [[FINE]], label %returned, label %failed, !prof
// CHECK-NEXT:  returned:
// CHECK-NEXT:    %r = load double, ptr [[SLOT]], align 8
// CHECK:       failed:
// CHECK-NEXT:    ret i32 [[STATUS]]
func.func @caller(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %r = func.call @callee(%x) : (f64) -> f64
  func.return %r : f64
}

// An error of a call that has sites of its own: they are added to the function's.
// CHECK-LABEL: define i32 @second_caller(
// CHECK:       failed:
// CHECK-NEXT:    [[SITE:%.*]] = getelementptr inbounds i8, ptr %context, i64 16
// CHECK-NEXT:    [[NOTED:%.*]] = load i64, ptr [[SITE]], align 8
// CHECK-NEXT:    [[THERE:%.*]] = icmp sge i64 [[NOTED]], 0
// CHECK-NEXT:    [[MOVED:%.*]] = add i64 [[NOTED]], 12
// CHECK-NEXT:    [[FOUND:%.*]] = select i1 [[THERE]], i64 [[MOVED]], i64 [[NOTED]]
// CHECK-NEXT:    store i64 [[FOUND]], ptr [[SITE]], align 8
// CHECK-NEXT:    ret i32
func.func @second_caller(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %r = func.call @callee(%x) {rt.sites = #rt.sites<12>} : (f64) -> f64
  func.return %r : f64
}

// A failed check notes its site and values, behind everything else, and leaves with its status.
// CHECK-LABEL: define internal i32 @callee(
// CHECK:         %ok = fcmp ogt double %x, 0.0
// CHECK-NEXT:    br i1 %ok, label %checked, label %error, !prof
// CHECK-NEXT:  checked:
// CHECK-NEXT:    store double %x, ptr %out.0, align 8
// CHECK-NEXT:    ret i32 0
// CHECK-NEXT:  error:
// CHECK-NEXT:    [[SITE:%.*]] = getelementptr inbounds i8, ptr %context, i64 16
// CHECK-NEXT:    store i64 7, ptr [[SITE]], align 8
// CHECK-NEXT:    [[VALUE:%.*]] = getelementptr inbounds i8, ptr %context, i64 24
// CHECK-NEXT:    store double %x, ptr [[VALUE]], align 8
// CHECK-NEXT:    ret i32 1
func.func @callee(%x: f64) -> f64 {
  %zero = arith.constant 0.0 : f64
  %ok = arith.cmpf ogt, %x, %zero : f64
  rt.check %ok site 7 status 1 with %x : f64
  func.return %x : f64
}

// CHECK: [[UNROLL:!.*]] = !{!"llvm.loop.unroll.runtime.disable"}
// CHECK: [[PROGRESS:!.*]] = !{!"llvm.loop.mustprogress"}
// CHECK: [[LOOP]] = distinct !{[[LOOP]], [[UNROLL]], [[PROGRESS]]}
