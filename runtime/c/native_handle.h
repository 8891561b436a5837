/* The log density of a model with its data, and its gradient, as a C function for samplers and optimizers that know
 * nothing of ulam. docs/native-handle.md says what callers may rely on.
 */
#ifndef ULAM_NATIVE_HANDLE_H
#define ULAM_NATIVE_HANDLE_H

#include <stddef.h>

#include "context.h"

/* What `ulam_native_gradient` returns; ULAM_OK, ULAM_REJECT and ULAM_FATAL are as everywhere. */
enum { ULAM_WRONG_SIZE = 5, ULAM_NO_MEMORY = 6, ULAM_GONE = 7 };

/* What is computed of a point: the value; with its gradient; with that, and the Hessian's product with a vector. */
typedef enum { ULAM_VALUE = 0, ULAM_GRADIENT = 1, ULAM_PRODUCT = 2 } ulam_order;

typedef struct ulam_gradient_handle ulam_gradient_handle;

/* Entries and bound data stay the caller's, and must outlive the handle. `locate` tells a rejection from a fatal error
 * where a unit found one of them. NULL: out of memory. */
ULAM_API ulam_gradient_handle *ulam_native_handle_new(int64_t n, int32_t jacobian, void *gradient, void *gradient_bound,
                                                    void *locate, void *locate_bound);
ULAM_API void ulam_native_handle_free(ulam_gradient_handle *handle);
/* The unit of another order than the gradient's, before it is asked for. */
ULAM_API void ulam_native_handle_add(ulam_gradient_handle *handle, int32_t order, void *entry, void *bound);
int64_t ulam_native_size(const ulam_gradient_handle *handle); /* the number of unconstrained parameters */

/* Of `n` unconstrained parameters `x`: the log density and its gradient. For any number of threads at once. */
ULAM_API int ulam_native_gradient(size_t n, const double *x, double *grad, double *lp, void *user);
/* The value alone; `grad` is not looked at. */
ULAM_API int ulam_native_value(size_t n, const double *x, double *grad, double *lp, void *user);
/* product := H v, for H the second derivatives; the gradient and the value, too. */
ULAM_API int ulam_native_product(size_t n, const double *x, const double *v, double *product, double *grad, double *lp,
                                 void *user);
/* The same for samplers that know of rejections only: a fatal error is one, too, and is noted. */
ULAM_API int ulam_native_gradient_noting(size_t n, const double *x, double *grad, double *lp, void *user);
/* Where a fatal error was first noted; NULL: nowhere. */
ULAM_API const double *ulam_native_fatal_point(const ulam_gradient_handle *handle);
/* For samplers that ask what is to be kept of a point: itself. */
ULAM_API int ulam_native_copy(size_t n, size_t kept, const double *x, double *out, void *user);

/* Of `count` points, one behind the other. A point that is refused has the value -inf, and zeros for the rest. Ends at the
 * first one with another problem. */
typedef struct {
  size_t count;
  const double *x, *v;
  double *lp, *grad, *product; /* as the order has it; else NULL */
} ulam_points;
ULAM_API int ulam_native_points(ulam_gradient_handle *handle, int32_t order, const ulam_points *points);
ULAM_API int ulam_native_batch(size_t count, size_t n, const double *x, double *grad, double *lp, void *user);

/* The density as scipy.integrate calls it: exp(log density - shift), 0 where a point is refused. `user` is an
 * `ulam_scaled_density`. NaN for all other problems, the first of which is noted. */
typedef struct {
  ulam_gradient_handle *handle;
  double shift;
  int32_t status;
} ulam_scaled_density;
ULAM_API double ulam_native_density(int n, double *x, void *user);

/* The ticket of a handle, made when it is first asked for (embed/tickets.h). 0: no memory, or too many. */
ULAM_API int64_t ulam_native_handle_ticket(ulam_gradient_handle *handle);
/* As `ulam_native_points` of one point; ULAM_GONE: the ticket is void. */
ULAM_API int ulam_native_by_ticket(int64_t ticket, size_t n, const double *x, double *grad, double *lp);

#endif
