#define ULAM_DUAL
#include "../triangular_systems.c"
