#define _GNU_SOURCE
#include "interrupts.h"

#include "float_control.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

ULAM_THREAD_LOCAL ulam_call *ulam_current_call = NULL;
ULAM_THREAD_LOCAL ulam_thread_state *ulam_own_thread = NULL;

void ulam_restore_float_control(const ulam_call *call) {
#if defined(__x86_64__)
  uint16_t x87 = (uint16_t)(call->float_control >> 32);
  __asm__ volatile("fldcw %0" : : "m"(x87));
  _mm_setcsr((uint32_t)call->float_control | (_mm_getcsr() & 0x3fu));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(call->float_control));
#else
  (void)call;
#endif
}

#if !defined(_WIN32) && !defined(ULAM_STANDALONE)

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

/* SIGURG tells a thread to stop: by default it is ignored, so one that comes late does nothing. Handlers for it, and
 * for SIGINT, are there only as long as a thread is `open`. */
enum { STOP_SIGNAL = SIGURG, SCOPES = 64 };
enum { SHORT_NS = 1000000, TICK_NS = 10000000, IDLE_TICKS = 5 };
/* What follows a SIGINT that soon is the same one: `timeout` sends it to its child, and to the group that it is in. */
enum { SAME_NS = 100000000 };

typedef struct ulam_thread {
  ulam_thread_state state;
  struct ulam_thread *next; /* of all that ever were; a node is used again, but never taken out */
  pthread_t thread;
  int32_t in_use;
  int32_t pins;  /* how many others are about to send it a signal */
  int32_t open;  /* it may be stopped, and has a share of the handlers */
  int32_t hold;
  uint32_t calls; /* runs that were begun or ended without taking a share of the handlers: odd while one goes on */
  uint32_t seen;  /* by the watcher */
  int32_t promoted; /* the watcher has taken a share for one of those */
  int32_t asked;    /* by the watcher for its mask of signals */
  int32_t unblocked; /* STOP_SIGNAL was blocked when it opened */
  int32_t is_main;   /* of Python */
  int64_t deadline; /* of the innermost scope and those around it */
  int64_t deadlines[SCOPES]; /* by depth: of the scopes around */
  sigset_t mask; /* of signals, when it opened */
} ulam_thread;

typedef struct watcher {
  pthread_t thread;
  int32_t quit;
} watcher;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* never taken by handlers */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit_of_thread;
static int32_t usable = 0;
static ulam_thread *threads = NULL; /* only grows */
static int32_t open_count = 0;

static struct sigaction host_action; /* for SIGINT; what ours calls */
static int32_t replaced = 0;         /* whether SIGINT is ours */
static struct sigaction host_stop_action;
static int32_t stop_state = 0; /* of STOP_SIGNAL: 0 the host's, 1 about to be ours, 2 ours */
static int32_t handling = 0;   /* how many threads are in the handler of SIGINT */
static int32_t undelivered = 0; /* SIGINTs that the host was not told of */
static int32_t end_on_second = 0;
static int64_t first_received; /* when; 0: not yet */

static pthread_cond_t wake;
static watcher *watching = NULL;

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static ulam_thread *own(void) { return (ulam_thread *)ulam_own_thread; }

/* ------------------------------------------------------------ what Python has heard */

/* Python hears of SIGINT between the instructions of its main thread, and until then keeps a note of it. */
static struct {
  int32_t known;
  pthread_t main_thread;
  int (*lock)(void);
  void (*unlock)(int);
  int (*take)(void); /* the note: whether there is one, which then is gone */
  void (*note)(void);
} python;

void ulam_python(uintptr_t main_thread, void *lock, void *unlock, void *take, void *note) {
  python.main_thread = (pthread_t)main_thread;
  python.lock = (int (*)(void))lock;
  python.unlock = (void (*)(int))unlock;
  python.take = (int (*)(void))take;
  python.note = (void (*)(void))note;
  python.known = 1;
}

/* Whether a SIGINT waits for the end of this run: one that came before the handler was ours. In Python's main thread. */
static int python_was_interrupted(void) {
  int state = python.lock();
  int found = python.take();
  if (found) python.note();
  python.unlock(state);
  return found;
}

