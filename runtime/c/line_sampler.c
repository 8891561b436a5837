/* A sampling profiler of compiled programs, for threads that evaluate.
 *
 * Each such thread has a timer of its own, that sends it SIGPROF. Timers of CPU time would tick with the kernel's
 * scheduler, every 4 ms; so they are timers of the monotonic clock, and a tick counts only if the thread has run for
 * half an interval since the last one that counted.
 *
 * The handler touches static memory only, and calls nothing but clock_gettime. It counts places in a table that is
 * open-addressed and never moved. Where a C function runs that compiled code has called (libm, a kernel), the place is
 * the call: the return address nearest to the top of the stack that lies in compiled code, behind a call instruction.
 * C code is compiled without frame pointers, so the stack is searched for it word by word, between the stack pointer
 * and the frame that the evaluation began with: that is this thread's own live memory.
 */
#define _GNU_SOURCE
#include "line_sampler.h"

#include <errno.h>
#include <string.h>

/* A built library (ULAM_STANDALONE) samples nothing. */
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(ULAM_STANDALONE)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { RANGES = 4096, THREADS = 256, PLACES = 1 << 16, PROBES = 64, STACK_WORDS = 1 << 14 };

/* A thread that has evaluated while sampling was on. It keeps its slot until it ends, so that what the handler reads
 * there is always of the thread that it runs in. */
typedef struct {
  const char *volatile frame; /* where the evaluation began; NULL outside of evaluations */
  int64_t counted;            /* CPU time of the last sample that counted */
  timer_t timer;
  pid_t thread;
  int32_t used, has_timer;
} sampled_thread;

int32_t ulam_sampling = 0;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all but the handler */
static ulam_code_range ranges[RANGES];
static int32_t range_count = 0; /* ranges up to here are filled, those with end 0 are free again */
static sampled_thread threads[THREADS];
static ulam_sample places[PLACES];
static int64_t lost_count;
static int64_t interval_time; /* ns */
static int32_t generation = 0;
static int32_t handling = 0; /* how many threads are in the handler */
static struct sigaction previous_action;
static pthread_key_t at_exit_of_thread;
static int32_t has_key = 0;

static _Thread_local sampled_thread *own_slot = NULL;
static _Thread_local int32_t own_generation = 0;

static pid_t thread_id(void) { return (pid_t)syscall(SYS_gettid); }

