/* Contexts: errors, printed text, and the entries into compiled programs. Their arena is in arena.c. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "line_sampler.h"
#include "services.h"

int32_t ulam_abi(void) { return ULAM_ABI; }

int ulam_text_append(ulam_text *text, const char *bytes, int64_t length) {
  if (text->length + length + 1 > text->capacity) {
    int64_t capacity = 2 * text->capacity + length + 256;
    char *grown = realloc(text->bytes, (size_t)capacity);
    if (grown == NULL) return 0;
    text->bytes = grown;
    text->capacity = capacity;
  }
  memcpy(text->bytes + text->length, bytes, (size_t)length);
  text->length += length;
  text->bytes[text->length] = '\0';
  return 1;
}

static void text_clear(ulam_text *text) {
  text->length = 0;
  if (text->bytes) text->bytes[0] = '\0';
}

ulam_context *ulam_context_new(int64_t keep_bytes) {
  ulam_context *ctx = calloc(1, sizeof *ctx);
  struct ulam_services *services = calloc(1, sizeof *services);
  if (ctx == NULL || services == NULL) {
    free(ctx);
    free(services);
    return NULL;
  }
  ctx->services = services;
  ctx->error_site = -1;
  if (!ulam_arena_begin(ctx, keep_bytes)) {
    free(services);
    free(ctx);
    return NULL;
  }
  return ctx;
}

void ulam_context_free(ulam_context *ctx) {
  if (ctx == NULL) return;
  struct ulam_services *services = ctx->services;
  ulam_arena_end(ctx);
  free(services->message.bytes);
  free(services->line.bytes);
  ulam_profile_free(services->profile);
  free(services->output.bytes);
  free(services);
  free(ctx);
}

int64_t ulam_context_bytes(const ulam_context *ctx) { return ctx->services->held_bytes; }

void ulam_context_stoppable(ulam_context *ctx) { ctx->services->stoppable = 1; }

/* Emitted code and kernels hold nothing but arena memory, so leaving all their frames at once is safe. */
void ulam_leave(ulam_context *ctx) { longjmp(ctx->services->call->leave, ULAM_LEFT_FAILED); }

void ulam_out_of_memory(ulam_context *ctx, int64_t bytes) {
  struct ulam_services *services = ctx->services;
  ulam_fail(ctx, ULAM_FATAL, "out of memory (%lld bytes wanted)", (long long)bytes);
  if (services->call) ulam_leave(ctx);
  fprintf(stderr, "ulam: out of memory (%lld bytes wanted)\n", (long long)bytes);
  abort();
}

void *ulam_alloc_bound(ulam_context *ctx, int64_t bytes) {
  ulam_bound_memory *memory = ctx->services->bound_memory;
  ulam_mask();
  void *block = memory ? ulam_bound_memory_alloc(memory, bytes) : NULL;
  if (block == NULL) ulam_out_of_memory(ctx, bytes);
  ulam_unmask();
  return block;
}

int32_t ulam_fail(ulam_context *ctx, int32_t status, const char *format, ...) {
  char text[512];
  va_list arguments;
  ulam_mask();
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  text_clear(&ctx->services->message);
  ulam_text_append(&ctx->services->message, text, (int64_t)strlen(text));
  ulam_unmask();
  return status;
}

const char *ulam_message(const ulam_context *ctx) {
  const char *text = ctx->services->message.bytes;
  return text ? text : "";
}

void ulam_set_print_sink(ulam_context *ctx, ulam_print_sink sink) { ctx->services->sink = sink; }

const char *ulam_output(const ulam_context *ctx) {
  const char *text = ctx->services->output.bytes;
  return text ? text : "";
}

void ulam_clear_output(ulam_context *ctx) {
  text_clear(&ctx->services->output);
  ctx->output_length = 0;
}

int32_t ulam_stack_exhausted(ulam_context *ctx) {
  return ulam_fail(ctx, ULAM_FATAL, "the stack is exhausted: a function calls itself too often");
}

