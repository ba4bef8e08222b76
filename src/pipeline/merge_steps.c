/* merge_steps.c -- see merge_steps.h. */
#include "pipeline/merge_steps.h"

#include "bam/bam_convert.h"
#include "bam_sort_key.h"
#include "input/bam_inputs.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* What is known of an input. */
struct span {
    size_t input;
    uint64_t first, last;       /* keys of its first and last record; 0 and the largest: unknown */
    bool can_copy;
    struct merge_copy copy;
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

/* True if the index may be that of the file with these ends: it begins and ends where the records
   do, with the same references. An old index, or one of another file, rarely does. */
static bool fits(const struct bam_index_file *index, const struct bam_ends *ends)
{
    const struct bam_index_part *part = &index->part;
    const bam1_t *first = ends->first, *last = ends->last, *after = ends->after;
    if (part->n_refs == 0) return part->n_unplaced > 0 ? first && first->core.tid < 0 : !first;
    const struct bam_index_ref *from = &part->refs[0], *to = &part->refs[part->n_refs - 1];
    if (!first || first->core.tid != from->tid || from->begin != bam_index_voffset(ends->begin, 0))
        return false;
    if (part->n_unplaced > 0) return after && after->core.tid < 0;
    return last && last->core.tid == to->tid && !after;
}

/* Finds the keys of the ends. Returns false if the input must be read. */
static bool find_keys(const struct bam_ends *ends, uint64_t n_unplaced, struct span *span)
{
    if (!ends->first) {         /* no records */
        span->last = span->first;
        return true;
    }
    if (!find_key(ends->first, &span->first)) return false;
    /* Reads without a place are the last ones. */
    if (n_unplaced > 0) return true;
    return ends->last && find_key(ends->last, &span->last);
}

/* Looks at an input with this index. Returns true if its blocks can be copied. */
static bool look_with(const struct bam_index_file *index, const char *path,
                      struct bam_inputs *inputs, const struct bam_index_shape *shape,
                      struct span *span)
{
    const struct bam_index_part *part = &index->part;
    const struct bam_index_shape *mine = &part->shape;
    if (shape && (shape->min_shift != mine->min_shift || shape->depth != mine->depth)) return false;
    const struct stat *file = bam_inputs_file(inputs, span->input);
    if (!file || index->n_refs != sam_hdr_nref(inputs->header)) return false;
    const struct bam_ends_places places = {
        .placed_end = part->n_refs > 0 ? part->unplaced_begin : 0,
        .last_begin = part->n_unplaced > 0 ? 0 : index->last_begin};
    struct bam_ends ends;
    if (places.placed_end >> 16 >= (uint64_t)file->st_size) return false;
    if (bam_ends_read(path, &places, &ends) < 0) return false;
    bool can_copy = fits(index, &ends) && find_keys(&ends, part->n_unplaced, span);
    span->copy = (struct merge_copy){ends.begin, index->n_records, index->last_begin};
    bam_ends_release(&ends);
    return can_copy;
}

/* Looks at an input. Returns true if its blocks can be copied. The index is not kept: those of
   hundreds of inputs may be large. */
static bool look(const char *path, struct bam_inputs *inputs, const struct bam_index_shape *shape,
                 struct span *span)
{
    struct bam_index_file index;
    const struct opened_file *opened = &inputs->files[span->input];
    if (!opened->can_seek || !opened->by_coordinate || bam_index_file_read(path, &index) < 0)
        return false;
    bool can_copy = look_with(&index, path, inputs, shape, span);
    bam_index_part_release(&index.part);
    return can_copy;
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
    if (step->copies) step->copy = spans->copy;
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
    for (size_t i = 0; i < n; i++) {
        spans[i] = (struct span){.input = i, .last = UINT64_MAX};
        spans[i].can_copy = look(paths[i], inputs, shape, &spans[i]);
        if (spans[i].can_copy) continue;
        spans[i].first = 0;
        spans[i].last = UINT64_MAX;
    }
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
