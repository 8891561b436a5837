// RUN: stan-opt --mlir-print-debuginfo %s | filecheck %s
// RUN: sed 's/stan.parameter/stan.parametr/' %s > %t.mlir && not stan-opt %t.mlir 2>&1 | filecheck %s --check-prefix=ERROR

// Locations as upstream's mlir-opt prints them: aliases are defined behind the module, also by each other. Messages
// keep the line.
"builtin.module"() ({
  "stan.program"() <{sym_name = "m"}> ({
    "stan.block"() <{kind = "parameters"}> ({
      %x = "stan.parameter"() <{var_name = "x", constraint = "none", operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !stan.var<!stan.real> loc(#loc3)
    }) : () -> () loc(#loc2)
  }) : () -> () loc(#loc1)
}) : () -> () loc(#loc)
#loc = loc("a.stan":1:1)
#loc3 = loc("x"(#loc1))
#loc1 = loc("a.stan":1:2)
#loc2 = loc("a.stan":1:3)

// CHECK:      stan.parameter x {{.*}} loc("x"("a.stan":1:2))
// CHECK-NEXT: loc("a.stan":1:3)
// CHECK-NEXT: loc("a.stan":1:2)
// CHECK-NEXT: loc("a.stan":1:1)

// ERROR: :9: error: Operation stan.parametr is not registered