/* Above the end of the stack: room for one frame of emitted code, and for the runtime's own below it. Of a stack
 * without limit, a part that fits into memory. */
static char *above_end(char *lowest, size_t size) {
  enum { RESERVE = 256 * 1024, MOST = 64 * 1024 * 1024 };
  char *here = __builtin_frame_address(0);
  if (here - lowest > MOST) return here - MOST;
  return lowest + (size / 4 < RESERVE ? size / 4 : RESERVE);
}

/* Where the calling thread's stack ends for recursive functions; NULL if nothing is known of it. */
static char *find_stack_limit(void) {
#if defined(__APPLE__)
  char *top = pthread_get_stackaddr_np(pthread_self());
  size_t size = pthread_get_stacksize_np(pthread_self());
  return above_end(top - size, size);
#elif defined(__linux__)
  pthread_attr_t attributes;
  void *lowest;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return NULL;
  int failed = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  return failed ? NULL : above_end(lowest, size);
#else
  return NULL;
#endif
}

static char *stack_limit(void) {
  static ULAM_THREAD_LOCAL int known = 0;
  static ULAM_THREAD_LOCAL char *limit;
  if (!known) {
    limit = find_stack_limit();
    known = 1;
  }
  return limit;
}

/* Runs CALL, a status, between entering and leaving. What leaves its frames at once comes back to _setjmp. */
#define RUN(CALL)                                \
  struct ulam_services *services = ctx->services; \
  ulam_call call;                                \
  volatile int32_t status = ULAM_FATAL;          \
  ctx->error_site = -1;                          \
  ctx->stack_limit = stack_limit();              \
  if (services->message.length) text_clear(&services->message); \
  services->line.length = 0;                     \
  call.outer = ulam_current_call;                \
  call.masked = 1;                               \
  const int stoppable = services->stoppable && ulam_call_begin(&call, &services->short_entries, entry); \
  services->call = ulam_current_call = &call;    \
  if (services->profile) ulam_profile_enter(services->profile); \
  const int sampled = ulam_sampling && ulam_sampler_enter(&call); \
  switch (_setjmp(call.leave)) {                 \
    case 0:                                      \
      if (stoppable) ulam_call_open(&call);      \
      status = (CALL);                           \
      break;                                     \
    case ULAM_LEFT_STOPPED:                      \
      ulam_restore_float_control(&call);         \
      status = ULAM_STOPPED;                     \
      break;                                     \
    default:                                     \
      break;                                     \
  }                                              \
  ulam_call_close(&call);                        \
  if (sampled) ulam_sampler_leave();             \
  if (services->profile) ulam_profile_leave(services->profile, status); \
  services->call = NULL;                         \
  ulam_current_call = call.outer;                \
  ulam_arena_reset(ctx);                         \
  if (stoppable) ulam_call_end(&call, &services->short_entries, entry, status == ULAM_STOPPED); \
  return status

int32_t ulam_run_plain(ulam_context *ctx, void *entry, void *bound) {
  int32_t (*function)(ulam_context *, void *) = (int32_t(*)(ulam_context *, void *))entry;
  RUN(function(ctx, bound));
}

static int32_t run_bind(ulam_context *ctx, void *entry, void *bound) {
  int32_t (*function)(ulam_context *, void *) = (int32_t(*)(ulam_context *, void *))entry;
  RUN(function(ctx, bound));
}

int32_t ulam_run_bind(ulam_context *ctx, void *entry, void *bound, ulam_bound_memory *memory) {
  ctx->services->bound_memory = memory;
  int32_t status = run_bind(ctx, entry, bound);
  ctx->services->bound_memory = NULL;
  return status;
}

int32_t ulam_run_dims(ulam_context *ctx, void *entry, void *bound, int64_t k, int64_t *dims) {
  int32_t (*function)(ulam_context *, void *, int64_t, int64_t *) =
      (int32_t(*)(ulam_context *, void *, int64_t, int64_t *))entry;
  RUN(function(ctx, bound, k, dims));
}

