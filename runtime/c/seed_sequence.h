/* NumPy's SeedSequence, of which its generators take their first state (M. O'Neill's seed_seq_fe, as NumPy has it). */
#ifndef ULAM_SEED_SEQUENCE_H
#define ULAM_SEED_SEQUENCE_H

#include <stdint.h>

#include "context.h"
#include "pcg64dxsm.h"

/* The state and the increment of PCG64DXSM(SeedSequence(...)), as `ulam_pcg_begin` takes them, for the 32-bit words of
 * what the sequence is made of: of each number the lower words first, and at least one. */
ULAM_API void ulam_seed_words(const uint32_t *entropy, int64_t count, uint64_t words[4]);

/* A generator with the numbers of `Rng(seed, stream)` (runtime/native.py). */
void ulam_pcg_seed(ulam_pcg *generator, uint64_t seed, uint64_t stream);

#endif
