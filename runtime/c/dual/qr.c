#define ULAM_DUAL
#include "../qr.c"
