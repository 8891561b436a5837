#define ULAM_FAST
#include "../triangular_systems.c"
