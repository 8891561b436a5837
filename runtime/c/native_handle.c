#include "native_handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_pool.h"

struct ulam_gradient_handle {
  int64_t n;
  int32_t jacobian;
  void *gradient, *gradient_bound, *locate, *locate_bound;
  double *fatal_point;
  int32_t fatal; /* 1: the point is about to be written, 2: it is there */
  ulam_context_pool pool;
};

ulam_gradient_handle *ulam_native_handle_new(int64_t n, int32_t jacobian, void *gradient, void *gradient_bound,
                                           void *locate, void *locate_bound) {
  ulam_gradient_handle *handle = calloc(1, sizeof *handle);
  if (handle == NULL) return NULL;
  handle->fatal_point = calloc((size_t)n + 1, sizeof(double));
  if (handle->fatal_point == NULL) {
    free(handle);
    return NULL;
  }
  handle->n = n;
  handle->jacobian = jacobian;
  handle->gradient = gradient;
  handle->gradient_bound = gradient_bound;
  handle->locate = locate;
  handle->locate_bound = locate_bound;
  return handle;
}

void ulam_native_handle_free(ulam_gradient_handle *handle) {
  if (handle == NULL) return;
  ulam_pool_clear(&handle->pool);
  free(handle->fatal_point);
  free(handle);
}

static void print(const char *text, int64_t length) {
  fwrite(text, 1, (size_t)length, stdout);
  fflush(stdout);
}

static ulam_context *take(ulam_gradient_handle *handle) {
  ulam_context *found = ulam_pool_take(&handle->pool);
  if (found) ulam_set_print_sink(found, print);
  return found;
}

static void print_nothing(const char *text, int64_t length) { (void)text, (void)length; }

/* The status of an error that was noticed without its place. What the program prints it has printed. */
static int located(ulam_gradient_handle *handle, ulam_context *ctx, const double *x) {
  ulam_set_print_sink(ctx, print_nothing);
  int status = ulam_run_value(ctx, handle->locate, handle->locate_bound, x, handle->jacobian);
  ulam_set_print_sink(ctx, print);
  return status == ULAM_FATAL ? ULAM_FATAL : ULAM_REJECT;
}

int ulam_native_gradient(size_t n, const double *x, double *grad, double *lp, void *user) {
  ulam_gradient_handle *handle = user;
  if ((int64_t)n != handle->n) return ULAM_WRONG_SIZE;
  ulam_context *ctx = take(handle);
  if (ctx == NULL) return ULAM_NO_MEMORY;
  int status = ulam_run_gradient(ctx, handle->gradient, handle->gradient_bound, x, grad, handle->jacobian);
  if (status == ULAM_OK)
    *lp = ctx->value;
  else if (status != ULAM_REJECT && status != ULAM_FATAL)
    status = located(handle, ctx, x);
  ulam_pool_give(&handle->pool, ctx);
  return status;
}

int ulam_native_gradient_noting(size_t n, const double *x, double *grad, double *lp, void *user) {
  ulam_gradient_handle *handle = user;
  int status = ulam_native_gradient(n, x, grad, lp, user);
  if (status == ULAM_OK || status == ULAM_REJECT || (int64_t)n != handle->n) return status;
  int32_t none = 0;
  if (__atomic_compare_exchange_n(&handle->fatal, &none, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    memcpy(handle->fatal_point, x, n * sizeof(double));
    __atomic_store_n(&handle->fatal, 2, __ATOMIC_RELEASE);
  }
  return ULAM_REJECT;
}

const double *ulam_native_fatal_point(const ulam_gradient_handle *handle) {
  return __atomic_load_n(&handle->fatal, __ATOMIC_ACQUIRE) == 2 ? handle->fatal_point : NULL;
}

int ulam_native_copy(size_t n, size_t kept, const double *x, double *out, void *user) {
  (void)user;
  memcpy(out, x, (n < kept ? n : kept) * sizeof(double));
  return 0;
}
