#define ULAM_DUAL
#include "../normal_terms.c"