static int64_t cpu_time(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ------------------------------------------------------------ the handler */

static int is_code(uint64_t address) {
  int32_t count = __atomic_load_n(&range_count, __ATOMIC_ACQUIRE);
  for (int32_t i = 0; i < count; ++i) {
    uint64_t end = __atomic_load_n(&ranges[i].end, __ATOMIC_SEQ_CST);
    if (address < end && address >= __atomic_load_n(&ranges[i].start, __ATOMIC_RELAXED)) return 1;
  }
  return 0;
}

/* Whether a word of the stack is the address behind a call in compiled code. */
static int is_return(uint64_t address) {
  if (!is_code(address - 1) || !is_code(address - 8)) return 0;
#if defined(__x86_64__)
  const uint8_t *p = (const uint8_t *)address; /* call rel32, or call r/m64 in its lengths */
  if (p[-5] == 0xe8) return 1;
  for (int length = 2; length <= 7; ++length)
    if (p[-length] == 0xff && (p[1 - length] & 0x38) == 0x10) return 1;
  return 0;
#else
  if (address & 3) return 0;
  uint32_t instruction = *(const uint32_t *)(address - 4); /* bl, blr */
  return (instruction & 0xfc000000u) == 0x94000000u || (instruction & 0xfffffc1fu) == 0xd63f0000u;
#endif
}

static uint64_t place_of(const ucontext_t *at, const char *frame) {
#if defined(__x86_64__)
  uint64_t pc = (uint64_t)at->uc_mcontext.gregs[REG_RIP], sp = (uint64_t)at->uc_mcontext.gregs[REG_RSP];
#else
  uint64_t pc = at->uc_mcontext.pc, sp = at->uc_mcontext.sp, link = at->uc_mcontext.regs[30];
#endif
  if (is_code(pc)) return pc;
  uint64_t end = (uint64_t)(uintptr_t)frame;
#if defined(__aarch64__)
  if (is_return(link)) return (link - 4) | ULAM_SAMPLE_CALLED; /* a leaf has not stored it */
#endif
  sp = (sp + 7) & ~(uint64_t)7;
  if (sp >= end) return ULAM_SAMPLE_UNKNOWN; /* a signal stack, say */
  uint64_t words = (end - sp) / 8;
  if (words > STACK_WORDS) words = STACK_WORDS;
  const uint64_t *stack = (const uint64_t *)(uintptr_t)sp;
  for (uint64_t i = 0; i < words; ++i)
    if (is_return(stack[i])) return (stack[i] - 1) | ULAM_SAMPLE_CALLED;
  return ULAM_SAMPLE_UNKNOWN;
}

static void count(uint64_t place) {
  uint64_t hash = place * 0x9e3779b97f4a7c15u >> 32;
  for (int probe = 0; probe < PROBES; ++probe) {
    ulam_sample *entry = &places[(hash + (uint64_t)probe) % PLACES];
    uint64_t found = __atomic_load_n(&entry->place, __ATOMIC_RELAXED);
    if (found == 0 && __atomic_compare_exchange_n(&entry->place, &found, place, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      found = place; /* else another thread took the entry, for what is now in `found` */
    if (found == place) {
      __atomic_add_fetch(&entry->count, 1, __ATOMIC_RELAXED);
      return;
    }
  }
  __atomic_add_fetch(&lost_count, 1, __ATOMIC_RELAXED);
}

/* What the action before ours does. The default one ends the process, once this handler has returned. */
static void pass_on(int number, siginfo_t *info, void *context) {
  if (previous_action.sa_flags & SA_SIGINFO) {
    if (previous_action.sa_sigaction) previous_action.sa_sigaction(number, info, context);
  } else if (previous_action.sa_handler == SIG_DFL) {
    sigaction(number, &previous_action, NULL);
    raise(number);
  } else if (previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(number);
  }
}

static void on_signal(int number, siginfo_t *info, void *context) {
  int saved = errno;
  sampled_thread *self = (sampled_thread *)info->si_value.sival_ptr;
  if (info->si_code != SI_TIMER || self < threads || self >= threads + THREADS) {
    pass_on(number, info, context);
  } else if (ulam_sampling && self->thread == thread_id()) {
    int64_t now = cpu_time();
    if (now - self->counted >= interval_time / 2) {
      self->counted = now;
      const char *frame = self->frame;
      __atomic_add_fetch(&handling, 1, __ATOMIC_SEQ_CST);
      count(frame ? place_of((const ucontext_t *)context, frame) : ULAM_SAMPLE_OUTSIDE);
      __atomic_sub_fetch(&handling, 1, __ATOMIC_SEQ_CST);
    }
  }
  errno = saved;
}

/* ------------------------------------------------------------ threads */

static void stop_timer(sampled_thread *slot) {
  if (slot->has_timer) timer_delete(slot->timer);
  slot->has_timer = 0;
}

/* At the end of a thread. */
static void give_back(void *slot) {
  pthread_mutex_lock(&lock);
  stop_timer(slot);
  ((sampled_thread *)slot)->used = 0;
  pthread_mutex_unlock(&lock);
}

static sampled_thread *take_slot(void) {
  for (int i = 0; i < THREADS; ++i) {
    if (threads[i].used) continue;
    if (pthread_setspecific(at_exit_of_thread, &threads[i]) != 0) return NULL;
    threads[i].used = 1;
    threads[i].frame = NULL;
    return &threads[i];
  }
  return NULL;
}

/* Gives the calling thread a timer for the sampling that has begun. Without one its evaluations are not sampled. */
static void join(void) {
  pthread_mutex_lock(&lock);
  own_generation = generation;
  if (ulam_sampling && own_slot == NULL) own_slot = take_slot();
  if (ulam_sampling && own_slot != NULL) {
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_ptr = own_slot;
    event.sigev_notify_thread_id = own_slot->thread = thread_id();
    struct itimerspec every;
    every.it_interval.tv_sec = every.it_value.tv_sec = interval_time / 1000000000;
    every.it_interval.tv_nsec = every.it_value.tv_nsec = interval_time % 1000000000;
    own_slot->counted = cpu_time();
    if (timer_create(CLOCK_MONOTONIC, &event, &own_slot->timer) == 0) {
      own_slot->has_timer = 1;
      timer_settime(own_slot->timer, 0, &every, NULL);
    }
  }
  pthread_mutex_unlock(&lock);
}

int ulam_sampler_enter(const void *frame) {
  if (own_generation != __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) join();
  if (own_slot == NULL || own_slot->frame != NULL) return 0;
  own_slot->frame = frame;
  return 1;
}

void ulam_sampler_leave(void) { own_slot->frame = NULL; }

/* ------------------------------------------------------------ the interface */

int32_t ulam_sampler_add(uint64_t start, uint64_t end) {
  int32_t error = ENOMEM;
  pthread_mutex_lock(&lock);
  for (int32_t i = 0; i < RANGES && error; ++i) {
    if (i < range_count && ranges[i].end != 0) continue;
    __atomic_store_n(&ranges[i].start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&ranges[i].end, end, __ATOMIC_RELEASE);
    if (i >= range_count) __atomic_store_n(&range_count, i + 1, __ATOMIC_RELEASE);
    error = 0;
  }
  pthread_mutex_unlock(&lock);
  return error;
}

void ulam_sampler_remove(uint64_t start) {
  pthread_mutex_lock(&lock);
  for (int32_t i = 0; i < range_count; ++i)
    if (ranges[i].end != 0 && ranges[i].start == start) __atomic_store_n(&ranges[i].end, 0, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&lock);
  /* The code goes away after this: no handler may still be looking at it. */
  while (__atomic_load_n(&handling, __ATOMIC_SEQ_CST) != 0) sched_yield();
}

int32_t ulam_sampler_ranges(void) {
  int32_t used = 0;
  pthread_mutex_lock(&lock);
  for (int32_t i = 0; i < range_count; ++i) used += ranges[i].end != 0;
  pthread_mutex_unlock(&lock);
  return used;
}

int32_t ulam_sampler_start(int64_t interval) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  int32_t error = 0;
  pthread_mutex_lock(&lock);
  if (ulam_sampling) error = EBUSY;
  if (!error && !has_key) error = pthread_key_create(&at_exit_of_thread, give_back);
  if (!error) {
    has_key = 1;
    memset(places, 0, sizeof places);
    lost_count = 0;
    interval_time = interval;
    struct sigaction found;
    if (sigaction(SIGPROF, &action, &found) != 0) error = errno;
    else if (!(found.sa_flags & SA_SIGINFO) || found.sa_sigaction != on_signal) previous_action = found;
  }
  if (!error) {
    __atomic_store_n(&generation, generation + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&ulam_sampling, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

void ulam_sampler_stop(void) {
  pthread_mutex_lock(&lock);
  if (ulam_sampling) {
    __atomic_store_n(&ulam_sampling, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; ++i) stop_timer(&threads[i]);
    /* A tick may be on its way even now: the kernel looks up the action of a signal some time after it has taken it
     * from the thread's queue. The default action would end the process, so that the handler stays in its place. */
    if ((previous_action.sa_flags & SA_SIGINFO) || previous_action.sa_handler != SIG_DFL)
      sigaction(SIGPROF, &previous_action, NULL);
  }
  pthread_mutex_unlock(&lock);
}

int64_t ulam_sampler_read(ulam_sample *samples, int64_t capacity, int64_t *lost) {
  int64_t written = 0;
  for (int64_t i = 0; i < PLACES; ++i) {
    uint64_t place = __atomic_load_n(&places[i].place, __ATOMIC_RELAXED);
    if (place == 0) continue;
    if (written < capacity) {
      samples[written].place = place;
      samples[written].count = __atomic_load_n(&places[i].count, __ATOMIC_RELAXED);
    }
    ++written;
  }
  *lost = __atomic_load_n(&lost_count, __ATOMIC_RELAXED);
  return written;
}

#else

int32_t ulam_sampling = 0;

int ulam_sampler_enter(const void *frame) {
  (void)frame;
  return 0;
}
void ulam_sampler_leave(void) {}
int32_t ulam_sampler_add(uint64_t start, uint64_t end) {
  (void)start, (void)end;
  return 0;
}
void ulam_sampler_remove(uint64_t start) { (void)start; }
int32_t ulam_sampler_ranges(void) { return 0; }
int32_t ulam_sampler_start(int64_t interval) {
  (void)interval;
  return ENOSYS;
}
void ulam_sampler_stop(void) {}
int64_t ulam_sampler_read(ulam_sample *samples, int64_t capacity, int64_t *lost) {
  (void)samples, (void)capacity;
  *lost = 0;
  return 0;
}

#endif
