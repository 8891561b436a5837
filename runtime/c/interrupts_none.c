#include "interrupts.h"

#include "float_control.h"

#if defined(_WIN32) || defined(ULAM_STANDALONE)

/* Without signals nothing is stopped that runs; what is asked for is seen by the next run. In a built library signals are
 * its host's, and nothing is stopped at all. */

static ulam_thread_state state = {0, 0, 0, 0}; /* of all threads */

void ulam_call_stopped(void) {
  ulam_call *call = ulam_current_call;
  call->masked = 1;
  longjmp(call->leave, ULAM_LEFT_STOPPED);
}
int ulam_outer_call_begin(ulam_call *call, ulam_short_entries *known, void *entry) {
  (void)known, (void)entry;
#if defined(ULAM_STANDALONE)
  return 0;
#endif
  ulam_own_thread = &state;
  call->float_control = state.float_control = float_control();
  call->share = ULAM_NESTED;
  ++state.depth;
  return 1;
}
void ulam_outer_call_end(ulam_call *call, ulam_short_entries *known, void *entry, int stopped) {
  (void)call, (void)known, (void)entry, (void)stopped;
}
int32_t ulam_scope_depth(void) { return 0; }
int32_t ulam_scope_enter(int64_t deadline) {
  (void)deadline;
  return 1;
}
void ulam_scope_leave(int32_t depth) { (void)depth; }
int32_t ulam_stop_reasons(void) { return ulam_stop_asked(); }
int32_t ulam_stop_take(void) { return __atomic_exchange_n(&state.stop, 0, __ATOMIC_SEQ_CST); }
void *ulam_thread_handle(void) { return &state; }
void ulam_thread_stop(void *handle, int32_t reasons) {
  (void)handle;
  __atomic_or_fetch(&state.stop, reasons, __ATOMIC_SEQ_CST);
}
int32_t ulam_hold(int32_t on) {
  (void)on;
  return 0;
}
int32_t ulam_deliver(void) { return ulam_stop_asked(); }
void ulam_end_on_second(int32_t on) { (void)on; }
void ulam_python(uintptr_t main_thread, void *lock, void *unlock, void *take, void *note) {
  (void)main_thread, (void)lock, (void)unlock, (void)take, (void)note;
}

#endif
