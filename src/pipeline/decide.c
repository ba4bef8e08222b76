/* decide.c -- see decide.h. */
#include "pipeline/decide.h"

#include "duplicates/view_streams.h"
#include "pipeline/decide_chains.h"
#include "pipeline/decider.h"

#include <string.h>

enum {
    VIEW_BYTES_USUAL = 24,      /* to estimate how many views a stream has */
};

/* ---- examined reads ---- */

static enum table_result found(struct decider *decider, const struct duplicate_record *record,
                               bool is_pair)
{
    const struct duplicate_name name = {.place = record->place, .run = record->run,
                                        .ordinal = record->ordinal, .group = record->group};
    int marked = mark_duplicate(decider, record, is_pair);
    if (marked < 0) return TABLE_FAILED;
    if (marked == 0 || !record->has_others) return TABLE_DUPLICATE;
    return remember_name(decider, record->name, record->name_bytes, &name) < 0 ? TABLE_FAILED
                                                                               : TABLE_DUPLICATE;
}

static enum table_result add(struct decider *decider, struct duplicate_table *table,
                             struct duplicate_key key, const struct duplicate_view *view,
                             uint32_t run)
{
    struct duplicate_record record;
    enum table_result r = duplicate_table_add(table, key, view, run, &record);
    if (r == TABLE_LACKS_SCORE) {
        report_lack_of_score(record.name, record.name_bytes);
        return TABLE_FAILED;
    }
    return r == TABLE_DUPLICATE ? found(decider, &record, view->kind == VIEW_PAIR) : r;
}

static enum table_result visit_single(struct decider *decider, const struct duplicate_view *view,
                                      uint32_t run, struct key_part keys)
{
    struct duplicate_key key = duplicate_key_of_single(rules_of(decider), view);
    if (!key_part_has(keys, key)) return TABLE_NO_DUPLICATE;
    return add(decider, decider->singles, key, view, run);
}

/* Single reads at the 5' end of a member of a pair are duplicates. */
static enum table_result visit_end(struct decider *decider, const struct duplicate_view *view,
                                   uint32_t run, struct key_part keys)
{
    (void)run;
    (void)keys;
    struct duplicate_record record;
    const struct duplicate_rules *rules = rules_of(decider);
    if (view->kind == VIEW_PAIR && !duplicate_view_meets_singles(rules, view)) return TABLE_NO_DUPLICATE;
    struct duplicate_key key = duplicate_key_of_single(rules, view);
    enum table_result r = duplicate_table_meet_pair(decider->singles, key, &record);
    return r == TABLE_DUPLICATE ? found(decider, &record, false) : r;
}

static enum table_result visit_pair(struct decider *decider, const struct duplicate_view *view,
                                    uint32_t run, struct key_part keys)
{
    if (keys.part == 0 && !duplicate_table_is_empty(decider->singles) &&
        visit_end(decider, view, run, keys) == TABLE_FAILED)
        return TABLE_FAILED;
    if (view->kind == VIEW_END) return TABLE_NO_DUPLICATE;
    struct duplicate_key key = duplicate_key_of_pair(rules_of(decider), view);
    if (!key_part_has(keys, key)) return TABLE_NO_DUPLICATE;
    return add(decider, decider->pairs, key, view, run);
}

static uint64_t n_views(const struct decider *decider, unsigned stream)
{
    return temp_streams_bytes(decider->decision->settings->views, stream) / VIEW_BYTES_USUAL;
}

/* If all keys fit, the table is left for the pass over pairs. Else pairs are read for each part. */
static int pass_over_singles(struct decider *decider, struct key_part keys)
{
    unsigned stream = VIEW_STREAM_SINGLES + decider->partition;
    duplicate_table_reset(decider->singles, n_views(decider, stream));
    int r = visit_stream(decider, stream, visit_single, keys);
    if (r != 0 || keys.n_parts == 1) return r;
    return visit_stream(decider, VIEW_STREAM_PAIRS + decider->partition, visit_end, keys);
}

