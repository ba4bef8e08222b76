/*
 * checkpoint_file.h -- formats and parses the checkpoint file, STORE, in a temporary directory: all
 * that another process needs, besides the runs, to finish the sort.
 *
 * The file begins with "rocksort-store 8", the version of this format, and a newline. Then come
 * texts that end with NUL, each a keyword and a value, in the order of walk_file. A value that may
 * be missing is empty or has = before it. The last line is "end 0123456789abcdef", the XXH3-64 of
 * everything before it.
 *
 * Ownership: a parsed checkpoint_file owns its memory (checkpoint_file_release). One that is made
 * to be formatted borrows all that it points to. Threads: any; pure.
 */
#ifndef ROCKSORT_RESUME_CHECKPOINT_FILE_H
#define ROCKSORT_RESUME_CHECKPOINT_FILE_H

#include "bam/content_sum.h"
#include "counts/count_kinds.h"

#include <htslib/kstring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKPOINT_VERSION = 8,
    CHECKPOINT_MOST_DIRECTORIES = 64,
};

enum {                          /* files whose paths can be changed when a sort is resumed */
    CHECKPOINT_OUTPUT,          /* -o */
    CHECKPOINT_ALSO,            /* --also */
    CHECKPOINT_COUNTS,          /* one for each kind of count_kinds.h */
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

struct checkpoint_output {      /* files of the output */
    const char *path;           /* absolute; NULL: standard output */
    const char *index;          /* absolute, or NULL */
    const char *also;           /* --also, absolute; or NULL */
    const char *counts[COUNT_N_KINDS];  /* FILE or PREFIX, absolute; NULL: none, or not a regular
                                           file */
    const char *count_options[COUNT_N_KINDS];   /* count_request.words; NULL as above */
    const char *statistics, *metrics;   /* the same, for -f and --metrics of --markdup */
    /* temporary files the process was writing, or NULL */
    const char *temporaries[CHECKPOINT_N_TEMPORARIES];
    size_t n_count_temporaries; /* of reports that are streamed */
    const char **count_temporaries;
};

struct checkpoint_file {
    enum checkpoint_state state;
    unsigned directory;
    size_t n_directories;
    const char **directories;
    unsigned n_lanes;
    size_t n_options;
    const char **options;       /* words such as -n or --markdup=-r */
    struct checkpoint_input fasta;      /* the file of -I; without it the path is "" */
    bool can_read_again;        /* inputs are seekable to any record */
    size_t n_inputs;
    struct checkpoint_input *inputs;
    struct checkpoint_output output;
    uint64_t n_runs;            /* totals; 0 while loading */
    struct content_sum sum;
    const char *header;         /* text that ends with NUL */
    char *memory;               /* buffer that a parsed checkpoint_file points into */
};

/* Appends the checkpoint file as text. */
void checkpoint_file_format(const struct checkpoint_file *file, kstring_t *text);

/* Parses and validates the text. Returns 0, or -1 with *problem, a text that follows the
   directory's name in a message. */
int checkpoint_file_parse(const char *text, size_t n_bytes, struct checkpoint_file *file,
                          const char **problem);

/* Temporary files of outputs and reports: how many names there are, and name i, which may be
   NULL. */
static inline size_t checkpoint_n_temporaries(const struct checkpoint_output *output)
{
    return CHECKPOINT_N_TEMPORARIES + output->n_count_temporaries;
}

const char *checkpoint_temporary(const struct checkpoint_output *output, size_t i);

void checkpoint_file_release(struct checkpoint_file *file);

#endif
