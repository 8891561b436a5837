#include "nuts.h"

#include <math.h>
#include <stdlib.h>

/* Weights above this, as logarithms, would come near the largest number: then the scale moves. */
static const double largest_log_weight = 300;

static int tree_begin(tree *t, vector_store *store, int64_t n) {
  if (t == NULL) return 0;
  double **vectors[] = {&t->p_begin, &t->v_begin, &t->p_end, &t->v_end, &t->momenta, &t->q, &t->g};
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; ++i)
    if ((*vectors[i] = vector_new(store, n)) == NULL) return 0;
  return 1;
}

int nuts_begin(nuts *state, hamiltonian *system, vector_store *store, int32_t max_depth, double max_energy_error) {
  int64_t n = system->n;
  state->system = system;
  state->store = store;
  state->max_depth = max_depth;
  state->max_energy_error = max_energy_error;
  state->parts_made = 0;
  state->parts = calloc((size_t)max_depth + 1, sizeof *state->parts);
  if (state->parts == NULL || !tree_begin(&state->whole, store, n)) return 0;
  for (int i = 0; i < 2; ++i) {
    trajectory_end *end = &state->ends[i];
    end->q = vector_new(store, n);
    end->g = vector_new(store, n);
    end->w = vector_new(store, n);
    if (!end->q || !end->g || !end->w) return 0;
  }
  state->at.w = vector_new(store, n);
  return state->at.w != NULL;
}

/* Room for a part of so great a depth, of those before, and for the one at work. */
static int make_parts(nuts *state, int64_t depth) {
  for (; state->parts_made < depth + 2; ++state->parts_made) {
    tree *made = (tree *)vector_new(state->store, (int64_t)((sizeof(tree) + sizeof(double) - 1) / sizeof(double)));
    if (!tree_begin(made, state->store, state->system->n)) return 0;
    state->parts[state->parts_made] = made;
  }
  return 1;
}

ULAM_CLONES static int32_t turns_of_points(const double *p_a, const double *v_a, const double *p_b, const double *v_b,
                                           int64_t groups, double *sum) {
  lanes begin = {0}, end = {0};
  for (int64_t k = 0; k < groups; ++k) {
    const lanes both = in_lanes(p_a)[k] + in_lanes(p_b)[k];
    to_lanes(sum)[k] = both;
    begin += in_lanes(v_a)[k] * both;
    end += in_lanes(v_b)[k] * both;
  }
  return !(SUM_OF_LANES(begin) > 0 && SUM_OF_LANES(end) > 0);
}

ULAM_CLONES static int32_t turns_of_trees(const tree *a, const tree *b, int64_t groups, double *sum) {
  lanes begin = {0}, end = {0}, begin_a = {0}, end_a = {0}, begin_b = {0}, end_b = {0};
  const lanes *momenta_a = in_lanes(a->momenta), *momenta_b = in_lanes(b->momenta);
  const lanes *v_begin_a = in_lanes(a->v_begin), *v_end_a = in_lanes(a->v_end), *p_end_a = in_lanes(a->p_end);
  const lanes *v_begin_b = in_lanes(b->v_begin), *v_end_b = in_lanes(b->v_end), *p_begin_b = in_lanes(b->p_begin);
  lanes *both = to_lanes(sum);
  for (int64_t k = 0; k < groups; ++k) {
    const lanes of_a = momenta_a[k], of_b = momenta_b[k], all = of_a + of_b;
    const lanes a_and_next = of_a + p_begin_b[k], b_and_last = of_b + p_end_a[k];
    begin += v_begin_a[k] * all;
    end += v_end_b[k] * all;
    begin_a += v_begin_a[k] * a_and_next;
    end_a += v_begin_b[k] * a_and_next;
    begin_b += v_end_a[k] * b_and_last;
    end_b += v_end_b[k] * b_and_last;
    both[k] = all;
  }
  return !(SUM_OF_LANES(begin) > 0 && SUM_OF_LANES(end) > 0 && SUM_OF_LANES(begin_a) > 0 && SUM_OF_LANES(end_a) > 0 &&
           SUM_OF_LANES(begin_b) > 0 && SUM_OF_LANES(end_b) > 0);
}

int32_t turns(const tree *a, const tree *b, int32_t single, int64_t groups, double *sum) {
  if (single) return turns_of_points(a->p_begin, a->v_begin, b->p_begin, b->v_begin, groups, sum);
  return turns_of_trees(a, b, groups, sum);
}

static inline void take_sample(tree *a, tree *b) {
  vector_swap(&a->q, &b->q);
  vector_swap(&a->g, &b->g);
  a->lp = b->lp;
  a->energy = b->energy;
}

/* b, which lies behind a, becomes a part of a. Returns whether the trajectory turns there. */
static inline int32_t join(nuts *state, tree *a, tree *b, int32_t single) {
  int32_t turned = turns(a, b, single, groups_of(state->system->n), a->momenta);
  vector_swap(&a->p_end, single ? &b->p_begin : &b->p_end);
  vector_swap(&a->v_end, single ? &b->v_begin : &b->v_end);
  a->weight += b->weight;
  return turned;
}

