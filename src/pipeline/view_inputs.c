/* view_inputs.c -- see view_inputs.h. */
#include "pipeline/view_inputs.h"

#include "pipeline/input_streams.h"

static int view_records(const struct view_inputs_settings *s, struct view_gather *gather,
                        const struct input_records *records, const uint8_t *end)
{
    struct duplicate_looks looks = {0};
    struct record_place place = {.run = records->run, .index = records->first_record};
    int r = 0;
    for (const uint8_t *rec = records->from; r == 0 && rec < end; rec += bam_record_bytes(rec)) {
        place.ordinal = place.index;
        r = duplicate_looks_add(s->duplicates, gather, &looks, rec, &place);
        place.index++;
    }
    duplicate_looks_end(gather, &looks, records->run);
    if (r == 0) r = duplicates_take(s->duplicates, &looks);
    duplicate_looks_release(&looks);
    return r;
}

static int make_views(void *arg, struct worker *worker, struct stretch *stretch, const char *input)
{
    const struct view_inputs_settings *s = arg;
    struct input_records *records = &stretch->records;
    struct sort_rules rules = *s->rules;
    rules.cut_names = NULL;     /* the merge counts them */
    const uint8_t *end = record_entries_check(&rules, s->n_refs, records->from, records->to,
                                              records->first_record, &records->problem);
    if (end && survey_add(&s->survey, records->from, end) < 0) return -1;
    if (end) return s->duplicates ? view_records(s, &worker->views, records, end) : 0;
    record_problem_print(&records->problem, input);
    return -1;
}

static int view_all(const struct view_inputs_settings *s, struct input_streams *streams)
{
    struct stretch *none;
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (input_streams_next(streams, i, &none) < 0) return -1;
        if (!s->duplicates) continue;
        duplicates_end_run(s->duplicates, (uint32_t)i, input_streams_n_records(streams, i));
    }
    return 0;
}

int view_inputs(const struct view_inputs_settings *s)
{
    struct view_inputs_settings copy = *s;
    const struct input_streams_settings settings = {
        .crew = s->crew, .inputs = s->inputs, .numbers = s->numbers, .n_inputs = s->n_inputs,
        .n_refs = s->n_refs, .totals = s->totals, .piece_bytes = s->piece_bytes,
        .ahead_bytes = s->ahead_bytes, .all_bytes = s->all_bytes,
        .make = make_views, .arg = &copy,
    };
    struct input_streams *streams = input_streams_start(&settings);
    if (!streams) return -1;
    if (view_all(s, streams) < 0) crew_fail(s->crew);
    input_streams_stop(streams);
    int r = crew_finish_jobs(s->crew);
    input_streams_destroy(streams);
    return r;
}
