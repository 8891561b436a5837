// RUN: stan-opt --split-input-file -p prefix-sums,verify-dominance %s | filecheck %s

// The sums of all lengths that rows have are those of one loop; a row reads that of its own.
// CHECK-LABEL: @evaluate
// CHECK:      [[MEMORY:%.*]] = rt.bound 2 : !rt.buf<i64>
// CHECK:      [[LONGEST:%.*]] = rt.load [[MEMORY]]
// CHECK:      [[TABLE:%.*]] = rt.alloc
// CHECK-NEXT: rt.store %zero, [[TABLE]][%{{.*}}] initial
// CHECK:      [[END:%.*]] = arith.addi %i0, [[LONGEST]]
// CHECK:      scf.for {{.*}} to [[END]] {{.*}} iter_args([[SUM:%.*]] = %zero)
// CHECK:        [[MORE:%.*]] = arith.addf [[SUM]]
// CHECK:        rt.store [[MORE]], [[TABLE]]
// CHECK:      scf.for %n
// CHECK:        [[LENGTH:%.*]] = arith.maxsi
// CHECK-NEXT:   rt.load [[TABLE]][[[LENGTH]]]
// CHECK-NOT:    scf.for
// CHECK-LABEL: @bind
// CHECK:      rt.set_bound 2
// CHECK:      scf.for
// CHECK:        [[LENGTH:%.*]] = arith.maxsi
// CHECK:        arith.maxsi %{{.*}}, [[LENGTH]]
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %rows = rt.bound 0 : i64
    %ends = rt.bound 1 : !rt.buf<i64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %end = rt.load %ends[%n] : i64
      %s = scf.for %k = %i0 to %end step %i1 iter_args(%t = %zero) -> (f64) : i64 {
        %x = rt.load %theta[%k] : f64
        %u = arith.addf %t, %x fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      %e = rt.math exp(%s) : (f64) -> f64
      ad.target_add %e
    }
    func.return %zero : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}

// -----

// An end that is the same for all rows, what differs between rows, what rows write, and rows that check.
// CHECK-LABEL: @evaluate
// CHECK-NOT: rt.store {{.*}} initial
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %rows = rt.bound 0 : i64
    %ends = rt.bound 1 : !rt.buf<i64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %zero = arith.constant 0.0 : f64
    %memory = rt.alloc zero %rows : !rt.buf<f64>
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %end = rt.load %ends[%n] : i64
      %s = scf.for %k = %i0 to %rows step %i1 iter_args(%t = %zero) -> (f64) : i64 {
        %x = rt.load %theta[%k] : f64
        %u = arith.addf %t, %x fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      ad.target_add %s
      %begin = rt.load %theta[%n] : f64
      %a = scf.for %k = %i0 to %end step %i1 iter_args(%t = %begin) -> (f64) : i64 {
        %x = rt.load %theta[%k] : f64
        %u = arith.addf %t, %x fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      ad.target_add %a
      %b = scf.for %k = %i0 to %end step %i1 iter_args(%t = %zero) -> (f64) : i64 {
        %x = rt.load %memory[%k] : f64
        %u = arith.addf %t, %x fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      rt.store %b, %memory[%n] : f64
    }
    scf.for %n = %i0 to %rows step %i1 : i64 {
      %end = rt.load %ends[%n] : i64
      %ok = arith.cmpi slt, %end, %rows : i64
      rt.check %ok site 0 status 2 with %end : i64
      %s = scf.for %k = %i0 to %end step %i1 iter_args(%t = %zero) -> (f64) : i64 {
        %x = rt.load %theta[%k] : f64
        %u = arith.addf %t, %x fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      ad.target_add %s
    }
    func.return %zero : f64
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
