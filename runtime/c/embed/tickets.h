/* Tickets: numbers that stand for a handle while it is there, for callers that may outlive it. A ticket is never that of
 * another handle, of this process or, but for a chance of 2^-47, of another.
 */
#ifndef ULAM_TICKETS_H
#define ULAM_TICKETS_H

#include "native_handle.h"

int64_t ulam_ticket_new(ulam_gradient_handle *handle);  /* 0: no memory, or 65536 are in use */
void ulam_ticket_void(int64_t ticket);                  /* waits until nobody has taken it; 0 is allowed */
ulam_gradient_handle *ulam_ticket_take(int64_t ticket); /* NULL: it is void */
void ulam_ticket_give(int64_t ticket);

#endif
