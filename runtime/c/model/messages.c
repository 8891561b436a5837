/* Messages of a program's failures, in the words of runtime/errors.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../sampling/decimal.h"
#include "model.h"

static const char at_the_edge[] =
    "a check failed that the program as it is written passes, by rounding: the point is at the edge of where the log "
    "density is defined";

char *ulam_copy(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = malloc(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

int32_t ulam_no_memory(ulam_text *error) {
  ulam_text_say(error, "out of memory");
  return ULAM_NO_MEMORY;
}

/* As `value_text`: an integer without a point, else the shortest text that reads back. */
static void add_value(ulam_text *text, double value) {
  char number[DECIMAL_LENGTH];
  ulam_text_append(text, number, ulam_number_text(value == 0 ? 0 : value, number));
}

static double wrapped(double value) {
  if (!isfinite(value)) return value;
  value = fmod(trunc(value), 0x1p32);
  if (value >= 0x1p31) return value - 0x1p32;
  return value < -0x1p31 ? value + 0x1p32 : value;
}

/* A site's message with {0}, {1:int}, ... replaced by values, {text} by `own`. */
static void add_message(ulam_text *text, const char *message, const double values[4], const char *own) {
  for (const char *c = message; *c;) {
    const char *next = strchr(c + 1, '{');
    int length = (int)(next ? next - c : (ptrdiff_t)strlen(c));
    int is_place = c[0] == '{' && c[1] >= '0' && c[1] <= '3';
    if (own && strncmp(c, "{text}", 6) == 0) {
      ulam_text_say(text, own);
      c += 6;
    } else if (own == NULL && is_place && c[2] == '}') {
      add_value(text, values[c[1] - '0']);
      c += 3;
    } else if (own == NULL && is_place && strncmp(c + 2, ":int}", 5) == 0) {
      add_value(text, wrapped(values[c[1] - '0']));
      c += 7;
    } else {
      ulam_text_append(text, c, length);
      c += length;
      continue;
    }
    length = (int)strcspn(c, "{");
    ulam_text_append(text, c, length);
    c += length;
  }
}

int32_t ulam_failure_text(const ulam_program_unit *unit, int32_t status, int64_t site, const double values[4],
                          const char *message, ulam_text *text) {
  ulam_program_site none = {status, 0, 0, "the program failed without saying where", "", ""};
  const ulam_program_site *found = &none;
  if (message && *message == '\0') message = NULL;
  if (0 <= site && site < unit->n_sites) {
    found = &unit->sites[site];
  } else if (status == ULAM_LOCATE) { /* and the program as it is written passes */
    none.message = at_the_edge;
    status = ULAM_REJECT;
    message = NULL;
  }
  if (text) {
    ulam_text told = {0};
    if (message && strstr(found->message, "{text}") == NULL)
      ulam_text_say(&told, message);
    else
      add_message(&told, found->message, values, message);
    size_t length = strlen(found->function);
    const char *own = told.bytes ? told.bytes : "";
    if (length && !(strncmp(own, found->function, length) == 0 && own[length] == ':'))
      ulam_text_add(text, "%s: ", found->function);
    ulam_text_say(text, own);
    if (found->line > 0)
      ulam_text_add(text, " (in '%s', line %d, column %d)", found->file, found->line, found->column);
    free(told.bytes);
  }
  return status == ULAM_REJECT ? ULAM_REJECT : ULAM_FATAL;
}

int32_t ulam_run_failure(const ulam_program_unit *unit, int32_t status, const ulam_context *ctx, ulam_text *text) {
  return ulam_failure_text(unit, status, ctx->error_site, ctx->error_values, ulam_message(ctx), text);
}
