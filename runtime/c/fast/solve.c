#define ULAM_FAST
#include "../solve.c"
