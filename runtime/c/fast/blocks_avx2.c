#include "../dense.h"
#ifdef ULAM_SEVERAL_PROCESSORS
#pragma GCC target("avx2,fma")
#define BLOCKS(name) ulam_avx2_##name
#include "blocks.h"
#endif
