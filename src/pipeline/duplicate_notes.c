/*
 * duplicate_notes.c -- see duplicate_notes.h.
 *
 * Notes of GROUP_RECORDS records that follow one another in a run are a *group*. A stream has the
 * notes of the groups whose hash has its number. A job sorts a stream and appends it to another;
 * where each group is then is known from a table. If a stream is large, it is read several times,
 * and some of its groups are sorted at a time.
 */
#include "pipeline/duplicate_notes.h"

#include "util/byte_order.h"
#include "util/varint.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    N_STREAMS = 256,
    GROUP_RECORDS = 4096,
    MAX_NOTE_BYTES = 3 * VARINT_MAX_BYTES + 3 + 255,
    /* A note of 4 bytes, the least that there are, becomes a struct in an array that has grown. */
    SORTED_FACTOR = 16,
    LEAST_SORTED_BYTES = 64 << 10,
};

/* Where the notes of a group are in their sorted stream. */
struct group_place {
    uint64_t at;
    uint32_t n_bytes;           /* 0: there are none */
};

struct run_groups {
    struct group_place *places;
    size_t n, room;
};

struct duplicate_notes {
    struct duplicate_notes_settings settings;
    struct temp_streams *put, *sorted;
    size_t sort_bytes;          /* memory for sorting */
    pthread_mutex_t lock;       /* for appending to `put`, later for the table and `sorted` */
    struct run_groups *runs;    /* by number */
    size_t n_runs, runs_room;
    uint64_t put_file_bytes;    /* when `put` is not there any more */
};

static struct temp_streams *create_streams(const struct duplicate_notes_settings *s)
{
    const struct temp_streams_settings streams = {
        .n_streams = N_STREAMS, .memory_bytes = s->memory_bytes / 2,
        .temp_prefixes = s->temp_prefixes, .n_temp_prefixes = s->n_temp_prefixes,
        .output = s->output,
    };
    return temp_streams_create(&streams);
}

