/* NumPy's SeedSequence, of which its generators take their first state. */
#ifndef ULAM_SEED_SEQUENCE_H
#define ULAM_SEED_SEQUENCE_H

#include <stdint.h>

#include "pcg64dxsm.h"

/* A generator with the numbers of `Rng(seed, stream)` (runtime/native.py): stream 0 is that of the seed alone. */
void ulam_pcg_seed(ulam_pcg *generator, uint64_t seed, uint64_t stream);

#endif
