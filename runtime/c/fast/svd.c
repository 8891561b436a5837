#define ULAM_FAST
#include "../svd.c"
