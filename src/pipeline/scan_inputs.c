/* scan_inputs.c -- see scan_inputs.h. */
#include "pipeline/scan_inputs.h"

#include "bam/bam_check.h"
#include "pipeline/record_entries.h"

struct scan {
    struct input_streams_settings streams;
    /* of scan_inputs_view */
    struct duplicates *duplicates;
    const struct survey *survey;
    const struct sort_rules *rules;
    /* of scan_inputs_ids */
    bool *touched;              /* under the lock */
};

/* Reads all inputs to their ends. */
static int scan_all(struct scan *scan)
{
    scan->streams.arg = scan;
    struct crew *crew = scan->streams.crew;
    struct input_streams *streams = input_streams_start(&scan->streams);
    struct queued_span *none;
    if (!streams) return -1;
    for (size_t i = 0; i < scan->streams.n_inputs && !crew_failed(crew); i++) {
        if (input_streams_next(streams, i, &none) < 0)
            crew_fail(crew);
        else if (scan->duplicates)
            duplicates_end_run(scan->duplicates, (uint32_t)i, input_streams_n_records(streams, i));
    }
    input_streams_stop(streams);
    int r = crew_finish_jobs(crew);
    input_streams_destroy(streams);
    return r;
}

/* ---- views ---- */

static int view_records(const struct scan *scan, struct view_gather *gather,
                        const struct queued_span *span, const uint8_t *end)
{
    struct duplicate_looks looks = {0};
    struct record_place place = {.run = span->input, .index = span->records.first_record};
    int r = 0;
    for (const uint8_t *rec = span->records.from; r == 0 && rec < end; rec += bam_record_bytes(rec)) {
        place.ordinal = place.index;
        r = duplicate_looks_add(scan->duplicates, gather, &looks, rec, &place);
        place.index++;
    }
    duplicate_looks_end(gather, &looks, span->input);
    if (r == 0) r = duplicates_take(scan->duplicates, &looks);
    duplicate_looks_release(&looks);
    return r;
}

static int make_views(void *arg, struct worker *worker, struct queued_span *span,
                      const char *input)
{
    const struct scan *scan = arg;
    const struct record_span *records = &span->records;
    struct record_problem problem;
    struct sort_rules rules = *scan->rules;
    rules.cut_names = NULL;     /* the merge counts them */
    const uint8_t *end = record_entries_check(&rules, scan->streams.n_refs, records->from,
                                              records->to, records->first_record, &problem);
    if (end && survey_add(scan->survey, records->from, end) < 0) return -1;
    if (end) return scan->duplicates ? view_records(scan, &worker->views, span, end) : 0;
    record_problem_print(&problem, input);
    return -1;
}

int scan_inputs_view(const struct input_streams_settings *streams, struct duplicates *duplicates,
                     const struct survey *survey, const struct sort_rules *rules)
{
    struct scan scan = {*streams, .duplicates = duplicates, .survey = survey, .rules = rules};
    scan.streams.make = make_views;
    return scan_all(&scan);
}

/* ---- IDs ---- */

static int look_at_ids(void *arg, struct worker *worker, struct queued_span *span,
                       const char *input)
{
    struct scan *scan = arg;
    const struct record_span *records = &span->records;
    const struct id_renames *renames = bam_inputs_renames(scan->streams.inputs, span->input);
    struct record_problem problem = {.record = records->first_record, .is_damaged = true};
    bool touched = false;
    (void)worker;
    for (const uint8_t *rec = records->from; rec < records->to; rec += bam_record_bytes(rec)) {
        problem.text = bam_record_check(rec, scan->streams.n_refs);
        if (problem.text) {
            record_problem_print(&problem, input);
            return -1;
        }
        problem.record++;
        touched = touched || id_renames_touch(renames, rec);
    }
    if (!touched) return 0;
    crew_lock(scan->streams.crew);
    scan->touched[span->input] = true;
    crew_unlock(scan->streams.crew);
    return 0;
}

int scan_inputs_ids(const struct input_streams_settings *streams, bool *touched)
{
    struct scan scan = {*streams, .touched = touched};
    scan.streams.keeps_ids = true;
    scan.streams.make = look_at_ids;
    return scan_all(&scan);
}
