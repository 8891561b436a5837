#include "../dense.h"
#ifdef ULAM_SEVERAL_PROCESSORS
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define BLOCKS(name) ulam_avx512_##name
#include "blocks.h"
#endif
