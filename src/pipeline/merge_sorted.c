/*
 * merge_sorted.c -- see merge_sorted.h.
 *
 * When the BGZF blocks of an input are copied, each must begin where the one before it ends, and the
 * file must end with the EOF block; nothing is inflated. The places in the index must be beginnings
 * of blocks: this shows most indexes that are not that of the file.
 */
#include "pipeline/merge_sorted.h"

#include "bam/bgzf_block.h"
#include "input/input_error.h"
#include "machine/memory.h"
#include "pipeline/merge_steps.h"
#include "pipeline/scan_inputs.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that n inputs can be open at the same time. */
static int check_open_files(size_t n)
{
    enum { OTHER_FILES = 32 };
    size_t limit;
    if (open_files_suffice(n + OTHER_FILES, &limit)) return 0;
    diag_error("%zu inputs cannot be open at the same time: raise 'ulimit -n' from %zu to %zu, or "
               "merge some of them first", n, limit, n + OTHER_FILES);
    return -1;
}

/* Makes settings to read n inputs at the same time; checks that there is memory, and divides it. */
static int plan_streams(const struct merge_sorted_settings *s, const size_t *numbers, size_t n,
                        struct input_streams_settings *streams)
{
    *streams = (struct input_streams_settings){
        .crew = s->merge->crew, .inputs = s->inputs, .numbers = numbers, .n_inputs = n,
        .n_refs = sam_hdr_nref(s->merge->header), .totals = s->merge->totals,
    };
    if (mem_budget_share_inputs(s->budget, n, &streams->share)) return 0;
    diag_error("%zu MiB of memory are too little to merge %zu inputs: give %zu MiB or more with "
               "--max-memory, or merge some of them first", s->budget->total_bytes >> 20, n,
               (streams->share.needed_bytes >> 20) + 1);
    return -1;
}

/* Reads all inputs, finds all duplicates, and makes ranges. `step` has all inputs. */
static int look_first(const struct merge_sorted_settings *s, const struct merge_step *step)
{
    struct input_streams_settings streams;
    if (check_open_files(s->sort->n_inputs) < 0 ||
        plan_streams(s, step->inputs, step->n_inputs, &streams) < 0 ||
        scan_inputs_view(&streams, s->observers, s->merge->rules) < 0)
        return -1;
    if (survey_settle(&s->survey, s->split, s->columns) < 0) return -1;
    return s->duplicates ? duplicates_resolve(s->duplicates, s->budget->total_bytes) : 0;
}

static void plan(const struct merge_sorted_settings *s, struct merge_steps *steps)
{
    const struct bam_index *index = s->merge->output->files[0].index;
    if (s->sort->merge_may_copy)
        merge_steps_plan(s->sort->inputs, s->inputs, s->sort->n_inputs,
                         index ? bam_index_shape(index) : NULL, steps);
    else
        merge_steps_all(s->sort->n_inputs, steps);
}

/* Counts how much of the input files was read. */
static void count_read(const struct merge_settings *merge, const struct bam_inputs *inputs,
                       uint64_t n_bytes)
{
    crew_lock(merge->crew);
    load_totals_set_position(merge->totals, inputs->n_bytes, n_bytes);
    crew_unlock(merge->crew);
}

/* Looks at the IDs in the records of n inputs, some at a time. */
static int scan_inputs(const struct merge_sorted_settings *s, const size_t *numbers, size_t n,
                       bool *touched)
{
    enum { AT_A_TIME = 16 };
    struct input_streams_settings streams;
    for (size_t from = 0, n_now; from < n; from += n_now) {
        n_now = n - from < AT_A_TIME ? n - from : AT_A_TIME;
        if (plan_streams(s, numbers + from, n_now, &streams) < 0 ||
            scan_inputs_ids(&streams, touched) < 0)
            return -1;
    }
    return 0;
}

