/* merge_steps.c -- see merge_steps.h. */
#include "pipeline/merge_steps.h"

#include "bam/bam_convert.h"
#include "bam_sort_key.h"
#include "input/bam_ends.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* What is known of an input. */
struct span {
    size_t input;
    uint64_t first, last;       /* keys of its first and last record; 0 and the largest: unknown */
    bool can_copy;
    uint64_t begin;             /* byte of the file where records begin */
};

/* Finds the coordinate key of a record. Returns false if it has none. */
static bool find_key(const bam1_t *record, uint64_t *key)
{
    uint8_t *raw = NULL;
    size_t room = 0;
    bool has_key = bam_record_put(record, false, &raw, &room, 0) == NULL;
    if (has_key) *key = sort_key_coordinate(raw);
    free(raw);
    return has_key;
}

/* Finds the keys of the ends. Returns false if the input must be read. */
static bool find_keys(const struct bam_ends *ends, const struct bam_index_file *index,
                      struct span *span)
{
    if (!ends->first) {         /* no records */
        span->last = span->first;
        return true;
    }
    if (!find_key(ends->first, &span->first)) return false;
    /* Reads without a place are the last ones. */
    if (index->part.n_unplaced > 0) return true;
    return ends->last && find_key(ends->last, &span->last);
}

/* Finds out where the records of an input begin, and their first and last key. Returns false if its
   blocks cannot be copied with that index. */
static bool find_span(const char *path, const struct bam_index_file *index,
                      const struct bam_index_shape *shape, struct span *span)
{
    const struct bam_index_shape *mine = &index->part.shape;
    struct bam_ends ends;
    if (shape && (shape->min_shift != mine->min_shift || shape->depth != mine->depth)) return false;
    if (bam_ends_read(path, index->last_begin, &ends) < 0) return false;
    bool found = find_keys(&ends, index, span);
    span->begin = ends.begin;
    bam_ends_release(&ends);
    return found;
}

/* Looks at an input. */
static struct span look(const char *path, struct bam_inputs *inputs, size_t input,
                        const struct bam_index_shape *shape)
{
    struct span span = {.input = input, .last = UINT64_MAX};
    struct bam_index_file index;
    const char *why;
    if (bam_inputs_is_bgzf_file(inputs, input) && bam_index_file_read(path, &index, &why) == 0) {
        span.can_copy = index.n_refs == sam_hdr_nref(bam_inputs_header(inputs)) &&
                        find_span(path, &index, shape, &span);
        bam_index_part_release(&index.part);
    }
    return span.can_copy ? span : (struct span){.input = input, .last = UINT64_MAX};
}

static int compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->input < y->input ? -1 : x->input > y->input;
}

static int compare_numbers(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void add_step(struct merge_steps *steps, const struct span *spans, size_t n)
{
    struct merge_step *step = &steps->steps[steps->n++];
    *step = (struct merge_step){.n_inputs = n, .copies = n == 1 && spans->can_copy};
    step->inputs = xcalloc(n, sizeof *step->inputs);
    for (size_t i = 0; i < n; i++) step->inputs[i] = spans[i].input;
    qsort(step->inputs, n, sizeof *step->inputs, compare_numbers);
    step->begin = spans->begin;
}

/* True if some record of the span may come before the last of those that end at `last`, in input
   `last_input`. */
static bool overlaps(const struct span *span, uint64_t last, size_t last_input)
{
    return span->first < last || (span->first == last && span->input < last_input);
}

void merge_steps_all(size_t n, struct merge_steps *steps)
{
    struct merge_step *step = xcalloc(1, sizeof *step);
    *step = (struct merge_step){.inputs = xcalloc(n, sizeof *step->inputs), .n_inputs = n};
    for (size_t i = 0; i < n; i++) step->inputs[i] = i;
    *steps = (struct merge_steps){step, 1};
}

void merge_steps_plan(const char *const *paths, struct bam_inputs *inputs, size_t n,
                      const struct bam_index_shape *shape, struct merge_steps *steps)
{
    struct span *spans = xcalloc(n, sizeof *spans);
    *steps = (struct merge_steps){.steps = xcalloc(n, sizeof *steps->steps)};
    for (size_t i = 0; i < n; i++) spans[i] = look(paths[i], inputs, i, shape);
    qsort(spans, n, sizeof *spans, compare_spans);
    for (size_t from = 0, to; from < n; from = to) {
        uint64_t last = spans[from].last;
        size_t last_input = spans[from].input;
        for (to = from + 1; to < n && overlaps(&spans[to], last, last_input); to++)
            if (spans[to].last > last || (spans[to].last == last && spans[to].input > last_input)) {
                last = spans[to].last;
                last_input = spans[to].input;
            }
        add_step(steps, spans + from, to - from);
    }
    free(spans);
}

void merge_steps_release(struct merge_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) free(steps->steps[i].inputs);
    free(steps->steps);
    *steps = (struct merge_steps){0};
}
