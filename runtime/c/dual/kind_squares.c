#define ULAM_DUAL
#include "../kind_squares.c"
