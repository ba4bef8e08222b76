/*
 * bam_inputs.h -- the inputs of a sort: their united header, then one reader after the other.
 *
 * Order of calls: open; header; next until it returns 0; close at any time. Several inputs are
 * opened once for their headers, closed, and opened again to be read, so that only one is open at a
 * time; a pipe stays open. It is an error if an input has another header when it is opened again,
 * or another size after it was read. Threads: one at a time. Errors: -1 or NULL after a message.
 */
#ifndef ROCKSORT_INPUT_BAM_INPUTS_H
#define ROCKSORT_INPUT_BAM_INPUTS_H

#include "input/bam_reader.h"
#include "input/header_union.h"

#include <sys/stat.h>

/* An input as it was when it was opened. */
struct opened_file {
    bool is_regular;
    struct stat st;
    uint64_t header_hash;               /* only if there are several inputs */
    bool can_seek;                      /* ... : it is a file of BGZF-compressed BAM */
    enum htsExactFormat format;
    bool by_coordinate;                 /* its header claims this order */
    bool is_cut;                        /* it was read, and is probably truncated */
    bool is_warned_of;                  /* the user was warned of what is odd about it */
};

/* For bam_inputs.c to change, and for all to read. */
struct bam_inputs {
    const char *const *paths;
    size_t n;
    const htsFormat *options;
    htsThreadPool *pool;
    struct bam_reader **readers;        /* NULL: not open */
    struct opened_file *files;
    sam_hdr_t *header;                  /* the caller may change it before a reader is used */
    char *common_order;                 /* "coordinate", "queryname:natural": what all headers say in
                                           SS or else SO of @HD; empty if they say none or differ */
    struct header_union *names;         /* NULL if there is a single input */
    size_t at;                          /* number of the next input */
    uint64_t n_bytes;                   /* size of all files; 0: unknown */
    uint64_t n_bytes_before;            /* size of the files that were read or skipped */
    bool can_seek;                      /* all inputs are files of BGZF-compressed BAM */
    bool changed;                       /* the error was that an input changed */
    size_t n_cut;                       /* inputs with is_cut */
    struct input_position start;        /* where reading begins */
};

/* Opens all inputs and unites their headers. Paths, options and pool must outlive the inputs.
   is_merge: they are read at the same time, and those that are regular files as often as the caller
   wants: bam_inputs_open_one. */
struct bam_inputs *bam_inputs_open(const char *const *paths, size_t n, const htsFormat *options,
                                   htsThreadPool *pool, bool is_merge);

/* The name of the first input whose header says SO:coordinate; NULL if there is none. Before the
   header is changed. */
const char *bam_inputs_sorted_by_coordinate(const struct bam_inputs *inputs);

/* The IDs that whoever reads input i is to change in its records; NULL: none. */
const struct id_renames *bam_inputs_renames(const struct bam_inputs *inputs, size_t i);

/* The status (stat) of input i just before it was opened; NULL if it is not a regular file. */
const struct stat *bam_inputs_file(const struct bam_inputs *inputs, size_t i);

/* To be called before the first bam_inputs_next: makes reading begin at a position. Returns how
   many bytes of the files come before it. */
uint64_t bam_inputs_start_at(struct bam_inputs *inputs, const struct input_position *position);

/* Number, from 0, of the input whose reader bam_inputs_next stored last. */
uint32_t bam_inputs_number(const struct bam_inputs *inputs);

/* Leaves the reader that it stored last, opens the next one and stores it. Returns 1, or 0 after
   the last input, or -1 on error. */
int bam_inputs_next(struct bam_inputs *inputs, struct bam_reader **reader);

/* For inputs that are read at the same time, instead of bam_inputs_next. bam_inputs_open_one opens
   input i, unless it is still open; NULL after a message. Then any thread may use its reader.
   bam_inputs_leave closes it when it was read to its end; returns 0, or -1 after a message that it
   changed. */
struct bam_reader *bam_inputs_open_one(struct bam_inputs *inputs, size_t i);
int bam_inputs_leave(struct bam_inputs *inputs, size_t i);

/* How many bytes of all files have been read; 0: unknown. */
uint64_t bam_inputs_bytes_read(const struct bam_inputs *inputs);

/* NULL is accepted. */
void bam_inputs_close(struct bam_inputs *inputs);

/* ---- the first and the last record of a sorted BAM file ---- */

struct bam_ends {
    uint64_t begin;             /* byte of the file where the first block of records begins */
    bam1_t *first, *last;       /* NULL: there are no records; `last`: or it was not asked for */
    bam1_t *after;              /* at placed_end; NULL: the file ends there, or not asked for */
};

struct bam_ends_places {        /* virtual offsets, from an index; 0: this end does not matter */
    uint64_t placed_end;        /* where the last record with a place ends */
    uint64_t last_begin;        /* where one of the last records begins */
};

/*
 * Reads the ends of a BGZF-compressed BAM file. Returns 0, or -1 if the file is no such file, is
 * damaged, has no EOF block, or has records in the block in which its header ends, or if no records
 * begin at the places. The caller releases the ends.
 */
int bam_ends_read(const char *path, const struct bam_ends_places *places, struct bam_ends *ends);

void bam_ends_release(struct bam_ends *ends);

#endif
