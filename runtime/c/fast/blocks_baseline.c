/* Without options: the vectors that every processor of a kind has, or those that the compiler is told of. */
#define BLOCKS(name) ulam_baseline_##name
#include "blocks.h"
