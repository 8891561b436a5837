#define ULAM_DUAL
#include "../reduced_squares.c"
