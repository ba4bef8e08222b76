/*
 * pipeline.h -- runs one sort: all threads are here.
 *
 *     input -> reader -> batch -> [inflate -> index -> sort]                          load phase
 *                          `-> [merge batches -> blocks -> compress] -> run store
 *     run store -> dispatcher -> [open blocks] -> [merge segment -> deflate] -> writer  merge phase
 *
 * What stands in brackets are jobs in one pool of worker threads, which htslib shares. Besides the
 * workers there are, while loading, the reader (the calling thread), the spiller and, once there
 * are runs, a thread that ends them; while merging, the dispatcher (the calling thread), a feeder
 * for each database, and the writer; a thread that waits for signals; and RocksDB's for compaction.
 */
#ifndef ROCKSORT_PIPELINE_H
#define ROCKSORT_PIPELINE_H

#include "bam_sort_key.h"
#include "codec_choice.h"
#include "run_store.h"
#include "temp_codec.h"

#include <htslib/hts.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_settings {
    const char *const *inputs;  /* "-": standard input */
    size_t n_inputs;
    htsFormat input_format;     /* only its options are looked at */
    const char *output;         /* NULL: standard output */
    const char *index_path;     /* of the index to be written, or NULL */
    bool durable;               /* regular files are on the disk when the sort ends (fsync) */
    bool sum_only;              /* count and checksum the records of the input, write nothing */
    const char *const *temp_prefixes;   /* of each -T; one that is NULL without -T */
    size_t n_temp_prefixes;
    htsFormat output_format;
    int level;                  /* -1: default */
    struct sort_rules rules;    /* without template_ends and minhash.index: sort_run makes them */
    const char *minhash_fasta;  /* -I, or NULL */
    int minhash_window;         /* -w */
    bool codec_auto;            /* else: */
    enum temp_codec codec;
    unsigned n_threads;
    size_t memory_bytes;        /* the whole budget */
    uint64_t test_batch_bytes;  /* for tests: such small batches, each of them a run; or 0 */
    enum compaction_mode compaction;
    uint64_t input_bytes;       /* -s: estimated uncompressed size; 0: unknown */
    bool keep_store;
    bool add_pg;
    const char *command_line;   /* for @PG CL */
};

struct sort_report {
    uint64_t n_records;
    uint64_t raw_bytes;         /* uncompressed BAM records */
    uint64_t checksum;          /* sum over the records of their XXH3-64 (content_sum.h) */
    uint64_t output_bytes;
    struct run_store_stats store;       /* {0} if all fitted into memory */
    unsigned runs_of_codec[TEMP_CODEC_COUNT];
    enum codec_reason codec_reason;     /* of the last run's codec */
    unsigned n_batches_kept;    /* batches merged from memory */
    double load_seconds, merge_seconds;
    double reader_wait_seconds; /* the reader waited for memory: whoever feeds it stalled */
    char **store_paths;         /* NULL-terminated: where the store is kept, or NULL; freed by
                                   sort_report_release */
};

/*
 * Sorts. Returns 0, or -1 after one message; then there is no output and no temporary data, except
 * that the output is there, complete, if only its index could not be written. If the
 * process gets SIGINT, SIGTERM or SIGHUP meanwhile it removes both and dies of the signal.
 */
int sort_run(const struct sort_settings *settings, struct sort_report *report);

void sort_report_release(struct sort_report *report);

#endif
