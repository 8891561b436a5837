#define ULAM_FAST
#include "../normal_terms.c"