/* Steps that copy an input whose IDs change merge it instead, if some record has such an ID. */
static int look_at_ids(const struct merge_sorted_settings *s, struct merge_steps *steps)
{
    size_t *numbers = xcalloc(s->sort->n_inputs, sizeof *numbers), n = 0;
    bool *touched = xcalloc(s->sort->n_inputs, sizeof *touched);
    for (size_t i = 0; i < steps->n; i++)
        if (steps->steps[i].copies && bam_inputs_renames(s->inputs, steps->steps[i].inputs[0]))
            numbers[n++] = steps->steps[i].inputs[0];
    int r = scan_inputs(s, numbers, n, touched);
    for (size_t i = 0; i < steps->n; i++)
        if (touched[steps->steps[i].inputs[0]]) steps->steps[i].copies = false;
    free(touched);
    free(numbers);
    return r;
}

/* ---- copying an input ---- */

enum { BUFFER_BYTES = 1 << 20 };        /* room for many blocks */

struct copy {
    const struct merge_settings *merge;
    const char *path;
    const struct merge_copy *what;
    struct output_file *output;
    int fd;
    uint64_t at, end;           /* what is read next, and the EOF block */
    uint8_t *buffer;
    size_t n_bytes;             /* in the buffer; they begin with a block */
    struct bam_index_file index;
    size_t next_chunk, next_window;     /* of the index: the first ones in blocks to come */
    struct stat file;           /* when it was opened */
};

static int refuse_index(const struct copy *copy)
{
    diag_error("the index of '%s' is not that of the file: make the index again, or remove it",
               copy->path);
    return -1;
}

/* Reads the index, which must be the one that was looked at before. */
static int read_index(struct copy *copy)
{
    struct bam_index_file *index = &copy->index;
    if (bam_index_file_read(copy->path, index) == 0 &&
        index->n_records == copy->what->n_records && index->last_begin == copy->what->last_begin)
        return 0;
    diag_error("the index of '%s' was changed while others were read; merge again", copy->path);
    return -1;
}

/* Passes the places in the index that are in the block at byte `at`. False if one lies before it,
   and so in no block. */
static bool pass_places(struct copy *copy, uint64_t at)
{
    const struct bam_index_part *part = &copy->index.part;
    size_t *chunk = &copy->next_chunk, *window = &copy->next_window;
    while (*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 == at) ++*chunk;
    while (*window < part->n_windows && part->windows[*window].begin >> 16 == at) ++*window;
    return !(*chunk < part->n_chunks && part->chunks[*chunk].begin >> 16 < at) &&
           !(*window < part->n_windows && part->windows[*window].begin >> 16 < at);
}

static bool differs(const struct stat *a, const struct stat *b)
{
    return a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static int refuse_change(const char *path)
{
    diag_error("'%s' was changed while it, or others, were read; merge again", path);
    return -1;
}

/* Opens the file, which must be the one that was looked at before. */
static int open_file(struct copy *copy, const struct stat *before)
{
    struct stat now;
    copy->fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    if (copy->fd < 0 || fstat(copy->fd, &now) < 0) {
        diag_error("cannot open '%s': %s", copy->path, strerror(errno));
        return -1;
    }
    if (!before || now.st_ino != before->st_ino || now.st_dev != before->st_dev ||
        differs(&now, before))
        return refuse_change(copy->path);
    copy->file = now;
    copy->at = copy->what->begin;
    copy->end = (uint64_t)now.st_size - BGZF_END_BYTES;
    return 0;
}

/* Fills the buffer. */
static int read_on(struct copy *copy)
{
    while (copy->n_bytes < BUFFER_BYTES && copy->at < copy->end) {
        size_t n = BUFFER_BYTES - copy->n_bytes;
        if (n > copy->end - copy->at) n = (size_t)(copy->end - copy->at);
        ssize_t n_read = pread(copy->fd, copy->buffer + copy->n_bytes, n, (off_t)copy->at);
        if (n_read < 0 && errno == EINTR) continue;
        if (n_read <= 0) {
            if (n_read == 0) errno = 0;         /* the file became shorter */
            input_error_read(copy->path, copy->at);
            return -1;
        }
        copy->n_bytes += (size_t)n_read;
        copy->at += (uint64_t)n_read;
    }
    return 0;
}

/* The size of the whole blocks at the beginning of the buffer; 0 after a message. */
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
    const struct merge_settings *s = copy->merge;
    for (;;) {
        if (read_on(copy) < 0) return -1;
        if (copy->n_bytes == 0) break;
        size_t n = whole_blocks(copy);
        if (n == 0 || crew_failed(s->crew) ||
            output_file_copy(copy->output, copy->buffer, n) < 0)
            return -1;
        copy->n_bytes -= n;
        memmove(copy->buffer, copy->buffer + n, copy->n_bytes);
        crew_lock(s->crew);
        s->counts->output_bytes += n;
        load_totals_add_position(s->totals, n);
        crew_unlock(s->crew);
    }
    const struct bam_index_part *part = &copy->index.part;
    struct stat now;
    if (copy->next_chunk < part->n_chunks || copy->next_window < part->n_windows)
        return refuse_index(copy);
    return fstat(copy->fd, &now) < 0 || differs(&now, &copy->file) ? refuse_change(copy->path) : 0;
}

