/* The log density of a model with its data, and its gradient, as a C function for samplers and optimizers that know
 * nothing of ulam. docs/native-handle.md says what callers may rely on.
 */
#ifndef ULAM_NATIVE_HANDLE_H
#define ULAM_NATIVE_HANDLE_H

#include <stddef.h>

#include "context.h"

/* What `ulam_native_gradient` returns; ULAM_OK, ULAM_REJECT and ULAM_FATAL are as everywhere. */
enum { ULAM_WRONG_SIZE = 5, ULAM_NO_MEMORY = 6 };

typedef struct ulam_gradient_handle ulam_gradient_handle;

/* Entries and bound data stay the caller's, and must outlive the handle. `locate` tells a rejection from a fatal error
 * where a unit found one of them. NULL: out of memory. */
ULAM_API ulam_gradient_handle *ulam_native_handle_new(int64_t n, int32_t jacobian, void *gradient, void *gradient_bound,
                                                    void *locate, void *locate_bound);
ULAM_API void ulam_native_handle_free(ulam_gradient_handle *handle);

/* Of `n` unconstrained parameters `x`: the log density and its gradient. For any number of threads at once. */
ULAM_API int ulam_native_gradient(size_t n, const double *x, double *grad, double *lp, void *user);
/* The same for samplers that know of rejections only: a fatal error is one, too, and is noted. */
ULAM_API int ulam_native_gradient_noting(size_t n, const double *x, double *grad, double *lp, void *user);
/* Where a fatal error was first noted; NULL: nowhere. */
ULAM_API const double *ulam_native_fatal_point(const ulam_gradient_handle *handle);
/* For samplers that ask what is to be kept of a point: itself. */
ULAM_API int ulam_native_copy(size_t n, size_t kept, const double *x, double *out, void *user);

#endif
