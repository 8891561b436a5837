#define ULAM_FAST
#include "../eigen_derivatives.c"
