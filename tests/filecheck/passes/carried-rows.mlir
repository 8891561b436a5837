// RUN: stan-opt --split-input-file --verify-each -p carried-rows{function=evaluate},dce,verify-dominance %s | filecheck %s

// Rows that a loop hands on, or another one, are in one memory; a log_sum_exp makes each of the one before.
// CHECK-LABEL: @evaluate
// CHECK:       %[[ALL:.*]] = rt.alloc variable
// CHECK:       %[[FIRST:.*]] = rt.view %[[ALL]][
// CHECK:       rt.copy %f to %[[FIRST]]
// CHECK:       scf.for %t = %{{.*}} : i64 {
// CHECK:         %[[BEFORE:.*]] = rt.view %[[ALL]][
// CHECK:         %[[NEXT:.*]] = rt.view %[[ALL]][
// CHECK:         %[[CHOSEN:.*]] = rt.alloc %count
// CHECK:         scf.if %c {
// CHECK:           rt.copy %s to %[[CHOSEN]], %count initial
// CHECK:         } else {
// CHECK:           rt.copy %[[BEFORE]] to %[[CHOSEN]], %count initial
// CHECK:         rt.load %[[CHOSEN]][
// CHECK:         rt.store %{{.*}}, %[[NEXT]][
// CHECK:       %[[LAST:.*]] = rt.view %[[ALL]][
// CHECK:       rt.load %[[LAST]][
func.func @evaluate(%count: i64, %times: i64, %c: i1, %w: f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %lowest = arith.constant 0xfff0000000000000 : f64
  %f = rt.alloc %count : !rt.buf<f64>
  rt.fill %f, %w, %count initial : f64
  %s = rt.alloc %count : !rt.buf<f64>
  rt.fill %s, %zero, %count initial : f64
  %last = scf.for %t = %i0 to %times step %i1 iter_args(%before = %f) -> (!rt.buf<f64>) : i64 {
    %next = rt.alloc %count : !rt.buf<f64>
    %from = scf.if %c -> (!rt.buf<f64>) {
      scf.yield %s : !rt.buf<f64>
    } else {
      scf.yield %before : !rt.buf<f64>
    }
    scf.for %k = %i0 to %count step %i1 : i64 {
      %top = scf.for %j = %i0 to %count step %i1 iter_args(%most = %lowest) -> (f64) : i64 {
        %x = rt.load %from[%j] : f64
        %larger = arith.maximumf %most, %x : f64
        scf.yield %larger : f64
      }
      %sum = scf.for %j = %i0 to %count step %i1 iter_args(%total = %zero) -> (f64) : i64 {
        %x = rt.load %from[%j] : f64
        %gap = arith.subf %x, %top : f64
        %e = rt.math exp(%gap) : (f64) -> f64
        %more = arith.addf %total, %e : f64
        scf.yield %more : f64
      }
      %log = rt.math log(%sum) : (f64) -> f64
      %y = arith.addf %top, %log : f64
      rt.store %y, %next[%k] initial : f64
    }
    scf.yield %next : !rt.buf<f64>
  }
  %x = rt.load %last[%i0] : f64
  ad.target_add %x
  func.return
}

// -----

// Not rows of another length, and none of which no log_sum_exp is made.
// CHECK-LABEL: @evaluate
// CHECK:       iter_args(%before = %f)
func.func @evaluate(%count: i64, %half: i64, %times: i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %f = rt.alloc %half : !rt.buf<f64>
  rt.fill %f, %zero, %half initial : f64
  %last = scf.for %t = %i0 to %times step %i1 iter_args(%before = %f) -> (!rt.buf<f64>) : i64 {
    %next = rt.alloc %count : !rt.buf<f64>
    scf.for %k = %i0 to %count step %i1 : i64 {
      %sum = scf.for %j = %i0 to %count step %i1 iter_args(%total = %zero) -> (f64) : i64 {
        %x = rt.load %before[%j] : f64
        %gap = arith.subf %x, %zero : f64
        %e = rt.math exp(%gap) : (f64) -> f64
        %more = arith.addf %total, %e : f64
        scf.yield %more : f64
      }
      %log = rt.math log(%sum) : (f64) -> f64
      %y = arith.addf %zero, %log : f64
      rt.store %y, %next[%k] initial : f64
    }
    scf.yield %next : !rt.buf<f64>
  }
  %x = rt.load %last[%i0] : f64
  ad.target_add %x
  func.return
}
