/*
 * sort_report.h -- what a sort did: counted by the pipeline, printed here and in sort_stats.h.
 *
 * Order of calls: the pipeline fills it; print; release. After a failure it holds what was done
 * until then.
 */
#ifndef ROCKSORT_PIPELINE_SORT_REPORT_H
#define ROCKSORT_PIPELINE_SORT_REPORT_H

#include "machine/process_usage.h"
#include "pipeline/crew.h"
#include "pipeline/mem_budget.h"
#include "pipeline/sample_series.h"
#include "pipeline/sort_phase.h"
#include "store/codec_choice.h"
#include "store/run_store.h"
#include "store/temp_codec.h"

#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct sort_report {
    time_t begun;
    uint64_t n_records;         /* read */
    uint64_t raw_bytes;         /* ... uncompressed BAM records */
    uint64_t checksum;          /* ... sum over the records of their XXH3-64 (content_sum.h) */
    uint64_t input_bytes;       /* as they are stored, read so far; 0: unknown */
    uint64_t n_records_out;     /* merged */
    uint64_t output_bytes;
    struct mem_budget budget;   /* before compaction took some of it */
    struct run_store_stats store;       /* {0} if all fitted into memory */
    uint64_t spilled_bytes;     /* raw bytes of the runs */
    unsigned runs_of_codec[TEMP_CODEC_COUNT];
    enum codec_reason codec_reason;     /* of the last run's codec */
    unsigned n_batches_kept;    /* batches merged from memory */
    struct process_usage phases[SORT_N_PHASES];
    double waits[SORT_N_WAITS]; /* seconds */
    struct sample_series series;        /* if the settings ask for it */
    bool verified;              /* with verify, where the result is 0: the records are in order */
    char order_words[96];       /* "sorted by coordinate": in this one */
    char **store_paths;         /* NULL-terminated: where the store is kept, or NULL */
};

/* Seconds from the beginning to the end. */
double sort_report_wall_seconds(const struct sort_report *report);

/* The number, checksum and size of the records, see doc/samtools-rocksort.1, CHECKSUM. */
void sort_report_print_checksum(const struct sort_report *report, FILE *to);

/* The closing line, and with `details` the lines after it, on standard error. */
void sort_report_print(const struct sort_report *report, bool details);

void sort_report_release(struct sort_report *report);

#endif
