#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <pthread.h>
#endif

#include "profile_times.h"
#include "services.h"

int64_t ulam_ticks(void) { return ulam_read_ticks(); }

static double monotonic_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Both clocks at one moment: of several readings that between which least time passed, lest a pause falls in between. */
static void read_clocks(double *seconds, double *at_tick) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    int64_t before = ulam_read_ticks();
    double now = monotonic_seconds();
    int64_t after = ulam_read_ticks();
    if (after - before >= least) continue;
    least = after - before;
    *seconds = now;
    *at_tick = 0.5 * ((double)before + (double)after);
  }
}

double ulam_seconds_per_tick(void) {
  static double known = 0; /* two threads that both find it unknown agree well enough */
  if (known == 0) {
    double start = 0, first = 0, end = 0, last = 0;
    read_clocks(&start, &first);
    do
      read_clocks(&end, &last);
    while (end - start < 0.01);
    known = (end - start) / (last - first);
  }
  return known;
}

static int64_t thread_id(void) {
#if defined(__linux__)
  static ULAM_THREAD_LOCAL int64_t id = 0;
  if (id == 0) id = (int64_t)syscall(SYS_gettid);
  return id;
#else
  return (int64_t)(intptr_t)pthread_self();
#endif
}

/* A region below another one, of one thread and phase. */
typedef struct node {
  struct node *parent, *child, *sibling, *next_changed;
  int32_t region, changed;
  int64_t passes, gradient_passes;
  int64_t pending; /* passes of a forward sweep, until the evaluation has succeeded */
  int64_t kept, others;
  int64_t steps, failed_steps;
  ulam_sweep_times forward, reverse;
} node;

typedef struct tree {
  struct tree *next;
  int64_t thread, phase;
  node root;
} tree;

typedef struct {
  node *node;
  int64_t start, lost; /* what the thread's clock had lost by then */
  int32_t named, kind;
} frame;

typedef struct {
  int32_t depth, region;
  node *node;
} activity;

struct ulam_profile {
  tree *trees, *current;
  int64_t phase, start, lost; /* of the evaluation that is running */
  ulam_thread_clock clock;
  frame *frames;
  int64_t depth, frame_capacity;
  activity *active; /* by number of the name */
  int64_t active_capacity;
  node *changed; /* nodes with pending passes */
  ulam_profile_event *events;
  int64_t event_capacity, event_count; /* the latter of all events, also those no longer there */
};

static void *grown(void *array, int64_t *capacity, int64_t needed, size_t size) {
  if (needed <= *capacity) return array;
  int64_t larger = 2 * needed + 16;
  void *result = realloc(array, (size_t)larger * size);
  if (result == NULL) return NULL;
  memset((char *)result + (size_t)*capacity * size, 0, (size_t)(larger - *capacity) * size);
  *capacity = larger;
  return result;
}

int32_t ulam_profile_attach(ulam_context *ctx, int64_t events) {
  ulam_profile *profile = calloc(1, sizeof *profile);
  if (profile == NULL) return 0;
  if (events > 0) {
    profile->events = malloc((size_t)events * sizeof *profile->events);
    profile->event_capacity = profile->events ? events : 0;
  }
  ulam_profile_free(ctx->services->profile);
  ctx->services->profile = profile;
  return 1;
}

static void free_children(node *parent) {
  for (node *child = parent->child; child;) {
    node *next = child->sibling;
    free_children(child);
    free(child);
    child = next;
  }
  parent->child = NULL;
}

static void free_trees(ulam_profile *profile) {
  for (tree *t = profile->trees; t;) {
    tree *next = t->next;
    free_children(&t->root);
    free(t);
    t = next;
  }
  profile->trees = profile->current = NULL;
  profile->changed = NULL;
}

void ulam_profile_free(ulam_profile *profile) {
  if (profile == NULL) return;
  free_trees(profile);
  free(profile->frames);
  free(profile->active);
  free(profile->events);
  free(profile);
}

void ulam_profile_reset(ulam_context *ctx) {
  ulam_profile *profile = ctx->services->profile;
  if (profile == NULL) return;
  free_trees(profile);
  profile->event_count = 0;
}

void ulam_profile_set_phase(ulam_context *ctx, int32_t phase) {
  if (ctx->services->profile) ctx->services->profile->phase = phase;
}

static tree *tree_of(ulam_profile *profile, int64_t thread) {
  tree *t = profile->current;
  if (t && t->thread == thread && t->phase == profile->phase) return t;
  for (t = profile->trees; t; t = t->next)
    if (t->thread == thread && t->phase == profile->phase) return t;
  if ((t = calloc(1, sizeof *t)) != NULL) {
    t->thread = thread;
    t->phase = profile->phase;
    t->root.region = -1;
    t->next = profile->trees;
    profile->trees = t;
  }
  return t;
}

void ulam_profile_enter(ulam_profile *profile) {
  int64_t thread = thread_id();
  profile->depth = 0;
  profile->current = tree_of(profile, thread);
  if (profile->clock.thread != thread) ulam_thread_clock_watch(&profile->clock, thread);
  profile->start = ulam_moment(&profile->clock, &profile->lost);
}

