// RUN: stan-opt %s -O2 -t llvm | filecheck %s

// Arena memory is a bump of the cursor; a call only where the chunk is full.
// CHECK-LABEL: define i32 @arena(
// CHECK:         [[SIZE:%.*]] = mul i64 %n, 8
// CHECK:         [[PADDED:%.*]] = and i64 {{%.*}}, -64
// CHECK:         [[CURSOR:%.*]] = load ptr, ptr %context, align 8
// CHECK:         br i1 {{%.*}}, label %bump, label %grow, !prof
// CHECK-NEXT:  grow:
// CHECK-NEXT:    [[GROWN:%.*]] = call ptr @ulam_arena_grow(ptr %context, i64 [[PADDED]])
// CHECK-NEXT:    br label %allocated
// CHECK-NEXT:  bump:
// CHECK-NEXT:    [[MOVED:%.*]] = getelementptr inbounds i8, ptr [[CURSOR]], i64 {{%.*}}
// CHECK-NEXT:    store ptr [[MOVED]], ptr %context, align 8
// CHECK-NEXT:    br label %allocated
// CHECK-NEXT:  allocated:
// CHECK-NEXT:    %a = phi ptr [ [[CURSOR]], %bump ], [ [[GROWN]], %grow ]
// CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr align 8 %a, i8 0, i64 [[SIZE]], i1 false)
// Accesses do not move across a release: the bytes will be those of other buffers.
// CHECK-NEXT:    call void asm sideeffect "", "~{memory}"()
// CHECK:         br i1 {{%.*}}, label %release, label %release_chunks, !prof
// CHECK:         call void @ulam_arena_release(ptr %context, ptr %mark)
func.func @arena(%n: i64) attributes {rt.entry = #rt.entry} {
  %mark = rt.mark_arena
  %a = rt.alloc zero %n : !rt.buf<f64>
  rt.release %mark
  func.return
}

// Allocations side by side are one; small ones of constant size are on the stack.
// CHECK-LABEL: define i32 @several(
// CHECK-NEXT:  entry:
// CHECK-NEXT:    %small = alloca [4 x double], align 16
// CHECK-NEXT:    %vectors = alloca [9 x double], align 64
// CHECK:         [[FIRST:%.*]] = and i64 {{%.*}}, -64
// CHECK:         [[SECOND:%.*]] = and i64 {{%.*}}, -64
// CHECK:         [[TOTAL:%.*]] = add i64 [[FIRST]], [[SECOND]]
// CHECK:         [[BLOCK:%.*]] = phi ptr [ {{%.*}}, %bump ], [ {{%.*}}, %grow ]
// CHECK-NEXT:    %a = getelementptr inbounds i8, ptr [[BLOCK]], i64 0
// CHECK-NEXT:    %b = getelementptr inbounds i8, ptr [[BLOCK]], i64 [[FIRST]]
// CHECK-NOT:     @ulam_arena_grow
// CHECK:         ret i32 0
func.func @several(%n: i64, %x: f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %four = arith.constant 4 : i64
  %nine = arith.constant 9 : i64
  %small = rt.alloc %four : !rt.buf<f64>
  %vectors = rt.alloc %nine : !rt.buf<f64>
  %a = rt.alloc %n : !rt.buf<f64>
  rt.store %x, %a[%zero] : f64
  %b = rt.alloc %n : !rt.buf<i32>
  rt.store %x, %small[%zero] : f64
  rt.store %x, %vectors[%zero] : f64
  func.return
}

// What is bound is constant while a program runs, the table and what it points to.
// CHECK-LABEL: define i32 @bound(
// CHECK:         %N = load i32, ptr %bound, align 8, !invariant.load [[EMPTY:!.*]]
// CHECK-NEXT:    [[SLOT:%.*]] = getelementptr inbounds i8, ptr %bound, i64 24
// CHECK-NEXT:    %y = load ptr, ptr [[SLOT]], align 8, !invariant.load [[EMPTY]]
// CHECK-NEXT:    [[ELEMENT:%.*]] = getelementptr inbounds double, ptr %y, i64 %i
// CHECK-NEXT:    %v = load double, ptr [[ELEMENT]], align 8, !tbaa [[REAL:!.*]], !invariant.load [[EMPTY]], !alias.scope [[OWN:!.*]], !noalias [[OTHER:!.*]]
// CHECK-NEXT:    store double %v, ptr %out, align 8, !tbaa [[REAL]], !alias.scope [[OTHER]], !noalias [[OWN]]
func.func @bound(%out: !rt.buf<f64>, %i: i64) -> i32 attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %N = rt.bound 0 : i32
  %y = rt.bound 3 : !rt.buf<f64>
  %v = rt.load %y[%i] : f64
  rt.store %v, %out[%zero] : f64
  func.return %N : i32
}

// A truth value is a byte in memory.
// CHECK-LABEL: define i32 @truth(
// CHECK:         [[AT:%.*]] = getelementptr inbounds i8, ptr %flags, i64 %i
// CHECK-NEXT:    [[BYTE:%.*]] = zext i1 %t to i8
// CHECK-NEXT:    store i8 [[BYTE]], ptr [[AT]], align 1
// CHECK:         [[READ:%.*]] = load i8, ptr {{%.*}}, align 1
// CHECK-NEXT:    %u = trunc i8 [[READ]] to i1
func.func @truth(%flags: !rt.buf<i1>, %i: i64, %t: i1) -> i1 attributes {rt.entry = #rt.entry} {
  ad.keep %flags[%i], %t : i1
  %u = ad.kept %flags[%i] : i1
  func.return %u : i1
}

// Equal texts are one constant.
// CHECK-LABEL: define i32 @text(
// CHECK:         call void @ulam_print_string(ptr %context, ptr @.text.0)
// CHECK-NEXT:    call void @ulam_print_string(ptr %context, ptr @.text.0)
func.func @text() attributes {rt.entry = #rt.entry} {
  %a = rt.string "x = "
  %b = rt.string "x = "
  rt.kernel print_string(%a) : (!rt.buf<i8>) -> ()
  rt.kernel print_string(%b) : (!rt.buf<i8>) -> ()
  func.return
}

// A kernel that throws: its status is tested, the site noted here, the values by the kernel.
// CHECK-LABEL: define i32 @throws(
// CHECK:         [[STATUS:%.*]] = call i32 @ulam_k(ptr %context, ptr %a, i64 %n)
// CHECK-NEXT:    [[FINE:%.*]] = icmp eq i32 [[STATUS]], 0
// CHECK-NEXT:    br i1 [[FINE]], label %returned, label %error, !prof
// CHECK:       error:
// CHECK:         store i64 2, ptr
// CHECK-NEXT:    ret i32 [[STATUS]]
func.func @throws(%a: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  rt.kernel k(%a, %n) throws site 2 : (!rt.buf<f64>, i64) -> ()
  func.return
}