/* Not to be left meanwhile. */
static int is_to_stop(ulam_thread *self) {
  int32_t asked = ULAM_STOP_ASK;
  if (__atomic_compare_exchange_n(&self->state.stop, &asked, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
      python_was_interrupted())
    __atomic_or_fetch(&self->state.stop, ULAM_STOP_INTERRUPT, __ATOMIC_SEQ_CST);
  return __atomic_load_n(&self->state.stop, __ATOMIC_SEQ_CST) != 0;
}

void ulam_call_stopped(void) {
  ulam_call *call = ulam_current_call;
  do {
    call->masked = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (is_to_stop(own())) longjmp(call->leave, ULAM_LEFT_STOPPED);
    call->masked = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  } while (__atomic_load_n(&own()->state.stop, __ATOMIC_SEQ_CST));
}

/* ------------------------------------------------------------ handlers */

static void call_host(const struct sigaction *action, int number, siginfo_t *info, void *context) {
  if (action->sa_flags & SA_SIGINFO) {
    if (action->sa_sigaction) action->sa_sigaction(number, info, context);
  } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
    action->sa_handler(number);
  }
}

/* Whether the code that was interrupted is itself a handler of another signal: those that it blocks are blocked. */
static int in_other_handler(const ulam_thread *self, const ucontext_t *at) {
  for (int number = 1; number < NSIG && number < 65; ++number)
    if (sigismember(&at->uc_sigmask, number) == 1 && sigismember(&self->mask, number) != 1) return 1;
  return 0;
}

/* Leaves the run of this thread, from a handler; returns if that is not possible now. */
static void leave_run(ulam_thread *self, ucontext_t *at) {
  ulam_call *call = ulam_current_call;
  if (call == NULL || call->masked > 0) return; /* `ulam_unmask`, or the next run, will see it */
  if (in_other_handler(self, at)) { /* which must come to its end: then its mask goes, and this signal comes again */
    sigaddset(&at->uc_sigmask, STOP_SIGNAL);
    pthread_kill(pthread_self(), STOP_SIGNAL);
    return;
  }
  if (!is_to_stop(self)) return; /* both signals are blocked in their handlers */
  call->masked = 1;
  pthread_sigmask(SIG_SETMASK, &self->mask, NULL);
  longjmp(call->leave, ULAM_LEFT_STOPPED);
}

/* A thread whose run has begun without a share has not looked at its mask. SIGINT is newly blocked where the handler of
 * the host is at work, whose mask is not that of the thread. */
static void note_mask(ulam_thread *self, const ucontext_t *at) {
  for (int number = 1; number < NSIG && number < 65; ++number)
    if (sigismember(&at->uc_sigmask, number) != 1)
      sigdelset(&self->mask, number);
    else if (number != SIGINT)
      sigaddset(&self->mask, number);
}

static void on_stop_signal(int number, siginfo_t *info, void *context) {
  int saved = errno;
  ulam_thread *self = own();
  if (self != NULL && __atomic_exchange_n(&self->asked, 0, __ATOMIC_SEQ_CST)) note_mask(self, context);
  if (self != NULL && __atomic_load_n(&self->state.stop, __ATOMIC_SEQ_CST))
    leave_run(self, context);
  else
    call_host(&host_stop_action, number, info, context);
  errno = saved;
}

static void fill(struct sigaction *action, void (*handler)(int, siginfo_t *, void *), const struct sigaction *host) {
  memset(action, 0, sizeof *action);
  action->sa_sigaction = handler;
  /* as it was for the host: whether its system calls go on, and which stack is meant */
  action->sa_flags = SA_SIGINFO | (host->sa_flags & (SA_RESTART | SA_ONSTACK));
  action->sa_mask = host->sa_mask;
  sigaddset(&action->sa_mask, SIGINT);
  sigaddset(&action->sa_mask, STOP_SIGNAL);
}

