/*
 * duplicate_marks.c -- see duplicate_marks.h.
 *
 * Records are numbered through all runs. GROUP_RECORDS consecutive records are a *group*; a stream
 * has the notes of consecutive groups. A job sorts a stream (spill/external_sort.h) and appends it
 * to another stream, followed by the offsets of its groups.
 */
#include "markdup/duplicate_marks.h"

#include "spill/external_sort.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_STREAMS = 256,
    GROUP_RECORDS = 256, /* find reads whole groups */
    NUMBER_BYTES = 8,
    MOST_NOTE_BYTES = NUMBER_BYTES + VARINT_MAX_BYTES + 2 + 255,
    OUT_BYTES = 16 << 10,
};

struct duplicate_marks {
    struct duplicate_marks_settings settings;
    uint64_t *runs; /* by number: records in a run; after begin: records before the run */
    size_t n_runs, room;
    uint64_t n_records;
    _Atomic uint8_t *bits;             /* NULL: marks are notes */
    struct tape_set *put, *sorted;     /* notes; NULL: none */
    pthread_mutex_t lock;              /* for appending to both */
    uint64_t stream_groups;            /* groups of each stream */
    uint64_t begins_at[N_STREAMS];     /* where in a sorted stream the offsets of its groups are,
                                          and the end of the last one: 8 bytes each */
    size_t sort_bytes;                 /* memory for sorting */
    uint64_t file_bytes;               /* of files that were removed */
};

struct duplicate_marks *duplicate_marks_create(const struct duplicate_marks_settings *settings)
{
    struct duplicate_marks *marks = xcalloc(1, sizeof *marks);
    marks->settings = *settings;
    (void)pthread_mutex_init(&marks->lock, NULL);
    return marks;
}

void duplicate_marks_destroy(struct duplicate_marks *marks)
{
    if (!marks) return;
    tape_set_destroy(marks->put);
    tape_set_destroy(marks->sorted);
    free((void *)marks->bits);
    free(marks->runs);
    (void)pthread_mutex_destroy(&marks->lock);
    free(marks);
}

void duplicate_marks_add_run(struct duplicate_marks *marks, uint32_t run, uint32_t n_records)
{
    size_t n = (size_t)run + 1;
    if (n > marks->n_runs) {
        xgrow_zeroed(&marks->runs, &marks->room, n, n / 2, sizeof *marks->runs);
        marks->n_runs = n;
    }
    if (n_records > marks->runs[run]) marks->runs[run] = n_records;
}

size_t duplicate_marks_begin(struct duplicate_marks *marks)
{
    const struct duplicate_marks_settings *s = &marks->settings;
    for (size_t i = 0; i < marks->n_runs; i++) {
        uint64_t n = marks->runs[i];
        marks->runs[i] = marks->n_records;
        marks->n_records += n;
    }
    size_t n_bytes = (size_t)(marks->n_records / 8) + 1, notes_bytes = s->tags_bytes;
    if (n_bytes <= s->bits_bytes)
        marks->bits = xcalloc(n_bytes, 1);
    else
        notes_bytes += n_bytes = s->bits_bytes;
    if (marks->bits && s->tags_bytes == 0) return n_bytes;
    marks->put = tape_set_create(N_STREAMS, notes_bytes / 2, &s->places);
    marks->sorted = tape_set_create(N_STREAMS, notes_bytes / 2, &s->places);
    marks->stream_groups = marks->n_records / GROUP_RECORDS / N_STREAMS + 1;
    return n_bytes;
}

/* ---- one note ---- */

enum { IS_OPTICAL = 1, HAS_ORIGINAL = 2 };

/* A note begins with the number of its record, by which it is sorted. */
static uint8_t *encode(uint64_t number, const struct duplicate_note *note, uint8_t *out)
{
    out = put_big_endian(out, number, NUMBER_BYTES);
    out = put_varint(out, note->count);
    *out++ = (uint8_t)((note->is_optical ? IS_OPTICAL : 0) | (note->original ? HAS_ORIGINAL : 0));
    if (!note->original) return out;
    *out++ = (uint8_t)note->original_bytes;
    memcpy(out, note->original, note->original_bytes);
    return out + note->original_bytes;
}

/* Reads a note and returns the number of its record. */
static uint64_t decode(const uint8_t **at, struct duplicate_note *note)
{
    uint64_t number = get_big_endian(*at, NUMBER_BYTES);
    *at += NUMBER_BYTES;
    *note = (struct duplicate_note){.count = (uint32_t)get_varint(at)};
    unsigned flags = *(*at)++;
    note->is_optical = flags & IS_OPTICAL;
    if (!(flags & HAS_ORIGINAL)) return number;
    note->original_bytes = *(*at)++;
    note->original = *at;
    *at += note->original_bytes;
    return number;
}

/* ---- marking ---- */

