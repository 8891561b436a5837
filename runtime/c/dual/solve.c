#define ULAM_DUAL
#include "../solve.c"
