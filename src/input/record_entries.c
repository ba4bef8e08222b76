/* record_entries.c -- see record_entries.h. */
#include "input/record_entries.h"

#include "bam/bam_check.h"
#include "bam/bam_long.h"
#include "markdup/duplicate_tags.h"

#include <assert.h>
#include <string.h>

uint8_t *record_entries_check(const struct sort_rules *rules, int32_t n_refs, uint8_t *from,
                              const uint8_t *to, uint64_t first_record,
                              struct record_problem *problem)
{
    const struct markdup_rules *duplicates = rules->duplicates;
    uint8_t *end = from;
    *problem = (struct record_problem){.record = first_record, .is_damaged = true};
    for (uint8_t *rec = from; rec < to;) {
        size_t n_bytes = bam_record_bytes(rec);
        problem->text = bam_record_check_input(rec, n_refs, rules->long_positions);
        if (problem->text) return NULL;
        cut_names_cut(rules->cut_names, rec, problem->record++);
        size_t kept_bytes = bam_record_restore_cigar(rec);
        if (duplicates && duplicates->clears) kept_bytes = duplicate_tags_clear(rec);
        if (end < rec) memmove(end, rec, kept_bytes);
        end += kept_bytes;
        rec += n_bytes;
    }
    return end;
}

void record_entries_make(const struct sort_rules *rules, uint8_t *from, const uint8_t *to,
                         struct sort_entry *entries, struct content_sum *sum)
{
    for (uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        if (sum) duplicate_sum_add_input(rules->duplicates, sum, rec);
        *entries++ = (struct sort_entry){sort_key_fixed(rules, rec), rec};
    }
}

/* Says that a key is too long. */
static void refuse_key(const struct sort_rules *rules, struct record_problem *problem)
{
    static_assert(SORT_KEY_MOST_BYTES == 65535, "the texts say so");
    problem->text =
        "has a sort key of more than 65,535 bytes; shorten or remove its tags CB and MI";
    if (rules->order != SORT_TAG) return;
    problem->text = "has a sort key of more than 65,535 bytes; shorten or remove its tag";
    problem->tag = rules->tag;
}

ssize_t record_entries_measure(const struct sort_rules *rules, const uint8_t *from,
                               const uint8_t *to, uint64_t first_record,
                               struct record_problem *problem)
{
    size_t total_bytes = 0;
    *problem = (struct record_problem){.record = first_record};
    for (const uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        size_t n_bytes = sort_key_bytes(rules, rec, &problem->text);
        if (n_bytes > SORT_KEY_MOST_BYTES) refuse_key(rules, problem);
        if (problem->text) {
            problem->read_name = (const char *)bam_record_name(rec);
            if (first_record == RECORD_NUMBER_UNKNOWN) problem->record = RECORD_NUMBER_UNKNOWN;
            return -1;
        }
        total_bytes += keyed_record_bytes(n_bytes);
        problem->record++;
    }
    return (ssize_t)total_bytes;
}

void record_entries_make_keyed(const struct sort_rules *rules, uint8_t *from, const uint8_t *to,
                               uint8_t *keyed, struct content_sum *sum, bool *any_placed)
{
    for (uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        struct keyed_record *kr = (struct keyed_record *)keyed;
        if (sum && rules->duplicates)   /* not with -M, which changes records */
            duplicate_sum_add_input(rules->duplicates, sum, rec);
        else if (sum)
            sort_rules_admit(rules, rec, sum);
        kr->record = rec;
        kr->key_bytes = (uint32_t)sort_key_encode(rules, rec, kr->key);
        keyed += keyed_record_bytes(kr->key_bytes);
        *any_placed |= bam_record_tid(rec) >= 0;
    }
}

/* Writes the entries of a part, for orders with fixed-size keys. */
static void index_fixed(struct sort_buffer_part *part, struct content_sum *sum)
{
    struct sort_entry *entries =
        buffer_take_from_top(part->buffer, part->n_records * sizeof *entries);
    part->index = entries;
    record_entries_make(part->buffer->rules, part->from, part->to, entries, sum);
}

/* Writes the keyed_records of a part. Returns 0, or -1 with *problem if a record has no key. */
static int index_keyed(struct sort_buffer_part *part, struct content_sum *sum,
                       struct record_problem *problem)
{
    struct sort_buffer *buffer = part->buffer;
    ssize_t n_bytes =
        record_entries_measure(buffer->rules, part->from, part->to, part->first_record, problem);
    if (n_bytes < 0) return -1;
    atomic_fetch_add(&buffer->result_bytes, part->n_records * sizeof(struct sort_entry));
    uint8_t *keyed = buffer_take_from_top(buffer, (size_t)n_bytes);
    part->index = keyed;
    record_entries_make_keyed(buffer->rules, part->from, part->to, keyed, sum, &part->any_placed);
    return 0;
}

int record_entries_index_part(struct sort_buffer_part *part, int32_t n_refs,
                              struct content_sum *sum, struct record_problem *problem)
{
    const struct sort_rules *rules = part->buffer->rules;
    size_t raw_bytes = (size_t)(part->to - part->from);
    memcpy(part->from, part->source, raw_bytes);
    part->to = record_entries_check(rules, n_refs, part->from, part->to, part->first_record,
                                    problem);
    if (!part->to) return -1;
    if (sort_order_is_fixed(rules->order))
        index_fixed(part, sum);
    else if (index_keyed(part, sum, problem) < 0)
        return -1;
    atomic_fetch_sub(&part->buffer->unindexed_bytes, raw_bytes);
    return 0;
}
