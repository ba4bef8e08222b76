/*
 * sort_report.h -- the report of a sort: counts, times of phases, samples over time. The stages
 * fill it; this file and cli/sort_report_json.c print it.
 *
 * After a failure it covers the time until then. The owner releases it. Threads: one at a time.
 */
#ifndef ROCKSORT_SORT_SORT_REPORT_H
#define ROCKSORT_SORT_SORT_REPORT_H

#include "markdup/markdup_stats.h"
#include "os/memory.h"
#include "os/thread_pool.h"
#include "spill/memory_budget.h"
#include "spill/run_store.h"
#include "spill/store_layout.h"
#include "spill/temp_codec.h"
#include "split/group_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ---- phases ---- */

enum sort_phase {
    SORT_PHASE_LOAD,            /* input to sorted sort buffers and runs */
    SORT_PHASE_SETTLE,          /* the last runs, and compactions that must end before the merge */
    SORT_PHASE_MARK,            /* resolve duplicates; no time without --markdup */
    SORT_PHASE_MERGE,           /* runs and sort buffers to output */
    SORT_PHASE_CLOSE,           /* end of the output, index, removal of temporary data */
    SORT_N_PHASES
};

/* "load", "settle", "mark", "merge", "close". */
const char *sort_phase_name(enum sort_phase phase);

/* ---- samples ---- */

/* A sort of half a minute gets a hundred points; a sample takes 50 us. */
#define SAMPLE_SECONDS 0.25

enum { SAMPLE_MOST = 1024 };

struct sample {                 /* totals until one moment */
    double seconds;             /* since the start */
    enum sort_phase phase;
    uint64_t records_in, raw_bytes_in;
    uint64_t raw_bytes_before;  /* of raw_bytes_in, read by an earlier process */
    uint64_t file_bytes, file_bytes_read, file_bytes_before;   /* of the input files; 0: unknown */
    uint64_t records_out, raw_bytes_out, output_bytes;         /* written */
    uint64_t n_runs, spilled_bytes;     /* uncompressed */
    uint64_t resident_bytes;
    double cpu_seconds;
    uint64_t disk_read_bytes, disk_written_bytes;
};

/*
 * Samples at even intervals, first of SAMPLE_SECONDS. When there are SAMPLE_MOST, every second one
 * is dropped and the interval doubles. So a long sort has SAMPLE_MOST / 2 to SAMPLE_MOST samples.
 *
 * Order of calls: start, or {0} for a series that takes no samples; add when one is due, and once
 * more at the end; release.
 */
struct sample_series {
    struct sample *samples;     /* NULL: takes no samples */
    size_t n;
    double interval_seconds;
};

void sample_series_start(struct sample_series *series);

/* When the next sample is due, in seconds since the start. */
double sample_series_due(const struct sample_series *series);

/* Adds a sample; its time is not before that of the last one. */
void sample_series_add(struct sample_series *series, const struct sample *sample);

void sample_series_release(struct sample_series *series);

/* ---- the report ---- */

/* The counts of --markdup, owned by the report. */
struct duplicate_outcome {
    struct duplicate_counts *counts;    /* of each read group or library; [0]: of records without
                                           one */
    size_t n_counts;
    bool by_read_group;
    struct read_groups *groups; /* NULL: all records are counted in one */
    uint64_t read_ends_bytes;   /* size of the read ends */
    uint64_t file_bytes;        /* bytes of read ends and results written to temporary files */
};

struct sort_report {
    time_t begun;
    uint64_t n_records;         /* read */
    uint64_t raw_bytes;         /* uncompressed size of the records read */
    uint64_t checksum;          /* sum of the XXH3-64 of each record (content_sum.h) */
    uint64_t input_bytes;       /* stored size read so far; 0: unknown */
    size_t n_inputs_cut;        /* probably truncated: bam_reader.is_cut */
    uint64_t n_records_out;     /* merged */
    const char *output;         /* its name, borrowed; NULL: standard output */
    uint64_t output_bytes;
    const char *also;           /* the name of the second output, borrowed; NULL: there is none */
    uint64_t also_bytes;
    struct memory_budget budget; /* with the sort buffers that compactions took */
    struct run_store_stats store;       /* {0} if all records fit in memory */
    uint64_t spilled_bytes;     /* raw bytes of the runs */
    unsigned runs_of_codec[TEMP_CODEC_COUNT];
    enum codec_reason codec_reason;     /* of the last run's codec */
    unsigned n_buffers_kept;    /* sort buffers merged from memory */
    size_t n_inputs_merged, n_inputs_copied;    /* --merge: inputs merged with others, and inputs
                                                   whose blocks were copied */
    uint64_t copied_bytes;      /* of these blocks */
    struct process_usage phases[SORT_N_PHASES];
    double waits[SORT_N_WAITS]; /* seconds */
    struct sample_series series;        /* if settings.sample is set */
    bool verified;              /* with verify, if the result is 0: the records are in order */
    char order_words[96];       /* the order found: "sorted by coordinate" */
    struct duplicate_outcome duplicates;        /* with --markdup */
    struct group_list *groups;  /* owned; NULL: no groups, or the output is incomplete */
    char **kept_directories;    /* the checkpoint that -k keeps, NULL-terminated; or NULL */
};

/* Prints number, checksum and size of the records (doc/samtools-rocksort.1, CHECKSUM). */
void sort_report_print_checksum(const struct sort_report *report, FILE *to);

/* Prints the closing line, and with `details` more lines, on standard error. */
void sort_report_print(const struct sort_report *report, bool details);

void sort_report_release(struct sort_report *report);

#endif
