#define ULAM_FAST
#include "../dynamic_linear_model.c"