/* Copies the blocks of an input, as they are, into the first output of the merge. */
static int copy_input(const struct merge_sorted_settings *s, const struct merge_step *step)
{
    size_t input = step->inputs[0];
    struct copy copy = {.merge = s->merge, .path = s->sort->inputs[input], .what = &step->copy,
                        .output = &s->merge->output->files[0], .fd = -1};
    struct bam_index_part *part = &copy.index.part;
    int r = open_file(&copy, bam_inputs_file(s->inputs, input));
    if (r == 0) r = read_index(&copy);
    if (r == 0) {
        part->end = bam_index_voffset(copy.end, 0);
        if (part->n_refs == 0) part->unplaced_begin = bam_index_voffset(copy.what->begin, 0);
        r = output_file_copy_index(copy.output, part, copy.what->begin);
    }
    copy.buffer = xmalloc(BUFFER_BYTES);
    if (r == 0) r = copy_blocks(&copy);
    free(copy.buffer);
    bam_index_part_release(part);
    if (copy.fd >= 0) (void)close(copy.fd);
    return r;
}

static int copy_step(const struct merge_sorted_settings *s, const struct merge_step *step,
                     struct content_sum *sum_out)
{
    const struct merge_settings *merge = s->merge;
    struct content_sum sum = {.n_records = step->copy.n_records};
    uint64_t before = merge->counts->output_bytes;
    if (copy_input(s, step) < 0) return -1;
    s->report->n_inputs_copied++;
    s->report->copied_bytes += merge->counts->output_bytes - before;
    crew_lock(merge->crew);
    merge->counts->n_records += sum.n_records;
    load_totals_add(merge->totals, &sum, false);
    crew_unlock(merge->crew);
    content_sum_join(sum_out, &sum);
    return 0;
}

/* ---- the steps ---- */

static int merge_step(const struct merge_sorted_settings *s, const struct merge_step *step,
                      struct content_sum *sum_out)
{
    struct merge_settings merge = *s->merge;
    struct input_streams_settings streams;
    struct content_sum sum;
    if (check_open_files(step->n_inputs) < 0 ||
        plan_streams(s, step->inputs, step->n_inputs, &streams) < 0)
        return -1;
    merge.streams = &streams;
    if (merge_to_output(&merge, &sum) < 0) return -1;
    s->report->n_inputs_merged += step->n_inputs;
    content_sum_join(sum_out, &sum);
    return 0;
}

int merge_sorted(const struct merge_sorted_settings *s, struct content_sum *sum_out)
{
    struct merge_steps steps;
    int r = 0;
    *sum_out = (struct content_sum){0};
    plan(s, &steps);
    if (s->duplicates || survey_is_needed(&s->survey)) {
        progress_enter(s->progress, SORT_PHASE_MARK);
        r = look_first(s, &steps.steps[0]);
        progress_enter(s->progress, SORT_PHASE_MERGE);
    }
    if (r == 0) r = look_at_ids(s, &steps);
    count_read(s->merge, s->inputs, 0);
    if (r == 0) r = sorted_output_open(s->merge->output, s->merge->header, 0);
    for (size_t i = 0; r == 0 && i < steps.n; i++) {
        const struct merge_step *step = &steps.steps[i];
        r = step->copies ? copy_step(s, step, sum_out) : merge_step(s, step, sum_out);
    }
    if (r == 0) count_read(s->merge, s->inputs, s->inputs->n_bytes);
    merge_steps_release(&steps);
    return r;
}
