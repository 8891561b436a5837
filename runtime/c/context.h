/* The C runtime of ulam: what compiled programs and the Python side share.
 *
 * Every function of a compiled program takes a context as its first argument: arena, error slot, random numbers and
 * print sink of one evaluation. A context is used by one thread at a time; the Python side keeps a pool of them.
 * Functions that may fail return a status; see ULAM_OK and below. The layout of the first fields is part of the ABI:
 * emitted code allocates from the arena and fills the error slot inline.
 */
#ifndef ULAM_CONTEXT_H
#define ULAM_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

struct bitgen; /* NumPy's bitgen_t */

enum {
  ULAM_OK = 0,
  ULAM_REJECT = 1, /* a domain error or reject(): the proposal is not possible */
  ULAM_FATAL = 2,  /* a wrong index or size, fatal_error(), out of memory: the run stops */
  ULAM_STOPPED = 4 /* the run was stopped from outside (interrupts.h); programs themselves return up to 3 */
};

typedef struct ulam_context {
  char *arena_cursor;      /*  0: blocks are multiples of 64 bytes, 64-byte aligned */
  char *arena_end;         /*  8 */
  int64_t error_site;      /* 16: index into the program's site table; -1: none */
  double error_values[4];  /* 24: values for the site's message */
  char *arena_start;       /* 56: of the current chunk */
  double value;            /* 64: the result of the last evaluation (ulam_run_*) */
  int64_t output_length;   /* 72: bytes of printed text not yet taken */
  struct bitgen *rng;      /* 80: NULL: drawing is an error */
  char *stack_limit;       /* 88: no frame may be below this address, see ulam_stack_exhausted */
  struct ulam_services *services; /* 96: private to the runtime */
} ulam_context;

_Static_assert(offsetof(ulam_context, arena_end) == 8, "ABI");
_Static_assert(offsetof(ulam_context, error_site) == 16, "ABI");
_Static_assert(offsetof(ulam_context, error_values) == 24, "ABI");
_Static_assert(offsetof(ulam_context, arena_start) == 56, "ABI");
_Static_assert(offsetof(ulam_context, value) == 64, "ABI");
_Static_assert(offsetof(ulam_context, output_length) == 72, "ABI");
_Static_assert(offsetof(ulam_context, rng) == 80, "ABI");
_Static_assert(offsetof(ulam_context, stack_limit) == 88, "ABI");

#if defined(_WIN32)
#define ULAM_API __declspec(dllexport)
#else
#define ULAM_API __attribute__((visibility("default")))
#endif

/* Raised whenever the layout above or the meaning of a kernel changes: part of the key of cached objects. */
#define ULAM_ABI 3
ULAM_API int32_t ulam_abi(void);

/* Numbers of the processor (processor.c): how many there are; up to `room` are written. 0: nothing is known. */
ULAM_API int64_t ulam_processor(uint32_t *words, int64_t room);

/* Contexts. `keep_bytes`: how much arena a context keeps between evaluations. */
ULAM_API ulam_context *ulam_context_new(int64_t keep_bytes);
ULAM_API void ulam_context_free(ulam_context *ctx);
ULAM_API int64_t ulam_context_bytes(const ulam_context *ctx); /* arena memory held now */
/* SIGINT and time limits stop what runs in this context (interrupts.h), for which SIGINT's handler is replaced meanwhile.
 * Otherwise no handler is ever touched. */
ULAM_API void ulam_context_stoppable(ulam_context *ctx);

