/*
 * duplicate_marks.c -- see duplicate_marks.h.
 *
 * A bit in memory is set by an atomic operation. In a file this would be a random access for each
 * duplicate, so there the numbers of marked records are sorted into N_STRETCHES streams first. All
 * that is done with files is reading and writing in order.
 */
#include "pipeline/duplicate_marks.h"

#include "util/byte_order.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_STRETCHES = 256,
    NUMBER_BYTES = 4,           /* of a record in its stretch */
    NOTED = 64,                 /* so many are appended to a stream at a time */
    /* Bits are read some dozens of bytes at a time, a block's. A page of 4 KiB costs a microsecond
       then, and its part of the table of pages is small. */
    BITS_MEMORY_BYTES = 16 << 10,
    LEAST_BUILT_BYTES = 4096,   /* of bits that are made in one pass */
};

/* Records whose numbers follow one another. */
struct stretch {
    pthread_mutex_t lock;
    unsigned n;
    uint8_t noted[NOTED * NUMBER_BYTES];        /* not in the stream yet */
};

struct duplicate_marks {
    size_t memory_bytes;
    struct temp_places places;
    uint64_t *runs;             /* by number: records in a run; later all records before it */
    size_t n_runs, room;
    uint64_t n_records;
    _Atomic uint8_t *bits;      /* in memory; NULL: in files */
    struct stretch *stretches;
    uint64_t stretch_records;   /* a multiple of 8 */
    pthread_mutex_t lock;       /* for appending to `numbers` */
    struct temp_streams *numbers;       /* a stream for each stretch */
    struct temp_streams *file;  /* one stream: the bits */
    uint64_t numbers_file_bytes;        /* when `numbers` is not there any more */
};

struct duplicate_marks *duplicate_marks_create(size_t memory_bytes,
                                               const struct temp_places *places)
{
    struct duplicate_marks *marks = xcalloc(1, sizeof *marks);
    marks->memory_bytes = memory_bytes;
    marks->places = *places;
    (void)pthread_mutex_init(&marks->lock, NULL);
    return marks;
}

static void destroy_stretches(struct duplicate_marks *marks)
{
    for (size_t i = 0; marks->stretches && i < N_STRETCHES; i++)
        (void)pthread_mutex_destroy(&marks->stretches[i].lock);
    free(marks->stretches);
    marks->stretches = NULL;
    temp_streams_destroy(marks->numbers);
    marks->numbers = NULL;
}

void duplicate_marks_destroy(struct duplicate_marks *marks)
{
    if (!marks) return;
    destroy_stretches(marks);
    temp_streams_destroy(marks->file);
    free((void *)marks->bits);
    free(marks->runs);
    (void)pthread_mutex_destroy(&marks->lock);
    free(marks);
}

void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records)
{
    size_t n = (size_t)run + 1;
    if (n > marks->n_runs) {
        xgrow(&marks->runs, &marks->room, n, n / 2, sizeof *marks->runs);
        memset(marks->runs + marks->n_runs, 0, (n - marks->n_runs) * sizeof *marks->runs);
        marks->n_runs = n;
    }
    /* The runs of an earlier process grow block by block. */
    if (n_records > marks->runs[run]) marks->runs[run] = n_records;
}

size_t duplicate_marks_begin(struct duplicate_marks *marks)
{
    for (size_t i = 0; i < marks->n_runs; i++) {
        uint64_t n = marks->runs[i];
        marks->runs[i] = marks->n_records;
        marks->n_records += n;
    }
    size_t n_bytes = (size_t)(marks->n_records / 8) + 1;
    if (n_bytes <= marks->memory_bytes) {
        marks->bits = xcalloc(n_bytes, 1);
        return n_bytes;
    }
    marks->stretch_records = (marks->n_records / N_STRETCHES / 8 + 1) * 8;
    marks->stretches = xcalloc(N_STRETCHES, sizeof *marks->stretches);
    for (size_t i = 0; i < N_STRETCHES; i++)
        (void)pthread_mutex_init(&marks->stretches[i].lock, NULL);
    marks->numbers = temp_streams_create(N_STRETCHES, marks->memory_bytes, &marks->places);
    return marks->memory_bytes + N_STRETCHES * sizeof *marks->stretches;
}

uint64_t duplicate_marks_number(const struct duplicate_marks *marks, uint32_t run, uint64_t index)
{
    return marks->runs[run] + index;
}

uint64_t duplicate_marks_count(const struct duplicate_marks *marks)
{
    return marks->n_records;
}

/* ---- marking ---- */

static int append_noted(struct duplicate_marks *marks, struct stretch *stretch)
{
    unsigned number = (unsigned)(stretch - marks->stretches);
    (void)pthread_mutex_lock(&marks->lock);
    int r = temp_streams_append(marks->numbers, number, stretch->noted,
                                (size_t)stretch->n * NUMBER_BYTES);
    (void)pthread_mutex_unlock(&marks->lock);
    stretch->n = 0;
    return r;
}