/* May be called by handlers, by several threads at once. */
static void take_stop_signal(void) {
  int32_t expected = 0;
  if (__atomic_compare_exchange_n(&stop_state, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    struct sigaction ours;
    sigaction(STOP_SIGNAL, NULL, &host_stop_action);
    fill(&ours, on_stop_signal, &host_stop_action);
    ours.sa_flags |= SA_RESTART;
    sigaction(STOP_SIGNAL, &ours, NULL);
    __atomic_store_n(&stop_state, 2, __ATOMIC_SEQ_CST);
  }
  while (__atomic_load_n(&stop_state, __ATOMIC_SEQ_CST) == 1) sched_yield();
}

/* A thread that is pinned and open stays so. */
static void stop_thread(ulam_thread *thread, int32_t reasons) {
  __atomic_add_fetch(&thread->pins, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&thread->open, __ATOMIC_SEQ_CST)) {
    __atomic_or_fetch(&thread->state.stop, reasons, __ATOMIC_SEQ_CST);
    if (thread != own()) {
      take_stop_signal();
      pthread_kill(thread->thread, STOP_SIGNAL);
    }
  }
  __atomic_sub_fetch(&thread->pins, 1, __ATOMIC_SEQ_CST);
}

static int is_held(void) {
  for (ulam_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next)
    if (__atomic_load_n(&t->hold, __ATOMIC_SEQ_CST)) return 1;
  return 0;
}

static void on_interrupt(int number, siginfo_t *info, void *context) {
  int saved = errno;
  ulam_thread *self = own();
  __atomic_add_fetch(&handling, 1, __ATOMIC_SEQ_CST);
  int64_t first = 0, now = now_ns();
  if (__atomic_load_n(&end_on_second, __ATOMIC_RELAXED) &&
      !__atomic_compare_exchange_n(&first_received, &first, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
      now - first > SAME_NS) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGINT);
    pthread_kill(pthread_self(), SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  }
  if (is_held())
    __atomic_store_n(&undelivered, 1, __ATOMIC_SEQ_CST);
  else
    call_host(&host_action, number, info, context);
  for (ulam_thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); t; t = t->next)
    stop_thread(t, ULAM_STOP_INTERRUPT);
  if (self != NULL && __atomic_load_n(&self->state.stop, __ATOMIC_SEQ_CST)) {
    if (in_other_handler(self, context)) take_stop_signal();
    __atomic_sub_fetch(&handling, 1, __ATOMIC_SEQ_CST);
    leave_run(self, context);
  } else {
    __atomic_sub_fetch(&handling, 1, __ATOMIC_SEQ_CST);
  }
  errno = saved;
}

/* ------------------------------------------------------------ shares of the handlers, under the lock */

static int is_handler(const struct sigaction *action, void (*handler)(int, siginfo_t *, void *)) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == handler;
}

static void take_interrupt(void) {
  struct sigaction ours, current;
  sigaction(SIGINT, NULL, &current);
  if (is_handler(&current, on_interrupt)) return;
  if (!(current.sa_flags & SA_SIGINFO) && (current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN)) return;
  host_action = current;
  fill(&ours, on_interrupt, &current);
  replaced = sigaction(SIGINT, &ours, NULL) == 0;
}

/* What the host has put in the place of ours meanwhile stays. */
static void give_back(int number, struct sigaction *host, void (*handler)(int, siginfo_t *, void *)) {
  struct sigaction current;
  if (sigaction(number, host, &current) == 0 && !is_handler(&current, handler)) sigaction(number, &current, NULL);
}

static void deliver(void) {
  if (__atomic_exchange_n(&undelivered, 0, __ATOMIC_SEQ_CST) == 0) return;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = SIGINT;
  ucontext_t nothing;
  memset(&nothing, 0, sizeof nothing);
  call_host(&host_action, SIGINT, &info, &nothing);
}

static void take_share(ulam_thread *thread) {
  if (open_count++ == 0) take_interrupt();
  __atomic_store_n(&thread->open, 1, __ATOMIC_SEQ_CST);
}

static void give_up_share(ulam_thread *thread) {
  __atomic_store_n(&thread->open, 0, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&thread->pins, __ATOMIC_SEQ_CST) != 0) sched_yield();
  __atomic_and_fetch(&thread->state.stop, ~ULAM_STOP_ASK, __ATOMIC_SEQ_CST);
  if (--open_count > 0) return;
  if (replaced) give_back(SIGINT, &host_action, on_interrupt);
  replaced = 0;
  while (__atomic_load_n(&handling, __ATOMIC_SEQ_CST) != 0) sched_yield();
  if (__atomic_load_n(&stop_state, __ATOMIC_SEQ_CST) == 2) {
    give_back(STOP_SIGNAL, &host_stop_action, on_stop_signal);
    __atomic_store_n(&stop_state, 0, __ATOMIC_SEQ_CST);
  }
}

