#define ULAM_FAST
#include "../qr.c"
