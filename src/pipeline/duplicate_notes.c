/*
 * duplicate_notes.c -- see duplicate_notes.h.
 *
 * Notes of GROUP_RECORDS records that follow one another (all runs are counted through, as in
 * duplicate_marks.h) are a *group*. A stream has the notes of some groups that follow one another.
 * A job sorts a stream (store/external_sort.h) and appends it to another; at its end stands where
 * each group begins.
 */
#include "pipeline/duplicate_notes.h"

#include "pipeline/duplicate_marks.h"
#include "store/external_sort.h"
#include "util/byte_order.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_STREAMS = 256,
    /* A block looks through whole groups for the notes of its records, and may have few. */
    GROUP_RECORDS = 256,
    NUMBER_BYTES = 8, /* of the record, counted through all runs */
    MAX_NOTE_BYTES = NUMBER_BYTES + VARINT_MAX_BYTES + 3 + 255,
    OUT_BYTES = 16 << 10,
};

struct duplicate_notes {
    struct crew *crew;
    unsigned n_threads;
    const struct duplicate_marks *marks;
    struct temp_streams *put, *sorted;
    size_t sort_bytes;      /* memory for sorting */
    pthread_mutex_t lock;   /* for appending to `put`, later to `sorted` */
    uint64_t stream_groups; /* groups of each stream */
    /* Where in a sorted stream it says where each of its groups begins, and where the last one
       ends: 8 bytes each. */
    uint64_t begins_at[N_STREAMS];
    struct temp_places places;
    uint64_t put_file_bytes; /* when `put` is not there any more; and those of sorting */
};