/* ------------------------------------------------------------ the watcher: time limits, and short runs that are not */

static void *watch(void *argument) {
  watcher *self = argument;
  int idle = 0;
  pthread_mutex_lock(&lock);
  while (!self->quit) {
    int64_t now = now_ns(), next = INT64_MAX;
    int busy = 0;
    for (ulam_thread *t = threads; t; t = t->next) {
      int64_t deadline = __atomic_load_n(&t->deadline, __ATOMIC_SEQ_CST);
      if (deadline <= now) {
        __atomic_store_n(&t->deadline, INT64_MAX, __ATOMIC_SEQ_CST);
        stop_thread(t, ULAM_STOP_TIME);
      } else if (deadline < next) {
        next = deadline;
      }
      uint32_t calls = __atomic_load_n(&t->calls, __ATOMIC_SEQ_CST);
      int promoted = __atomic_load_n(&t->promoted, __ATOMIC_SEQ_CST);
      if (calls != t->seen || calls & 1 || promoted) busy = 1;
      if (calls == t->seen && calls & 1 && !promoted) { /* it takes longer than its like did */
        take_share(t);
        __atomic_store_n(&t->promoted, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&t->asked, 1, __ATOMIC_SEQ_CST);
        __atomic_or_fetch(&t->state.stop, ULAM_STOP_ASK, __ATOMIC_SEQ_CST); /* for what came before */
        take_stop_signal();
        pthread_kill(t->thread, STOP_SIGNAL);
      } else if (promoted && !(calls & 1) && __atomic_exchange_n(&t->promoted, 0, __ATOMIC_SEQ_CST)) {
        give_up_share(t);
      }
      t->seen = calls;
    }
    idle = busy ? 0 : idle + 1;
    if (next == INT64_MAX && idle > IDLE_TICKS) break;
    if (idle <= IDLE_TICKS && next > now + TICK_NS) next = now + TICK_NS;
#if defined(__APPLE__)
    int64_t wait = next - now;
    struct timespec t = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    pthread_cond_timedwait_relative_np(&wake, &lock, &t);
#else
    struct timespec t = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
    pthread_cond_timedwait(&wake, &lock, &t);
#endif
  }
  if (!self->quit) { /* else it is waited for, and freed, by who ends it */
    if (watching == self) __atomic_store_n(&watching, NULL, __ATOMIC_SEQ_CST);
    pthread_detach(pthread_self());
    free(self);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Under the lock. */
static void start_watching(void) {
  if (watching) {
    pthread_cond_broadcast(&wake);
    return;
  }
  watcher *made = calloc(1, sizeof *made);
  if (made == NULL) return;
  sigset_t all, before; /* no signal of the host is for this thread */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  if (pthread_create(&made->thread, &attributes, watch, made) == 0)
    __atomic_store_n(&watching, made, __ATOMIC_SEQ_CST);
  else
    free(made);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* With the lock, which it gives back: the watcher ends if nobody needs it. */
static void unlock_and_stop_watching(void) {
  watcher *ended = watching;
  for (ulam_thread *t = threads; t && ended; t = t->next)
    if (t->deadline < INT64_MAX || __atomic_load_n(&t->calls, __ATOMIC_SEQ_CST) & 1) ended = NULL;
  if (ended) {
    __atomic_store_n(&watching, NULL, __ATOMIC_SEQ_CST);
    ended->quit = 1;
    pthread_cond_broadcast(&wake);
  }
  pthread_mutex_unlock(&lock);
  if (ended) {
    pthread_join(ended->thread, NULL);
    free(ended);
  }
}

/* ------------------------------------------------------------ threads */

static void at_exit(void *thread) {
  ulam_thread *self = thread;
  ulam_own_thread = NULL;
  pthread_mutex_lock(&lock);
  if (__atomic_load_n(&self->open, __ATOMIC_SEQ_CST)) give_up_share(self);
  self->deadline = INT64_MAX;
  self->state.scopes = self->state.depth = self->hold = self->state.stop = self->promoted = 0;
  self->calls = self->seen = 0;
  self->in_use = 0;
  pthread_mutex_unlock(&lock);
}

static int init_wake(void) {
#if defined(__APPLE__)
  return pthread_cond_init(&wake, NULL);
#else
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  return pthread_cond_init(&wake, &attributes);
#endif
}

/* A child of fork has none of the other threads, nor has `wake` the watcher that may have waited for it. */
static void in_child(void) {
  pthread_mutex_init(&lock, NULL);
  init_wake();
  watching = NULL;
  handling = 0;
  open_count = 0;
  python.main_thread = pthread_self();
  for (ulam_thread *t = threads; t; t = t->next) {
    t->pins = 0;
    if (t == own()) {
      t->thread = pthread_self();
      t->is_main = python.known;
      open_count += t->open;
    } else {
      t->open = t->state.stop = t->state.scopes = t->state.depth = t->hold = t->promoted = 0;
      t->calls = t->seen = 0;
      t->deadline = INT64_MAX;
      t->in_use = 0;
    }
  }
  if (open_count > 0) return;
  if (replaced) give_back(SIGINT, &host_action, on_interrupt);
  replaced = 0;
  if (stop_state == 2) give_back(STOP_SIGNAL, &host_stop_action, on_stop_signal);
  stop_state = 0;
}

static void prepare(void) {
  if (init_wake() != 0) return;
  if (pthread_key_create(&at_exit_of_thread, at_exit) != 0) return;
  usable = pthread_atfork(NULL, NULL, in_child) == 0;
}

static ulam_thread *own_thread(void) {
  if (ulam_own_thread) return own();
  pthread_once(&once, prepare);
  if (!usable) return NULL;
  pthread_mutex_lock(&lock);
  ulam_thread *found = threads;
  while (found && found->in_use) found = found->next;
  if (found == NULL && (found = calloc(1, sizeof *found)) != NULL) {
    found->next = threads;
    __atomic_store_n(&threads, found, __ATOMIC_RELEASE);
  }
  if (found && pthread_setspecific(at_exit_of_thread, found) == 0) {
    found->thread = pthread_self();
    found->is_main = python.known && pthread_equal(found->thread, python.main_thread);
    found->deadline = INT64_MAX;
    pthread_sigmask(SIG_SETMASK, NULL, &found->mask);
    found->in_use = 1;
    ulam_own_thread = &found->state;
  }
  pthread_mutex_unlock(&lock);
  return own();
}

/* Takes a share of the handlers for the calling thread. */
static void open_thread(ulam_thread *self) {
  pthread_sigmask(SIG_SETMASK, NULL, &self->mask);
  self->unblocked = sigismember(&self->mask, STOP_SIGNAL) == 1;
  if (self->unblocked) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, STOP_SIGNAL);
    sigdelset(&self->mask, STOP_SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  }
  __atomic_store_n(&self->state.stop, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_lock(&lock);
  /* The watcher may have taken one for a run that ended just then. */
  if (__atomic_exchange_n(&self->promoted, 0, __ATOMIC_SEQ_CST)) give_up_share(self);
  take_share(self);
  pthread_mutex_unlock(&lock);
}

static void close_thread(ulam_thread *self) {
  pthread_mutex_lock(&lock);
  give_up_share(self);
  unlock_and_stop_watching();
  if (self->unblocked) {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, STOP_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    self->unblocked = 0;
  }
}

/* ------------------------------------------------------------ runs */

static int is_short(const ulam_short_entries *known, void *entry) {
  return known->entries[0] == entry || known->entries[1] == entry || known->entries[2] == entry ||
         known->entries[3] == entry;
}

static void remember(ulam_short_entries *known, void *entry, int is_now_short) {
  if (is_short(known, entry) == is_now_short) return;
  if (!is_now_short) {
    for (int i = 0; i < 4; ++i)
      if (known->entries[i] == entry) known->entries[i] = NULL;
    return;
  }
  memmove(known->entries + 1, known->entries, 3 * sizeof known->entries[0]);
  known->entries[0] = entry;
}

/* Handlers take system calls, which a short run would feel. So a run whose like was short begins without; the watcher
 * takes them if it turns out to be long. What came before that, Python has noted, which its main thread can ask; it
 * forgets while that thread goes on, so runs of others take theirs at once. */
int ulam_outer_call_begin(ulam_call *call, ulam_short_entries *known, void *entry) {
  ulam_thread *self = own_thread();
  if (self == NULL) return 0;
  call->float_control = self->state.float_control = float_control();
  self->state.depth = 1;
  if (self->is_main && is_short(known, entry)) {
    call->share = ULAM_IF_LONG;
    __atomic_store_n(&self->state.stop, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&self->calls, self->calls + 1, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(&watching, __ATOMIC_RELAXED) == NULL, 0)) {
      pthread_mutex_lock(&lock);
      start_watching();
      pthread_mutex_unlock(&lock);
    }
  } else {
    call->share = ULAM_AT_ONCE;
    call->began = now_ns();
    open_thread(self);
  }
  return 1;
}

void ulam_outer_call_end(ulam_call *call, ulam_short_entries *known, void *entry, int stopped) {
  ulam_thread *self = own();
  if (call->share == ULAM_IF_LONG) {
    __atomic_store_n(&self->calls, self->calls + 1, __ATOMIC_RELEASE);
    if (__builtin_expect(__atomic_load_n(&self->promoted, __ATOMIC_RELAXED), 0) &&
        __atomic_exchange_n(&self->promoted, 0, __ATOMIC_SEQ_CST)) {
      close_thread(self);
      remember(known, entry, 0);
    }
  } else {
    close_thread(self);
    remember(known, entry, !stopped && now_ns() - call->began < SHORT_NS);
  }
}

/* ------------------------------------------------------------ the interface */

int32_t ulam_scope_depth(void) { return ulam_own_thread ? ulam_own_thread->scopes : 0; }

int32_t ulam_scope_enter(int64_t deadline) {
  ulam_thread *self = own_thread();
  if (self == NULL || self->state.scopes == SCOPES) return 0;
  if (self->state.depth == 0) self->state.float_control = float_control();
  if (self->state.scopes == 0 && self->state.depth == 0) open_thread(self);
  self->deadlines[self->state.scopes++] = self->deadline;
  if (deadline >= 0 && deadline <= now_ns()) {
    __atomic_or_fetch(&self->state.stop, ULAM_STOP_TIME, __ATOMIC_SEQ_CST); /* what follows may be shorter than a tick */
  } else if (deadline >= 0 && deadline < self->deadline) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(&self->deadline, deadline, __ATOMIC_SEQ_CST);
    start_watching();
    pthread_mutex_unlock(&lock);
  }
  return 1;
}

void ulam_scope_leave(int32_t depth) {
  ulam_thread *self = own();
  if (self == NULL || self->state.scopes <= depth) return;
  pthread_mutex_lock(&lock);
  __atomic_store_n(&self->deadline, self->deadlines[depth], __ATOMIC_SEQ_CST);
  self->state.scopes = depth;
  pthread_mutex_unlock(&lock);
  if (depth == 0 && self->state.depth == 0) close_thread(self);
}

int32_t ulam_stop_reasons(void) { return ulam_stop_asked() & ~ULAM_STOP_ASK; }

int32_t ulam_stop_take(void) {
  ulam_thread *self = own();
  if (self == NULL) return 0;
  if (self->state.depth > 0) return ulam_stop_reasons();
  return __atomic_exchange_n(&self->state.stop, 0, __ATOMIC_SEQ_CST) & ~ULAM_STOP_ASK;
}

void *ulam_thread_handle(void) { return own_thread(); }

void ulam_thread_stop(void *handle, int32_t reasons) {
  if (handle) stop_thread(handle, reasons);
}

int32_t ulam_hold(int32_t on) {
  ulam_thread *self = own_thread();
  if (self == NULL) return 0;
  int32_t before = __atomic_exchange_n(&self->hold, on, __ATOMIC_SEQ_CST);
  if (!on) deliver();
  return before;
}

int32_t ulam_deliver(void) {
  deliver();
  return ulam_stop_reasons();
}

void ulam_end_on_second(int32_t on) {
  first_received = 0;
  end_on_second = on;
}

#endif