static ulam_sweep_times *sweep_of(node *n, int32_t kind) {
  return kind & ULAM_PROFILE_REVERSE ? &n->reverse : &n->forward;
}

void ulam_profile_leave(ulam_profile *profile, int32_t status) {
  int64_t lost, now = ulam_moment(&profile->clock, &lost);
  if (profile->current) {
    ++profile->current->root.passes;
    ulam_count_pass(&profile->current->root.forward, now - profile->start, lost - profile->lost);
  }
  for (; profile->depth > 0; --profile->depth) { /* an error left regions open: their time counts, they do not */
    frame *f = &profile->frames[profile->depth - 1];
    ulam_count_pass(sweep_of(f->node, f->kind), now - f->start, lost - f->lost);
    profile->active[f->named].depth = 0;
  }
  for (node *n = profile->changed; n;) {
    node *next = n->next_changed;
    if (status == ULAM_OK) n->gradient_passes += n->pending;
    n->pending = n->changed = 0;
    n->next_changed = NULL;
    n = next;
  }
  profile->changed = NULL;
}

static node *child_of(node *parent, int32_t region) {
  node **place = &parent->child;
  for (node *child = *place; child; child = child->sibling) {
    if (child->region == region) return child;
    place = &child->sibling;
  }
  node *made = calloc(1, sizeof *made);
  if (made) {
    made->parent = parent;
    made->region = region;
    *place = made;
  }
  return made;
}

static void count_pass(ulam_profile *profile, node *n, int32_t kind) {
  if (kind & ULAM_PROFILE_REVERSE) return;
  if (!(kind & ULAM_PROFILE_GRADIENT)) {
    ++n->passes;
    return;
  }
  ++n->pending;
  if (!n->changed) {
    n->changed = 1;
    n->next_changed = profile->changed;
    profile->changed = n;
  }
}

static int32_t no_memory(ulam_context *ctx) {
  return ulam_fail(ctx, ULAM_FATAL, "no memory for profiles") != ULAM_FATAL;
}

static int32_t begin(ulam_context *ctx, int32_t region, int32_t named, int32_t kind) {
  ulam_profile *profile = ctx->services->profile;
  if (named >= profile->active_capacity) {
    activity *active = grown(profile->active, &profile->active_capacity, named + 1, sizeof *active);
    if (active == NULL) return no_memory(ctx);
    profile->active = active;
  }
  if (profile->depth >= profile->frame_capacity) {
    frame *frames = grown(profile->frames, &profile->frame_capacity, profile->depth + 1, sizeof *frames);
    if (frames == NULL) return no_memory(ctx);
    profile->frames = frames;
  }
  activity *a = &profile->active[named];
  if (a->depth > 0) {
    if (a->region != region) {
      ulam_fail(ctx, ULAM_FATAL, "profile@%d@%d", a->region, region);
      return 0;
    }
    ++a->depth; /* the same statement, by recursion: the time of the outermost pass covers this one */
    return 1;
  }
  node *parent = profile->depth ? profile->frames[profile->depth - 1].node : &profile->current->root;
  node *n = child_of(parent, region);
  if (n == NULL) return no_memory(ctx);
  a->depth = 1;
  a->region = region;
  a->node = n;
  frame *f = &profile->frames[profile->depth++];
  f->node = n;
  f->named = named;
  f->kind = kind;
  f->start = ulam_moment(&profile->clock, &f->lost);
  return 1;
}

int32_t ulam_profile_begin(ulam_context *ctx, int32_t region, int32_t named, int32_t kind) {
  ulam_profile *profile = ctx->services->profile;
  if (profile == NULL || profile->current == NULL) return 1;
  ulam_mask();
  const int32_t fine = begin(ctx, region, named, kind);
  ulam_unmask();
  return fine;
}

static void end(ulam_profile *profile, int32_t named, int32_t kind) {
  int64_t lost, now = ulam_moment(&profile->clock, &lost);
  activity *a = &profile->active[named];
  count_pass(profile, a->node, kind);
  if (--a->depth > 0) return;
  frame *f = &profile->frames[--profile->depth];
  int64_t elapsed = now - f->start;
  ulam_count_pass(sweep_of(f->node, kind), elapsed, lost - f->lost);
  if (profile->event_capacity) {
    ulam_profile_event *event = &profile->events[profile->event_count++ % profile->event_capacity];
    event->thread = profile->current->thread;
    event->phase = profile->current->phase;
    event->region = f->node->region;
    event->reverse = (kind & ULAM_PROFILE_REVERSE) != 0;
    event->start = f->start;
    event->ticks = elapsed;
  }
}

void ulam_profile_end(ulam_context *ctx, int32_t region, int32_t named, int32_t kind) {
  ulam_profile *profile = ctx->services->profile;
  (void)region;
  if (profile == NULL || profile->depth == 0) return;
  ulam_mask();
  end(profile, named, kind);
  ulam_unmask();
}

void ulam_profile_entries(ulam_context *ctx, int64_t kept, int64_t others) {
  ulam_profile *profile = ctx->services->profile;
  if (profile == NULL || profile->depth == 0) return;
  node *n = profile->frames[profile->depth - 1].node;
  n->kept += kept;
  n->others += others;
}

