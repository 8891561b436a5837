#define ULAM_DUAL
#include "../form_values.c"
