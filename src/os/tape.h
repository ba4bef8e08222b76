/*
 * tape.h -- many streams of bytes that are written first and read later: in memory, and
 * when that is full in one temporary file.
 *
 * Memory and file are divided into pages of one size. The page at the end of a stream is in memory;
 * when no memory is left, all full pages are written to the file. The file has no name: nothing is
 * left of it when the process ends. When its disk is full, pages go to a file in the next
 * directory. Each page in a file has a checksum, which is verified when it is read.
 *
 * Order of calls: create; append; read, when nothing is appended to that stream any more; destroy.
 * Threads: one at a time appends, and while nobody reads any stream, because appending moves pages
 * of all. Any number of threads may read, each with a reader of its own.
 */
#ifndef ROCKSORT_OS_TAPE_H
#define ROCKSORT_OS_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape_set;

/* Where files are made: at each -T, or, where that is NULL, beside the output, which may be NULL,
   too (temp_dir.h). 0 to 256; 0 only if all fits in memory. What it points to stays. */
struct temp_places {
    const char *const *prefixes;
    size_t n_prefixes;
    const char *output;
};

/* memory_bytes: that pages may take; tables of those in the file take up to an eighth more, or at
   most a page for each stream. */
struct tape_set *tape_set_create(unsigned n_streams, size_t memory_bytes,
                                 const struct temp_places *places);

/* NULL is accepted. */
void tape_set_destroy(struct tape_set *streams);

/* Appends bytes to a stream. Returns 0, or -1 after a message. */
int tape_set_append(struct tape_set *streams, unsigned stream, const void *bytes, size_t n_bytes);

uint64_t tape_set_bytes(const struct tape_set *streams, unsigned stream);

/* Bytes of all streams, and how many of them are in the file. */
uint64_t tape_set_all_bytes(const struct tape_set *streams);
uint64_t tape_set_file_bytes(const struct tape_set *streams);

/* ---- reading ---- */

struct fetched_page {           /* that was read last */
    uint8_t *bytes;
    size_t room;
    uint64_t place;             /* which one, from 1; 0: none */
};

struct tape_reader {
    struct tape_set *streams;
    unsigned stream;
    uint64_t at;
    uint8_t *bytes;             /* what was read last, if it lay in several pages */
    size_t room;
    struct fetched_page page, leaf;
};

/* Has the kernel read ahead what is in the file. */
void tape_set_advise(struct tape_set *streams, unsigned stream);

/* Begins to read a stream from its start. The reader starts as {0}; it may be used for one stream
   after another. */
void tape_reader_begin(struct tape_reader *reader, struct tape_set *streams, unsigned stream);

/* Reads the next n_bytes, all of which the stream must have. Returns where they are until the next
   call, or NULL after a message. */
const uint8_t *tape_read(struct tape_reader *reader, size_t n_bytes);

/* How many bytes are left. */
uint64_t tape_left(const struct tape_reader *reader);
bool tape_is_at_end(const struct tape_reader *reader);

void tape_reader_release(struct tape_reader *reader);

#endif
