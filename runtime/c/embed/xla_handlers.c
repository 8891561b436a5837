/* The log density as custom calls of XLA, for `ulam.embed.jax`. One attribute: the ticket of a handle. Arguments and
 * results have any number of leading dimensions: points one behind the other.
 */
#include <string.h>

#include "embed/tickets.h"
#include "embed/xla_ffi.h"

static xla_error *error(const xla_call *call, int32_t code, const char *message) {
  xla_error_arguments arguments = {.struct_size = sizeof arguments, .message = message, .code = code};
  return call->functions->new_error(&arguments);
}

static int32_t minor_version = XLA_MINOR;

/* Version 0.`minor` is the one that is there, and that the handlers are for: before they are registered. */
ULAM_API void ulam_xla_version(int32_t minor) { __atomic_store_n(&minor_version, minor, __ATOMIC_RELAXED); }

/* What is asked when a handler is registered, with functions or without them. */
static xla_error *tell(const xla_call *call) {
  xla_metadata *metadata = ((xla_metadata_extension *)call->extensions)->metadata;
  metadata->version.struct_size = sizeof(xla_version);
  metadata->version.extensions = NULL;
  metadata->version.major = XLA_MAJOR;
  metadata->version.minor = __atomic_load_n(&minor_version, __ATOMIC_RELAXED);
  metadata->traits = 0;
  return NULL;
}

/* The data of an argument or result of `count` times `width` doubles; NULL: it is something else. */
static double *doubles(const xla_list *list, int64_t index, int64_t count, int64_t width) {
  const xla_buffer *buffer = list->items[index];
  if (list->kinds[index] != XLA_BUFFER || buffer->struct_size < sizeof *buffer || buffer->type != XLA_F64) return NULL;
  int64_t size = 1;
  for (int64_t i = 0; i < buffer->rank; ++i) size *= buffer->dims[i];
  static double none;
  if (size != count * width) return NULL;
  return size == 0 && buffer->data == NULL ? &none : buffer->data;
}

/* How many points the first argument has: all dimensions but the last. */
static int64_t points_of(const xla_call *call) {
  const xla_buffer *buffer = call->arguments.items[0];
  if (buffer->struct_size < sizeof *buffer || buffer->rank < 1) return -1;
  int64_t count = 1;
  for (int64_t i = 0; i + 1 < buffer->rank; ++i) count *= buffer->dims[i];
  return count;
}

static int64_t ticket_of(const xla_call *call) {
  if (call->attributes.size != 1 || call->attributes.kinds[0] != XLA_SCALAR) return 0;
  const xla_scalar *scalar = call->attributes.items[0];
  int64_t ticket;
  if (scalar->type != XLA_S64) return 0;
  memcpy(&ticket, scalar->value, sizeof ticket);
  return ticket;
}

static xla_error *outcome(const xla_call *call, int status) {
  switch (status) {
    case ULAM_OK:
      return NULL;
    case ULAM_WRONG_SIZE:
      return error(call, XLA_INVALID_ARGUMENT, "ulam: the custom call has not the arguments of this log density");
    case ULAM_GONE:
      return error(call, XLA_FAILED_PRECONDITION,
                   "ulam: the log density that this was compiled from is gone: keep a reference to it");
    case ULAM_NO_MEMORY:
      return error(call, XLA_RESOURCE_EXHAUSTED, "ulam: out of memory");
    default:
      return error(call, XLA_INVALID_ARGUMENT,
                   "ulam: a fatal error in the Stan program (a wrong index or size, fatal_error(), or out of memory); "
                   "StanModel.log_density_gradient at the same point has the message");
  }
}

static int run(const xla_call *call, int32_t order) {
  const int64_t arguments = order == ULAM_PRODUCT ? 2 : 1, results = 1 + (int64_t)order, count = points_of(call);
  if (call->arguments.size != arguments || call->results.size != results || count < 0) return ULAM_WRONG_SIZE;
  const int64_t ticket = ticket_of(call);
  ulam_gradient_handle *handle = ulam_ticket_take(ticket);
  if (handle == NULL) return ULAM_GONE;
  const int64_t n = ulam_native_size(handle);
  const ulam_points points = {
      .count = (size_t)count,
      .x = doubles(&call->arguments, 0, count, n),
      .v = order == ULAM_PRODUCT ? doubles(&call->arguments, 1, count, n) : NULL,
      .lp = doubles(&call->results, 0, count, 1),
      .grad = order >= ULAM_GRADIENT ? doubles(&call->results, 1, count, n) : NULL,
      .product = order == ULAM_PRODUCT ? doubles(&call->results, 2, count, n) : NULL,
  };
  int status = ULAM_WRONG_SIZE;
  if (points.x && points.lp && (order < ULAM_GRADIENT || points.grad) &&
      (order < ULAM_PRODUCT || (points.v && points.product)))
    status = ulam_native_points(handle, order, &points);
  ulam_ticket_give(ticket);
  return status;
}

static xla_error *handle_call(const xla_call *call, int32_t order) {
  if (call->extensions && call->extensions->kind == XLA_METADATA) return tell(call);
  if (call->struct_size < sizeof *call) return error(call, XLA_INVALID_ARGUMENT, "ulam: another interface of XLA");
  if (call->stage != XLA_EXECUTE) return error(call, XLA_INVALID_ARGUMENT, "ulam: not a call");
  return outcome(call, run(call, order));
}

ULAM_API xla_error *ulam_xla_value(const xla_call *call) { return handle_call(call, ULAM_VALUE); }
ULAM_API xla_error *ulam_xla_gradient(const xla_call *call) { return handle_call(call, ULAM_GRADIENT); }
ULAM_API xla_error *ulam_xla_product(const xla_call *call) { return handle_call(call, ULAM_PRODUCT); }
