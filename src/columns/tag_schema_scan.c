/* tag_schema_scan.c -- see tag_schema_scan.h. */
#include "columns/tag_schema_scan.h"

#include "bam/bam_aux.h"
#include "util/xalloc.h"

#include <stdlib.h>

static unsigned place_of(const uint8_t *letters)
{
    return (letters[0] & 0x7fu) << 7 | (letters[1] & 0x7fu);
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct tag_schema_scan *tag_scan = (struct tag_schema_scan *)observer;
    struct bam_records records = observed->all;
    uint64_t seen[TAG_SCAN_WORDS] = {0};
    (void)part;
    for (const uint8_t *rec; (rec = bam_records_next(&records));) {
        const uint8_t *at = bam_record_tags(rec);
        struct bam_aux aux;
        while (bam_aux_read(rec, &at, &aux) > 0) {
            unsigned place = place_of(aux.start);
            seen[place / 64] |= UINT64_C(1) << place % 64;
        }
    }
    /* Writes only new bits, to avoid contention for cache lines. */
    for (unsigned i = 0; i < TAG_SCAN_WORDS; i++)
        if (seen[i] & ~atomic_load_explicit(&tag_scan->seen[i], memory_order_relaxed))
            (void)atomic_fetch_or(&tag_scan->seen[i], seen[i]);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    free(observer);
}

struct tag_schema_scan *tag_schema_scan_create(void)
{
    static const struct observer_kind kind = {.add_records = add_records, .destroy = destroy};
    struct tag_schema_scan *tag_scan = xcalloc(1, sizeof *tag_scan);
    tag_scan->base.kind = &kind;
    return tag_scan;
}

bool tag_schema_scan_has(const struct tag_schema_scan *tag_scan, const char tag[2])
{
    unsigned place = place_of((const uint8_t *)tag);
    return atomic_load(&tag_scan->seen[place / 64]) >> place % 64 & 1;
}
