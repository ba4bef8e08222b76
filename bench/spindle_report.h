/*
 * spindle_report.h -- the counters of each program, as JSON.
 *
 * A log has one record for each reset, labelled by the user, and the current one. Calls:
 * report_init; report_next at each reset; report_json at any time; report_release. One thread at a
 * time. Errors: -1 or NULL if memory is short.
 */
#ifndef SPINDLE_REPORT_H
#define SPINDLE_REPORT_H

#include "spindle_model.h"

#define LABEL_BYTES 64

struct record {
    char label[LABEL_BYTES];
    double begin_unix, end_unix; /* seconds */
    double cpu_begin, cpu_end;   /* of this process */
    struct counters counters;
};

struct report {
    const struct device *device;
    struct model *model;
    uint64_t write_buffer_bytes;
    struct record current;
    struct record *past;
    size_t n_past;
};

void report_init(struct report *report, const char *label);
void report_release(struct report *report);

/* Ends the current record and begins one with a label. */
int report_next(struct report *report, const char *label);

/* To be freed by the caller. */
char *report_json(struct report *report);

#endif
