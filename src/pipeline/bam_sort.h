/*
 * bam_sort.h -- runs one sort. Only this room starts threads.
 *
 *     input -> reader -> batch -> [inflate -> index -> sort]                          load phase
 *                          `-> [merge batches -> blocks -> compress] -> run store
 *     run store -> dispatcher -> [open blocks] -> [merge segment -> deflate] -> writer  merge phase
 *
 * Steps in brackets are jobs of the crew's worker threads, which htslib shares (crew.h). Besides
 * the workers there are
 *   - while loading, the reader, which is the calling thread (load.h), the spiller (spill.h) and,
 *     once there are runs, the ender of runs (run_ender.h);
 *   - while merging, the dispatcher, which is the calling thread, the writer (merge.h) and a feeder
 *     for each database (feed.h);
 *   - a thread that waits for signals (signals.h), one that shows progress, if that is wanted
 *     (progress.h), one that syncs (durable.h), and RocksDB's for compaction.
 */
#ifndef ROCKSORT_PIPELINE_BAM_SORT_H
#define ROCKSORT_PIPELINE_BAM_SORT_H

#include "bam_sort_key.h"
#include "pipeline/sort_report.h"
#include "store/checkpoint.h"
#include "store/codec_choice.h"
#include "store/run_store.h"
#include "store/temp_codec.h"

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
    bool verify;                /* and check that they are in order; with sum_only, one input */
    bool verify_claim;          /* check the order that the header claims, not that of the rules */
    const char *const *temp_prefixes;   /* of each -T; one NULL without -T */
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
    bool no_resume;             /* the temporary data need not outlive the process */
    unsigned durable_after_seconds;     /* skip fsync until the sort is this old */
    const struct checkpoint *resumed;   /* goes on with this one, or NULL: it has the inputs, the
                                           order and the header */
    bool partial;               /* writes what is there, whether or not it is all of the input */
    struct checkpoint_output asked_output;      /* the output as the options have it */
    bool add_pg;
    const char *command_line;   /* for @PG CL */
    bool progress;              /* where no terminal shows it, a line every progress_seconds */
    double progress_seconds;
    bool sample;                /* the report gets a series of samples */
};

/*
 * Sorts. Returns 0, or -1 after one message. After a failure there is no output; if only its index
 * could not be written, the output is there and complete. Temporary data are removed, unless they
 * are a checkpoint with which the sort can be finished: a note says how. With verify it returns 0
 * and prints one message if records are not in order.
 *
 * If the process gets SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGUSR1 or SIGUSR2 meanwhile, it
 * cleans up in the same way and dies of the signal. After SIGINT and SIGQUIT a checkpoint stays
 * only with keep_store, or if it was there before.
 */
int sort_run(const struct sort_settings *settings, struct sort_report *report);

#endif
