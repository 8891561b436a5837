#define ULAM_DUAL
#include "../products.c"
