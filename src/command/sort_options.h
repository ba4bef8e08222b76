/*
 * sort_options.h -- the command line of `samtools rocksort`: options, positional arguments, usage.
 *
 * What is accepted is what samtools sort 1.24 accepts, in its meaning, and more; numbers are parsed
 * strictly. Two dialects differ in the positional arguments alone: rocksort's own, in which a
 * second argument without -o is the output prefix, as in the program of 2014, and that of
 * `samtools sort`, in which it is an error.
 *
 * Order of calls: init, parse; with --resume open that store and adopt it; use the settings,
 * release. The settings point into the options and into argv, both of which must stay.
 */
#ifndef ROCKSORT_COMMAND_SORT_OPTIONS_H
#define ROCKSORT_COMMAND_SORT_OPTIONS_H

#include "command/machine_fit.h"
#include "pipeline/bam_sort.h"

#include <stdio.h>

enum sort_dialect { DIALECT_ROCKSORT, DIALECT_SAMTOOLS_SORT };

struct sort_options {
    enum sort_dialect dialect;
    struct sort_settings settings;
    bool help, version;
    bool print_checksum;                /* --checksum */
    bool verify;                        /* --verify, of each input by itself */
    bool plan;                          /* --plan */
    bool quiet;
    const char *stats;                  /* --stats, or NULL */
    bool nothing_given;                 /* no input: whoever is at a terminal wants help */
    const char *resume;                 /* --resume: the store to go on with */
    const char *clean;                  /* --clean: where to look for stores that nobody uses */
    bool yes;                           /* --yes: and remove them */
    /* while parsing, and memory behind the settings */
    bool order_given, minimiser_given;  /* an option that names an order; that details one */
    bool auto_threads, auto_memory;     /* -@ auto, --max-memory auto */
    bool thread_memory_given;           /* -m */
    uint64_t thread_memory_bytes;
    uint64_t total_memory_bytes;        /* 0: not given */
    const char *format_option;
    const char *output;                 /* -o, or the second argument */
    bool whole_name;                    /* -f */
    bool lexical_names;                 /* -N */
    const char *tag;                    /* -t */
    bool input_option_given;            /* --input-fmt-option */
    bool write_index;
    bool index_of_store;                /* nobody asked for one but the sort that is resumed */
    hts_opt *output_options;            /* --output-fmt-option, --reference */
    char *output_name, *index_name;
    char *format_text;                  /* -O, for the store */
    const char **temp_prefixes;         /* of each -T */
    char **output_texts;                /* --output-fmt-option and --reference, for the store */
    size_t n_output_texts;
    char **input_names;                 /* as the system knows them; ends with NULL */
    const char **resumed_inputs;
    struct machine_fit fit;             /* what auto chose; n_threads is 0 without it */
};

void sort_options_init(struct sort_options *options, enum sort_dialect dialect);

/* Returns 0, or -1 after a message, with the usage text where it helps. */
int sort_options_parse(struct sort_options *options, int argc, char **argv);

/* Takes from a store what was not given, and refuses what contradicts it. The store outlives the
   options. Returns 0, or -1 after a message. */
int sort_options_adopt(struct sort_options *options, const struct checkpoint *store);
void sort_options_release(struct sort_options *options);

void sort_options_print_usage(const struct sort_options *options, FILE *to);

#endif
