#define ULAM_FAST
#include "../positive_definite.c"
