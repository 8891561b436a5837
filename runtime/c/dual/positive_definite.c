#define ULAM_DUAL
#include "../positive_definite.c"
