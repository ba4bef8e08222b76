/* duplicate_sum.c -- see duplicate_sum.h. */
#include "duplicates/duplicate_sum.h"

#include "bam/bam_fields.h"
#include "duplicates/duplicate_tags.h"
#include "duplicates/read_barcode.h"
#include "util/xalloc.h"

#include <stdlib.h>

/* Memory for a copy of a record: nearly all fit on the stack. */
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
    if (!duplicate_tags_has_any(rec)) {
        add_without_flag(sum, rec);
        return;
    }
    uint8_t *stripped = take_room(&copy, bam_record_bytes(rec));
    (void)duplicate_tags_strip(rec, stripped);
    content_sum_add(sum, stripped, bam_record_bytes(stripped));
    free(copy.large);
}

void duplicate_sum_add_output(const struct duplicate_rules *rules, struct content_sum *sum,
                              uint8_t *rec)
{
    if (!rules)
        content_sum_add(sum, rec, bam_record_bytes(rec));
    else if (duplicate_rules_rewrite(rules))
        add_without_tags(sum, rec);
    else
        add_without_flag(sum, rec);
}

void duplicate_sum_add_input(const struct duplicate_rules *rules, struct content_sum *sum,
                             uint8_t *rec)
{
    struct copy copy;
    if (!rules || !rules->moves_umi) {
        duplicate_sum_add_output(rules, sum, rec);
        return;
    }
    /* What the move takes from the name cannot be put back: the input is added as it will be. */
    uint8_t *moved = take_room(&copy, bam_record_bytes(rec) + READ_BARCODE_MOVED_BYTES);
    duplicate_sum_add_output(rules, sum, read_barcode_move(rules, rec, moved) > 0 ? moved : rec);
    free(copy.large);
}
