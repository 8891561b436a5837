#define ULAM_FAST
#include "../svd_derivatives.c"
