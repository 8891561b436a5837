#define ULAM_DUAL
#include "../dynamic_linear_model.c"
