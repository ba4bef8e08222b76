/*
 * merge_sorted.c -- see merge_sorted.h.
 *
 * When the BGZF blocks of an input are copied, each must start where the one before it ends, and
 * the file must end with the EOF block; nothing is inflated. Offsets in the index must be starts of
 * blocks, which detects most indexes of other files.
 */
#include "sort/merge_sorted.h"

#include "bam/bam_convert.h"
#include "bam/bgzf_block.h"
#include "bam_sort_key.h"
#include "input/bam_inputs.h"
#include "input/input_error.h"
#include "sort/merge.h"
#include "sort/scan_runs.h"
#include "sort/sorted_output.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <htslib/hfile.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- planning the steps ---- */

/* The extent of an input. */
struct span {
    size_t input;
    uint64_t first, last;       /* keys of its first and last record; 0 and maximum: unknown */
    bool can_copy;
    uint64_t begin;             /* offset in the file of the first block of records */
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

/* True if the index fits the first and last record of the file: the same references and offsets. A
   stale index, or one of another file, rarely fits. */
static bool fits(const struct bam_read_index *index, const struct bam_ends *ends)
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

/* Finds the keys of the first and last record. Returns false if the input must be merged. */
static bool find_keys(const struct bam_ends *ends, uint64_t n_unplaced, struct span *span)
{
    if (!ends->first) {         /* no records */
        span->last = span->first;
        return true;
    }
    if (!find_key(ends->first, &span->first)) return false;
    /* The last reads are unplaced. */
    if (n_unplaced > 0) return true;
    return ends->last && find_key(ends->last, &span->last);
}

/* Checks an input against this index. Returns true if its blocks can be copied. */
static bool look_with(const struct bam_read_index *index, const char *path,
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
    span->begin = ends.begin;
    bam_ends_release(&ends);
    return can_copy;
}

/* Checks an input. Returns true if its blocks can be copied. Does not keep the index: those of
   hundreds of inputs may be large. */
static bool look(const char *path, struct bam_inputs *inputs, const struct bam_index_shape *shape,
                 struct span *span)
{
    struct bam_read_index index;
    const struct opened_file *opened = &inputs->files[span->input];
    if (!opened->can_seek || !opened->by_coordinate || bam_index_read(path, &index) < 0)
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
    *step = (struct merge_step){.n_inputs = n, .copies = n == 1 && spans->can_copy,
                                .begin = spans->begin};
    step->inputs = xcalloc(n, sizeof *step->inputs);
    for (size_t i = 0; i < n; i++) step->inputs[i] = spans[i].input;
    qsort(step->inputs, n, sizeof *step->inputs, compare_numbers);
}

/* True if a record of the span may sort before key `last` of input `last_input`. */
static bool overlaps(const struct span *span, uint64_t last, size_t last_input)
{
    return span->first < last || (span->first == last && span->input < last_input);
}

void merge_steps_plan(const char *const *paths, struct bam_inputs *inputs, size_t n,
                      const struct bam_index_shape *shape, struct merge_steps *steps)
{
    struct span *spans = xcalloc(n, sizeof *spans);
    *steps = (struct merge_steps){.steps = xcalloc(n, sizeof *steps->steps)};
    for (size_t i = 0; i < n; i++) {
        spans[i] = (struct span){.input = i, .last = UINT64_MAX};
        spans[i].can_copy = inputs && look(paths[i], inputs, shape, &spans[i]);
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

/* ---- planning the merge ---- */

static void plan(struct sort_context *sort, struct merge_steps *steps)
{
    const struct bam_index *index = sort->output.files[0].index;
    merge_steps_plan(sort->settings->inputs, sort->settings->merge_may_copy ? sort->inputs : NULL,
                     sort->settings->n_inputs, index ? bam_index_shape(index) : NULL, steps);
}

/* Counts how much of the input files was read. */
static void count_read(const struct sort_context *sort, uint64_t n_bytes)
{
    thread_pool_lock(sort->threads);
    struct load_counts *counts = load_totals_locked(sort->totals);
    counts->file_bytes = sort->inputs->n_bytes;
    counts->file_bytes_read = n_bytes;
    thread_pool_unlock(sort->threads);
}

/* Turns a copy into a merge if header IDs of the input change and a record has such an ID. */
static int look_at_ids(struct sort_context *sort, struct merge_steps *steps)
{
    size_t *numbers = xcalloc(sort->settings->n_inputs, sizeof *numbers), n = 0;
    bool *touched = xcalloc(sort->settings->n_inputs, sizeof *touched);
    for (size_t i = 0; i < steps->n; i++)
        if (steps->steps[i].copies && bam_inputs_renames(sort->inputs, steps->steps[i].inputs[0]))
            numbers[n++] = steps->steps[i].inputs[0];
    int r = scan_inputs_ids(sort, numbers, n, touched);
    for (size_t i = 0; i < steps->n; i++)
        if (touched[steps->steps[i].inputs[0]]) steps->steps[i].copies = false;
    free(touched);
    free(numbers);
    return r;
}

/* ---- copying an input ---- */

enum { BUFFER_BYTES = 1 << 20 };        /* room for many blocks */

struct copy {
    struct sort_context *sort;
    const char *path;
    hFILE *file;
    uint64_t at, end;           /* offsets of the next read, and of the EOF block */
    uint8_t *buffer;
    size_t n_bytes;             /* in the buffer, from the start of a block */
    struct bam_read_index index;
    size_t next_chunk, next_window;     /* of the index: the first ones in later blocks */
};

static int refuse_index(const struct copy *copy)
{
    diag_error("the index of '%s' is not that of the file: make the index again, or remove it",
               copy->path);
    return -1;
}

/* Skips index offsets in the block at byte `at`. False if one is before it, and so in no block. */
static bool pass_places(struct copy *copy, uint64_t at)
{
    const struct bam_index_part *part = &copy->index.part;
    size_t *chunk = &copy->next_chunk, *window = &copy->next_window;
    while (*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 == at) ++*chunk;
    while (*window < part->n_windows && part->windows[*window].begin >> 16 == at) ++*window;
    return !(*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 < at) &&
           !(*window < part->n_windows && part->windows[*window].begin >> 16 < at);
}

/* Fills the buffer. */
static int read_on(struct copy *copy)
{
    size_t n = BUFFER_BYTES - copy->n_bytes;
    if (n > copy->end - copy->at) n = (size_t)(copy->end - copy->at);
    ssize_t n_read = hread(copy->file, copy->buffer + copy->n_bytes, n);
    if (n_read != (ssize_t)n) {
        if (n_read >= 0) errno = 0;     /* the file became shorter */
        input_error_read(copy->path, copy->at);
        return -1;
    }
    copy->n_bytes += n;
    copy->at += n;
    return 0;
}

/* The size of the complete blocks in the buffer; 0 after a message. */
static size_t whole_blocks(struct copy *copy)
{
    size_t at = 0;
    while (at + BGZF_HEADER_BYTES <= copy->n_bytes) {
        size_t n = bgzf_block_bytes(copy->buffer + at);
        if (n == 0) {
            diag_error("'%s' is damaged: no BGZF block at byte %" PRIu64, copy->path,
                       copy->at - copy->n_bytes + at);
            return 0;
        }
        if (at + n > copy->n_bytes) break;
        if (!pass_places(copy, copy->at - copy->n_bytes + at)) {
            (void)refuse_index(copy);
            return 0;
        }
        at += n;
    }
    if (at > 0 && (at == copy->n_bytes || copy->at < copy->end)) return at;
    diag_error("'%s' is truncated: it ends within the BGZF block at byte %" PRIu64,
               copy->path, copy->at - copy->n_bytes + at);
    return 0;
}

static int copy_blocks(struct copy *copy)
{
    struct sort_context *sort = copy->sort;
    const struct bam_index_part *part = &copy->index.part;
    for (;;) {
        if (read_on(copy) < 0) return -1;
        if (copy->n_bytes == 0) break;
        size_t n = whole_blocks(copy);
        if (n == 0 || thread_pool_failed(sort->threads) ||
            output_file_copy(&sort->output.files[0], copy->buffer, n) < 0)
            return -1;
        copy->n_bytes -= n;
        memmove(copy->buffer, copy->buffer + n, copy->n_bytes);
        sort->report->copied_bytes += n;
        thread_pool_lock(sort->threads);
        sort->bytes_out += n;
        load_totals_locked(sort->totals)->file_bytes_read += n;
        thread_pool_unlock(sort->threads);
    }
    return copy->next_chunk < part->n_chunks || copy->next_window < part->n_windows
               ? refuse_index(copy) : 0;
}

/* Checks that the file has not changed since the steps were planned. */
static int check_unchanged(const char *path, const struct stat *before)
{
    struct stat now;
    if (stat(path, &now) == 0 && now.st_ino == before->st_ino && now.st_dev == before->st_dev &&
        now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
        return 0;
    diag_error("'%s' was changed while it, or others, were read; merge again", path);
    return -1;
}

/* Copies the blocks of an input, which begin at byte `begin`, and its index. */
static int copy_file(struct copy *copy, uint64_t begin, const struct stat *planned)
{
    struct bam_index_part *part = &copy->index.part;
    if (bam_index_read(copy->path, &copy->index) < 0) return refuse_index(copy);
    copy->at = begin;
    copy->end = (uint64_t)planned->st_size - BGZF_END_BYTES;
    copy->file = hopen(copy->path, "r");
    if (!copy->file || hseek(copy->file, (off_t)begin, SEEK_SET) < 0) {
        diag_error("cannot open '%s': %s", copy->path, strerror(errno));
        return -1;
    }
    part->end = bam_index_voffset(copy->end, 0);
    if (part->n_refs == 0) part->unplaced_begin = bam_index_voffset(begin, 0);
    if (output_file_copy_index(&copy->sort->output.files[0], part, begin) < 0) return -1;
    return copy_blocks(copy) < 0 ? -1 : check_unchanged(copy->path, planned);
}

static int copy_step(struct sort_context *sort, const struct merge_step *step)
{
    size_t input = step->inputs[0];
    struct copy copy = {.sort = sort, .path = sort->settings->inputs[input],
                        .buffer = xmalloc(BUFFER_BYTES)};
    int r = copy_file(&copy, step->begin, bam_inputs_file(sort->inputs, input));
    const struct content_sum sum = {.n_records = copy.index.n_records};
    free(copy.buffer);
    bam_index_part_release(&copy.index.part);
    if (copy.file) hclose_abruptly(copy.file);
    if (r < 0) return -1;
    sort->report->n_inputs_copied++;
    thread_pool_lock(sort->threads);
    content_sum_join(&sort->sum_out, &sum);
    load_totals_add(sort->totals, &sum, false);
    thread_pool_unlock(sort->threads);
    return 0;
}

/* ---- all steps ---- */

int merge_sorted(struct sort_context *sort)
{
    struct merge_steps steps;
    plan(sort, &steps);
    int r = look_at_ids(sort, &steps);
    count_read(sort, 0);
    if (r == 0) r = sorted_output_open(sort, 0);
    for (size_t i = 0; r == 0 && i < steps.n; i++) {
        const struct merge_step *step = &steps.steps[i];
        r = step->copies ? copy_step(sort, step)
                         : merge_to_output(sort, step->inputs, step->n_inputs);
        if (!step->copies) sort->report->n_inputs_merged += step->n_inputs;
    }
    if (r == 0) count_read(sort, sort->inputs->n_bytes);
    merge_steps_release(&steps);
    return r;
}
