/* print, reject, fatal_error: text in Stan's form.
 *
 * Numbers are printed as C++ streams do by default: six significant digits. Containers are bracketed lists, a matrix
 * is a list of its rows. Stan Functions Reference, "Print statements".
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "services.h"

enum { PRINT = 0, REJECT = 1, FATAL_ERROR = 2 };
enum { ARRAY = 0, VECTOR = 1, ROW_VECTOR = 2, MATRIX = 3 };

static void append(ulam_context *ctx, const char *text) {
  ulam_mask();
  ulam_text_append(&ctx->services->line, text, (int64_t)strlen(text));
  ulam_unmask();
}

ULAM_API void ulam_print_begin(ulam_context *ctx, int32_t kind) {
  ctx->services->line.length = 0;
  ctx->services->print_kind = kind;
}

ULAM_API void ulam_print_string(ulam_context *ctx, const char *text) { append(ctx, text); }

ULAM_API void ulam_print_int(ulam_context *ctx, int32_t value) {
  char text[16];
  ulam_mask();
  snprintf(text, sizeof text, "%d", value);
  append(ctx, text);
  ulam_unmask();
}

ULAM_API void ulam_print_real(ulam_context *ctx, double value) {
  char text[32];
  ulam_mask();
  if (isnan(value)) /* the sign of a NaN means nothing to a Stan user */
    strcpy(text, "nan");
  else
    snprintf(text, sizeof text, "%g", value);
  append(ctx, text);
  ulam_unmask();
}

/* Where the elements of a container lie: one of these, or `reals` and `imaginary` for complex numbers. */
typedef struct {
  const int32_t *ints;
  const double *reals, *imaginary;
} elements;

static void print_element(ulam_context *ctx, const elements *from, int64_t index) {
  if (from->ints) {
    ulam_print_int(ctx, from->ints[index]);
    return;
  }
  if (from->imaginary) append(ctx, "(");
  ulam_print_real(ctx, from->reals[index]);
  if (from->imaginary) {
    append(ctx, ",");
    ulam_print_real(ctx, from->imaginary[index]);
    append(ctx, ")");
  }
}

static void print_list(ulam_context *ctx, const elements *from, int64_t offset, int64_t count,
                       int64_t stride) {
  append(ctx, "[");
  for (int64_t i = 0; i < count; ++i) {
    if (i) append(ctx, ",");
    print_element(ctx, from, offset + i * stride);
  }
  append(ctx, "]");
}

/* `rank` sizes are left in `dims`; returns the number of elements printed. */
static int64_t print_levels(ulam_context *ctx, const elements *from, int64_t offset, int32_t rank,
                            const int64_t *dims, int32_t kind) {
  if (rank == 2 && kind == MATRIX) {
    append(ctx, "[");
    for (int64_t i = 0; i < dims[0]; ++i) {
      if (i) append(ctx, ",");
      print_list(ctx, from, offset + i, dims[1], dims[0]);
    }
    append(ctx, "]");
    return dims[0] * dims[1];
  }
  if (rank == 1) {
    print_list(ctx, from, offset, dims[0], 1);
    return dims[0];
  }
  int64_t printed = 0;
  append(ctx, "[");
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i) append(ctx, ",");
    printed += print_levels(ctx, from, offset + printed, rank - 1, dims + 1, kind);
  }
  append(ctx, "]");
  return printed;
}

static void print_container(ulam_context *ctx, const elements *from, int32_t rank, const int64_t *dims, int32_t kind) {
  if (rank == 0)
    print_element(ctx, from, 0);
  else
    print_levels(ctx, from, 0, rank, dims, kind);
}

/* `rank` counts all sizes, those of a vector or matrix included; `kind` says what the innermost ones are. */
ULAM_API void ulam_print_container_real(ulam_context *ctx, const double *buffer, int32_t rank, const int64_t *dims,
                                        int32_t kind) {
  print_container(ctx, &(elements){NULL, buffer, NULL}, rank, dims, kind);
}

ULAM_API void ulam_print_container_complex(ulam_context *ctx, const double *real, const double *imaginary, int32_t rank,
                                           const int64_t *dims, int32_t kind) {
  print_container(ctx, &(elements){NULL, real, imaginary}, rank, dims, kind);
}

ULAM_API void ulam_print_container_int(ulam_context *ctx, const int32_t *buffer, int32_t rank, const int64_t *dims,
                                       int32_t kind) {
  print_container(ctx, &(elements){buffer, NULL, NULL}, rank, dims, kind);
}

ULAM_API void ulam_print_end(ulam_context *ctx) {
  struct ulam_services *services = ctx->services;
  ulam_text *line = &services->line;
  ulam_mask();
  if (services->print_kind != PRINT) {
    ulam_text *message = &services->message;
    message->length = 0;
    ulam_text_append(message, line->bytes ? line->bytes : "", line->length);
  } else {
    append(ctx, "\n");
    if (services->sink)
      services->sink(line->bytes, line->length);
    else {
      ulam_text_append(&services->output, line->bytes, line->length);
      ctx->output_length = services->output.length;
    }
  }
  line->length = 0;
  ulam_unmask();
}
