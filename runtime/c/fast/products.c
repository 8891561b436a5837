#define ULAM_FAST
#include "../products.c"
