// RUN: stan-opt --unit value_propto -t mlir %s | filecheck %s
// RUN: stan-opt --unit gradient_propto -t mlir %s | filecheck %s --check-prefix=GRAD
// RUN: stan-opt --unit value_propto -t llvm %s | filecheck %s --check-prefix=LLVM

// A function that calls itself is written once, with its arguments flattened; its stack is guarded.
functions {
  vector turn(vector v, real x, int n) {
    if (n == 0) {
      return v;
    }
    return turn(v * x, sin(x), n - 1);
  }
}
parameters {
  vector[2] v;
  real x;
}
model {
  target += sum(turn(v, x, 3));
}
// CHECK-LABEL: func.func @evaluate
// CHECK: func.call @user.turn(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64, f64, i32) -> (!rt.buf<f64>, i64)
// CHECK-LABEL: func.func @user.turn(%v: !rt.buf<f64>, %0: i64, %x: f64, %n: i32) -> (!rt.buf<f64>, i64) {
// CHECK: rt.stack_guard site {{.*}}
// CHECK: scf.if
// CHECK: func.call @user.turn
// CHECK: %[[OUT:.*]] = rt.alloc
// CHECK: rt.copy %{{.*}} to %[[OUT]],
// CHECK: func.return %[[OUT]],

// The forward version takes shadows of buffers and returns those of results, and a record; the reverse version takes the
// record and returns adjoints of scalars. The plain one is gone.
// GRAD-LABEL: func.func @evaluate
// GRAD: %{{.*}}, %{{.*}}, %{{.*}}, %[[RECORD:.*]] = func.call @user.turn.forward
// GRAD: %{{.*}} = func.call @user.turn.reverse(%[[RECORD]]) : (!rt.buf<f64>) -> f64
// GRAD-NOT: func.func @user.turn(
// GRAD-LABEL: func.func @user.turn.forward
// GRAD-SAME: -> (!rt.buf<f64>, i64, !rt.buf<f64>, !rt.buf<f64>)
// GRAD: rt.stack_guard site
// GRAD: func.call @user.turn.forward
// GRAD: %[[PUSHED:.*]] = ad.push
// GRAD: func.return %{{.*}}, %{{.*}}, %{{.*}}, %[[PUSHED]]
// GRAD-LABEL: func.func @user.turn.reverse
// GRAD-SAME: (%[[TAKEN:.*]]: !rt.buf<f64>) -> f64
// GRAD: ad.pop %[[TAKEN]]
// GRAD: rt.stack_guard site
// GRAD: func.call @user.turn.reverse
// GRAD: func.return %{{.*}} : f64

// LLVM-LABEL: define internal i32 @user.turn(ptr noalias %context
// LLVM: call ptr @llvm.frameaddress.p0(i32 0)
// LLVM: call i32 @ulam_stack_exhausted(ptr %context)
