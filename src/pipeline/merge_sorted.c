/* merge_sorted.c -- see merge_sorted.h. */
#include "pipeline/merge_sorted.h"

#include "machine/memory.h"
#include "pipeline/copy_input.h"
#include "pipeline/merge_steps.h"
#include "pipeline/scan_inputs.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>

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
        scan_inputs_view(&streams, s->duplicates, s->observers, s->merge->rules) < 0)
        return -1;
    if (survey_settle(&s->survey, s->split, s->columns) < 0) return -1;
    if (!s->duplicates) return 0;
    return duplicates_decide(s->duplicates, NULL, 0, (uint32_t)s->sort->n_inputs,
                             s->budget->total_bytes);
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

static int copy_step(const struct merge_sorted_settings *s, const struct merge_step *step,
                     struct content_sum *sum_out)
{
    struct content_sum sum = {.n_records = step->copy.n_records};
    uint64_t before = s->merge->counts->output_bytes;
    if (copy_input(s->merge, s->inputs, s->sort->inputs[step->inputs[0]], step) < 0) return -1;
    s->report->n_inputs_copied++;
    s->report->copied_bytes += s->merge->counts->output_bytes - before;
    crew_lock(s->merge->crew);
    load_totals_add(s->merge->totals, &sum, false);
    crew_unlock(s->merge->crew);
    content_sum_join(sum_out, &sum);
    return 0;
}

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
