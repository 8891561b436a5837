// RUN: stan-opt -t llvm %s | filecheck %s

// The outcome of a layout, and its figures behind it, in slots of the bound table.

// CHECK-LABEL: define i32 @bind
// CHECK: getelementptr inbounds i8, ptr %bound, i64 24
// CHECK-NEXT: store i64 1
// CHECK: getelementptr inbounds i8, ptr %bound, i64 32
// CHECK-NEXT: store i64 77
// CHECK-NOT: store
func.func @bind() attributes {rt.entry = #rt.entry} {
  %outcome = arith.constant 1 : i64
  %rows = arith.constant 77 : i64
  rt.layout "unique rows" slot 3 outcome %outcome of ["too few rows repeat"] figures ["rows"] (%rows : i64)
  func.return
}
