#define ULAM_FAST
#include "../eigen.c"
