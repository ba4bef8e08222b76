/*
 * checkpoint_file.h -- formats and parses the checkpoint file, STORE, in a temporary directory: all
 * that another process needs, besides the runs, to finish the sort.
 *
 * The file is text. Each line is a keyword and its values, in the order of walk_file:
 *
 *     rocksort-store 7                   the version of this format
 *     ...
 *     directory 0 2                      number of this directory, number of directories
 *     path /tmp/rocksort.77.aBcDeF       of each directory
 *     codec =lz4                         a text that may be missing: none, or = and the text
 *     inputs 1 again                     how many; again: reading can start at any record
 *     input 651000000 1700000000000000000 /data/in.bam      bytes, time of change in ns, path
 *     ...
 *     header 1234                        bytes of the header's text, which follows, and a newline
 *     end 0123456789abcdef               XXH3-64 of everything before this line
 *
 * In a text, control characters and % are written as %XX.
 *
 * Ownership: a parsed checkpoint_file owns its memory (checkpoint_file_release). One that is made
 * to be formatted borrows all that it points to. Threads: any; pure.
 */
#ifndef ROCKSORT_RESUME_CHECKPOINT_FILE_H
#define ROCKSORT_RESUME_CHECKPOINT_FILE_H

#include "bam/bgzf_engine.h"
#include "bam/content_sum.h"
#include "bam_sort_key.h"
#include "spill/temp_codec.h"
#include "stats/count_kinds.h"

#include <htslib/kstring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKPOINT_VERSION = 7,
    CHECKPOINT_MOST_DIRECTORIES = 64,
};

enum {                          /* files whose paths can be changed when a sort is resumed */
    CHECKPOINT_OUTPUT,          /* -o */
    CHECKPOINT_ALSO,            /* --also */
    CHECKPOINT_COUNTS,          /* one for each enum count_kind */
    CHECKPOINT_N_FILES = CHECKPOINT_COUNTS + COUNT_N_KINDS,
};

enum {
    CHECKPOINT_OF_OUTPUT,       /* with --split-by the directory of the groups */
    CHECKPOINT_OF_INDEX,
    CHECKPOINT_OF_ALSO,
    CHECKPOINT_N_TEMPORARIES,
};

enum checkpoint_state {
    CHECKPOINT_LOADING,         /* records that are not in durable runs are read again */
    CHECKPOINT_LOADED,          /* the runs hold all records */
    CHECKPOINT_PARTIAL,         /* the runs hold all records before the input was cut off */
};

struct checkpoint_input {
    const char *path;           /* absolute; "-": standard input */
    uint64_t n_bytes;
    int64_t mtime_ns;
};

struct checkpoint_resources {   /* from the options, or chosen by auto */
    unsigned n_threads;
    uint64_t thread_bytes;      /* memory of each thread */
    uint64_t total_bytes;       /* memory of all threads, instead of thread_bytes; 0: not given */
    bool codec_auto;            /* the sort chooses the codec; else: */
    enum temp_codec codec;
};

struct checkpoint_output {      /* from the options */
    const char *path;           /* absolute; NULL: standard output */
    const char *format;         /* -O, or NULL */
    int level;                  /* -l, or -1 */
    enum bgzf_engine engine;    /* --deflate */
    bool write_index;
    bool durable;               /* --fsync */
    const char *columns;        /* --columns, or NULL */
    const char *split_by;       /* --split-by, a BED file with its absolute name; or NULL */
    const char *also;           /* --also, absolute; or NULL */
    const char *counts[COUNT_N_KINDS];  /* absolute; NULL: none, or not a regular file */
    const char *statistics, *metrics;   /* the same, for -f and --metrics of --markdup */
    size_t n_options;           /* --output-fmt-option and --reference */
    const char **options;
    /* temporary files the process was writing, or NULL */
    const char *temporaries[CHECKPOINT_N_TEMPORARIES];
};

struct checkpoint_file {
    const char *program;        /* its version */
    enum checkpoint_state state;
    unsigned directory;
    size_t n_directories;
    const char **directories;
    unsigned n_lanes;
    struct checkpoint_resources resources;
    struct sort_rules rules;    /* from the options */
    struct checkpoint_input fasta;      /* -I; without it the path is NULL */
    int minhash_window;
    const char *fixmate;        /* --fixmate, or NULL */
    const char *markdup;        /* --markdup, or NULL; only in the order by coordinate */
    bool can_read_again;        /* inputs are seekable to any record */
    size_t n_inputs;
    struct checkpoint_input *inputs;
    struct checkpoint_output output;
    uint64_t n_runs;            /* totals; 0 while loading */
    struct content_sum sum;
    const char *header;         /* text that ends with NUL */
    size_t header_bytes;
    char *memory;               /* buffer that a parsed checkpoint_file points into */
};

/* Appends the checkpoint file as text. */
void checkpoint_file_format(const struct checkpoint_file *file, kstring_t *text);

/* Parses and validates the text. Returns 0, or -1 with *problem, a text that follows the
   directory's name in a message. */
int checkpoint_file_parse(const char *text, size_t n_bytes, struct checkpoint_file *file,
                          const char **problem);

void checkpoint_file_release(struct checkpoint_file *file);

#endif
