/* template_cut.c -- see template_cut.h. */
#include "fixmate/template_cut.h"

#include "fixmate/draft.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <string.h>

/* How many of the last records are remembered. Most templates have two or three. */
enum { N_LAST = 16 };

bool template_same_name(const uint8_t *a, const uint8_t *b)
{
    size_t n_a = bam_record_name_bytes(a), n_b = bam_record_name_bytes(b);
    if (BAM_RECORD_FIXED_BYTES + n_a > bam_record_bytes(a) ||
        BAM_RECORD_FIXED_BYTES + n_b > bam_record_bytes(b))
        return false;
    const char *name_a = (const char *)bam_record_name(a);
    const char *name_b = (const char *)bam_record_name(b);
    if (n_a == n_b && memcmp(name_a, name_b, n_a) == 0) return true;
    size_t n = n_a < n_b ? n_a : n_b;
    /* Some programs pad names with several NULs. */
    return strncmp(name_a, name_b, n) == 0 && (n_a == n_b || memchr(name_a, 0, n));
}

uint8_t *template_copy_name(const uint8_t *rec)
{
    size_t n_bytes = BAM_RECORD_FIXED_BYTES + bam_record_name_bytes(rec);
    if (n_bytes > bam_record_bytes(rec)) n_bytes = BAM_RECORD_FIXED_BYTES;      /* no name */
    uint8_t *name = xmemdup(rec, n_bytes);
    (void)put_u32(name, n_bytes - 4);
    return name;
}

size_t template_memory_bytes(size_t n_bytes, size_t n_records)
{
    return n_bytes + n_records * sizeof(struct draft) / 2;
}

/* ---- the last template ---- */

/* Walks all records to find the last one whose name differs from that of its predecessor. */
static struct last_template look_from_the_beginning(const uint8_t *from, const uint8_t *to)
{
    struct last_template last = {0, 0};
    const uint8_t *before = from;
    for (const uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        if (!template_same_name(before, rec))
            last = (struct last_template){.at = (size_t)(rec - from)};
        last.n_records++;
        before = rec;
    }
    return last;
}

struct last_template template_find_last(const uint8_t *from, const uint8_t *to)
{
    const uint8_t *starts[N_LAST];      /* record i starts at starts[i % N_LAST] */
    size_t n_records = 0, n_same = 1;
    for (const uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec))
        starts[n_records++ % N_LAST] = rec;
    if (n_records == 0) return (struct last_template){0, 0};
    size_t n = n_records < N_LAST ? n_records : N_LAST;
    const uint8_t *last = starts[(n_records - 1) % N_LAST];
    while (n_same < n && template_same_name(starts[(n_records - 1 - n_same) % N_LAST], last))
        n_same++;
    if (n_same == N_LAST && n_records > N_LAST) return look_from_the_beginning(from, to);
    return (struct last_template){(size_t)(starts[(n_records - n_same) % N_LAST] - from), n_same};
}
