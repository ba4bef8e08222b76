/*
 * parquet_chunk.h -- reads the pages of a chunk, one after the other: the levels of its values, and
 * the values that are there. Nothing that is read is believed; checksums are compared where pages
 * have them.
 *
 * Order of calls: begin for each chunk; then parquet_chunk_levels, and for what it has found
 * parquet_read_numbers or parquet_read_texts with `values`, before the levels after those.
 *
 * Memory: a part of the file, of a size that the caller chooses or of a page if that is larger; a
 * page and the dictionary, decompressed. What pages take is taken off a number of bytes that the
 * chunks of all leaves share: a few bytes may claim to be many.
 *
 * Ownership: parquet_chunk_release frees what the chunk has, which starts as {0}; source,
 * decompressor and room must outlive it. One thread at a time. Errors: static texts; NULL is none.
 */
#ifndef ROCKSORT_COLUMNS_PARQUET_CHUNK_H
#define ROCKSORT_COLUMNS_PARQUET_CHUNK_H

#include "columns/parquet_codec.h"
#include "columns/parquet_footer.h"
#include "columns/parquet_values.h"

#include <sys/types.h>

/* A file. */
struct parquet_source {
    /* Reads n bytes from byte `at` on; returns how many, less only at the end, or -1. */
    ssize_t (*read_at)(void *arg, uint64_t at, uint8_t *to, size_t n);
    void *arg;
    uint64_t n_bytes;
    bool failed;                /* read_at returned -1; an error text follows that means nothing */
};

/* Appends n bytes of the file, which must have them. */
const char *parquet_source_read(struct parquet_source *source, uint64_t at, size_t n,
                                struct column_bytes *to);

/* The levels of values that follow each other in a page; some were looked at already. */
struct parquet_levels {
    unsigned at, n;
    uint32_t repetition[PARQUET_PIECE], definition[PARQUET_PIECE];
};

struct parquet_chunk_reader {
    struct parquet_source *source;
    struct parquet_decompressor *decompressor;
    uint64_t *room;             /* bytes that pages of all leaves may take, beside what they have */
    uint64_t page_bytes, dictionary_bytes;      /* what those of this one have taken of it */
    const struct parquet_stored_leaf *leaf;
    int codec;
    uint64_t at, end;           /* of the file: what was not read yet */
    size_t step_bytes;          /* to read at a time */
    struct column_bytes stored; /* what was read */
    size_t used;                /* of it */
    struct column_bytes page, dictionary;       /* decompressed */
    struct parquet_entries entries;
    bool has_entries;
    uint64_t n_left, n_left_in_page;    /* values with nulls whose levels were not read */
    struct parquet_run_reader repetitions, definitions;
    struct parquet_levels levels;
    struct parquet_values values;
};

void parquet_chunk_begin(struct parquet_chunk_reader *reader,
                         const struct parquet_stored_leaf *leaf,
                         const struct parquet_stored_chunk *chunk, size_t step_bytes);

/* Fills the levels if all were looked at. At the end of the chunk there are none then. */
const char *parquet_chunk_levels(struct parquet_chunk_reader *reader);

/* Bytes of memory that the reader has. */
size_t parquet_chunk_memory(const struct parquet_chunk_reader *reader);

void parquet_chunk_release(struct parquet_chunk_reader *reader);

#endif
