// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s --generic | filecheck %s --check-prefix=GENERIC
// RUN: stan-opt %s -t llvm | filecheck %s --check-prefix=LLVM
// RUN: stan-opt %s -t asm | filecheck %s --check-prefix=ASM

// CHECK: func.func @twice(%x: f64) -> f64
// GENERIC: "func.func"()
// LLVM: define i32 @twice(
// LLVM: fadd
// ASM: twice:
func.func @twice(%x: f64) -> f64 attributes {rt.entry = #rt.entry} {
  %y = arith.addf %x, %x : f64
  func.return %y : f64
}