static int pass_over_pairs(struct decider *decider, struct key_part keys)
{
    unsigned stream = VIEW_STREAM_PAIRS + decider->partition;
    duplicate_table_reset(decider->pairs, n_views(decider, stream));
    return visit_stream(decider, stream, visit_pair, keys);
}

static int decide_reads(struct decider *decider)
{
    int n_parts = decide_in_parts(decider, pass_over_singles);
    if (n_parts < 0) return -1;
    if (n_parts > 1) duplicate_table_reset(decider->singles, 0);
    return decide_in_parts(decider, pass_over_pairs) < 0 ? -1 : 0;
}

/* ---- other records of duplicates ---- */

/* Reads the names of duplicates into the table. Returns as visit_stream. */
static int read_names(struct decider *decider, struct key_part keys)
{
    struct temp_streams *names = decider->decision->settings->names;
    struct temp_stream_reader *reader = &decider->reader;
    struct name_entry entry;
    duplicate_table_reset(decider->pairs,
                          temp_streams_bytes(names, decider->partition) / sizeof entry);
    temp_stream_reader_begin(reader, names, decider->partition);
    while (!temp_stream_is_at_end(reader)) {
        const uint8_t *bytes = temp_stream_read(reader, sizeof entry);
        if (!bytes) return -1;
        memcpy(&entry, bytes, sizeof entry);
        if (entry.name.original_bytes > 0) {
            entry.name.original = temp_stream_read(reader, entry.name.original_bytes);
            if (!entry.name.original) return -1;
        }
        if (key_part_has(keys, entry.key) &&
            duplicate_table_add_name(decider->pairs, entry.key, &entry.name) == TABLE_FULL)
            return 1;
    }
    return 0;
}

static enum table_result visit_other(struct decider *decider, const struct duplicate_view *view,
                                     uint32_t run, struct key_part keys)
{
    const struct decide_settings *s = decider->decision->settings;
    const struct duplicate_rules *rules = rules_of(decider);
    struct duplicate_name name;
    struct duplicate_key key = duplicate_key_of_name(view->name, view->name_bytes);
    if (!key_part_has(keys, key) ||
        !duplicate_table_find_name(decider->pairs, key, &name))
        return TABLE_NO_DUPLICATE;
    int marked = duplicate_marks_set(s->marks, run, view->index);
    if (marked <= 0) return marked < 0 ? TABLE_FAILED : TABLE_NO_DUPLICATE;
    /* As in samtools, records with earlier marks are removed before others are looked for. */
    bool is_counted = !rules->removes || !view->was_marked;
    const struct duplicate_note note = {
        .run = run, .index = view->index, .is_optical = name.was_optical || name.turned_optical,
        .original = name.original, .original_bytes = name.original_bytes,
    };
    if (is_counted) decider_counts(decider, name.group)->other_duplicates++;
    if (is_counted && note.is_optical) decider_counts(decider, name.group)->other_optical++;
    if (s->notes && !rules->removes && duplicate_notes_put(s->notes, &note) < 0)
        return TABLE_FAILED;
    return TABLE_NO_DUPLICATE;
}

static int pass_over_others(struct decider *decider, struct key_part keys)
{
    int r = read_names(decider, keys);
    if (r != 0 || duplicate_table_is_empty(decider->pairs)) return r;
    return visit_stream(decider, VIEW_STREAM_OTHERS + decider->partition, visit_other, keys);
}

static int decide_others(struct decider *decider)
{
    return decide_in_parts(decider, pass_over_others) < 0 ? -1 : 0;
}

int decide_duplicates(const struct decide_settings *settings)
{
    struct decision decision;
    decision_prepare(&decision, settings);
    int r;
    if (duplicate_rules_need_chains(settings->rules))
        r = decide_chains(&decision);
    else
        r = decide_partitions(&decision, decide_reads);
    if (r == 0 && settings->names) r = decide_partitions(&decision, decide_others);
    decision_release(&decision);
    return r;
}