/* The next point, as a tree. Returns whether the trajectory may go on. */
static int grow_by_point(nuts *state, tree *to, double step, double start_energy, transition *found) {
  phase_point *z = &state->at;
  leapfrog(state->system, z, to->q, to->p_begin, to->g, to->v_begin, step);
  ++found->leapfrogs;
  to->lp = z->lp;
  to->energy = z->energy;
  double gained = start_energy - z->energy;
  if (!(gained >= -state->max_energy_error && gained < INFINITY)) {
    found->divergent = 1;
    return 0;
  }
  if (__builtin_expect(gained - state->scale > largest_log_weight, 0)) {
    double factor = exp(state->scale - gained);
    state->whole.weight *= factor;
    for (int64_t i = 0; i < state->parts_made; ++i) state->parts[i]->weight *= factor;
    state->scale = gained;
  }
  to->weight = exp(gained - state->scale);
  double ratio = state->scale == 0 ? to->weight : exp(gained);
  found->accept_stat += ratio < 1 ? ratio : 1;
  return 1;
}

/* A part of 2^depth points behind `state->at`, at `parts[depth]`: the parts that it consists of are joined as soon as
 * they are there, which is how the digits of the number of points change. Returns whether it may become a part of the
 * trajectory. */
static int grow(nuts *state, ulam_pcg *generator, int64_t depth, double step, double start_energy, transition *found) {
  tree **parts = state->parts, *work = parts[depth + 1];
  for (int64_t point = 0; point < (int64_t)1 << depth; ++point) {
    if (!grow_by_point(state, work, step, start_energy, found)) return 0;
    int64_t level = 0;
    for (; point >> level & 1; ++level) {
      tree *earlier = parts[level];
      int32_t turned = join(state, earlier, work, level == 0);
      if (ulam_pcg_uniform(generator) * earlier->weight < work->weight) take_sample(earlier, work);
      if (turned) return 0;
      parts[level] = work;
      parts[depth + 1] = work = earlier;
    }
    tree *unused = parts[level];
    parts[level] = work;
    parts[depth + 1] = work = unused;
  }
  return 1;
}

static void turn_around(nuts *state) {
  tree *whole = &state->whole;
  vector_swap(&whole->p_begin, &whole->p_end);
  vector_swap(&whole->v_begin, &whole->v_end);
  trajectory_end held = state->ends[0];
  state->ends[0] = state->ends[1];
  state->ends[1] = held;
}

/* Doubles the trajectory at its end. Returns whether it may be doubled once more. */
static int extend(nuts *state, ulam_pcg *generator, double step, double start_energy, transition *found) {
  tree *whole = &state->whole;
  trajectory_end *end = &state->ends[1];
  const int64_t n = state->system->n;
  const int dense = state->system->metric.kind == METRIC_DENSE;
  phase_point *z = &state->at;
  z->q = end->q;
  z->g = end->g;
  z->p = whole->p_end;
  z->v = whole->v_end;
  if (dense) vector_copy(z->w, end->w, n);
  if (!grow(state, generator, found->depth, step, start_energy, found)) return 0;
  tree *part = state->parts[found->depth];
  vector_copy(end->q, z->q, n);
  vector_copy(end->g, z->g, n);
  if (dense) vector_copy(end->w, z->w, n);
  int32_t single = found->depth == 0;
  ++found->depth;
  if (ulam_pcg_uniform(generator) * whole->weight < part->weight) take_sample(whole, part);
  return !join(state, whole, part, single);
}

transition nuts_transition(nuts *state, ulam_pcg *generator, double step, double *q, double *g, double lp) {
  hamiltonian *system = state->system;
  const int64_t n = system->n;
  tree *whole = &state->whole;
  phase_point start = {.q = q, .p = whole->p_begin, .g = g, .v = whole->v_begin, .w = state->at.w, .lp = lp};
  transition found = {0};
  metric_draw_momentum(&system->metric, generator, start.p);
  set_momentum(system, &start);
  whole->lp = lp;
  whole->energy = start.energy;
  whole->weight = 1;
  state->scale = 0;
  vector_copy(whole->q, q, n);
  vector_copy(whole->g, g, n);
  vector_copy(whole->p_end, start.p, n);
  vector_copy(whole->v_end, start.v, n);
  for (int i = 0; i < 2; ++i) {
    vector_copy(state->ends[i].q, q, n);
    vector_copy(state->ends[i].g, g, n);
    if (system->metric.kind == METRIC_DENSE) vector_copy(state->ends[i].w, start.w, n);
  }
  int32_t forwards = 1;
  while (found.depth < state->max_depth) {
    if (!make_parts(state, found.depth)) {
      system->status = ULAM_FATAL;
      break;
    }
    int32_t next = ulam_pcg_uniform(generator) > 0.5;
    if (next != forwards) turn_around(state);
    forwards = next;
    if (!extend(state, generator, forwards ? step : -step, start.energy, &found)) break;
  }
  vector_copy(q, whole->q, n);
  vector_copy(g, whole->g, n);
  found.lp = whole->lp;
  found.energy = whole->energy;
  if (found.leapfrogs > 0) found.accept_stat /= (double)found.leapfrogs;
  return found;
}
