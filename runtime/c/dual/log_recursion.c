#define ULAM_DUAL
#include "../log_recursion.c"