void ulam_profile_step(ulam_context *ctx, int32_t failed) {
  ulam_profile *profile = ctx->services->profile;
  if (profile == NULL || profile->depth == 0) return;
  node *n = profile->frames[profile->depth - 1].node;
  if (failed)
    n->failed_steps += 1;
  else
    n->steps += 1;
}

/* Ticks of a node's sweeps without outliers: its own, and those of what is nested, which it contains. Never less than
 * what is nested in it. The root has both sweeps in its forward time. */
static void usual_ticks(const node *n, int64_t *outliers, int64_t *forward, int64_t *reverse) {
  int64_t reverse_outliers, forward_excess, reverse_excess;
  ulam_outliers(&n->forward, outliers, &forward_excess);
  ulam_outliers(&n->reverse, &reverse_outliers, &reverse_excess);
  *outliers += reverse_outliers;
  int64_t nested[2] = {0, 0}, nested_excess[2] = {0, 0};
  for (const node *child = n->child; child; child = child->sibling) {
    int64_t ignored, usual[2];
    usual_ticks(child, &ignored, &usual[0], &usual[1]);
    int64_t all[2] = {child->forward.ticks, child->reverse.ticks};
    for (int sweep = 0; sweep < 2; ++sweep) {
      int into = n->parent == NULL ? 0 : sweep;
      nested[into] += usual[sweep];
      nested_excess[into] += all[sweep] - usual[sweep];
    }
  }
  int64_t taken = forward_excess > nested_excess[0] ? forward_excess : nested_excess[0];
  *forward = n->forward.ticks - taken > nested[0] ? n->forward.ticks - taken : nested[0];
  taken = reverse_excess > nested_excess[1] ? reverse_excess : nested_excess[1];
  *reverse = n->reverse.ticks - taken > nested[1] ? n->reverse.ticks - taken : nested[1];
}

/* A node, and behind it all below it. */
static int64_t write_rows(const tree *t, const node *n, int64_t parent_row, ulam_profile_row *rows, int64_t count,
                          int64_t capacity) {
  int64_t row = count++;
  if (row < capacity) {
    int64_t outliers, forward, reverse;
    usual_ticks(n, &outliers, &forward, &reverse);
    rows[row] = (ulam_profile_row){
        .thread = t->thread,
        .phase = t->phase,
        .parent = parent_row,
        .region = n->region,
        .passes = n->passes,
        .gradient_passes = n->gradient_passes,
        .forward_ticks = forward,
        .reverse_ticks = reverse,
        .wall_ticks = n->forward.wall + n->reverse.wall,
        .outlier_passes = outliers,
        .outlier_ticks = n->forward.ticks - forward + n->reverse.ticks - reverse,
        .kept = n->kept,
        .others = n->others,
        .steps = n->steps,
        .failed_steps = n->failed_steps,
    };
  }
  for (const node *child = n->child; child; child = child->sibling)
    count = write_rows(t, child, row, rows, count, capacity);
  return count;
}

int64_t ulam_profile_rows(const ulam_context *ctx, ulam_profile_row *rows, int64_t capacity) {
  const ulam_profile *profile = ctx->services->profile;
  int64_t count = 0;
  if (profile)
    for (const tree *t = profile->trees; t; t = t->next) count = write_rows(t, &t->root, -1, rows, count, capacity);
  return count;
}

int64_t ulam_profile_events(const ulam_context *ctx, ulam_profile_event *events, int64_t capacity) {
  const ulam_profile *profile = ctx->services->profile;
  if (profile == NULL) return 0;
  int64_t total = profile->event_count, kept = total < profile->event_capacity ? total : profile->event_capacity;
  for (int64_t i = 0; i < kept && i < capacity; ++i) events[i] = profile->events[(total - kept + i) % profile->event_capacity];
  return kept;
}

void ulam_profile_overhead(ulam_context *ctx, double *inside, double *outside) {
  enum { PAIRS = 2000, ROUNDS = 20 };
  ulam_profile *saved = ctx->services->profile;
  ctx->services->profile = NULL;
  *inside = *outside = 0;
  if (ulam_profile_attach(ctx, 0)) {
    double least = 0, least_inside = 0;
    for (int round = 0; round < ROUNDS; ++round) {
      ulam_profile_reset(ctx);
      ulam_profile_enter(ctx->services->profile);
      int64_t start = ulam_read_ticks();
      for (int i = 0; i < PAIRS; ++i) {
        ulam_profile_begin(ctx, 0, 0, 0);
        ulam_profile_end(ctx, 0, 0, 0);
      }
      double pair = (double)(ulam_read_ticks() - start) / PAIRS;
      ulam_profile_row rows[2];
      ulam_profile_rows(ctx, rows, 2);
      if (round == 0 || pair < least) {
        least = pair;
        least_inside = (double)rows[1].forward_ticks / PAIRS;
      }
    }
    *inside = least_inside;
    *outside = least - least_inside;
    ulam_profile_free(ctx->services->profile);
  }
  ctx->services->profile = saved;
}
