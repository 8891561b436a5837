/* What XLA hands to a custom call, as far as we read it: the layout of version 0 of its C interface for foreign functions,
 * which every minor version keeps (fields are only added at the end; each struct begins with its size). 0.1 and 0.3 have
 * been tried. Declared here, so
 * that the runtime is built without XLA, and works with any version of it that has this layout.
 */
#ifndef ULAM_XLA_FFI_H
#define ULAM_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0, XLA_MINOR = 1 };
enum { XLA_METADATA = 1 };                                               /* kinds of extensions */
enum { XLA_EXECUTE = 3 };                                                /* stages */
enum { XLA_BUFFER = 1, XLA_SCALAR = 3 };                                 /* kinds of arguments, of attributes */
enum { XLA_S64 = 5, XLA_F64 = 12 };                                      /* types of elements */
enum { XLA_INVALID_ARGUMENT = 3, XLA_RESOURCE_EXHAUSTED = 8, XLA_FAILED_PRECONDITION = 9 }; /* errors */

typedef struct xla_extension {
  size_t struct_size;
  int32_t kind;
  struct xla_extension *next;
} xla_extension;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  int32_t major, minor;
} xla_version;

typedef struct {
  size_t struct_size;
  xla_version version; /* out: which the handler is made for */
  uint32_t traits;     /* out */
} xla_metadata;

typedef struct {
  xla_extension base;
  xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_error xla_error;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  const char *message; /* copied */
  int32_t code;
} xla_error_arguments;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  xla_version version;
  const void *internal;
  xla_error *(*new_error)(xla_error_arguments *);
} xla_functions;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  int32_t type;
  void *data;
  int64_t rank;
  int64_t *dims;
} xla_buffer;

typedef struct {
  int32_t type;
  void *value;
} xla_scalar;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  int64_t size;
  int32_t *kinds;
  void **items;
} xla_list; /* of arguments, of results */

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  int64_t size;
  int32_t *kinds;
  void **names;
  void **items;
} xla_attributes;

typedef struct {
  size_t struct_size;
  xla_extension *extensions;
  const xla_functions *functions;
  void *context;
  int32_t stage;
  xla_list arguments, results;
  xla_attributes attributes;
} xla_call;

_Static_assert(offsetof(xla_functions, new_error) == 48, "layout");
_Static_assert(offsetof(xla_buffer, data) == 24, "layout");
_Static_assert(offsetof(xla_call, arguments) == 40, "layout");
_Static_assert(offsetof(xla_call, attributes) == 120, "layout");

#endif
