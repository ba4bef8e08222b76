/* merge_inputs.c -- see merge_inputs.h. */
#include "sort/merge_inputs.h"

#include "sort/rules.h"
#include "util/xalloc.h"

#include <stdlib.h>

struct merge_input {
    struct queued_span *front;  /* the span of the next block */
    struct open_block *block;   /* of the front */
    struct merge_bound first;   /* bound of its first record */
    struct open_block *before;  /* the block taken before it */
};

/* ---- blocks, by workers ---- */

/* Prints that record i of one block precedes record k of the same or another block of the input but
   sorts after it. */
static int refuse_order(const struct merge_inputs *m, const char *input,
                        const struct open_block *before, size_t i,
                        const struct open_block *block, size_t k)
{
    const struct sort_rules *rules = &m->sort->rules;
    order_violation_print(
        rules, m->sort->header, input, sort_entry_record(rules->order, &before->source.entries[i]),
        sort_entry_record(rules->order, &block->source.entries[k]), block->source.first_index + k);
    return -1;
}

/* Checks that the records of a block are in order. */
static int check_order(const struct merge_inputs *m, const char *input,
                       const struct open_block *block)
{
    const struct sort_rules *rules = &m->sort->rules;
    const struct merge_source *source = &block->source;
    if (merge_is_sorted(rules, source->entries, source->n_entries)) return 0;
    size_t i = 1;
    while (merge_is_sorted(rules, source->entries + i - 1, 2)) i++;
    return refuse_order(m, input, block, i - 1, block, i);
}

static int make_block(void *arg, struct worker *worker, struct queued_span *span,
                      const char *input)
{
    struct merge_inputs *m = arg;
    struct input_records records = {.span = &span->records, .run = span->input};
    (void)worker;
    struct open_block *block = output_chunker_adopt_records(m->output_chunker, &records);
    span->made = block;
    if (!block) {
        if (records.problem.text) record_problem_print(&records.problem, input);
        return -1;
    }
    span->made_bytes = block->entry_bytes;
    thread_pool_lock(m->sort->threads);
    load_totals_add(m->sort->totals, &records.sum, records.any_placed);
    content_sum_join(&m->sum, &records.sum);
    thread_pool_unlock(m->sort->threads);
    return check_order(m, input, block);
}

/* With all jobs done. */
static void drop_block(void *arg, void *made)
{
    (void)arg;
    output_chunker_drop_block(made);
}

/* ---- the dispatcher ---- */

/* Checks that the front of input i does not sort before the end of the preceding block. */
static int check_front(const struct merge_inputs *m, size_t i)
{
    const struct open_block *before = m->inputs[i].before, *block = m->inputs[i].block;
    if (!before) return 0;
    size_t last = before->source.n_entries - 1;
    const struct sort_entry two[] = {before->source.entries[last], block->source.entries[0]};
    if (merge_is_sorted(&m->sort->rules, two, 2)) return 0;
    return refuse_order(m, input_streams_name(m->streams, i), before, last, block, 0);
}

int merge_inputs_first(struct merge_inputs *m, size_t i, struct merge_limit *first)
{
    struct merge_input *input = &m->inputs[i];
    int r = input_streams_next(m->streams, i, &input->front);
    *first = (struct merge_limit){NULL, 0};
    if (r > 0) {
        input->block = input->front->made;
        merge_bound_set(&input->first, m->sort->rules.order, &input->block->source, 0);
        *first = merge_limit_of(&input->first);
        if (check_front(m, i) < 0) r = -1;
    }
    thread_pool_lock(m->sort->threads);
    if (input->before) output_chunker_drop_block(input->before);
    thread_pool_unlock(m->sort->threads);
    input->before = NULL;
    return r;
}

struct open_block *merge_inputs_take(struct merge_inputs *m, size_t i)
{
    struct merge_input *input = &m->inputs[i];
    thread_pool_lock(m->sort->threads);
    output_chunker_count_adopted(input->block);
    input->block->n_users++;            /* until the next block is compared with it */
    thread_pool_unlock(m->sort->threads);
    input->before = input->block;
    input->front->made = NULL;
    span_queue_drop(input->front);
    input->front = NULL;
    return input->block;
}

struct merge_inputs *merge_inputs_start(struct sort_context *sort,
                                        struct output_chunker *output_chunker,
                                        const struct input_streams_settings *streams)
{
    struct merge_inputs *m = xcalloc(1, sizeof *m);
    struct input_streams_settings settings = *streams;
    *m = (struct merge_inputs){
        .sort = sort, .output_chunker = output_chunker, .n = streams->n_inputs};
    m->inputs = xcalloc(m->n, sizeof *m->inputs);
    settings.make = make_block;
    settings.drop = drop_block;
    settings.arg = m;
    m->streams = input_streams_start(&settings);
    if (m->streams) return m;
    merge_inputs_destroy(m);
    return NULL;
}

void merge_inputs_destroy(struct merge_inputs *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        if (m->inputs[i].front) span_queue_drop(m->inputs[i].front);
        if (m->inputs[i].before) output_chunker_drop_block(m->inputs[i].before);
        merge_bound_release(&m->inputs[i].first);
    }
    input_streams_destroy(m->streams);
    free(m->inputs);
    free(m);
}
