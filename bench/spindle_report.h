/*
 * spindle_report.h -- the counters of each program, as JSON.
 *
 * Counting is divided into periods: a reset ends one and begins the next, whose label the user
 * gives. Calls: report_init; report_next at each reset; report_json at any time; report_release.
 * Only one thread at a time may call them. Errors: -1 or NULL if memory is short.
 */
#ifndef SPINDLE_REPORT_H
#define SPINDLE_REPORT_H

#include "spindle_model.h"

#define LABEL_BYTES 64

struct period {
    char label[LABEL_BYTES];
    double begin_unix, end_unix; /* seconds */
    double cpu_begin, cpu_end;   /* of this process */
    struct counters counters;
};

struct report {
    const struct device *device;
    struct model *model;
    uint64_t write_buffer_bytes;
    struct period current;
    struct period *past;
    size_t n_past;
};

void report_init(struct report *report, const char *label);
void report_release(struct report *report);

/* Ends the current period and begins one with a label. */
int report_next(struct report *report, const char *label);

/* The caller frees the text. */
char *report_json(struct report *report);

#endif
