/*
 * plan_sample.h -- measures the beginning of an input: how well it is compressed, how much memory
 * its records take, and how long each step of a sort takes on one core.
 *
 * Some megabytes are read, indexed and sorted in memory, compressed as temporary data and deflated
 * as output. This takes about a second, and up to 64 MiB of memory. Nothing is written; no thread
 * is started. Errors: -1 after a message.
 */
#ifndef ROCKSORT_COMMAND_PLAN_SAMPLE_H
#define ROCKSORT_COMMAND_PLAN_SAMPLE_H

#include "pipeline/record_sample.h"
#include "pipeline/sort_settings.h"

struct plan_sample_settings {
    const struct sort_settings *sort;
    const char *path;
    struct record_sample_settings measure;
};

struct plan_sample {
    const char *format;         /* "BAM", "SAM", ...; a static string */
    uint64_t n_records, raw_bytes;      /* of the sample; 0: nothing was read, all below is 0 */
    uint64_t file_bytes;        /* of the file that were read for the sample; 0: unknown */
    bool whole;                 /* the sample is the whole input */
    bool ends_in_template;      /* with fixmate: it ends before a template of more than 8 MiB */
    uint64_t template_bytes;    /* of that, about, which were read for the sample, too */
    struct record_traits traits;
};

int plan_sample_take(const struct plan_sample_settings *settings, struct plan_sample *sample);

#endif
