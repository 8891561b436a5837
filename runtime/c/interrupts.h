/* Stopping native code from outside: SIGINT, time limits.
 *
 * Nothing is polled. Emitted code and kernels hold nothing but memory of the arena, so a signal handler may leave all
 * their frames at once, by longjmp to the entry (RUN in context.c), wherever they are. What does hold something, a lock
 * or a half-changed list, does so between `ulam_mask` and `ulam_unmask`; a stop that comes meanwhile is carried out by
 * the latter. Kernels need neither: they must not allocate, lock, print or have static variables
 * (tests/runtime/test_interrupts.py looks at their symbols).
 */
#ifndef ULAM_INTERRUPTS_H
#define ULAM_INTERRUPTS_H

#include <setjmp.h>

#include "context.h"

/* Why a call is to end, as bits. `ASK`: if Python was interrupted; no reason that others hear of. */
enum { ULAM_STOP_INTERRUPT = 1, ULAM_STOP_TIME = 2, ULAM_STOP_ASK = 4 };
/* Where from `leave` is reached. */
enum { ULAM_LEFT_FAILED = 1, ULAM_LEFT_STOPPED = 2 };

/* One run of an entry of a compiled program. */
typedef struct ulam_call {
  struct ulam_call *outer; /* of the same thread: callbacks may evaluate, too */
  volatile int32_t masked; /* more than 0: not to be left by a signal */
  int32_t share; /* of the handlers: ULAM_NESTED, ... */
  int64_t began;
  uint64_t float_control; /* of the caller: libm may have changed it for a moment */
  jmp_buf leave;
} ulam_call;

/* What is private to a thread, or NULL. Of the initial-exec model where it can be had: then reading it never allocates.
 * Not in built libraries, which no signal leaves: there is room for some thirty libraries of that model in a process. */
#if defined(__GLIBC__) && !defined(ULAM_STANDALONE)
#define ULAM_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define ULAM_THREAD_LOCAL _Thread_local
#endif
/* What is known of a thread that has run something; the rest is in interrupts.c. */
typedef struct {
  int32_t stop;   /* the reasons, as bits */
  int32_t depth;  /* of nested runs */
  int32_t scopes; /* of nested public calls */
  uint64_t float_control;
} ulam_thread_state;

extern ULAM_THREAD_LOCAL ulam_call *ulam_current_call;
extern ULAM_THREAD_LOCAL ulam_thread_state *ulam_own_thread;

/* What a context remembers: entries whose last run was short. */
typedef struct {
  void *entries[4];
} ulam_short_entries;

/* A run within another one, or in a scope, uses what that has; others take a share of the handlers: at once, or when they
 * turn out to be long. */
enum { ULAM_NESTED = 0, ULAM_AT_ONCE = 1, ULAM_IF_LONG = 2 };
int ulam_outer_call_begin(ulam_call *call, ulam_short_entries *known, void *entry);
void ulam_outer_call_end(ulam_call *call, ulam_short_entries *known, void *entry, int stopped);

/* Around a run, outside of what may be left. `begin` returns whether it can be stopped. */
static inline int ulam_call_begin(ulam_call *call, ulam_short_entries *known, void *entry) {
  ulam_thread_state *self = ulam_own_thread;
  if (self == NULL || (self->depth == 0 && self->scopes == 0)) return ulam_outer_call_begin(call, known, entry);
  ++self->depth;
  call->share = ULAM_NESTED;
  call->float_control = self->float_control;
  return 1;
}

static inline void ulam_call_end(ulam_call *call, ulam_short_entries *known, void *entry, int stopped) {
  --ulam_own_thread->depth;
  if (call->share != ULAM_NESTED) ulam_outer_call_end(call, known, entry, stopped);
}

void ulam_call_stopped(void); /* goes on if there is no reason after all */
static inline int32_t ulam_stop_asked(void) {
  return ulam_own_thread ? __atomic_load_n(&ulam_own_thread->stop, __ATOMIC_RELAXED) : 0;
}

/* From here on, up to `ulam_call_close`, a stop leaves. */
static inline void ulam_call_open(ulam_call *call) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  call->masked = 0;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__builtin_expect(ulam_stop_asked(), 0)) ulam_call_stopped();
}

static inline void ulam_call_close(ulam_call *call) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  call->masked = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ulam_mask(void) {
  if (ulam_current_call) ++ulam_current_call->masked;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ulam_unmask(void) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (ulam_current_call && --ulam_current_call->masked == 0 && __builtin_expect(ulam_stop_asked(), 0))
    ulam_call_stopped();
}

void ulam_restore_float_control(const ulam_call *call);

/* A scope is a public call of the host that may make many runs: as long as it lasts SIGINT is ours, and what is to stop
 * stops at the next run, if there is none now. Scopes of a thread nest; `ulam_scope_leave` leaves those beyond `depth`.
 * `deadline`: nanoseconds of CLOCK_MONOTONIC, or negative. */
ULAM_API int32_t ulam_scope_depth(void);
ULAM_API int32_t ulam_scope_enter(int64_t deadline); /* 0: no memory, or too deep; then nothing was entered */
ULAM_API void ulam_scope_leave(int32_t depth);
/* Why the thread is to stop; `take` forgets it, unless a run is still to be left. */
ULAM_API int32_t ulam_stop_reasons(void);
ULAM_API int32_t ulam_stop_take(void);
/* The calling thread, for others that want to stop what it does. */
ULAM_API void *ulam_thread_handle(void);
ULAM_API void ulam_thread_stop(void *handle, int32_t reasons);
/* While this is on the host does not hear of SIGINT; it does when it goes off, and at each `ulam_deliver`. For a thread
 * that does what must not be interrupted at any place; only the thread that the host interrupts asks for it. */
ULAM_API int32_t ulam_hold(int32_t on); /* what it was before */
ULAM_API int32_t ulam_deliver(void);    /* the reasons to stop */
/* Python's main thread, as `pthread_t`, and the functions PyGILState_Ensure, PyGILState_Release, PyOS_InterruptOccurred and
 * PyErr_SetInterrupt. Before it is known all runs take their share of the handlers at once. */
ULAM_API void ulam_python(uintptr_t main_thread, void *lock, void *unlock, void *take, void *note);
/* From now on the second SIGINT ends the process, as if there were no handler: for commands of the shell. */
ULAM_API void ulam_end_on_second(int32_t on);

#endif