static int note(struct duplicate_marks *marks, uint64_t record)
{
    struct stretch *stretch = &marks->stretches[record / marks->stretch_records];
    uint32_t number = (uint32_t)(record % marks->stretch_records);
    int r = 0;
    (void)pthread_mutex_lock(&stretch->lock);
    (void)put_u32(stretch->noted + (size_t)stretch->n * NUMBER_BYTES, number);
    if (++stretch->n == NOTED) r = append_noted(marks, stretch);
    (void)pthread_mutex_unlock(&stretch->lock);
    return r < 0 ? -1 : 1;
}

int duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index)
{
    uint64_t record = duplicate_marks_number(marks, run, index);
    if (!marks->bits) return note(marks, record);
    uint8_t bit = (uint8_t)(1u << (record & 7));
    uint8_t before = atomic_fetch_or_explicit(&marks->bits[record >> 3], bit,
                                              memory_order_relaxed);
    return !(before & bit);
}

/* ---- making bits of numbers ---- */

/* Sets the bits of records [from, from + 8 * n_bytes) of a stretch. Returns 0, or -1 after a
   message. */
static int set_bits(struct temp_stream_reader *reader, uint64_t from, uint8_t *bits, size_t n_bytes)
{
    memset(bits, 0, n_bytes);
    while (!temp_stream_is_at_end(reader)) {
        const uint8_t *number = temp_stream_read(reader, NUMBER_BYTES);
        if (!number) return -1;
        uint64_t at = get_u32(number) - from;   /* those before it wrap around */
        if (at >> 3 >= n_bytes) continue;
        uint8_t bit = (uint8_t)(1u << (at & 7));
        assert(!(bits[at >> 3] & bit));         /* what is found twice is counted twice */
        bits[at >> 3] |= bit;
    }
    return 0;
}

/* Appends the bits of a stretch to the file. */
static int end_stretch(struct duplicate_marks *marks, unsigned number, uint8_t *bits, size_t most)
{
    struct stretch *stretch = &marks->stretches[number];
    struct temp_stream_reader reader = {0};
    size_t all = (size_t)(marks->stretch_records / 8);
    int r = append_noted(marks, stretch);
    for (size_t done = 0, n; done < all && r == 0; done += n) {
        n = all - done < most ? all - done : most;
        temp_stream_reader_begin(&reader, marks->numbers, number);
        r = set_bits(&reader, (uint64_t)done * 8, bits, n);
        if (r == 0) r = temp_streams_append(marks->file, 0, bits, n);
    }
    temp_stream_reader_release(&reader);
    return r;
}

int duplicate_marks_end(struct duplicate_marks *marks, size_t memory_bytes)
{
    if (marks->bits) return 0;
    size_t n_bytes = (size_t)(marks->stretch_records / 8);
    if (memory_bytes < LEAST_BUILT_BYTES) memory_bytes = LEAST_BUILT_BYTES;
    if (n_bytes > memory_bytes) n_bytes = memory_bytes;
    uint8_t *bits = xmalloc(n_bytes);
    int r = 0;
    marks->file = temp_streams_create(1, BITS_MEMORY_BYTES, &marks->places);
    for (unsigned i = 0; i < N_STRETCHES && r == 0; i++)
        r = end_stretch(marks, i, bits, n_bytes);
    free(bits);
    marks->numbers_file_bytes = temp_streams_file_bytes(marks->numbers);
    destroy_stretches(marks);
    return r;
}

uint64_t duplicate_marks_file_bytes(const struct duplicate_marks *marks)
{
    return marks->numbers_file_bytes + (marks->file ? temp_streams_file_bytes(marks->file) : 0);
}

/* ---- finding ---- */

int duplicate_marks_find(const struct duplicate_marks *marks, uint32_t run, uint64_t first,
                         uint64_t n, struct found_marks *found)
{
    if (run >= marks->n_runs || first > UINT32_MAX ||
        marks->runs[run] + first + n > marks->n_records) {
        diag_error_of(DIAG_DAMAGE, "the temporary data of --markdup are damaged: sort again on "
                      "another disk");
        return -1;
    }
    uint64_t record = marks->runs[run] + first;
    found->bits = (const uint8_t *)marks->bits;
    found->at = record;
    if (marks->bits) return 0;
    temp_stream_reader_begin(&found->reader, marks->file, 0);
    found->reader.at = record / 8;
    found->at = record % 8;
    found->bits = temp_stream_read(&found->reader, (size_t)((found->at + n + 7) / 8));
    return found->bits ? 0 : -1;
}

void found_marks_release(struct found_marks *found)
{
    temp_stream_reader_release(&found->reader);
    *found = (struct found_marks){0};
}
