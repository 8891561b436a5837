#define ULAM_DUAL
#include "../eigen_derivatives.c"
