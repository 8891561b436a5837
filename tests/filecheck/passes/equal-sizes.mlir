// RUN: stan-opt -p equal-sizes,cse,dce,verify-dominance %s | filecheck %s

// Two sizes that `bind` has found to be equal are one; one that is compared in a branch is another.
// CHECK-LABEL: @evaluate
// CHECK:         [[N:%.*]] = rt.bound 1
// CHECK:         [[L:%.*]] = rt.bound 3
// CHECK-NOT:     rt.bound 2
// CHECK:         scf.for {{.*}} to [[N]]
// CHECK:         scf.for {{.*}} to [[N]]
// CHECK:         scf.for {{.*}} to [[L]]
builtin.module {
  func.func @evaluate(%x: f64) {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %n = rt.bound 1 : i64
    %m = rt.bound 2 : i64
    %l = rt.bound 3 : i64
    scf.for %i = %0 to %n step %1 : i64 {
      ad.target_add %x
    }
    scf.for %j = %0 to %m step %1 : i64 {
      ad.target_add %x
    }
    scf.for %k = %0 to %l step %1 : i64 {
      ad.target_add %x
    }
    func.return
  }
  func.func @bind() {
    %d = rt.bound 0 : i64
    %one = arith.constant 1 : i64
    %more = arith.addi %d, %one : i64
    rt.set_bound 1, %more : i64
    %other = arith.subi %d, %one : i64
    rt.set_bound 2, %other : i64
    %third = arith.muli %d, %d : i64
    rt.set_bound 3, %third : i64
    %same = arith.cmpi eq, %other, %more : i64
    rt.check %same site 0 status 3 with %other, %more : i64, i64
    %some = arith.cmpi sgt, %d, %one : i64
    scf.if %some {
      %too = arith.cmpi eq, %third, %more : i64
      rt.check %too site 1 status 3 with %third, %more : i64, i64
    } else {
    }
    func.return
  }
}