/* The arena, where emitted code does not do it inline. */
ULAM_API void *ulam_arena_grow(ulam_context *ctx, int64_t bytes);
ULAM_API void ulam_arena_release(ulam_context *ctx, char *mark);
static inline void *ulam_alloc(ulam_context *ctx, int64_t bytes) {
  int64_t size = (bytes + 63) & ~(int64_t)63;
  char *block = ctx->arena_cursor;
  if (bytes < 0 || size > ctx->arena_end - block) return ulam_arena_grow(ctx, bytes);
  ctx->arena_cursor = block + size;
  return block;
}
static inline double *ulam_doubles(ulam_context *ctx, int64_t count) {
  return ulam_alloc(ctx, count <= INT64_MAX / 16 ? count * (int64_t)sizeof(double) : -1);
}
static inline void ulam_release(ulam_context *ctx, char *mark) {
  if (ctx->arena_start <= mark && mark <= ctx->arena_end)
    ctx->arena_cursor = mark;
  else
    ulam_arena_release(ctx, mark);
}

/* Memory that lives as long as bound data; ulam_run_bind says which. */
typedef struct ulam_bound_memory ulam_bound_memory;
ULAM_API ulam_bound_memory *ulam_bound_memory_new(void);
ULAM_API void ulam_bound_memory_free(ulam_bound_memory *memory);
ULAM_API void *ulam_bound_memory_alloc(ulam_bound_memory *memory, int64_t bytes);
ULAM_API void *ulam_alloc_bound(ulam_context *ctx, int64_t bytes);

/* Fails with a message of the kernel's own; returns `status`. */
ULAM_API int32_t ulam_fail(ulam_context *ctx, int32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ULAM_API const char *ulam_message(const ulam_context *ctx); /* "" if there is none */

/* For functions that may recurse without end: when a frame is below ctx->stack_limit, the status to return. */
ULAM_API int32_t ulam_stack_exhausted(ulam_context *ctx);

/* Entry points of compiled programs, called from outside: reset the error slot, run, give the arena back.
 * Running out of memory becomes ULAM_FATAL. A real result goes to ctx->value. */
ULAM_API int32_t ulam_run_plain(ulam_context *ctx, void *entry, void *bound);
ULAM_API int32_t ulam_run_bind(ulam_context *ctx, void *entry, void *bound, ulam_bound_memory *memory);
ULAM_API int32_t ulam_run_dims(ulam_context *ctx, void *entry, void *bound, int64_t k, int64_t *dims);
ULAM_API int32_t ulam_run_value(ulam_context *ctx, void *entry, void *bound, const double *theta, int32_t jacobian);
ULAM_API int32_t ulam_run_gradient(ulam_context *ctx, void *entry, void *bound, const double *theta, double *gradient,
                                   int32_t jacobian);
/* `count` gradients at one point, one after the other, up to the first that fails: for measurements. */
ULAM_API int32_t ulam_repeat_gradient(ulam_context *ctx, void *entry, void *bound, const double *theta,
                                      double *gradient, int32_t jacobian, int64_t count);
/* product := H direction, for H the second derivatives of the log density at theta; the gradient, too. */
ULAM_API int32_t ulam_run_hessian_vector(ulam_context *ctx, void *entry, void *bound, const double *theta,
                                         const double *direction, double *gradient, double *product, int32_t jacobian);
/* All of H, of n x n; `direction` is scratch of length n. */
ULAM_API int32_t ulam_run_hessian(ulam_context *ctx, void *entry, void *bound, const double *theta, int64_t n,
                                  double *direction, double *gradient, double *hessian, int32_t jacobian);
ULAM_API int32_t ulam_run_constrain(ulam_context *ctx, void *entry, void *bound, const double *theta, double *out,
                                    int32_t include_tp, int32_t include_gq);
ULAM_API int32_t ulam_run_unconstrain(ulam_context *ctx, void *entry, void *bound, const double *in, double *theta);

/* Printing. Without a sink, printed lines gather in the context until they are taken. */
typedef void (*ulam_print_sink)(const char *text, int64_t length);
ULAM_API void ulam_set_print_sink(ulam_context *ctx, ulam_print_sink sink);
ULAM_API const char *ulam_output(const ulam_context *ctx); /* ctx->output_length bytes */
ULAM_API void ulam_clear_output(ulam_context *ctx);

#endif
