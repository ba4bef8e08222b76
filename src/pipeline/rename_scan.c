/* rename_scan.c -- see rename_scan.h. */
#include "pipeline/rename_scan.h"

#include "bam/bam_check.h"

struct scan {
    const struct input_streams_settings *streams;
    bool *touched;              /* under the lock */
};

static int look(void *arg, struct worker *worker, struct stretch *stretch, const char *input)
{
    struct scan *scan = arg;
    const struct input_records *records = &stretch->records;
    const struct id_renames *renames = bam_inputs_renames(scan->streams->inputs, records->run);
    struct record_problem problem = {.record = records->first_record, .is_damaged = true};
    bool touched = false;
    (void)worker;
    for (const uint8_t *rec = records->from; rec < records->to; rec += bam_record_bytes(rec)) {
        problem.text = bam_record_check(rec, scan->streams->n_refs);
        if (problem.text) {
            record_problem_print(&problem, input);
            return -1;
        }
        problem.record++;
        touched = touched || id_renames_touch(renames, rec);
    }
    if (!touched) return 0;
    crew_lock(scan->streams->crew);
    scan->touched[records->run] = true;
    crew_unlock(scan->streams->crew);
    return 0;
}

int rename_scan(const struct input_streams_settings *streams, bool *touched)
{
    struct scan scan = {streams, touched};
    struct input_streams_settings settings = *streams;
    settings.keeps_ids = true;
    settings.make = look;
    settings.arg = &scan;
    struct input_streams *all = input_streams_start(&settings);
    struct stretch *none;
    if (!all) return -1;
    for (size_t i = 0; i < settings.n_inputs && !crew_failed(settings.crew); i++)
        if (input_streams_next(all, i, &none) < 0) crew_fail(settings.crew);
    input_streams_stop(all);
    int r = crew_finish_jobs(settings.crew);
    input_streams_destroy(all);
    return r;
}