struct duplicate_notes *duplicate_notes_create(struct crew *crew, unsigned n_threads,
                                               const struct duplicate_marks *marks,
                                               size_t memory_bytes,
                                               const struct temp_places *places)
{
    struct duplicate_notes *notes = xcalloc(1, sizeof *notes);
    notes->crew = crew;
    notes->n_threads = n_threads;
    notes->marks = marks;
    notes->places = *places;
    notes->put = temp_streams_create(N_STREAMS, memory_bytes / 2, places);
    notes->sorted = temp_streams_create(N_STREAMS, memory_bytes / 2, places);
    (void)pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void duplicate_notes_destroy(struct duplicate_notes *notes)
{
    if (!notes) return;
    temp_streams_destroy(notes->put);
    temp_streams_destroy(notes->sorted);
    (void)pthread_mutex_destroy(&notes->lock);
    free(notes);
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

/* Returns the number. */
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

void duplicate_notes_begin(struct duplicate_notes *notes)
{
    uint64_t n_groups = duplicate_marks_count(notes->marks) / GROUP_RECORDS + 1;
    notes->stream_groups = (n_groups + N_STREAMS - 1) / N_STREAMS;
}

int duplicate_notes_put(struct duplicate_notes *notes, const struct duplicate_note *note)
{
    uint8_t bytes[sizeof(uint16_t) + MAX_NOTE_BYTES];
    uint64_t number = duplicate_marks_number(notes->marks, note->run, note->index);
    size_t n_bytes = (size_t)(encode(number, note, bytes + sizeof(uint16_t)) - bytes);
    (void)put_u16(bytes, (uint16_t)(n_bytes - sizeof(uint16_t)));
    (void)pthread_mutex_lock(&notes->lock);
    int r = temp_streams_append(
        notes->put, (unsigned)(number / GROUP_RECORDS / notes->stream_groups), bytes, n_bytes);
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

/* ---- sorting ---- */

/* What one job works with. */
struct sort_work {
    struct crew_slot slot;
    struct duplicate_notes *notes;
};

/* A stream that is being sorted. */
struct sorting {
    struct duplicate_notes *notes;
    unsigned stream;
    uint64_t file_bytes;
    struct temp_stream_reader put;
    struct external_sort *sort;
    struct external_sort_reader reader;
    uint64_t *begins; /* of its groups */
    uint8_t *out;     /* that is not appended yet */
    size_t out_bytes, out_room;
};

static int read_put(struct sorting *s)
{
    temp_stream_reader_begin(&s->put, s->notes->put, s->stream);
    while (!temp_stream_is_at_end(&s->put)) {
        const uint8_t *bytes = temp_stream_read(&s->put, sizeof(uint16_t));
        if (!bytes) return -1;
        size_t n_bytes = get_u16(bytes);
        bytes = temp_stream_read(&s->put, n_bytes);
        if (!bytes || external_sort_add(s->sort, bytes, n_bytes) < 0) return -1;
    }
    return external_sort_finish(s->sort);
}

static int append_sorted(struct sorting *s, const void *bytes, size_t n_bytes)
{
    struct duplicate_notes *notes = s->notes;
    (void)pthread_mutex_lock(&notes->lock);
    int r = temp_streams_append(notes->sorted, s->stream, bytes, n_bytes);
    (void)pthread_mutex_unlock(&notes->lock);
    s->out_bytes = 0;
    return r;
}

/* Appends all notes in order, and notes where each group begins. */
static int append_groups(struct sorting *s)
{
    uint64_t n_groups = s->notes->stream_groups, group = 0, end = 0;
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
    s->notes->begins_at[s->stream] = end;
    if (r < 0 || append_sorted(s, s->out, s->out_bytes) < 0) return -1;
    return append_sorted(s, s->begins, (size_t)(n_groups + 1) * sizeof *s->begins);
}

static int sort_stream(struct duplicate_notes *notes, unsigned stream)
{
    struct sorting s = {.notes = notes, .stream = stream};
    const struct external_sort_settings settings = {
        .memory_bytes = notes->sort_bytes / notes->n_threads,
        .places = notes->places,
        .file_bytes = &s.file_bytes,
    };
    if (temp_streams_bytes(notes->put, stream) == 0) return 0;
    s.sort = external_sort_create(&settings);
    s.begins = xcalloc((size_t)notes->stream_groups + 1, sizeof *s.begins);
    int r = read_put(&s);
    if (r == 0) r = append_groups(&s);
    external_sort_reader_release(&s.reader);
    external_sort_destroy(s.sort);
    temp_stream_reader_release(&s.put);
    free(s.begins);
    free(s.out);
    (void)pthread_mutex_lock(&notes->lock);
    notes->put_file_bytes += s.file_bytes;
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

static int sort_numbered(struct worker *worker, void *item)
{
    (void)worker;
    const struct sort_work *work = item;
    return sort_stream(work->notes, work->slot.number);
}

int duplicate_notes_sort(struct duplicate_notes *notes, size_t memory_bytes)
{
    unsigned n_works = notes->n_threads;
    struct sort_work *works = xcalloc(n_works, sizeof *works);
    notes->sort_bytes = memory_bytes;
    for (unsigned i = 0; i < n_works; i++)
        works[i].notes = notes;
    int r = crew_for_each(notes->crew, N_STREAMS, works, n_works, sizeof *works, sort_numbered);
    free(works);
    notes->put_file_bytes += temp_streams_file_bytes(notes->put);
    temp_streams_destroy(notes->put);
    notes->put = NULL;
    return r;
}

uint64_t duplicate_notes_bytes(const struct duplicate_notes *notes)
{
    return temp_streams_all_bytes(notes->sorted);
}

uint64_t duplicate_notes_file_bytes(const struct duplicate_notes *notes)
{
    return notes->put_file_bytes + temp_streams_file_bytes(notes->sorted);
}

/* ---- finding ---- */

/* Adds the notes of records [first, end) that are in some groups; base: the number of the first
   record of their run. */
static void take_groups(const uint8_t *at, const uint8_t *to, uint64_t base, uint64_t first,
                        uint64_t end, struct found_notes *found)
{
    struct duplicate_note note;
    while (at < to) {
        uint64_t number = decode(&at, &note);
        if (number < first || number >= end) continue;
        note.index = (uint32_t)(number - base);
        xgrow(&found->notes, &found->room, found->n + 1, found->n / 2 + 64, sizeof *found->notes);
        if (note.original) {
            size_t n_bytes = found->n_bytes + note.original_bytes;
            xgrow(&found->bytes, &found->bytes_room, n_bytes, n_bytes / 2, 1);
            memcpy(found->bytes + found->n_bytes, note.original, note.original_bytes);
            found->n_bytes = n_bytes;
        }
        found->notes[found->n++] = note;
    }
}

/* Reads the notes of n groups of a stream. Returns 0, or -1 after a message. */
static int read_groups(struct duplicate_notes *notes, struct temp_stream_reader *reader,
                       uint64_t first, uint64_t n, const uint8_t **from, const uint8_t **to)
{
    unsigned stream = (unsigned)(first / notes->stream_groups);
    uint64_t begin, end;
    *from = *to = NULL;
    if (temp_streams_bytes(notes->sorted, stream) == 0) return 0;
    temp_stream_reader_begin(reader, notes->sorted, stream);
    reader->at = notes->begins_at[stream] + first % notes->stream_groups * sizeof begin;
    const uint8_t *begins = temp_stream_read(reader, (size_t)(n + 1) * sizeof begin);
    if (!begins) return -1;
    memcpy(&begin, begins, sizeof begin);
    memcpy(&end, begins + n * sizeof end, sizeof end);
    reader->at = begin;
    *from = temp_stream_read(reader, (size_t)(end - begin));
    if (!*from) return -1;
    *to = *from + (end - begin);
    return 0;
}

int duplicate_notes_find(struct duplicate_notes *notes, uint32_t run, uint64_t first, uint64_t end,
                         struct found_notes *found)
{
    struct temp_stream_reader reader = {0};
    uint64_t base = duplicate_marks_number(notes->marks, run, 0);
    uint64_t group = (base + first) / GROUP_RECORDS, after = (base + end - 1) / GROUP_RECORDS + 1;
    int r = 0;
    found->n = found->n_bytes = 0;
    for (uint64_t n; group < after && r == 0; group += n) {
        const uint8_t *from, *to;
        n = notes->stream_groups - group % notes->stream_groups;
        if (n > after - group) n = after - group;
        r = read_groups(notes, &reader, group, n, &from, &to);
        if (r == 0) take_groups(from, to, base, base + first, base + end, found);
    }
    temp_stream_reader_release(&reader);
    /* The names have their place only now. */
    for (size_t i = 0, at = 0; i < found->n; i++) {
        if (!found->notes[i].original) continue;
        found->notes[i].original = found->bytes + at;
        at += found->notes[i].original_bytes;
    }
    return r;
}

void found_notes_release(struct found_notes *found)
{
    free(found->notes);
    free(found->bytes);
    *found = (struct found_notes){0};
}
