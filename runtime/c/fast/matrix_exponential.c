#define ULAM_FAST
#include "../matrix_exponential.c"
