// Every op of the `rt` dialect: parsed, printed, parsed again.
// RUN: stan-opt %s | stan-opt | filecheck %s

// CHECK-LABEL: func.func @memory
func.func @memory(%theta: !rt.buf<f64>, %n: i64, %x: f64) {
  // CHECK: %[[MARK:.*]] = "rt.mark_arena"() : () -> !rt.mark
  %mark = "rt.mark_arena"() : () -> !rt.mark
  // CHECK: "rt.alloc"(%{{.*}}) <{zero}> : (i64) -> !rt.buf<f64>
  %a = "rt.alloc"(%n) <{zero}> : (i64) -> !rt.buf<f64>
  // CHECK: "rt.alloc"(%{{.*}}) <{variable}> : (i64) -> !rt.buf<f64>
  %b = "rt.alloc"(%n) <{variable}> : (i64) -> !rt.buf<f64>
  // CHECK: "rt.load"(%{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64) -> f64
  %v = "rt.load"(%theta, %n) : (!rt.buf<f64>, i64) -> f64
  // CHECK: "rt.store"(%{{.*}}, %{{.*}}, %{{.*}}) <{initial}> : (f64, !rt.buf<f64>, i64) -> ()
  "rt.store"(%v, %a, %n) <{initial}> : (f64, !rt.buf<f64>, i64) -> ()
  // CHECK: "rt.view"(%{{.*}}, %{{.*}}) : (!rt.buf<f64>, i64) -> !rt.buf<f64>
  %view = "rt.view"(%a, %n) : (!rt.buf<f64>, i64) -> !rt.buf<f64>
  // CHECK: "rt.copy"(%{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, !rt.buf<f64>, i64) -> ()
  "rt.copy"(%b, %view, %n) : (!rt.buf<f64>, !rt.buf<f64>, i64) -> ()
  // CHECK: "rt.fill"(%{{.*}}, %{{.*}}, %{{.*}}) : (!rt.buf<f64>, f64, i64) -> ()
  "rt.fill"(%b, %x, %n) : (!rt.buf<f64>, f64, i64) -> ()
  // CHECK: "rt.release"(%[[MARK]]) : (!rt.mark) -> ()
  "rt.release"(%mark) : (!rt.mark) -> ()
  func.return
}

// CHECK-LABEL: func.func @bound
func.func @bound(%n: i64) {
  // CHECK: "rt.bound"() <{slot = 3 : i64}> : () -> i32
  %s = "rt.bound"() <{slot = 3 : i64}> : () -> i32
  // CHECK: "rt.alloc_bound"(%{{.*}}) : (i64) -> !rt.buf<f64>
  %t = "rt.alloc_bound"(%n) : (i64) -> !rt.buf<f64>
  // CHECK: "rt.set_bound"(%{{.*}}) <{slot = 4 : i64}> : (!rt.buf<f64>) -> ()
  "rt.set_bound"(%t) <{slot = 4 : i64}> : (!rt.buf<f64>) -> ()
  func.return
}

// CHECK-LABEL: func.func @services
func.func @services(%x: f64, %ok: i1, %n: i64) {
  // CHECK: "rt.math"(%{{.*}}) <{function = "lgamma"}> : (f64) -> f64
  %m = "rt.math"(%x) <{function = "lgamma"}> : (f64) -> f64
  // CHECK: "rt.check"(%{{.*}}, %{{.*}}) <{site = 0 : i64, status = 1 : i64}> : (i1, f64) -> ()
  "rt.check"(%ok, %x) <{site = 0 : i64, status = 1 : i64}> : (i1, f64) -> ()
  // CHECK: "rt.kernel"(%{{.*}}) <{function = "print_real"}> : (f64) -> ()
  "rt.kernel"(%m) <{function = "print_real"}> : (f64) -> ()
  // CHECK: "rt.string"() <{value = "text"}> : () -> !rt.buf<i8>
  %t = "rt.string"() <{value = "text"}> : () -> !rt.buf<i8>
  // CHECK: "rt.null"() : () -> !rt.buf<f64>
  %null = "rt.null"() : () -> !rt.buf<f64>
  // CHECK: "rt.is_null"(%{{.*}}) : (!rt.buf<f64>) -> i1
  %end = "rt.is_null"(%null) : (!rt.buf<f64>) -> i1
  func.return
}
