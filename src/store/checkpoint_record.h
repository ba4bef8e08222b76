/*
 * checkpoint_record.h -- what the file STORE in a temporary directory says of the sort whose runs lie
 * there: all that is needed to finish it in another process.
 *
 * The file is text, a keyword and its values in each line, always in the same order:
 *
 *     rocksort-store 1                   the version of this format
 *     program 0.1.0
 *     id 0f3a...                         random; the same in all directories of a sort
 *     state loading                      loaded: all records are in runs; partial: all that came
 *     directory 0 2                      the number of this directory, of how many
 *     path /tmp/rocksort.77.aBcDeF       of each directory
 *     lanes 1                            databases in each directory
 *     order coordinate, below, tag, minhash, fasta, seed
 *     inputs 1 again                     how many; again: they can be read from any record on
 *     input 651000000 1700000000000000000 /data/in.bam      bytes, time of change in ns, path
 *     output, output-format, output-level, output-index, output-options, output-option,
 *     temporary, index-temporary
 *     runs, records, bytes, sum          totals, once it is loaded
 *     references 0                       and a line for each that the header's text does not have
 *     header 1234                        bytes of the header's text, which follows, and a newline
 *     end 0123456789abcdef               XXH3-64 of everything before this line
 *
 * Texts have control characters and % as %XX. One that may be missing is "none" or has = in front.
 *
 * Ownership: a record that was parsed owns its memory (checkpoint_record_release); one that is made to
 * be formatted borrows all it points to. Pure; any thread.
 */
#ifndef ROCKSORT_STORE_CHECKPOINT_RECORD_H
#define ROCKSORT_STORE_CHECKPOINT_RECORD_H

#include "bam/content_sum.h"
#include "bam_sort_key.h"

#include <htslib/kstring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKPOINT_VERSION = 1,
    CHECKPOINT_ID_BYTES = 32,        /* hexadecimal digits */
};

enum checkpoint_state {
    CHECKPOINT_LOADING,              /* runs that are durable count, the rest is to be read again */
    CHECKPOINT_LOADED,               /* the runs hold all records of the input */
    CHECKPOINT_PARTIAL,              /* ... all that came before the input was cut off */
};

struct checkpoint_input {
    const char *path;           /* absolute; "-": standard input */
    uint64_t n_bytes;
    int64_t mtime_ns;
};

struct checkpoint_output {           /* as it was asked for */
    const char *path;           /* absolute; NULL: standard output */
    const char *format;         /* -O, or NULL */
    int level;                  /* -l, or -1 */
    bool write_index;
    size_t n_options;           /* --output-fmt-option and --reference */
    const char **options;
    const char *temporary, *index_temporary;    /* what is being written, or NULL: nobody wants it
                                                   once the process is dead */
};

struct checkpoint_record {
    const char *program;        /* version */
    const char *id;
    enum checkpoint_state state;
    unsigned directory;
    size_t n_directories;
    const char **directories;
    unsigned n_lanes;
    struct sort_rules rules;    /* as the options give them */
    struct checkpoint_input fasta;   /* -I; its path is NULL if there is none */
    int minhash_window;
    bool can_read_again;
    size_t n_inputs;
    struct checkpoint_input *inputs;
    struct checkpoint_output output;
    uint64_t n_runs;            /* totals: zero while loading */
    struct content_sum sum;
    size_t n_references;        /* of those that the text lacks: BAM may have them beside it */
    const char **reference_names;
    uint64_t *reference_lengths;
    const char *header;         /* terminated */
    size_t header_bytes;
    char *memory;               /* of a parsed record */
};

/* Appends the record as text. Returns 0, or -1 without memory. */
int checkpoint_record_format(const struct checkpoint_record *record, kstring_t *text);

/*
 * Takes the text apart; nothing about it is trusted. Returns 0, or -1 with *problem, which says in
 * a few words why not, to be put behind the name of the directory.
 */
int checkpoint_record_parse(const char *text, size_t n_bytes, struct checkpoint_record *record,
                       const char **problem);

void checkpoint_record_release(struct checkpoint_record *record);

/* "loading", "loaded", "partial". */
const char *checkpoint_state_name(enum checkpoint_state state);

#endif
