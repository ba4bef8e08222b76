/* duplicate_tags.c -- see duplicate_tags.h. */
#include "markdup/duplicate_tags.h"

#include "bam/bam_long.h"
#include "markdup/read_names.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_DO, TAG_DT, TAG_DC, N_TAGS, OTHER_TAG = N_TAGS };

static const char names[N_TAGS][2] = {{'d', 'o'}, {'d', 't'}, {'d', 'c'}};

static unsigned tag_at(const struct bam_aux *aux)
{
    if (aux->start[0] != 'd') return OTHER_TAG;
    switch (aux->start[1]) {
    case 'o': return TAG_DO;
    case 't': return TAG_DT;
    case 'c': return TAG_DC;
    default: return OTHER_TAG;
    }
}

/* Copies a record up to its tags, with another flag. Returns the end of the copy. */
static uint8_t *put_before_tags(const uint8_t *rec, uint32_t flag, uint8_t *out)
{
    uint8_t *end = copy_bytes(out, rec, (size_t)(bam_record_tags(rec) - rec));
    put_u16(out + BAM_FLAG_AT, (uint16_t)flag);
    return end;
}

static size_t set_size(uint8_t *rec, const uint8_t *end)
{
    size_t n_bytes = (size_t)(end - rec);
    put_u32(rec, (uint32_t)(n_bytes - 4));
    return n_bytes;
}

static size_t integer_bytes(const struct bam_aux *aux)
{
    int64_t value;
    return aux && bam_aux_integer(aux, &value) ? aux->value_bytes : 0;
}

/* Writes a tag. note NULL: of a record that was not examined. before: the tag that it replaces, or
   NULL. */
static uint8_t *put_tag(uint8_t *out, unsigned tag, const struct duplicate_note *note,
                        const struct bam_aux *before)
{
    out = copy_bytes(out, names[tag], 2);
    if (tag == TAG_DC) return bam_aux_put_count(out, note ? note->count : 1, integer_bytes(before));
    *out++ = 'Z';
    if (tag == TAG_DT) return copy_bytes(out, note->is_optical ? "SQ" : "LB", 3);
    out = copy_bytes(out, note->original, note->original_bytes);
    *out++ = '\0';
    return out;
}

size_t duplicate_tags_write(const struct markdup_rules *rules, const uint8_t *rec,
                            const struct duplicate_note *note, uint8_t *out)
{
    uint32_t flag = bam_record_flag(rec);
    bool is_duplicate = note && note->count == 0;
    bool to_write[N_TAGS] = {is_duplicate && note->original,
                             is_duplicate && rules->optical_distance > 0,
                             rules->counts && !(flag & BAM_FDUP)};
    bool to_drop = rules->counts && rules->marks_others && (flag & BAM_FDUP);
    const uint8_t *from = bam_record_tags(rec), *at = from, *end = bam_record_tags_end(rec);
    uint8_t *to = put_before_tags(rec, flag, out);
    struct bam_aux aux;
    int r;
    while ((r = bam_aux_next_before(end, &at, &aux)) > 0) {
        unsigned tag = tag_at(&aux);
        bool drops = tag == TAG_DC && to_drop;
        if (tag == OTHER_TAG || !(drops || to_write[tag])) continue;
        to = copy_bytes(to, from, (size_t)(aux.start - from));
        if (!drops) to = put_tag(to, tag, note, &aux);
        from = at;
        to_write[tag] = false;
        if (drops) to_drop = false;
    }
    to = copy_bytes(to, from, (size_t)(end - from));
    for (unsigned tag = 0; r == 0 && tag < N_TAGS; tag++)
        if (to_write[tag]) to = put_tag(to, tag, note, NULL);
    to = copy_bytes(to, end, (size_t)(bam_record_end(rec) - end));
    return set_size(out, to);
}

static void take_out(uint8_t *rec, const char tag[2])
{
    struct bam_aux aux;
    if (bam_aux_find(rec, tag, &aux) <= 0) return;
    uint8_t *to = rec + (aux.start - rec);
    const uint8_t *from = aux.value + aux.value_bytes, *end = bam_record_end(rec);
    memmove(to, from, (size_t)(end - from));
    (void)set_size(rec, to + (end - from));
}

size_t duplicate_tags_clear(uint8_t *rec)
{
    uint32_t flag = bam_record_flag(rec);
    if (flag & BAM_FDUP) {
        put_u16(rec + BAM_FLAG_AT, (uint16_t)(flag & ~(uint32_t)BAM_FDUP));
        take_out(rec, names[TAG_DT]);
        take_out(rec, names[TAG_DO]);
    }
    return bam_record_bytes(rec);
}

size_t duplicate_tags_strip(const uint8_t *rec, uint8_t *out)
{
    const uint8_t *from = bam_record_tags(rec), *at = from, *end = bam_record_end(rec);
    uint8_t *to = put_before_tags(rec, bam_record_flag(rec) & ~(uint32_t)BAM_FDUP, out);
    struct bam_aux aux;
    while (bam_aux_next_before(end, &at, &aux) > 0) {
        if (tag_at(&aux) == OTHER_TAG) continue;
        to = copy_bytes(to, from, (size_t)(aux.start - from));
        from = at;
    }
    return set_size(out, copy_bytes(to, from, (size_t)(end - from)));
}

/* ---- checksums ---- */

/* Memory for a copy of a record; nearly all records fit on the stack. */
struct copy {
    uint8_t small[2048];
    uint8_t *large;
};

static uint8_t *take_room(struct copy *copy, size_t n_bytes)
{
    copy->large = n_bytes > sizeof copy->small ? xmalloc(n_bytes) : NULL;
    return copy->large ? copy->large : copy->small;
}

static void add_without_flag(struct content_sum *sum, uint8_t *rec)
{
    enum { FLAG_AT = BAM_FLAG_AT + 1, MARK = BAM_FDUP >> 8 };   /* in the higher byte of the flag */
    uint8_t flag = rec[FLAG_AT];
    rec[FLAG_AT] = (uint8_t)(flag & ~MARK);
    content_sum_add(sum, rec, bam_record_bytes(rec));
    rec[FLAG_AT] = flag;
}

static void add_without_tags(struct content_sum *sum, uint8_t *rec)
{
    struct copy copy;
    uint8_t *stripped = take_room(&copy, bam_record_bytes(rec));
    (void)duplicate_tags_strip(rec, stripped);
    content_sum_add(sum, stripped, bam_record_bytes(stripped));
    free(copy.large);
}

void duplicate_sum_add_output(const struct markdup_rules *rules, struct content_sum *sum,
                              uint8_t *rec)
{
    if (!rules)
        content_sum_add(sum, rec, bam_record_bytes(rec));
    else if (markdup_rules_rewrite(rules))
        add_without_tags(sum, rec);
    else
        add_without_flag(sum, rec);
}

void duplicate_sum_add_input(const struct markdup_rules *rules, struct content_sum *sum,
                             uint8_t *rec)
{
    struct copy copy;
    if (!rules || !rules->moves_umi) {
        duplicate_sum_add_output(rules, sum, rec);
        return;
    }
    uint8_t *moved = take_room(&copy, bam_record_bytes(rec) + READ_BARCODE_MOVED_BYTES);
    duplicate_sum_add_output(rules, sum, read_barcode_move(rules, rec, moved) > 0 ? moved : rec);
    free(copy.large);
}
