#include "native_handle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_pool.h"
#include "embed/float_control.h"
#include "embed/tickets.h"

struct ulam_gradient_handle {
  int64_t n;
  int32_t jacobian;
  struct {
    void *entry, *bound;
  } units[3], locate; /* by order */
  double *fatal_point;
  int64_t ticket; /* 0: nobody has asked for it */
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
  ulam_native_handle_add(handle, ULAM_GRADIENT, gradient, gradient_bound);
  handle->locate.entry = locate;
  handle->locate.bound = locate_bound;
  return handle;
}

void ulam_native_handle_add(ulam_gradient_handle *handle, int32_t order, void *entry, void *bound) {
  handle->units[order].bound = bound;
  __atomic_store_n(&handle->units[order].entry, entry, __ATOMIC_RELEASE);
}

void ulam_native_handle_free(ulam_gradient_handle *handle) {
  if (handle == NULL) return;
  ulam_ticket_void(handle->ticket);
  ulam_pool_clear(&handle->pool);
  free(handle->fatal_point);
  free(handle);
}

int64_t ulam_native_handle_ticket(ulam_gradient_handle *handle) {
  int64_t none = 0, known = __atomic_load_n(&handle->ticket, __ATOMIC_ACQUIRE);
  if (known) return known;
  const int64_t made = ulam_ticket_new(handle);
  if (__atomic_compare_exchange_n(&handle->ticket, &none, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
  ulam_ticket_void(made);
  return none; /* another thread's */
}

int64_t ulam_native_size(const ulam_gradient_handle *handle) { return handle->n; }

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
  int status = ulam_run_value(ctx, handle->locate.entry, handle->locate.bound, x, handle->jacobian);
  ulam_set_print_sink(ctx, print);
  return status == ULAM_FATAL ? ULAM_FATAL : ULAM_REJECT;
}

/* One evaluation in a context that the caller has taken. */
static inline int evaluate(ulam_gradient_handle *handle, ulam_context *ctx, int32_t order, const double *x,
                           const double *v, double *lp, double *grad, double *product) {
  void *entry = __atomic_load_n(&handle->units[order].entry, __ATOMIC_ACQUIRE), *bound = handle->units[order].bound;
  int status = order == ULAM_VALUE      ? ulam_run_value(ctx, entry, bound, x, handle->jacobian)
               : order == ULAM_GRADIENT ? ulam_run_gradient(ctx, entry, bound, x, grad, handle->jacobian)
                                        : ulam_run_hessian_vector(ctx, entry, bound, x, v, grad, product, handle->jacobian);
  if (status == ULAM_OK)
    *lp = ctx->value;
  else if (status != ULAM_REJECT && status != ULAM_FATAL)
    status = located(handle, ctx, x);
  return status;
}

/* The same in a context of its own. */
static int evaluate_alone(ulam_gradient_handle *handle, int32_t order, size_t n, const double *x, const double *v,
                          double *lp, double *grad, double *product) {
  if ((int64_t)n != handle->n) return ULAM_WRONG_SIZE;
  ulam_context *ctx = take(handle);
  if (ctx == NULL) return ULAM_NO_MEMORY;
  const float_control found = set_usual_float_control();
  int status = evaluate(handle, ctx, order, x, v, lp, grad, product);
  restore_float_control(found);
  ulam_pool_give(&handle->pool, ctx);
  return status;
}

int ulam_native_gradient(size_t n, const double *x, double *grad, double *lp, void *user) {
  return evaluate_alone(user, ULAM_GRADIENT, n, x, NULL, lp, grad, NULL);
}

int ulam_native_value(size_t n, const double *x, double *grad, double *lp, void *user) {
  (void)grad;
  return evaluate_alone(user, ULAM_VALUE, n, x, NULL, lp, NULL, NULL);
}

int ulam_native_product(size_t n, const double *x, const double *v, double *product, double *grad, double *lp,
                        void *user) {
  return evaluate_alone(user, ULAM_PRODUCT, n, x, v, lp, grad, product);
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

/* ------------------------------------------------------------ for callers that know of no rejections */

int ulam_native_points(ulam_gradient_handle *handle, int32_t order, const ulam_points *points) {
  const size_t n = (size_t)handle->n;
  ulam_context *ctx = take(handle);
  if (ctx == NULL) return ULAM_NO_MEMORY;
  const float_control found = set_usual_float_control();
  int status = ULAM_OK;
  for (size_t i = 0; i < points->count && status == ULAM_OK; ++i) {
    const double *x = points->x + i * n, *v = order == ULAM_PRODUCT ? points->v + i * n : NULL;
    double *grad = order == ULAM_VALUE ? NULL : points->grad + i * n;
    double *product = order == ULAM_PRODUCT ? points->product + i * n : NULL;
    status = evaluate(handle, ctx, order, x, v, points->lp + i, grad, product);
    if (status != ULAM_REJECT) continue;
    status = ULAM_OK;
    points->lp[i] = -INFINITY;
    if (grad) memset(grad, 0, n * sizeof(double));
    if (product) memset(product, 0, n * sizeof(double));
  }
  restore_float_control(found);
  ulam_pool_give(&handle->pool, ctx);
  return status;
}

int ulam_native_batch(size_t count, size_t n, const double *x, double *grad, double *lp, void *user) {
  ulam_gradient_handle *handle = user;
  if ((int64_t)n != handle->n) return ULAM_WRONG_SIZE;
  return ulam_native_points(handle, ULAM_GRADIENT, &(ulam_points){.count = count, .x = x, .grad = grad, .lp = lp});
}

double ulam_native_density(int n, double *x, void *user) {
  ulam_scaled_density *own = user;
  double lp;
  int status = ulam_native_value((size_t)n, x, NULL, &lp, own->handle);
  if (status == ULAM_REJECT) return 0;
  if (status == ULAM_OK) return exp(lp - own->shift);
  __atomic_store_n(&own->status, status, __ATOMIC_RELAXED);
  return NAN;
}
