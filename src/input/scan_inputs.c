/* scan_inputs.c -- see scan_inputs.h. */
#include "input/scan_inputs.h"

#include "bam/bam_check.h"
#include "input/record_entries.h"

struct scan {
    struct input_streams_settings streams;
    /* of scan_inputs_ends */
    const struct record_observers *observers;
    const struct sort_rules *rules;
    /* of scan_inputs_ids */
    bool *touched;              /* under the lock */
};

/* Reads all inputs to their ends. */
static int scan_all(struct scan *scan)
{
    scan->streams.arg = scan;
    struct threads *threads = scan->streams.threads;
    struct input_streams *streams = input_streams_start(&scan->streams);
    struct queued_span *none;
    if (!streams) return -1;
    for (size_t i = 0; i < scan->streams.n_inputs && !thread_pool_failed(threads); i++)
        if (input_streams_next(streams, i, &none) < 0) thread_pool_fail(threads);
    input_streams_stop(streams);
    int r = thread_pool_finish_jobs(threads);
    input_streams_destroy(streams);
    return r;
}

/* ---- observers ---- */

static int look_at_records(void *arg, struct worker *worker, struct queued_span *span,
                           const char *input)
{
    (void)worker;
    const struct scan *scan = arg;
    const struct record_span *records = &span->records;
    struct record_problem problem;
    struct sort_rules rules = *scan->rules;
    rules.cut_names = NULL;     /* the merge counts them */
    const uint8_t *end = record_entries_check(&rules, scan->streams.n_refs, records->from,
                                              records->to, records->first_record, &problem);
    const struct observed_records observed = {.all = {records->from, end}, .run = span->input,
                                              .first_record = records->first_record};
    if (end) return record_observers_look(scan->observers, &observed);
    record_problem_print(&problem, input);
    return -1;
}

int scan_inputs_ends(const struct input_streams_settings *streams,
                     const struct record_observers *observers, const struct sort_rules *rules)
{
    struct scan scan = {*streams, .observers = observers, .rules = rules};
    scan.streams.make = look_at_records;
    return scan_all(&scan);
}

/* ---- IDs ---- */

static int look_at_ids(void *arg, struct worker *worker, struct queued_span *span,
                       const char *input)
{
    struct scan *scan = arg;
    struct bam_records records = {span->records.from, span->records.to};
    const struct id_renames *renames = bam_inputs_renames(scan->streams.inputs, span->input);
    struct record_problem problem = {.record = span->records.first_record, .is_damaged = true};
    bool touched = false;
    (void)worker;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        problem.text = bam_record_check(rec, scan->streams.n_refs);
        if (problem.text) {
            record_problem_print(&problem, input);
            return -1;
        }
        problem.record++;
        touched = touched || id_renames_touch(renames, rec);
    }
    if (!touched) return 0;
    thread_pool_lock(scan->streams.threads);
    scan->touched[span->input] = true;
    thread_pool_unlock(scan->streams.threads);
    return 0;
}

int scan_inputs_ids(const struct input_streams_settings *streams, bool *touched)
{
    struct scan scan = {*streams, .touched = touched};
    scan.streams.keeps_ids = true;
    scan.streams.make = look_at_ids;
    return scan_all(&scan);
}
