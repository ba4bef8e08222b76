/*
 * bam_inputs.h -- opens the inputs of a sort, unites their headers, and reads them in turn.
 *
 * Order of calls: open; header; next until it returns 0; close at any time. Several inputs are
 * opened for their headers, closed, and opened again to be read, so that only one is open at a
 * time; a pipe stays open. It is an error if the header of an input has changed when it is opened
 * again, or its size when it has been read. Threads: one at a time. Errors: -1 or NULL after a
 * message.
 */
#ifndef ROCKSORT_INPUT_BAM_INPUTS_H
#define ROCKSORT_INPUT_BAM_INPUTS_H

#include "input/bam_reader.h"
#include "input/header_union.h"

#include <sys/stat.h>

/* The state of an input when it was opened. */
struct opened_file {
    bool is_regular;
    struct stat st;
    uint64_t header_hash;               /* only if there are several inputs */
    bool can_seek;                      /* several inputs: this is BGZF BAM */
    enum htsExactFormat format;
    bool by_coordinate;                 /* its header claims this order */
    bool is_cut;                        /* it was read and is probably truncated */
    bool is_warned_of;                  /* warnings about it were printed */
};

/* Only bam_inputs.c may change it. */
struct bam_inputs {
    const char *const *paths;
    size_t n;
    const htsFormat *options;
    htsThreadPool *pool;
    struct bam_reader **readers;        /* NULL: not open */
    struct opened_file *files;
    sam_hdr_t *header;                  /* the caller may change it before a reader is used */
    char *common_order;                 /* SS or else SO of @HD ("coordinate", "queryname:natural")
                                           if it is the same in all headers, else empty */
    struct header_union *names;         /* NULL if there is a single input */
    uint32_t at;                        /* number of the next input; the current one is before it */
    uint64_t n_bytes;                   /* size of all files; 0: unknown */
    uint64_t n_bytes_before;            /* size of the files that were read or skipped */
    bool can_seek;                      /* all inputs are BGZF-compressed BAM files */
    bool changed;                       /* an error occurred because an input changed */
    size_t n_cut;                       /* inputs with is_cut */
    struct input_position start;        /* where reading begins */
};

/* Opens all inputs and unites their headers. Paths, options and pool must outlive the inputs.
   is_merge: they are read with bam_inputs_open_one, at the same time; regular files repeatedly. */
struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool, bool is_merge);

/* The name of the first input whose header says SO:coordinate, or NULL. Call it before the header
   is changed. */
const char *bam_inputs_sorted_by_coordinate(const struct bam_inputs *inputs);

/* The IDs that the reader of input i must change in its records; NULL: none. */
const struct id_renames *bam_inputs_renames(const struct bam_inputs *inputs, size_t i);

/* The status (stat) of input i just before it was opened; NULL if it is not a regular file. */
const struct stat *bam_inputs_file(const struct bam_inputs *inputs, size_t i);

/* Makes reading begin at a position. Call it before the first bam_inputs_next. Returns the number
   of bytes of all files before it. */
uint64_t bam_inputs_start_at(struct bam_inputs *inputs, const struct input_position *position);

/* Closes the reader that it stored last, opens that of input `at` and stores it. Returns 1, or 0
   after the last input, or -1 on error. */
int bam_inputs_next(struct bam_inputs *inputs, struct bam_reader **reader);

/* For inputs that are read at the same time, instead of bam_inputs_next. bam_inputs_open_one opens
   input i unless it is open; NULL after a message. Any thread may then use its reader.
   bam_inputs_leave closes it when it was read to its end; returns 0, or -1 after a message that it
   has changed. */
struct bam_reader *bam_inputs_open_one(struct bam_inputs *inputs, size_t i);
int bam_inputs_leave(struct bam_inputs *inputs, size_t i);

/* How many bytes of all files have been read; 0: unknown. */
uint64_t bam_inputs_bytes_read(const struct bam_inputs *inputs);

/* Accepts NULL. */
void bam_inputs_close(struct bam_inputs *inputs);

/* ---- the first and the last record of a sorted BAM file ---- */

struct bam_ends {
    uint64_t begin;             /* file offset of the first block with records */
    bam1_t *first, *last;       /* NULL: no records; `last`: or not requested */
    bam1_t *after;              /* at placed_end; NULL: end of the file, or not requested */
};

struct bam_ends_places {        /* virtual offsets from an index; 0: not requested */
    uint64_t placed_end;        /* where the last record with a place ends */
    uint64_t last_begin;        /* where one of the last records begins */
};

/*
 * Reads the first and last records of a BGZF-compressed BAM file. Returns -1 without a message if
 * the file has another format, is damaged, has no EOF block, has records in the block in which its
 * header ends, or has no records at the places; else 0. The caller releases the ends.
 */
int bam_ends_read(const char *path, const struct bam_ends_places *places, struct bam_ends *ends);

void bam_ends_release(struct bam_ends *ends);

#endif
