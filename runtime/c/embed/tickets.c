/* Handles by number, for code that may be called when they are gone: what JAX and Numba have compiled. */
#include "embed/tickets.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { PLACE_BITS = 16, BLOCK = 256, BLOCKS = (1 << PLACE_BITS) / BLOCK };

typedef struct {
  int64_t ticket; /* 0: the place is free */
  int64_t takers; /* also those that find out that they came too late */
  ulam_gradient_handle *handle;
} place;

static place *blocks[BLOCKS];
static int64_t serial;
static int32_t making; /* 1: somebody makes a ticket */

static place *place_of(int64_t ticket) {
  const int64_t index = ticket & ((1 << PLACE_BITS) - 1);
  place *block = __atomic_load_n(&blocks[index / BLOCK], __ATOMIC_ACQUIRE);
  return block == NULL ? NULL : block + index % BLOCK;
}

/* The first number is one of some 2^47, by the time of the day. */
static int64_t next_serial(void) {
  if (serial == 0) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    uint64_t mixed = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * 0x9e3779b97f4a7c15u;
    serial = (int64_t)(mixed >> (PLACE_BITS + 1));
  }
  serial = (serial + 1) & (INT64_MAX >> PLACE_BITS);
  return serial ? serial : (serial = 1);
}

static int64_t make(ulam_gradient_handle *handle) {
  for (int64_t i = 0; i < BLOCKS; ++i) {
    if (blocks[i] == NULL) {
      place *made = calloc(BLOCK, sizeof *made);
      if (made == NULL) return 0;
      __atomic_store_n(&blocks[i], made, __ATOMIC_RELEASE);
    }
    for (int64_t k = 0; k < BLOCK; ++k) {
      place *own = blocks[i] + k;
      if (__atomic_load_n(&own->ticket, __ATOMIC_SEQ_CST) || __atomic_load_n(&own->takers, __ATOMIC_SEQ_CST)) continue;
      own->handle = handle;
      const int64_t ticket = next_serial() << PLACE_BITS | (i * BLOCK + k);
      __atomic_store_n(&own->ticket, ticket, __ATOMIC_SEQ_CST);
      return ticket;
    }
  }
  return 0;
}

int64_t ulam_ticket_new(ulam_gradient_handle *handle) {
  while (__atomic_exchange_n(&making, 1, __ATOMIC_ACQUIRE)) sched_yield();
  const int64_t ticket = make(handle);
  __atomic_store_n(&making, 0, __ATOMIC_RELEASE);
  return ticket;
}

void ulam_ticket_void(int64_t ticket) {
  place *own = ticket == 0 ? NULL : place_of(ticket);
  if (own == NULL || own->ticket != ticket) return;
  __atomic_store_n(&own->ticket, 0, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&own->takers, __ATOMIC_SEQ_CST) != 0) sched_yield();
}

ulam_gradient_handle *ulam_ticket_take(int64_t ticket) {
  place *own = ticket == 0 ? NULL : place_of(ticket);
  if (own == NULL) return NULL;
  __atomic_fetch_add(&own->takers, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&own->ticket, __ATOMIC_SEQ_CST) == ticket) return own->handle;
  __atomic_fetch_sub(&own->takers, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

void ulam_ticket_give(int64_t ticket) { __atomic_fetch_sub(&place_of(ticket)->takers, 1, __ATOMIC_SEQ_CST); }

int ulam_native_by_ticket(int64_t ticket, size_t n, const double *x, double *grad, double *lp) {
  ulam_gradient_handle *handle = ulam_ticket_take(ticket);
  if (handle == NULL) return ULAM_GONE;
  int status = ulam_native_batch(1, n, x, grad, lp, handle);
  ulam_ticket_give(ticket);
  return status;
}