int32_t ulam_run_value(ulam_context *ctx, void *entry, void *bound, const double *theta, int32_t jacobian) {
  int32_t (*function)(ulam_context *, void *, const double *, int32_t, double *) =
      (int32_t(*)(ulam_context *, void *, const double *, int32_t, double *))entry;
  RUN(function(ctx, bound, theta, jacobian, &ctx->value));
}

int32_t ulam_run_gradient(ulam_context *ctx, void *entry, void *bound, const double *theta, double *gradient,
                          int32_t jacobian) {
  int32_t (*function)(ulam_context *, void *, const double *, double *, int32_t, double *) =
      (int32_t(*)(ulam_context *, void *, const double *, double *, int32_t, double *))entry;
  RUN(function(ctx, bound, theta, gradient, jacobian, &ctx->value));
}

int32_t ulam_repeat_gradient(ulam_context *ctx, void *entry, void *bound, const double *theta, double *gradient,
                             int32_t jacobian, int64_t count) {
  int32_t status = ULAM_OK;
  const int32_t depth = ulam_scope_depth();
  if (ctx->services->stoppable) ulam_scope_enter(-1);
  for (int64_t i = 0; i < count && status == ULAM_OK; ++i)
    status = ulam_run_gradient(ctx, entry, bound, theta, gradient, jacobian);
  ulam_scope_leave(depth);
  return status;
}

typedef int32_t (*hessian_vector_function)(ulam_context *, void *, const double *, const double *, double *, double *,
                                           int32_t, double *);

int32_t ulam_run_hessian_vector(ulam_context *ctx, void *entry, void *bound, const double *theta,
                                const double *direction, double *gradient, double *product, int32_t jacobian) {
  hessian_vector_function function = (hessian_vector_function)entry;
  RUN(function(ctx, bound, theta, direction, gradient, product, jacobian, &ctx->value));
}

static int32_t columns_of_hessian(ulam_context *ctx, hessian_vector_function function, void *bound, const double *theta,
                                  int64_t n, double *direction, double *gradient, double *hessian, int32_t jacobian) {
  int32_t status = ULAM_OK;
  int64_t printed = 0;
  for (int64_t i = 0; i < n; ++i) direction[i] = 0;
  for (int64_t i = 0; i < n && status == ULAM_OK; ++i) {
    char *mark = ctx->arena_cursor;
    direction[i] = 1;
    status = function(ctx, bound, theta, direction, gradient, hessian + i * n, jacobian, &ctx->value);
    direction[i] = 0;
    ulam_release(ctx, mark);
    if (i == 0) printed = ctx->services->output.length;
    ctx->output_length = ctx->services->output.length = printed; /* the program printed once, to whoever reads it */
  }
  return status;
}

int32_t ulam_run_hessian(ulam_context *ctx, void *entry, void *bound, const double *theta, int64_t n, double *direction,
                         double *gradient, double *hessian, int32_t jacobian) {
  hessian_vector_function function = (hessian_vector_function)entry;
  RUN(columns_of_hessian(ctx, function, bound, theta, n, direction, gradient, hessian, jacobian));
}

int32_t ulam_run_constrain(ulam_context *ctx, void *entry, void *bound, const double *theta, double *out,
                           int32_t include_tp, int32_t include_gq) {
  int32_t (*function)(ulam_context *, void *, const double *, double *, int32_t, int32_t) =
      (int32_t(*)(ulam_context *, void *, const double *, double *, int32_t, int32_t))entry;
  RUN(function(ctx, bound, theta, out, include_tp, include_gq));
}

int32_t ulam_run_unconstrain(ulam_context *ctx, void *entry, void *bound, const double *in, double *theta) {
  int32_t (*function)(ulam_context *, void *, const double *, double *) =
      (int32_t(*)(ulam_context *, void *, const double *, double *))entry;
  RUN(function(ctx, bound, in, theta));
}
