/* merge_inputs.c -- see merge_inputs.h. */
#include "pipeline/merge_inputs.h"

#include "pipeline/violation.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct merge_input {
    struct merge_inputs *all;
    size_t number;
    struct queued_span *front;     /* its block is shown next */
    struct open_block *block;   /* of the front */
    struct merge_bound first;   /* of this block */
    struct open_block *before;  /* the block that was taken before it */
};

struct merge_inputs {
    struct crew *crew;
    struct segmenter *segmenter;
    struct load_totals *totals;
    const struct sort_rules *rules;
    sam_hdr_t *header;
    struct input_streams *streams;
    size_t n;
    struct merge_input *inputs;
    struct content_sum sum;     /* under the lock */
};

/* ---- blocks, by workers ---- */

/* Prints that a record comes before one that it should follow. `number` is that of the second one,
   from 0. */
static int refuse_order(const struct merge_inputs *m, const char *input, const uint8_t *before,
                        const uint8_t *after, uint64_t number)
{
    violation_print(m->rules, m->header, input, before, after, number);
    return -1;
}

static const uint8_t *record_of(const struct merge_inputs *m, const struct open_block *block,
                                size_t i)
{
    return sort_entry_record(m->rules->order, &block->source.entries[i]);
}

/* Checks that the records of a block are in order. */
static int check_order(const struct merge_inputs *m, const char *input,
                       const struct open_block *block)
{
    const struct sort_rules *rules = m->rules;
    const struct merge_source *source = &block->source;
    if (merge_is_sorted(rules, source->entries, source->n_entries)) return 0;
    size_t i = 1;
    while (merge_is_sorted(rules, source->entries + i - 1, 2)) i++;
    return refuse_order(m, input, record_of(m, block, i - 1), record_of(m, block, i),
                        source->first_index + i);
}

static int make_block(void *arg, struct worker *worker, struct queued_span *span,
                      const char *input)
{
    struct merge_inputs *m = arg;
    struct input_records records = {.span = &span->records, .run = span->input};
    (void)worker;
    struct open_block *block = segmenter_adopt_records(m->segmenter, &records);
    span->made = block;
    if (!block) {
        if (records.problem.text) record_problem_print(&records.problem, input);
        return -1;
    }
    span->made_bytes = block->entry_bytes;
    crew_lock(m->crew);
    load_totals_add(m->totals, &records.sum, records.any_placed);
    content_sum_join(&m->sum, &records.sum);
    crew_unlock(m->crew);
    return check_order(m, input, block);
}

/* With all jobs done. */
static void drop_block(void *arg, void *made)
{
    (void)arg;
    segmenter_drop_block(made);
}

/* ---- the dispatcher ---- */

static void drop_before(struct merge_input *input)
{
    struct crew *crew = input->all->crew;
    if (!input->before) return;
    crew_lock(crew);
    segmenter_drop_block(input->before);
    crew_unlock(crew);
    input->before = NULL;
}

/* Checks that the front does not begin before the end of the block before it. */
static int check_front(const struct merge_input *input)
{
    const struct merge_inputs *m = input->all;
    const struct open_block *before = input->before, *block = input->block;
    if (!before) return 0;
    size_t last = before->source.n_entries - 1;
    const struct sort_entry two[] = {before->source.entries[last], block->source.entries[0]};
    if (merge_is_sorted(m->rules, two, 2)) return 0;
    return refuse_order(m, input_streams_name(m->streams, input->number),
                        record_of(m, before, last), record_of(m, block, 0),
                        block->source.first_index);
}

int merge_inputs_first(struct merge_inputs *m, size_t i, struct merge_limit *first)
{
    struct merge_input *input = &m->inputs[i];
    int r = input_streams_next(m->streams, i, &input->front);
    *first = (struct merge_limit){NULL, 0};
    if (r > 0) {
        input->block = input->front->made;
        merge_bound_set(&input->first, m->rules->order, &input->block->source, 0);
        *first = merge_limit_of(&input->first);
        if (check_front(input) < 0) r = -1;
    }
    drop_before(input);
    return r;
}

struct open_block *merge_inputs_take(struct merge_inputs *m, size_t i)
{
    struct merge_input *input = &m->inputs[i];
    crew_lock(m->crew);
    segmenter_count_adopted(input->block);
    input->block->n_users++;            /* until the next one was compared with it */
    crew_unlock(m->crew);
    input->before = input->block;
    input->front->made = NULL;
    input_streams_release(input->front);
    input->front = NULL;
    return input->block;
}

struct merge_inputs *merge_inputs_start(const struct input_streams_settings *streams,
                                        struct segmenter *segmenter,
                                        const struct sort_rules *rules, sam_hdr_t *header)
{
    struct merge_inputs *m = xcalloc(1, sizeof *m);
    struct input_streams_settings settings = *streams;
    *m = (struct merge_inputs){.crew = streams->crew, .segmenter = segmenter,
                               .totals = streams->totals, .rules = rules, .header = header,
                               .n = streams->n_inputs};
    m->inputs = xcalloc(m->n, sizeof *m->inputs);
    for (size_t i = 0; i < m->n; i++) m->inputs[i] = (struct merge_input){.all = m, .number = i};
    settings.make = make_block;
    settings.drop = drop_block;
    settings.arg = m;
    m->streams = input_streams_start(&settings);
    if (m->streams) return m;
    merge_inputs_destroy(m);
    return NULL;
}

size_t merge_inputs_excess_bytes(const struct merge_inputs *m)
{
    return input_streams_excess_bytes(m->streams);
}

struct content_sum merge_inputs_sum(const struct merge_inputs *m)
{
    return m->sum;
}

void merge_inputs_stop(struct merge_inputs *m)
{
    if (m) input_streams_stop(m->streams);
}

void merge_inputs_destroy(struct merge_inputs *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        if (m->inputs[i].front) input_streams_release(m->inputs[i].front);
        if (m->inputs[i].before) segmenter_drop_block(m->inputs[i].before);
        merge_bound_release(&m->inputs[i].first);
    }
    input_streams_destroy(m->streams);
    free(m->inputs);
    free(m);
}
