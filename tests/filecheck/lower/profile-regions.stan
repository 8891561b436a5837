// A region is a branch on a condition that only holds when the region has begun: nothing moves across its edges, at no
// level, and nothing inside is fused with its reverse, which has a region of its own.
// RUN: stan-opt %s -O0 --unit gradient_propto | filecheck %s
// RUN: stan-opt %s -O3 --unit gradient_propto | filecheck %s
// RUN: stan-opt %s -O3 -t llvm --unit gradient_propto | filecheck %s --check-prefix=LLVM

data {
  int N;
  vector[N] x;
}
parameters {
  real a;
}
model {
  for (n in 1:N) {
    profile("invariant") {
      target += exp(a) * x[n];
    }
  }
  profile("data") {
    target += -square(a) * sum(exp(x));
  }
}

// CHECK-LABEL: func.func @evaluate
// CHECK:      scf.for
// CHECK-NOT:  "exp"
// CHECK:        [[outer:%.*]] = ad.profile_begin 0 named 0 gradient
// CHECK:        scf.if [[outer]]
// CHECK:          rt.math exp({{.*}})
// CHECK:        {ad.profile = #ad.profile}
// CHECK-NOT:  "exp"
// CHECK:        ad.profile_end [[outer]], 0 named 0 gradient
// CHECK:      [[data:%.*]] = ad.profile_begin 1 named 1 gradient
// CHECK:      scf.if [[data]]
// CHECK:        scf.for
// CHECK:          rt.math exp({{.*}})
// CHECK:      ad.profile_end [[data]],
// CHECK:      [[back:%.*]] = ad.profile_begin 1 named 1 gradient reverse
// CHECK:      scf.if [[back]]
// CHECK:      ad.profile_end [[back]], 1 named 1 gradient reverse
// CHECK:      scf.for
// CHECK:        [[inner:%.*]] = ad.profile_begin 0 named 0 gradient reverse
// CHECK:        scf.if [[inner]]
// CHECK:        ad.profile_end [[inner]],

// LLVM: [[status:%.*]] = call i32 @ulam_profile_begin(ptr %context, i32 0, i32 0, i32 1)
// LLVM: icmp ne i32 [[status]], 0
// LLVM: call void @ulam_profile_end(ptr %context, i32 0, i32 0, i32 1)
// LLVM: call i32 @ulam_profile_begin(ptr %context, i32 1, i32 1, i32 3)
