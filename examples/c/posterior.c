/* Loads nothing but a model: evaluates its log density, draws from its posterior, prints the means. See README.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ulam.h>

enum { CHAINS = 4, DRAWS = 1000 };

static int fail(char *error) {
  fprintf(stderr, "%s\n", error ? error : "out of memory");
  bs_free_error_msg(error);
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  char *error = NULL;
  bs_model *model = bs_model_construct(argc > 1 ? argv[1] : NULL, 1, &error);
  if (model == NULL) return fail(error);
  const int n = bs_param_unc_num(model), width = bs_param_num(model, true, true);

  /* The log density at a point where it is finite, and its gradient. */
  double *point = calloc((size_t)n + 1, sizeof *point), *gradient = calloc((size_t)n + 1, sizeof *gradient);
  bs_rng *rng = bs_rng_construct(1, &error);
  if (point == NULL || gradient == NULL || rng == NULL) return fail(error);
  double lp, slope = 0;
  if (bs_param_initialize(model, NULL, rng, 2.0, 100, true, point, &error)) return fail(error);
  if (bs_log_density_gradient(model, true, true, point, &lp, gradient, &error)) return fail(error);
  for (int i = 0; i < n; ++i) if (fabs(gradient[i]) > slope) slope = fabs(gradient[i]);
  printf("log density %g, largest element of its gradient %g\n", lp, slope);

  /* Draws: those of `ulam sample` with the same seed. */
  ulam_sample_options options = ULAM_SAMPLE_OPTIONS;
  ulam_sample_output output = ULAM_SAMPLE_OUTPUT;
  options.chains = CHAINS;
  options.draws = output.rows = DRAWS;
  options.seed = 1;
  output.values = calloc((size_t)CHAINS * DRAWS * (size_t)width + 1, sizeof *output.values);
  if (output.values == NULL) return fail(NULL);
  if (ulam_sample(model, &options, &output, &error) < 0) return fail(error);

  /* Names have commas between them. Generated quantities of draws for which they fail are NaN. */
  const char *name = bs_param_names(model, true, true);
  for (int k = 0; k < width; ++k) {
    const int length = (int)strcspn(name, ",");
    double sum = 0;
    long count = 0;
    for (long i = k; i < (long)CHAINS * DRAWS * width; i += width) {
      if (isnan(output.values[i])) continue;
      sum += output.values[i];
      ++count;
    }
    printf("%.*s %.6g\n", length, name, sum / (double)count);
    name += length + 1;
  }
  free(output.values);
  free(point);
  free(gradient);
  bs_rng_destruct(rng);
  bs_model_destruct(model);
  return EXIT_SUCCESS;
}