int duplicate_marks_put(struct duplicate_marks *marks, const struct duplicate_note *note)
{
    uint8_t bytes[MOST_NOTE_BYTES];
    uint64_t number = marks->runs[note->run] + note->index;
    unsigned stream = (unsigned)(number / GROUP_RECORDS / marks->stream_groups);
    if (marks->bits && note->count == 0) duplicate_marks_set(marks, note->run, note->index);
    size_t n_bytes = (size_t)(encode(number, note, bytes) - bytes);
    (void)pthread_mutex_lock(&marks->lock);
    int r = tape_append_item(marks->put, stream, bytes, n_bytes);
    (void)pthread_mutex_unlock(&marks->lock);
    return r;
}

int duplicate_marks_set(struct duplicate_marks *marks, uint32_t run, uint32_t index)
{
    uint64_t number = marks->runs[run] + index;
    const struct duplicate_note note = {.run = run, .index = index};
    if (!marks->bits) return duplicate_marks_put(marks, &note);
    atomic_fetch_or_explicit(&marks->bits[number >> 3], (uint8_t)(1u << (number & 7)),
                             memory_order_relaxed);
    return 0;
}

/* ---- sorting ---- */

/* State of one job. */
struct sorting {
    struct thread_pool_slot slot;
    struct duplicate_marks *marks;
    uint64_t file_bytes;
    struct external_sort *sort;
    struct external_sort_reader reader;
    uint64_t *begins; /* offsets of the groups */
    uint8_t *out;     /* not appended yet */
    size_t out_bytes, out_room;
};

static int append_sorted(struct sorting *s, const void *bytes, size_t n_bytes)
{
    struct duplicate_marks *marks = s->marks;
    (void)pthread_mutex_lock(&marks->lock);
    int r = tape_set_append(marks->sorted, s->slot.number, bytes, n_bytes);
    (void)pthread_mutex_unlock(&marks->lock);
    s->out_bytes = 0;
    return r;
}

/* Appends all notes in order, and then the offset of each group. */
static int append_groups(struct sorting *s)
{
    uint64_t n_groups = s->marks->stream_groups, group = 0, end = 0;
    int r;
    external_sort_read(&s->reader, s->sort);
    while ((r = external_sort_next(&s->reader)) > 0) {
        uint64_t number = get_big_endian(s->reader.item, NUMBER_BYTES);
        uint64_t own = number / GROUP_RECORDS % n_groups;
        while (group <= own)
            s->begins[group++] = end;
        xgrow(&s->out, &s->out_room, s->out_bytes + s->reader.n_bytes, OUT_BYTES, 1);
        memcpy(s->out + s->out_bytes, s->reader.item, s->reader.n_bytes);
        s->out_bytes += s->reader.n_bytes;
        end += s->reader.n_bytes;
        if (s->out_bytes >= OUT_BYTES && append_sorted(s, s->out, s->out_bytes) < 0) return -1;
    }
    while (group <= n_groups)
        s->begins[group++] = end;
    s->marks->begins_at[s->slot.number] = end;
    if (r < 0 || append_sorted(s, s->out, s->out_bytes) < 0) return -1;
    return append_sorted(s, s->begins, (size_t)(n_groups + 1) * sizeof *s->begins);
}

static int sort_stream(struct worker *worker, void *item)
{
    (void)worker;
    struct sorting *s = item;
    const struct duplicate_marks *marks = s->marks;
    if (tape_set_bytes(marks->put, s->slot.number) == 0) return 0;
    int r = external_sort_add_tape(s->sort, marks->put, s->slot.number);
    if (r == 0) r = external_sort_finish(s->sort);
    if (r == 0) r = append_groups(s);
    external_sort_reader_release(&s->reader);
    external_sort_clear(s->sort);
    return r;
}

int duplicate_marks_end(struct duplicate_marks *marks, size_t memory_bytes)
{
    const struct duplicate_marks_settings *s = &marks->settings;
    if (!marks->put) return 0;
    struct sorting *sortings = xcalloc(s->n_threads, sizeof *sortings);
    for (unsigned i = 0; i < s->n_threads; i++) {
        const struct external_sort_settings sort = {.memory_bytes = memory_bytes / s->n_threads,
                                                    .places = s->places,
                                                    .file_bytes = &sortings[i].file_bytes};
        sortings[i].marks = marks;
        sortings[i].sort = external_sort_create(&sort);
        sortings[i].begins = xcalloc((size_t)marks->stream_groups + 1, sizeof(uint64_t));
    }
    int r = thread_pool_for_each(s->threads, N_STREAMS, sortings, s->n_threads, sizeof *sortings,
                                 sort_stream);
    for (unsigned i = 0; i < s->n_threads; i++) {
        external_sort_destroy(sortings[i].sort);
        marks->file_bytes += sortings[i].file_bytes;
        free(sortings[i].begins);
        free(sortings[i].out);
    }
    free(sortings);
    marks->file_bytes += tape_set_file_bytes(marks->put);
    tape_set_destroy(marks->put);
    marks->put = NULL;
    return r;
}

