/* Around calls of external functions (library/externals.py): what is not ours must not be left half-way by a signal, and
 * what it returns becomes one of our statuses, with a message. */
#include "external.h"

#include <stdlib.h>
#include <string.h>

#include "interrupts.h"
#include "services.h"

static ULAM_THREAD_LOCAL char *said; /* what the function that runs in this thread says of its failure; may be NULL */

void ulam_external_begin(ulam_context *ctx) {
  (void)ctx;
  ulam_mask();
}

void ulam_external_say(const char *text) {
  char *copy = text ? malloc(strlen(text) + 1) : NULL;
  if (copy) strcpy(copy, text);
  free(said);
  said = copy;
}

int32_t ulam_external_end(ulam_context *ctx, int32_t status, const char *name) {
  int32_t result = status == ULAM_OK || status == ULAM_REJECT ? status : ULAM_FATAL;
  if (result != ULAM_OK) {
    if (said)
      ulam_fail(ctx, result, "%s: %s", name, said);
    else
      ulam_fail(ctx, result, "%s: the external function returned status %d", name, (int)status);
    ulam_external_say(NULL);
  }
  ulam_unmask();
  return result;
}
