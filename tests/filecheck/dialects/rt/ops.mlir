// Every op of the `rt` dialect: parsed, printed, parsed again.
// RUN: stan-opt %s | stan-opt | filecheck %s

// CHECK-LABEL: func.func @memory
func.func @memory(%theta: !rt.buf<f64>, %n: i64, %x: f64) {
  // CHECK: %[[MARK:.*]] = rt.mark_arena
  %mark = rt.mark_arena
  // CHECK: rt.alloc zero %{{.*}} : !rt.buf<f64>
  %a = rt.alloc zero %n : !rt.buf<f64>
  // CHECK: rt.alloc variable %{{.*}} : !rt.buf<f64>
  %b = rt.alloc variable %n : !rt.buf<f64>
  // CHECK: rt.load %{{.*}}[%{{.*}}] : f64
  %v = rt.load %theta[%n] : f64
  // CHECK: rt.store %{{.*}}, %{{.*}}[%{{.*}}] initial : f64
  rt.store %v, %a[%n] initial : f64
  // CHECK: rt.view %{{.*}}[%{{.*}}] : !rt.buf<f64>
  %view = rt.view %a[%n] : !rt.buf<f64>
  // CHECK: rt.copy %{{.*}} to %{{.*}}, %{{.*}} : !rt.buf<f64>
  rt.copy %view to %b, %n : !rt.buf<f64>
  // CHECK: rt.fill %{{.*}}, %{{.*}}, %{{.*}} : f64
  rt.fill %b, %x, %n : f64
  // CHECK: rt.release %[[MARK]]
  rt.release %mark
  func.return
}

// CHECK-LABEL: func.func @bound
func.func @bound(%n: i64) {
  // CHECK: rt.bound 3 : i32
  %s = rt.bound 3 : i32
  // CHECK: rt.bound 5 {rt.never_negative = #rt.never_negative} : !rt.buf<f64>
  %u = rt.bound 5 {rt.never_negative = #rt.never_negative} : !rt.buf<f64>
  // CHECK: rt.alloc_bound %{{.*}} : !rt.buf<f64>
  %t = rt.alloc_bound %n : !rt.buf<f64>
  // CHECK: rt.set_bound 4, %{{.*}} : !rt.buf<f64>
  rt.set_bound 4, %t : !rt.buf<f64>
  // CHECK: rt.layout "unique rows" slot 5 outcome %{{.*}} of ["few rows"] figures ["rows"](%{{.*}} : i64)
  rt.layout "unique rows" slot 5 outcome %n of ["few rows"] figures ["rows"] (%n : i64)
  // CHECK: rt.layout "none" slot 7 outcome %{{.*}} of [] figures []()
  rt.layout "none" slot 7 outcome %n of [] figures [] ( )
  func.return
}

// CHECK-LABEL: func.func @services
func.func @services(%x: f64, %ok: i1, %n: i64) {
  // CHECK: rt.math lgamma(%{{.*}}) : (f64) -> f64
  %m = rt.math lgamma(%x) : (f64) -> f64
  // CHECK: rt.check %{{.*}} site 0 status 1 with %{{.*}} : f64
  rt.check %ok site 0 status 1 with %x : f64
  // CHECK: rt.kernel print_real(%{{.*}}) : (f64) -> ()
  rt.kernel print_real(%m) : (f64) -> ()
  // CHECK: rt.string "text"
  %t = rt.string "text"
  // CHECK: rt.null : !rt.buf<f64>
  %null = rt.null : !rt.buf<f64>
  // CHECK: rt.is_null %{{.*}} : !rt.buf<f64>
  %end = rt.is_null %null : !rt.buf<f64>
  func.return
}
