#define ULAM_DUAL
#include "../cholesky.c"
