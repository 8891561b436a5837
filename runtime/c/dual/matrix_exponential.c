#define ULAM_DUAL
#include "../matrix_exponential.c"
