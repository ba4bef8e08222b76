/*
 * sort_report.h -- what a sort did, by phase and over time. The stages fill the report; this
 * file and cli/sort_stats.h print it.
 *
 * Order of calls: the stages fill it; print; release. After a failure it holds what was done
 * until then. The owner of the report releases it; one thread at a time.
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
    SORT_PHASE_MARK,            /* which records are duplicates; takes no time without --markdup */
    SORT_PHASE_MERGE,           /* runs and sort buffers to output */
    SORT_PHASE_CLOSE,           /* end of the output, index, removal of temporary data */
    SORT_N_PHASES
};

/* "load", "settle", "mark", "merge", "close". */
const char *sort_phase_name(enum sort_phase phase);

/* ---- samples ---- */

/* A plot of a sort of half a minute has a hundred points; taking a sample takes 50 us. */
#define SAMPLE_SECONDS 0.25

enum { SAMPLE_MOST = 1024 };

struct sample {                 /* what was done until one moment */
    double seconds;             /* since the start */
    enum sort_phase phase;
    uint64_t records_in, raw_bytes_in;
    uint64_t raw_bytes_before;  /* of these, read by an earlier process */
    uint64_t file_bytes, file_bytes_read, file_bytes_before;   /* of the input files; 0: unknown */
    uint64_t records_out, raw_bytes_out, output_bytes;         /* written */
    uint64_t n_runs, spilled_bytes;     /* uncompressed */
    uint64_t resident_bytes;
    double cpu_seconds;
    uint64_t disk_read_bytes, disk_written_bytes;
};

/*
 * Samples at even distances, however long the sort takes: at first one each SAMPLE_SECONDS. When
 * there are SAMPLE_MOST, every second one is dropped and the interval doubles. So a long sort has
 * SAMPLE_MOST / 2 to SAMPLE_MOST samples.
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

/* What --markdup counted. The report owns it. */
struct duplicate_outcome {
    struct duplicate_counts *counts;    /* of each read group or library; [0]: of neither */
    size_t n_counts;
    bool by_read_group;
    struct read_groups *groups; /* NULL: all records are counted in one */
    uint64_t read_ends_bytes;   /* what was remembered of all records, to decide */
    uint64_t file_bytes;        /* how much of that, and of what was found, went to a file */
};

struct sort_report {
    time_t begun;
    uint64_t n_records;         /* read */
    uint64_t raw_bytes;         /* uncompressed size of the records read */
    uint64_t checksum;          /* sum of the XXH3-64 of each record (content_sum.h) */
    uint64_t input_bytes;       /* as they are stored, read so far; 0: unknown */
    size_t n_inputs_cut;        /* probably truncated: bam_reader_is_cut */
    uint64_t n_records_out;     /* merged */
    const char *output;         /* its name, borrowed; NULL: standard output */
    uint64_t output_bytes;
    const char *also;           /* the name of the second output, borrowed; NULL: there is none */
    uint64_t also_bytes;
    struct memory_budget budget; /* with the sort buffers that compactions took */
    struct run_store_stats store;       /* {0} if all fitted into memory */
    uint64_t spilled_bytes;     /* raw bytes of the runs */
    unsigned runs_of_codec[TEMP_CODEC_COUNT];
    enum codec_reason codec_reason;     /* of the last run's codec */
    unsigned n_buffers_kept;    /* sort buffers merged from memory */
    size_t n_inputs_merged, n_inputs_copied;    /* --merge: inputs that were merged with others, and
                                                   those whose blocks were copied */
    uint64_t copied_bytes;      /* of these blocks */
    struct process_usage phases[SORT_N_PHASES];
    double waits[SORT_N_WAITS]; /* seconds */
    struct sample_series series;        /* if the settings ask for it */
    bool verified;              /* with verify, where the result is 0: the records are in order */
    char order_words[96];       /* "sorted by coordinate": in this one */
    struct duplicate_outcome duplicates;        /* with --markdup */
    struct group_list *groups;  /* of the output, owned; NULL: it is not divided, or incomplete */
    char **kept_directories;    /* NULL-terminated: the checkpoint that -k keeps, or NULL */
};

/* Seconds from start to end. */
double sort_report_wall_seconds(const struct sort_report *report);

/* The number, checksum and size of the records, see doc/samtools-rocksort.1, CHECKSUM. */
void sort_report_print_checksum(const struct sort_report *report, FILE *to);

/* The closing line, and with `details` the lines after it, on standard error. */
void sort_report_print(const struct sort_report *report, bool details);

void sort_report_release(struct sort_report *report);

#endif
