/* Fourier transforms: Stockham's algorithm, with a stage for each prime factor; Bluestein's where one of these is large. */

/* exp(-2 pi i k / n) for k from 0 on, exact at multiples of a right angle. */
complex_vector roots_of_one(int n) {
  complex_vector[n] result;
  for (k in 0:(n - 1)) {
    int quadrant = (4 * k) %/% n;
    int beyond = 4 * k - quadrant * n;
    real angle = 0.5 * pi() * beyond / n;
    real rest = 0.5 * pi() * (n - beyond) / n;
    real c = 2 * beyond > n ? sin(rest) : cos(angle);
    real s = 2 * beyond > n ? cos(rest) : sin(angle);
    result[k + 1] = quadrant == 0 ? to_complex(c, -s) : quadrant == 1 ? to_complex(-s, -c)
                    : quadrant == 2 ? to_complex(-c, s) : to_complex(s, c);
  }
  return result;
}

complex_vector complex_fft(complex_vector z) {
  complex_vector[num_elements(z)] result;
  if (largest_prime_factor(num_elements(z)) > 100) result = fft_by_convolution(z);
  else result = fft_by_factors(z);
  return result;
}

int largest_prime_factor(int n) {
  int rest = n;
  int p = 2;
  while (p <= rest %/% p) {
    if (rest % p == 0) rest = rest %/% p;
    else p += 1;
  }
  return rest;
}

complex_vector fft_by_factors(complex_vector z) {
  int n = num_elements(z);
  complex_vector[n] x = z;
  complex_vector[n] roots = roots_of_one(n);
  int rest = n;
  int stride = 1;
  int p = 2;
  while (rest > 1) {
    while (rest % p != 0) p = p * p > rest ? rest : p + 1;
    int m = rest %/% p;
    complex_vector[n] y;
    for (k in 0:(m - 1)) {
      for (r in 0:(p - 1)) {
        for (q in 1:stride) {
          complex total = x[q + stride * k];
          for (t in 1:(p - 1)) total += roots[1 + ((t * r) % p) * (n %/% p)] * x[q + stride * (k + m * t)];
          y[q + stride * (p * k + r)] = roots[1 + k * r * stride] * total;
        }
      }
    }
    x = y;
    rest = m;
    stride *= p;
  }
  return x;
}

/* Bluestein: 2 j k is j^2 + k^2 - (j - k)^2, so a transform is a convolution with exp(pi i k^2 / n), which is made with
 * three transforms of the length of a power of 2. */
complex_vector fft_by_convolution(complex_vector z) {
  int n = num_elements(z);
  int m = 1;
  while (m < 2 * n) m *= 2;
  complex_vector[2 * n] roots = roots_of_one(2 * n);
  complex_vector[n] chirp;
  complex_vector[m] other = rep_vector(0, m);
  int k_squared = 0;
  for (k in 0:(n - 1)) {
    chirp[k + 1] = roots[k_squared + 1];
    other[k + 1] = conj(chirp[k + 1]);
    if (k > 0) other[m - k + 1] = other[k + 1];
    k_squared = (k_squared + 2 * k + 1) % (2 * n);
  }
  complex_vector[m] roots_m = roots_of_one(m);
  complex_vector[m] x = rep_vector(0, m);
  x[1:n] = z .* chirp;
  complex_vector[m] of_z;
  for (pass in 1:3) {
    x = fft_of_power_of_2(x, roots_m);
    if (pass == 1) {
      of_z = x;
      x = other;
    } else if (pass == 2) {
      x = conj(of_z .* x);
    }
  }
  return conj(x[1:n]) .* chirp / m;
}

complex_vector fft_of_power_of_2(complex_vector z, complex_vector roots) {
  int n = num_elements(z);
  complex_vector[n] x = z;
  int stride = 1;
  int half = n %/% 2;
  while (half > 0) {
    complex_vector[n] y;
    for (k in 0:(half - 1)) {
      for (q in 1:stride) {
        complex a = x[q + stride * k];
        complex b = x[q + stride * (k + half)];
        y[q + stride * 2 * k] = a + b;
        y[q + stride * (2 * k + 1)] = roots[1 + k * stride] * (a - b);
      }
    }
    x = y;
    half = half %/% 2;
    stride *= 2;
  }
  return x;
}

complex_vector complex_inv_fft(complex_vector z) {
  int n = num_elements(z);
  if (n == 0) return z;
  return conj(fft(conj(z))) / n;
}

complex_matrix complex_fft2(complex_matrix z) {
  complex_matrix[rows(z), cols(z)] result;
  for (i in 1:rows(z)) result[i] = fft(z[i]')';
  for (j in 1:cols(z)) result[, j] = fft(result[, j]);
  return result;
}

complex_matrix complex_inv_fft2(complex_matrix z) {
  if (num_elements(z) == 0) return z;
  return conj(fft2(conj(z))) / num_elements(z);
}
