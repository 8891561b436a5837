// RUN: stan-opt %s -O2 -t llvm | filecheck %s

// A record is taken from the recorder's chunk: a call only where the chunk is full. Values are single stores.
// CHECK-LABEL: define i32 @traced(
// CHECK:         [[FIRST:%.*]] = load ptr, ptr %recorder, align 8
// CHECK-NEXT:    [[LIMITAT:%.*]] = getelementptr i8, ptr %recorder, i64 8
// CHECK-NEXT:    [[LIMIT:%.*]] = load ptr, ptr [[LIMITAT]], align 8
// CHECK-NEXT:    [[END:%.*]] = getelementptr i8, ptr [[FIRST]], i64 24
// CHECK-NEXT:    [[FITS:%.*]] = icmp ule ptr [[END]], [[LIMIT]]
// CHECK-NEXT:    br i1 [[FITS]], label %trace, label %trace.full, !prof
// CHECK-NEXT:  trace:
// CHECK-NEXT:    %record = phi ptr [ [[FIRST]], %entry ], [ [[SECOND:%.*]], %trace.full ]
// CHECK-NEXT:    [[AFTER:%.*]] = getelementptr i8, ptr %record, i64 24
// CHECK-NEXT:    store ptr [[AFTER]], ptr %recorder, align 8
// CHECK-NEXT:    store i64 7, ptr %record, align 8
// CHECK-NEXT:    [[PROGRESS:%.*]] = getelementptr i8, ptr %record, i64 4
// CHECK-NEXT:    store i32 3, ptr [[PROGRESS]], align 4
// CHECK-NEXT:    [[SLOT:%.*]] = getelementptr i8, ptr %record, i64 16
// CHECK-NEXT:    store double %x, ptr [[SLOT]], align 8
// CHECK:       trace.full:
// CHECK-NEXT:    call void @ulam_trace_grow(ptr %recorder, i64 24)
// CHECK-NEXT:    [[SECOND]] = load ptr, ptr %recorder, align 8
func.func @traced(%recorder: !rt.buf<i64>, %x: f64) attributes {entry} {
  %record = "trace.block"(%recorder) <{number = 7 : i64, slots = 2 : i64}> : (!rt.buf<i64>) -> !trace.record
  "trace.guard"(%record) <{progress = 3 : i64}> : (!trace.record) -> ()
  "trace.value"(%record, %x) <{slot = 1 : i64}> : (!trace.record, f64) -> ()
  func.return
}

// CHECK-LABEL: define i32 @container(
// CHECK:         call void @ulam_trace_container(ptr %recorder, ptr {{%.*}}, ptr %v, i64 %n, i32 8, i64 64)
// CHECK-NEXT:    [[SIZE:%.*]] = getelementptr i8, ptr %record, i64 16
// CHECK-NEXT:    store i64 %n, ptr [[SIZE]], align 8
func.func @container(%recorder: !rt.buf<i64>, %v: !rt.buf<f64>, %n: i64) attributes {entry} {
  %record = "trace.block"(%recorder) <{number = 1 : i64, slots = 2 : i64}> : (!rt.buf<i64>) -> !trace.record
  "trace.container"(%record, %v, %recorder, %n, %n) <{slot = 0 : i64, most = 64 : i64}> : (!trace.record, !rt.buf<f64>, !rt.buf<i64>, i64, i64) -> ()
  func.return
}