size_t duplicate_marks_average_bytes(const struct duplicate_marks *marks)
{
    if (marks->settings.tags_bytes == 0) return 0;
    return (size_t)(tape_set_all_bytes(marks->sorted) / (marks->n_records + 1));
}

uint64_t duplicate_marks_file_bytes(const struct duplicate_marks *marks)
{
    return marks->file_bytes + (marks->sorted ? tape_set_file_bytes(marks->sorted) : 0);
}

/* ---- finding ---- */

/* Adds the notes of records [first, end) among those of some groups. base: number of the first
   record of the run. */
static void take_groups(const uint8_t *at, const uint8_t *to, uint64_t base, uint64_t first,
                        uint64_t end, struct found_marks *found)
{
    struct duplicate_note note;
    while (at < to) {
        uint64_t number = decode(&at, &note);
        if (number < first || number >= end) continue;
        note.index = (uint32_t)(number - base);
        xgrow(&found->notes, &found->room, found->n_notes + 1, found->n_notes / 2 + 64,
              sizeof *found->notes);
        if (note.original) {
            size_t n_bytes = found->names_bytes + note.original_bytes;
            xgrow(&found->names, &found->names_room, n_bytes, n_bytes / 2, 1);
            memcpy(found->names + found->names_bytes, note.original, note.original_bytes);
            found->names_bytes = n_bytes;
        }
        found->notes[found->n_notes++] = note;
    }
}

/* Reads the notes of n groups of a stream. Returns 0, or -1 after a message. */
static int read_note_groups(const struct duplicate_marks *marks, struct tape_reader *reader,
                            uint64_t first, uint64_t n, const uint8_t **from, const uint8_t **to)
{
    unsigned stream = (unsigned)(first / marks->stream_groups);
    uint64_t begin, end;
    *from = *to = NULL;
    if (tape_set_bytes(marks->sorted, stream) == 0) return 0;
    tape_reader_begin(reader, marks->sorted, stream);
    reader->at = marks->begins_at[stream] + first % marks->stream_groups * sizeof begin;
    const uint8_t *begins = tape_read(reader, (size_t)(n + 1) * sizeof begin);
    if (!begins) return -1;
    memcpy(&begin, begins, sizeof begin);
    memcpy(&end, begins + n * sizeof end, sizeof end);
    reader->at = begin;
    *from = tape_read(reader, (size_t)(end - begin));
    if (!*from) return -1;
    *to = *from + (end - begin);
    return 0;
}

static int find_notes(const struct duplicate_marks *marks, uint64_t base, uint64_t first,
                      uint64_t end, struct found_marks *found)
{
    uint64_t group = first / GROUP_RECORDS, after = (end + GROUP_RECORDS - 1) / GROUP_RECORDS;
    found->n_notes = found->names_bytes = 0;
    for (uint64_t n; group < after; group += n) {
        const uint8_t *from, *to;
        n = marks->stream_groups - group % marks->stream_groups;
        if (n > after - group) n = after - group;
        if (read_note_groups(marks, &found->reader, group, n, &from, &to) < 0) return -1;
        take_groups(from, to, base, first, end, found);
    }
    /* Only now the address of the names is final. */
    for (size_t i = 0, at = 0; i < found->n_notes; i++) {
        if (!found->notes[i].original) continue;
        found->notes[i].original = found->names + at;
        at += found->notes[i].original_bytes;
    }
    return 0;
}

/* Sets bits from the notes of n records from index `first` on. */
static void make_bits(struct found_marks *found, uint64_t first, uint64_t n)
{
    size_t n_bytes = (size_t)(n / 8) + 1;
    xgrow(&found->own_bits, &found->own_bits_room, n_bytes, 0, 1);
    memset(found->own_bits, 0, n_bytes);
    for (size_t i = 0; i < found->n_notes; i++) {
        uint64_t at = found->notes[i].index - first;
        if (found->notes[i].count == 0) found->own_bits[at >> 3] |= (uint8_t)(1u << (at & 7));
    }
    found->bits = found->own_bits;
    found->at = 0;
}

int duplicate_marks_find(const struct duplicate_marks *marks, uint32_t run, uint64_t first,
                         uint64_t n, struct found_marks *found)
{
    if (run >= marks->n_runs || first > UINT32_MAX ||
        marks->runs[run] + first + n > marks->n_records) {
        diag_error_of(DIAG_DAMAGE, "the temporary data of --markdup are damaged: sort again on "
                      "another disk");
        return -1;
    }
    uint64_t base = marks->runs[run], number = base + first;
    found->bits = (const uint8_t *)marks->bits;
    found->at = number;
    if (marks->sorted && find_notes(marks, base, number, number + n, found) < 0) return -1;
    if (!marks->bits) make_bits(found, first, n);
    return 0;
}

void found_marks_release(struct found_marks *found)
{
    tape_reader_release(&found->reader);
    free(found->notes);
    free(found->own_bits);
    free(found->names);
    *found = (struct found_marks){0};
}
