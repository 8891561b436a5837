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
func.func @traced(%recorder: !rt.buf<i64>, %x: f64) attributes {rt.entry = #rt.entry} {
  %record = trace.block 7 slots 2 recorder %recorder : !rt.buf<i64>
  trace.guard %record progress 3
  trace.value %record[1] = %x : f64
  func.return
}

// CHECK-LABEL: define i32 @container(
// CHECK:         call void @ulam_trace_container(ptr %recorder, ptr {{%.*}}, ptr %v, i64 %n, i32 8, i64 64)
// CHECK-NEXT:    [[SIZE:%.*]] = getelementptr i8, ptr %record, i64 16
// CHECK-NEXT:    store i64 %n, ptr [[SIZE]], align 8
func.func @container(%recorder: !rt.buf<i64>, %v: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %record = trace.block 1 slots 2 recorder %recorder : !rt.buf<i64>
  trace.container %record[0] = %v most 64 : !rt.buf<f64> with %recorder, %n, %n : !rt.buf<i64>, i64, i64
  func.return
}

// Hooks are called with a variable number of values: two bits tell the kind of each (1 int, 2 real, 3 pointer or size).
// CHECK-LABEL: define i32 @hook(
// CHECK:         call void (ptr, i64, i64, i64, ...) @ulam_trace_hook(ptr %recorder, i64 5, i64 4, i64 249, i32 %k, double %x, ptr %v, i64 %n)
func.func @hook(%recorder: !rt.buf<i64>, %k: i32, %x: f64, %v: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  trace.hook 5(%recorder, %k, %x, %v, %n : !rt.buf<i64>, i32, f64, !rt.buf<f64>, i64)
  func.return
}

// CHECK-LABEL: define i32 @time(
// CHECK:         [[TICKS:%.*]] = call i64 @ulam_ticks()
// CHECK-NEXT:    [[SLOT:%.*]] = getelementptr i8, ptr %record, i64 8
// CHECK-NEXT:    store i64 [[TICKS]], ptr [[SLOT]], align 8
func.func @time(%recorder: !rt.buf<i64>) attributes {rt.entry = #rt.entry} {
  %record = trace.block 1 slots 1 recorder %recorder : !rt.buf<i64>
  trace.time %record[0]
  func.return
}

// Calls that are entered are counted; not more than 4 here.
// CHECK-LABEL: define i32 @depth(
// CHECK:         [[ENTERED:%.*]] = load i64, ptr [[AT:%.*]], align 8
// CHECK-NEXT:    [[FEWER:%.*]] = icmp slt i64 [[ENTERED]], 4
// CHECK-NEXT:    [[ONE:%.*]] = zext i1 [[FEWER]] to i64
// CHECK-NEXT:    [[MORE:%.*]] = add i64 [[ENTERED]], [[ONE]]
// CHECK-NEXT:    store i64 [[MORE]], ptr [[AT]], align 8
// CHECK:         [[LESS:%.*]] = sub i64 {{%.*}}, 1
// CHECK-NEXT:    store i64 [[LESS]], ptr {{%.*}}, align 8
func.func @depth(%recorder: !rt.buf<i64>, %out: !rt.buf<i32>, %zero: i64) attributes {rt.entry = #rt.entry} {
  %deeper = trace.descend 4 recorder %recorder : !rt.buf<i64> : i32
  rt.store %deeper, %out[%zero] : i32
  trace.ascend recorder %recorder : !rt.buf<i64>
  func.return
}
