/*
 * sort_options.h -- what the command line of `samtools rocksort` asked for.
 *
 * What is accepted is what samtools sort 1.24 accepts, in its meaning, and more; numbers are parsed
 * strictly. There are two dialects, which differ in the arguments that are no options. In
 * rocksort's own a second argument without -o is the output's prefix, as in the program of 2014; in
 * that of `samtools sort` it is an error.
 *
 * Order of calls: init; sort_options_parse; with --resume open that checkpoint and
 * sort_options_adopt it; use the settings; release. Ownership: the settings point into the options
 * and into argv, both of which must stay. Threads: one at a time.
 *
 * sort_options_parse.h    options one after the other, then what they mean together
 * sort_options_output.h   what is written: names and formats of output and index
 * sort_options_format.h   format options of htslib
 * sort_options_also.h     a second output
 * sort_options_resources.h   threads, memory, codec
 * sort_options_resume.h   options that go on with a checkpoint
 * sort_options_usage.h    the usage text
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_H

#include "command/machine_fit.h"
#include "pipeline/bam_sort.h"

#define DEFAULT_MEMORY "768M"           /* a thread, as samtools sort */

enum sort_dialect { DIALECT_ROCKSORT, DIALECT_SAMTOOLS_SORT };

struct sort_options {
    enum sort_dialect dialect;
    struct sort_settings settings;
    /* what is to be done */
    bool help;                          /* --help */
    bool help_all;                      /* --help=all */
    bool version;
    bool print_checksum;                /* --checksum */
    bool verify;                        /* --verify, of each input by itself */
    bool plan;                          /* --plan */
    bool quiet;
    const char *stats;                  /* --stats, or NULL */
    const char *counts[COUNT_N_KINDS];  /* --flagstat, --idxstats, --coverage, or NULL */
    bool nothing_given;                 /* no input: a user at a terminal wants help */
    const char *resume;                 /* --resume: the checkpoint to go on with */
    bool clean;                         /* --clean */
    const char *clean_place;            /* where to look for unused temporary data */
    bool yes;                           /* --yes: and remove them */
    struct machine_fit fit;             /* what auto chose; n_threads is 0 without auto */
    /* options that the settings are made of */
    bool order_given;                   /* an option that names an order */
    bool minimiser_given;               /* one that details the order of minimisers */
    bool lexical_names;                 /* -N */
    const char *tag;                    /* -t */
    bool threads_given;                 /* -@ */
    bool codec_given;                   /* --temp-codec */
    bool engine_given;                  /* --deflate */
    bool auto_threads, auto_memory;     /* -@ auto, --max-memory auto */
    bool thread_memory_given;           /* -m */
    uint64_t thread_memory_bytes;
    uint64_t total_memory_bytes;        /* 0: not given */
    const char *output;                 /* -o, or the second argument */
    bool whole_name;                    /* -f */
    const char *format_option;          /* -O */
    bool input_option_given;            /* --input-fmt-option */
    hts_opt *output_options;            /* --output-fmt-option, --reference */
    bool write_index;
    bool index_of_checkpoint;           /* only the sort that is resumed wanted an index */
    /* memory that the settings point to */
    char *output_name, *index_name;
    struct count_file count_files[COUNT_N_KINDS];
    const char **temp_prefixes;         /* of each -T */
    char **input_names;                 /* as the system knows them; ends with NULL */
    const char **resumed_inputs;
    /* for the checkpoint of this sort */
    char *format_text;                  /* -O */
    char *split_text;                   /* the BED file of --split-by */
    char **output_texts;                /* --output-fmt-option and --reference */
    size_t n_output_texts;
};

void sort_options_init(struct sort_options *options, enum sort_dialect dialect);
void sort_options_release(struct sort_options *options);

#endif
