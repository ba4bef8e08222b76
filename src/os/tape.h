/*
 * tape.h -- stores many temporary streams of bytes, written first and read later, in memory and,
 * when that is full, in one temporary file.
 *
 * Memory and file are divided into pages of one size. The last page of a stream is in memory; when
 * no memory is left, all full pages are written to the file. The file has no name, so it vanishes
 * when the process ends. When its disk is full, pages go to a file in the next directory. Each page
 * in a file has a checksum, which is verified when it is read.
 *
 * Order of calls: create; append; read a stream after its last append; destroy. Threads: only one
 * thread appends at a time, and no thread reads any stream then, because appending moves pages of
 * all streams. Any number of threads may read, each with its own reader.
 */
#ifndef ROCKSORT_OS_TAPE_H
#define ROCKSORT_OS_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tape_set;

/* Where temporary files are made: at each -T, or for a NULL prefix beside the output, which may
   also be NULL (temp_dir.h). 0 to 256 prefixes; 0 only if all fits in memory. The caller keeps what
   it points to. */
struct temp_places {
    const char *const *prefixes;
    size_t n_prefixes;
    const char *output;
};

/* memory_bytes: the limit for pages, or one page for each stream. The tables of those in files take
   about 5 bytes more for every three pages. */
struct tape_set *tape_set_create(unsigned n_streams, size_t memory_bytes,
                                 const struct temp_places *places);

/* Accepts NULL. */
void tape_set_destroy(struct tape_set *streams);

/* Appends bytes to a stream. Returns 0, or -1 after a message. */
int tape_set_append(struct tape_set *streams, unsigned stream, const void *bytes, size_t n_bytes);

uint64_t tape_set_bytes(const struct tape_set *streams, unsigned stream);

/* Return the bytes of all streams, and how many of them are in the file. */
uint64_t tape_set_all_bytes(const struct tape_set *streams);
uint64_t tape_set_file_bytes(const struct tape_set *streams);

/* ---- reading ---- */

struct tape_reader {
    struct tape_set *streams;
    unsigned stream;
    uint64_t at;
    uint8_t *bytes;             /* the last bytes that were read, if they lay in several pages */
    size_t room;
    size_t extent, extent_first;        /* where that page is in the table, and its first page */
    uint8_t *page;              /* the page that was read last from a file */
    size_t page_room;
    uint64_t place;             /* its place, from 1; 0: none */
};

/* Makes the kernel read ahead the pages of the stream that are in the file. */
void tape_set_advise(struct tape_set *streams, unsigned stream);

/* Starts to read a stream from its beginning. The reader starts as {0} and may read one stream
   after another. */
void tape_reader_begin(struct tape_reader *reader, struct tape_set *streams, unsigned stream);

/* Reads the next n_bytes, which must not go beyond the end of the stream. Returns a pointer that is
   valid until the next call, or NULL after a message. */
const uint8_t *tape_read(struct tape_reader *reader, size_t n_bytes);

/* Returns how many bytes are left to read. */
uint64_t tape_left(const struct tape_reader *reader);

void tape_reader_release(struct tape_reader *reader);

#endif
