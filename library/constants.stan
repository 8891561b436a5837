/* Mathematical constants. Stan Functions Reference, "Mathematical constants" and "Special values". */

real pi() { return 3.14159265358979323846; }
real e() { return 2.71828182845904523536; }
real sqrt2() { return 1.41421356237309504880; }
real log2() { return 0.69314718055994530942; }
real log10() { return 2.30258509299404568402; }
real machine_precision() { return 2.2204460492503130808e-16; }
real positive_infinity() { return 1.0 / 0.0; }
real negative_infinity() { return -1.0 / 0.0; }
real not_a_number() { return 0.0 / 0.0; }

/* Constants of densities, to full precision. */
real log_sqrt_two_pi() { return 0.91893853320467274178; }
real log_pi() { return 1.14472988584940017414; }
real log_two() { return 0.69314718055994530942; }
real log_sqrt_pi() { return 0.57236494292470008707; }
real half_log_two() { return 0.34657359027997265471; }
