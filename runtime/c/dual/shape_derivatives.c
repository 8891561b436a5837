#define ULAM_DUAL
#include "../shape_derivatives.c"
