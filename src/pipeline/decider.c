/* decider.c -- see decider.h. */
#include "pipeline/decider.h"

#include "pipeline/view_chunks.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- what was found ---- */

int remember_name(struct decider *decider, const uint8_t *name, size_t name_bytes,
                  const struct duplicate_name *duplicate)
{
    struct decision *decision = decider->decision;
    struct temp_streams *names = decision->settings->names;
    struct name_entry entry;
    memset(&entry, 0, sizeof entry);    /* all of it is written */
    entry.key = duplicate_key_of_name(name, name_bytes);
    entry.name = *duplicate;
    entry.name.original = NULL;
    unsigned stream = view_name_partition(view_name_hash(name, name_bytes));
    (void)pthread_mutex_lock(&decision->names_lock);
    int r = temp_streams_append(names, stream, &entry, sizeof entry);
    if (r == 0)
        r = temp_streams_append(names, stream, duplicate->original, duplicate->original_bytes);
    (void)pthread_mutex_unlock(&decision->names_lock);
    return r;
}

void count_duplicate(struct decider *decider, uint32_t group, bool is_pair)
{
    struct duplicate_counts *counts = decider_counts(decider, group);
    if (is_pair)
        counts->paired_duplicates++;
    else
        counts->single_duplicates++;
}

int mark_duplicate(struct decider *decider, const struct duplicate_record *record, bool is_pair)
{
    if (decider->is_again) return 0;
    int r = duplicate_marks_set(decider->decision->settings->marks, record->run, record->index);
    if (r <= 0) return r;
    count_duplicate(decider, record->group, is_pair);
    if (rules_of(decider)->removes && !record->was_marked)
        decider_counts(decider, record->group)->written--;
    return 1;
}

void report_lack_of_score(const uint8_t *name, size_t name_bytes)
{
    diag_error("read '%.*s' has no tag ms, by which pairs are compared: add --fixmate, or run "
               "samtools fixmate -m first", (int)name_bytes, (const char *)name);
}

/* ---- passes ---- */

int visit_stream(struct decider *decider, unsigned stream, view_visitor visit,
                 struct key_part keys)
{
    struct temp_stream_reader *reader = &decider->reader;
    temp_stream_reader_begin(reader, decider->decision->settings->views, stream);
    struct view_chunk chunk;
    struct duplicate_view view;
    int got;
    while ((got = view_chunks_next(reader, &chunk)) > 0)
        while (view_chunk_next(&chunk, &view)) {
            decider->is_again = decider->n_views++ < decider->n_done;
            enum table_result r = visit(decider, &view, chunk.run, keys);
            decider->is_again = false;
            if (r == TABLE_FULL) return 1;
            if (r == TABLE_FAILED) return -1;
        }
    return got;
}

/* All parts are of one size, so each size is given up once at most: given_up[i] is the part of 4^i
   that was, and n_done[i] says before which view. Parts of it mark nothing before that view. */
int decide_in_parts(struct decider *decider, part_pass pass)
{
    struct key_part keys = {0, 1};
    unsigned given_up[KEY_PARTS_MAX_DIVISIONS] = {0}, n_divisions = 0;
    uint64_t n_done[KEY_PARTS_MAX_DIVISIONS] = {0};
    while (keys.part < keys.n_parts) {
        const unsigned part = keys.part;
        decider->n_views = decider->n_done = 0;
        for (unsigned i = 0; i < n_divisions; i++)
            if (part >> 2 * (n_divisions - i) == given_up[i]) decider->n_done = n_done[i];
        int r = pass(decider, keys);
        if (r < 0 || key_part_go_on(&keys, r == 0) < 0) return -1;
        if (r == 0) continue;
        given_up[n_divisions] = part;
        n_done[n_divisions++] = decider->n_views > 0 ? decider->n_views - 1 : 0;
    }
    return (int)keys.n_parts;
}

/* ---- jobs ---- */

/* Has the streams of a partition read ahead, so that jobs need not wait for a disk. */
static void advise(const struct decide_settings *s, unsigned partition)
{
    if (partition >= VIEW_N_PARTITIONS) return;
    temp_streams_advise(s->views, VIEW_STREAM_SINGLES + partition);
    temp_streams_advise(s->views, VIEW_STREAM_PAIRS + partition);
}

static int decide_numbered(struct worker *worker, void *item)
{
    (void)worker;
    struct decider *decider = item;
    const struct decide_settings *s = decider->decision->settings;
    decider->partition = decider->slot.number;
    advise(s, decider->partition + s->n_threads);
    return decider->decision->decide(decider);
}

int decide_partitions(struct decision *decision, int (*decide)(struct decider *))
{
    const struct decide_settings *s = decision->settings;
    decision->decide = decide;
    return crew_for_each(s->crew, VIEW_N_PARTITIONS, decision->deciders, s->n_threads,
                         sizeof *decision->deciders, decide_numbered);
}

void decision_prepare(struct decision *decision, const struct decide_settings *s)
{
    size_t each_bytes = s->memory_bytes / s->n_threads;
    *decision = (struct decision){.settings = s};
    (void)pthread_mutex_init(&decision->names_lock, NULL);
    decision->deciders = xcalloc(s->n_threads, sizeof *decision->deciders);
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct decider *decider = &decision->deciders[i];
        decider->decision = decision;
        decider->singles = duplicate_table_create(each_bytes / 4);
        decider->pairs = duplicate_table_create(each_bytes / 4 * 3);
    }
}

void decision_release(struct decision *decision)
{
    const struct decide_settings *s = decision->settings;
    for (unsigned i = 0; i < s->n_threads; i++) {
        struct decider *decider = &decision->deciders[i];
        group_counts_end(&decider->counts, s->counts);
        duplicate_table_destroy(decider->singles);
        duplicate_table_destroy(decider->pairs);
        temp_stream_reader_release(&decider->reader);
        group_counts_release(&decider->counts);
    }
    free(decision->deciders);
    (void)pthread_mutex_destroy(&decision->names_lock);
}