struct duplicate_notes *duplicate_notes_create(const struct duplicate_notes_settings *settings)
{
    struct duplicate_notes *notes = xcalloc(1, sizeof *notes);
    notes->settings = *settings;
    notes->put = create_streams(settings);
    notes->sorted = create_streams(settings);
    (void)pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void duplicate_notes_destroy(struct duplicate_notes *notes)
{
    if (!notes) return;
    temp_streams_destroy(notes->put);
    temp_streams_destroy(notes->sorted);
    for (size_t i = 0; i < notes->n_runs; i++) free(notes->runs[i].places);
    free(notes->runs);
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

static uint64_t hash_group(uint32_t run, uint64_t index)
{
    return ((uint64_t)run << 32 | index / GROUP_RECORDS) * UINT64_C(0x9e3779b97f4a7c15);
}

static unsigned stream_of(uint32_t run, uint64_t index)
{
    return (unsigned)(hash_group(run, index) >> 56);
}

/* In which of n_parts parts of its stream a group is. */
static unsigned part_of(uint32_t run, uint64_t index, unsigned n_parts)
{
    return (unsigned)((hash_group(run, index) >> 24 & UINT32_MAX) * n_parts >> 32);
}

int duplicate_notes_put(struct duplicate_notes *notes, const struct duplicate_note *note)
{
    uint8_t bytes[sizeof(uint16_t) + MAX_NOTE_BYTES];
    size_t n_bytes = (size_t)(encode(note, bytes + sizeof(uint16_t)) - bytes);
    (void)put_u16(bytes, (uint16_t)(n_bytes - sizeof(uint16_t)));
    (void)pthread_mutex_lock(&notes->lock);
    int r = temp_streams_append(notes->put, stream_of(note->run, note->index), bytes, n_bytes);
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

/* ---- sorting ---- */

struct sort_work {
    struct crew_slot slot;
    struct duplicate_notes *notes;
    unsigned stream;
};

static int compare_notes(const void *a, const void *b)
{
    const struct duplicate_note *x = a, *y = b;
    if (x->run != y->run) return x->run < y->run ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* With the lock: remembers where a group is. */
static void place_group(struct duplicate_notes *notes, uint32_t run, uint64_t group,
                        struct group_place place)
{
    size_t n_runs = (size_t)run + 1;
    if (n_runs > notes->n_runs) {
        xgrow(&notes->runs, &notes->runs_room, n_runs, n_runs / 2, sizeof *notes->runs);
        memset(notes->runs + notes->n_runs, 0, (n_runs - notes->n_runs) * sizeof *notes->runs);
        notes->n_runs = n_runs;
    }
    struct run_groups *groups = &notes->runs[run];
    if (group >= groups->n) {
        xgrow(&groups->places, &groups->room, group + 1, group / 2, sizeof *groups->places);
        memset(groups->places + groups->n, 0, (group + 1 - groups->n) * sizeof *groups->places);
        groups->n = group + 1;
    }
    groups->places[group] = place;
}

/* Appends the notes of one group, which are sorted, to the sorted stream. */
static int append_group(struct duplicate_notes *notes, unsigned stream,
                        const struct duplicate_note *from, size_t n, uint8_t *bytes)
{
    uint8_t *end = bytes;
    for (size_t i = 0; i < n; i++) end = encode(&from[i], end);
    size_t n_bytes = (size_t)(end - bytes);
    (void)pthread_mutex_lock(&notes->lock);
    const struct group_place place = {temp_streams_bytes(notes->sorted, stream), (uint32_t)n_bytes};
    int r = temp_streams_append(notes->sorted, stream, bytes, n_bytes);
    if (r == 0) place_group(notes, from->run, from->index / GROUP_RECORDS, place);
    (void)pthread_mutex_unlock(&notes->lock);
    return r;
}

static int append_groups(struct duplicate_notes *notes, unsigned stream,
                         const struct duplicate_note *sorted, size_t n)
{
    uint8_t *bytes = xmalloc((size_t)GROUP_RECORDS * MAX_NOTE_BYTES);
    int r = 0;
    for (size_t from = 0, to; from < n && r == 0; from = to) {
        uint32_t group = sorted[from].index / GROUP_RECORDS;
        for (to = from + 1; to < n && sorted[to].run == sorted[from].run &&
                            sorted[to].index / GROUP_RECORDS == group; to++)
            continue;
        r = append_group(notes, stream, sorted + from, to - from, bytes);
    }
    free(bytes);
    return r;
}

/* The notes of some groups. */
struct read_notes {
    struct duplicate_note *notes;
    size_t n, room;
    uint8_t *bytes;             /* encoded notes, which the others point into when all are there */
    size_t n_bytes, bytes_room;
};

/* Reads the notes of a part of a stream. Returns 0, or -1 after a message. */
static int read_part(struct temp_stream_reader *reader, unsigned part, unsigned n_parts,
                     struct read_notes *notes)
{
    struct duplicate_note note;
    notes->n = notes->n_bytes = 0;
    while (!temp_stream_is_at_end(reader)) {
        const uint8_t *bytes = temp_stream_read(reader, sizeof(uint16_t));
        if (!bytes) return -1;
        size_t n_bytes = get_u16(bytes);
        if (!(bytes = temp_stream_read(reader, n_bytes))) return -1;
        const uint8_t *at = bytes;
        decode(&at, &note);
        if (part_of(note.run, note.index, n_parts) != part) continue;
        xgrow(&notes->bytes, &notes->bytes_room, notes->n_bytes + n_bytes, notes->n_bytes / 8, 1);
        memcpy(notes->bytes + notes->n_bytes, bytes, n_bytes);
        notes->n_bytes += n_bytes;
        notes->n++;
    }
    xgrow(&notes->notes, &notes->room, notes->n, 0, sizeof *notes->notes);
    const uint8_t *at = notes->bytes;
    for (size_t i = 0; i < notes->n; i++) decode(&at, &notes->notes[i]);
    return 0;
}

static int sort_stream(struct duplicate_notes *notes, unsigned stream)
{
    uint64_t n_bytes = temp_streams_bytes(notes->put, stream);
    uint64_t most = notes->sort_bytes / notes->settings.n_threads / SORTED_FACTOR;
    /* Fewer than some groups at a time are no use. */
    if (most < LEAST_SORTED_BYTES) most = LEAST_SORTED_BYTES;
    unsigned n_parts = (unsigned)(n_bytes / most) + 1;
    struct temp_stream_reader reader = {0};
    struct read_notes part = {0};
    int r = 0;
    for (unsigned i = 0; i < n_parts && n_bytes > 0 && r == 0; i++) {
        temp_stream_reader_begin(&reader, notes->put, stream);
        r = read_part(&reader, i, n_parts, &part);
        if (r < 0 || part.n == 0) continue;
        qsort(part.notes, part.n, sizeof *part.notes, compare_notes);
        r = append_groups(notes, stream, part.notes, part.n);
    }
    free(part.notes);
    free(part.bytes);
    temp_stream_reader_release(&reader);
    return r;
}

static void sort_job(struct worker *worker, void *arg)
{
    (void)worker;
    struct sort_work *work = arg;
    struct crew *crew = work->notes->settings.crew;
    if (!crew_failed(crew) && sort_stream(work->notes, work->stream) < 0) crew_fail(crew);
    crew_free_slot(crew, &work->slot);
}

int duplicate_notes_sort(struct duplicate_notes *notes, size_t memory_bytes)
{
    notes->sort_bytes = memory_bytes;
    struct crew *crew = notes->settings.crew;
    unsigned n_works = notes->settings.n_threads;
    struct sort_work *works = xcalloc(n_works, sizeof *works), *work;
    for (unsigned i = 0; i < n_works; i++) works[i].notes = notes;
    for (unsigned stream = 0; stream < N_STREAMS; stream++) {
        work = crew_take_slot(crew, works, n_works, sizeof *works);
        if (!work) break;
        work->stream = stream;
        if (crew_submit(crew, sort_job, work) < 0) break;
    }
    int r = crew_finish_jobs(crew);
    free(works);
    notes->put_file_bytes = temp_streams_file_bytes(notes->put);
    temp_streams_destroy(notes->put);
    notes->put = NULL;
    return r;
}

uint64_t duplicate_notes_file_bytes(const struct duplicate_notes *notes)
{
    return notes->put_file_bytes + temp_streams_file_bytes(notes->sorted);
}

/* ---- finding ---- */

/* Adds the notes of records [first, end) that are in a group. */
static void take_group(const uint8_t *at, const uint8_t *to, uint64_t first, uint64_t end,
                       struct found_notes *found)
{
    struct duplicate_note note;
    while (at < to) {
        decode(&at, &note);
        if (note.index < first || note.index >= end) continue;
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

int duplicate_notes_find(struct duplicate_notes *notes, uint32_t run, uint64_t first, uint64_t end,
                         struct found_notes *found)
{
    found->n = found->n_bytes = 0;
    if (run >= notes->n_runs) return 0;
    const struct run_groups *groups = &notes->runs[run];
    struct temp_stream_reader reader = {0};
    int r = 0;
    for (uint64_t group = first / GROUP_RECORDS;
         group < groups->n && group * GROUP_RECORDS < end && r == 0; group++) {
        const struct group_place *place = &groups->places[group];
        if (place->n_bytes == 0) continue;
        temp_stream_reader_begin(&reader, notes->sorted,
                                 stream_of(run, group * GROUP_RECORDS));
        reader.at = place->at;
        const uint8_t *bytes = temp_stream_read(&reader, place->n_bytes);
        if (bytes)
            take_group(bytes, bytes + place->n_bytes, first, end, found);
        else
            r = -1;
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
