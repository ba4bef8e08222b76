/*
 * sort_options.h -- parses the command line of `samtools rocksort` into sort_settings.
 *
 * Accepts all options of samtools sort 1.24, with the same meaning, and more; parses numbers
 * strictly. There are two dialects. In rocksort's own, a second argument without -o is the output
 * prefix, as in the program of 2014; in that of `samtools sort` it is an error.
 *
 * Order of calls: init; sort_options_parse; with --resume open that checkpoint and
 * sort_options_adopt it; use the settings; release. Ownership: the settings point into the options
 * and argv, which must outlive them. Threads: one at a time. Errors: -1 after a message.
 */
#ifndef ROCKSORT_CLI_SORT_OPTIONS_H
#define ROCKSORT_CLI_SORT_OPTIONS_H

#include "cli/machine_fit.h"
#include "util/option_table.h"
#include "output/count_files.h"
#include "sort/bam_sort.h"

#include <stdio.h>

#define DEFAULT_MEMORY "768M"           /* per thread, as in samtools sort */

enum sort_dialect { DIALECT_ROCKSORT, DIALECT_SAMTOOLS_SORT };

struct sort_options {
    enum sort_dialect dialect;
    struct sort_settings settings;
    /* what to do */
    bool help;                          /* --help */
    bool help_all;                      /* --help=all */
    bool version;
    bool print_checksum;                /* --checksum */
    bool verify;                        /* --verify, each input by itself */
    bool plan;                          /* --plan */
    bool quiet;
    int verbosity;
    const char *report;                 /* --report, or NULL */
    const char *qc;                     /* --qc, or NULL */
    const char *counts[COUNT_N_KINDS];  /* argument of each kind's option, or NULL */
    bool nothing_given;                 /* no input at a terminal: print help */
    const char *resume;                 /* --resume: the checkpoint */
    bool clean;                         /* --clean */
    const char *clean_place;            /* with --clean: where to look */
    bool yes;                           /* --yes: with --clean, remove */
    struct machine_fit fit;             /* chosen by auto; n_threads is 0 without auto */
    /* the command line */
    int argc;
    char **argv;
    struct option_list kept;            /* options that a checkpoint keeps */
    size_t n_adopted;                   /* how many, at the start, are from the checkpoint */
    bool is_adopting;                   /* those of the checkpoint are being parsed */
    /* options from which the settings are made */
    bool order_given;                   /* an option that chooses the order */
    bool lexical_names;                 /* -N */
    const char *tag;                    /* -t */
    bool engine_given;                  /* --deflate */
    bool auto_threads, auto_memory;     /* -@ auto, --max-memory auto */
    bool thread_memory_given;           /* -m */
    uint64_t thread_memory_bytes;
    uint64_t total_memory_bytes;        /* 0: not given */
    const char *output;                 /* -o, or the second argument */
    bool whole_name;                    /* -f */
    const char *format_option;          /* -O */
    hts_opt *output_options;            /* --output-fmt-option, --reference */
    bool write_index;
    bool index_of_checkpoint;           /* write_index is from the checkpoint */
    /* memory that the settings point to */
    char *output_name, *index_name;
    struct count_report reports[COUNT_N_KINDS];
    char *adopted_counts[COUNT_N_KINDS];        /* arguments from the checkpoint */
    char *qc_counts[COUNT_N_KINDS];     /* arguments that --qc stands for */
    char *qc_metrics;                   /* the file of --markdup that it stands for */
    const char **count_temporaries;
    const char **temp_prefixes;         /* of each -T */
    char **input_names;                 /* paths, NULL-terminated */
    const char **resumed_inputs;
    char **output_texts;                /* --output-fmt-option and --reference */
    size_t n_output_texts;
};

void sort_options_init(struct sort_options *options, enum sort_dialect dialect);
void sort_options_release(struct sort_options *options);

/* Parses all options and arguments. The settings are incomplete with --help, --version and --clean,
   and with --resume until sort_options_adopt. */
int sort_options_parse(struct sort_options *options, int argc, char **argv);

/* Prints the common options, in at most 48 lines; with help_all, every option. */
void sort_options_print_usage(const struct sort_options *options, FILE *to);

/* Adds the options that --qc stands for, except those that were given. MultiQC takes the names of
   their files for the same sample. */
void sort_options_expand_qc(struct sort_options *options);

/* True if a report about the output is wanted. */
bool sort_options_ask_for_counts(const struct sort_options *options);

/* Call this before a sort. Refuses to write BAM, CRAM or compressed SAM to a terminal. */
int sort_options_check_terminal(const struct sort_options *options);

/* ---- resuming ---- */

/* Takes options that were not given from a checkpoint, and refuses options that contradict it. The
   checkpoint must outlive the options. */
int sort_options_adopt(struct sort_options *options, const struct checkpoint *checkpoint);

/* After adopt: true if the options ask for other output files than the checkpoint, or for the same
   files in another form. */
bool sort_options_ask_for_more(const struct sort_options *options,
                               const struct checkpoint *checkpoint);

/* ---- between the files of this module ---- */

/* Parse an option of the table; `options` is a struct sort_options. */
int sort_options_take_engine(void *options, const char *name);
int sort_options_take_input_option(void *options, const char *text);
int sort_options_take_output_option(void *options, const char *text);
int sort_options_take_reference(void *options, const char *fasta);

/* Return an argument with absolute paths (option_table.h): --reference and -I; options of htslib,
   such as -O; --split-by. */
char *sort_options_whole_formats(const char *options);
char *sort_options_whole_split(const char *how);

/* Parses the options that a checkpoint has kept, then again those of the command line, and makes
   the order and the changes to records from all. The options are new (init). */
int sort_options_parse_again(struct sort_options *options, const struct checkpoint_file *file);

/* Parses `text`, such as "-r -z off", and sets the rules except for the references. Returns 0, or
   -1 after a message. */
int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules);

/*
 * Parses `text`, such as "-S -d 2500 -f stats.txt", and sets the rules except for the read groups.
 * Returns 0, or -1 after a message. sort_options_release_markdup frees the rules' memory, also
 * after a failure.
 */
int sort_options_parse_markdup(const char *text, struct markdup_rules *rules);

/* Accepts {0}. */
void sort_options_release_markdup(struct markdup_rules *rules);

/* Refuses options that cannot be used together. n_args: number of arguments that are not
   options. */
int sort_options_check_modes(const struct sort_options *options, int n_args);

/* Parses --split-by. By tag, changes the order: by tag, then by the requested order within a
   group. */
int sort_options_choose_split(struct sort_options *options);

/* When the inputs are known: sets threads and memory from the options or from the machine (auto),
   and warns if the machine has less memory. */
int sort_options_finish_resources(struct sort_options *options);

/* Chooses output, format, level and index from the options. */
int sort_options_choose_output(struct sort_options *options);

#endif
