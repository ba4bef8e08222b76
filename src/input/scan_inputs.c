/* scan_inputs.c -- see scan_inputs.h. */
#include "input/scan_inputs.h"

#include "input/record_entries.h"

struct scan {
    struct input_streams_settings streams;
    const struct record_observers *observers;
    struct sort_rules rules;
    bool *touched;              /* under the lock */
};

/* Notes whether a record has an ID that changes. */
static void look_at_ids(const struct scan *scan, struct bam_records records, uint32_t input)
{
    const struct id_renames *renames = bam_inputs_renames(scan->streams.inputs, input);
    const uint8_t *rec;
    while ((rec = bam_records_next(&records)) && !id_renames_touch(renames, rec)) continue;
    if (!rec) return;
    thread_pool_lock(scan->streams.threads);
    scan->touched[input] = true;
    thread_pool_unlock(scan->streams.threads);
}

static int look_at_records(void *arg, struct worker *worker, struct queued_span *span,
                           const char *input)
{
    const struct scan *scan = arg;
    const struct record_span *records = &span->records;
    struct record_problem problem;
    (void)worker;
    const uint8_t *end = record_entries_check(&scan->rules, scan->streams.n_refs, records->from,
                                              records->to, records->first_record, &problem);
    if (!end) {
        record_problem_print(&problem, input);
        return -1;
    }
    const struct observed_records observed = {.all = {records->from, end}, .run = span->input,
                                              .first_record = records->first_record};
    if (!scan->touched) return record_observers_look(scan->observers, &observed);
    look_at_ids(scan, observed.all, span->input);
    return 0;
}

int scan_inputs(const struct input_streams_settings *streams,
                const struct record_observers *observers, const struct sort_rules *rules,
                bool *touched)
{
    struct scan scan = {*streams, observers, *rules, touched};
    struct threads *threads = streams->threads;
    struct queued_span *none;
    scan.rules.cut_names = NULL;        /* the merge counts them */
    scan.streams.keeps_ids = touched != NULL;
    scan.streams.make = look_at_records;
    scan.streams.arg = &scan;
    struct input_streams *all = input_streams_start(&scan.streams);
    if (!all) return -1;
    for (size_t i = 0; i < streams->n_inputs && !thread_pool_failed(threads); i++)
        if (input_streams_next(all, i, &none) < 0) thread_pool_fail(threads);
    input_streams_stop(all);
    int r = thread_pool_finish_jobs(threads);
    input_streams_destroy(all);
    return r;
}
