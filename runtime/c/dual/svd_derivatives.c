#define ULAM_DUAL
#include "../svd_derivatives.c"
