/*
 * duplicate_notes.c -- see duplicate_notes.h.
 *
 * Notes of GROUP_RECORDS records that follow one another (all runs are counted through, as in
 * duplicate_marks.h) are a *group*. A stream has the notes of some groups that follow one another.
 * A job sorts a stream and appends it to another; at its end stands where each group begins. If a
 * stream is large, it is read several times, and some of its groups are sorted at a time.
 */
#include "pipeline/duplicate_notes.h"

#include "pipeline/duplicate_marks.h"
#include "util/byte_order.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_STREAMS = 256,
    /* A block looks through whole groups for the notes of its records, and may have few. */
    GROUP_RECORDS = 256,
    MAX_NOTE_BYTES = 3 * VARINT_MAX_BYTES + 3 + 255,
    LEAST_SORTED_BYTES = 1 << 20,
};

struct duplicate_notes {
    struct crew *crew;
    unsigned n_threads;
    const struct duplicate_marks *marks;
    struct temp_streams *put, *sorted;
    size_t sort_bytes;          /* memory for sorting */
    pthread_mutex_t lock;       /* for appending to `put`, later to `sorted` */
    uint64_t stream_groups;     /* groups of each stream */
    /* Where in a sorted stream it says where each of its groups begins, and where the last one
       ends: 8 bytes each. */
    uint64_t begins_at[N_STREAMS];
    uint64_t put_file_bytes;    /* when `put` is not there any more */
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

static uint8_t *encode(const struct duplicate_note *note, uint8_t *out)
{
    out = put_varint(out, note->run);
    out = put_varint(out, note->index);
    out = put_varint(out, note->count);
    *out++ = (uint8_t)((note->is_optical ? IS_OPTICAL : 0) | (note->original ? HAS_ORIGINAL : 0));
    if (!note->original) return out;
    *out++ = (uint8_t)note->original_bytes;
    memcpy(out, note->original, note->original_bytes);
    return out + note->original_bytes;
}

static void decode(const uint8_t **at, struct duplicate_note *note)
{
    *note = (struct duplicate_note){.run = (uint32_t)get_varint(at)};
    note->index = (uint32_t)get_varint(at);
    note->count = (uint32_t)get_varint(at);
    unsigned flags = *(*at)++;
    note->is_optical = flags & IS_OPTICAL;
    if (!(flags & HAS_ORIGINAL)) return;
    note->original_bytes = *(*at)++;
    note->original = *at;
    *at += note->original_bytes;
}

void duplicate_notes_begin(struct duplicate_notes *notes)
{
    uint64_t n_groups = duplicate_marks_count(notes->marks) / GROUP_RECORDS + 1;
    notes->stream_groups = (n_groups + N_STREAMS - 1) / N_STREAMS;
}

static uint64_t group_of(const struct duplicate_notes *notes, uint32_t run, uint64_t index)
{
    return duplicate_marks_number(notes->marks, run, index) / GROUP_RECORDS;
}

int duplicate_notes_put(struct duplicate_notes *notes, const struct duplicate_note *note)
{
    uint8_t bytes[sizeof(uint16_t) + MAX_NOTE_BYTES];
    size_t n_bytes = (size_t)(encode(note, bytes + sizeof(uint16_t)) - bytes);
    (void)put_u16(bytes, (uint16_t)(n_bytes - sizeof(uint16_t)));
    (void)pthread_mutex_lock(&notes->lock);
    uint64_t group = group_of(notes, note->run, note->index);
    int r = temp_streams_append(notes->put, (unsigned)(group / notes->stream_groups), bytes,
                                n_bytes);
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

/* ---- sorting ---- */

/* What one job works with. */
struct sort_work {
    struct crew_slot slot;
    struct duplicate_notes *notes;
};

static int compare_notes(const void *a, const void *b)
{
    const struct duplicate_note *x = a, *y = b;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* A stream that is being sorted. */
struct sorting {
    struct duplicate_notes *notes;
    unsigned stream;
    struct temp_stream_reader reader;
    uint64_t *begins;           /* of its groups; before a group is sorted: what it takes */
    struct duplicate_note *part;        /* some groups, sorted */
    size_t n, room;
    uint8_t *bytes;             /* encoded, which they point into when all are there */
    size_t n_bytes, bytes_room;
    uint8_t *ordered;           /* the same in order */
    size_t ordered_room;
};

/* Reads the next note, and stores how many bytes it has. Returns where they are, or NULL after a
   message. */
static const uint8_t *read_note(struct sorting *s, struct duplicate_note *note, size_t *n_bytes)
{
    const uint8_t *bytes = temp_stream_read(&s->reader, sizeof(uint16_t));
    if (!bytes) return NULL;
    *n_bytes = get_u16(bytes);
    if (!(bytes = temp_stream_read(&s->reader, *n_bytes))) return NULL;
    const uint8_t *at = bytes;
    decode(&at, note);
    return bytes;
}

/* The number of a note's group in its stream. */
static uint64_t group_in_stream(const struct sorting *s, const struct duplicate_note *note)
{
    return group_of(s->notes, note->run, note->index) % s->notes->stream_groups;
}

/* Adds up what the notes of each group take while they are sorted: themselves, and their bytes in
   an array that has grown and once more in order. */
static int measure_groups(struct sorting *s)
{
    struct duplicate_note note;
    size_t n_bytes;
    temp_stream_reader_begin(&s->reader, s->notes->put, s->stream);
    while (!temp_stream_is_at_end(&s->reader)) {
        if (!read_note(s, &note, &n_bytes)) return -1;
        s->begins[group_in_stream(s, &note)] += sizeof note + 2 * n_bytes + n_bytes / 8 + 1;
    }
    return 0;
}

/* Reads the notes of groups [from, to). Returns 0, or -1 after a message. */
static int read_part(struct sorting *s, uint64_t from, uint64_t to)
{
    struct duplicate_note note;
    size_t n_bytes;
    s->n = s->n_bytes = 0;
    temp_stream_reader_begin(&s->reader, s->notes->put, s->stream);
    while (!temp_stream_is_at_end(&s->reader)) {
        const uint8_t *bytes = read_note(s, &note, &n_bytes);
        if (!bytes) return -1;
        uint64_t group = group_in_stream(s, &note);
        if (group < from || group >= to) continue;
        xgrow(&s->bytes, &s->bytes_room, s->n_bytes + n_bytes, s->n_bytes / 8, 1);
        memcpy(s->bytes + s->n_bytes, bytes, n_bytes);
        s->n_bytes += n_bytes;
        s->n++;
    }
    xgrow(&s->part, &s->room, s->n, 0, sizeof *s->part);
    const uint8_t *at = s->bytes;
    for (size_t i = 0; i < s->n; i++) decode(&at, &s->part[i]);
    return 0;
}

static int append_sorted(struct sorting *s, const void *bytes, size_t n_bytes)
{
    struct duplicate_notes *notes = s->notes;
    (void)pthread_mutex_lock(&notes->lock);
    int r = temp_streams_append(notes->sorted, s->stream, bytes, n_bytes);
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

/* Sorts groups [from, to), which were read, and appends them to the sorted stream. */
static int sort_part(struct sorting *s, uint64_t from, uint64_t to)
{
    uint64_t begin = temp_streams_bytes(s->notes->sorted, s->stream);
    size_t i = 0;
    qsort(s->part, s->n, sizeof *s->part, compare_notes);
    xgrow(&s->ordered, &s->ordered_room, s->n_bytes, 0, 1);
    uint8_t *end = s->ordered;
    for (uint64_t group = from; group < to; group++) {
        s->begins[group] = begin + (uint64_t)(end - s->ordered);
        while (i < s->n && group_in_stream(s, &s->part[i]) == group)
            end = encode(&s->part[i++], end);
    }
    return append_sorted(s, s->ordered, s->n_bytes);
}

/* Sorts as many groups at a time as fit into the memory. */
static int sort_parts(struct sorting *s, uint64_t most_bytes)
{
    uint64_t n_groups = s->notes->stream_groups;
    int r = measure_groups(s);
    for (uint64_t from = 0, to; from < n_groups && r == 0; from = to) {
        uint64_t n_bytes = s->begins[from];
        for (to = from + 1; to < n_groups && n_bytes + s->begins[to] <= most_bytes; to++)
            n_bytes += s->begins[to];
        r = read_part(s, from, to);
        if (r == 0) r = sort_part(s, from, to);
    }
    return r;
}

static int sort_stream(struct duplicate_notes *notes, unsigned stream)
{
    struct sorting s = {.notes = notes, .stream = stream};
    size_t most = notes->sort_bytes / notes->n_threads;
    if (temp_streams_bytes(notes->put, stream) == 0) return 0;
    size_t n_begins = (size_t)notes->stream_groups + 1;
    s.begins = xcalloc(n_begins, sizeof *s.begins);
    int r = sort_parts(&s, most > LEAST_SORTED_BYTES ? most : LEAST_SORTED_BYTES);
    if (r == 0) {
        uint64_t end = temp_streams_bytes(notes->sorted, stream);
        s.begins[n_begins - 1] = notes->begins_at[stream] = end;
        r = append_sorted(&s, s.begins, n_begins * sizeof *s.begins);
    }
    free(s.begins);
    free(s.part);
    free(s.bytes);
    free(s.ordered);
    temp_stream_reader_release(&s.reader);
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
    for (unsigned i = 0; i < n_works; i++) works[i].notes = notes;
    int r = crew_for_each(notes->crew, N_STREAMS, works, n_works, sizeof *works,
                          sort_numbered);
    free(works);
    notes->put_file_bytes = temp_streams_file_bytes(notes->put);
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

/* Adds the notes of records [first, end) of a run that are in some groups. */
static void take_groups(const uint8_t *at, const uint8_t *to, uint32_t run, uint64_t first,
                        uint64_t end, struct found_notes *found)
{
    struct duplicate_note note;
    while (at < to) {
        decode(&at, &note);
        if (note.run != run || note.index < first || note.index >= end) continue;
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
    uint64_t group = group_of(notes, run, first), after = group_of(notes, run, end - 1) + 1;
    int r = 0;
    found->n = found->n_bytes = 0;
    for (uint64_t n; group < after && r == 0; group += n) {
        const uint8_t *from, *to;
        n = notes->stream_groups - group % notes->stream_groups;
        if (n > after - group) n = after - group;
        r = read_groups(notes, &reader, group, n, &from, &to);
        if (r == 0) take_groups(from, to, run, first, end, found);
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
