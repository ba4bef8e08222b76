/* cut_names.c -- see cut_names.h. */
#include "bam/cut_names.h"

#include "util/diag.h"

#include <inttypes.h>

/* Counts a name. Among records with the same number in several inputs, the first is the one whose
   name sorts first, so that the warning does not depend on threads. */
static void count(struct cut_names *cut, const char *name, uint64_t record)
{
    atomic_fetch_add_explicit(&cut->n, 1, memory_order_relaxed);
    if (record > atomic_load_explicit(&cut->first_record, memory_order_relaxed)) return;
    (void)pthread_mutex_lock(&cut->mutex);
    uint64_t first = cut->first_record;
    if (record < first || (record == first && strcmp(name, cut->first_name) < 0)) {
        cut->first_record = record;
        memcpy(cut->first_name, name, strlen(name) + 1);
    }
    (void)pthread_mutex_unlock(&cut->mutex);
}

void cut_names_cut(struct cut_names *cut, uint8_t *rec, uint64_t record)
{
    uint8_t *name = rec + BAM_RECORD_FIXED_BYTES;
    size_t n_bytes = strlen((const char *)name) + 1;
    size_t n_excess = bam_record_name_bytes(rec) - n_bytes, rec_bytes = bam_record_bytes(rec);
    if (n_excess == 0) return;
    uint8_t *rest = name + n_bytes;
    memmove(rest, rest + n_excess, (size_t)(rec + rec_bytes - rest) - n_excess);
    rec[BAM_NAME_BYTES_AT] = (uint8_t)n_bytes;
    (void)put_u32(rec, rec_bytes - n_excess - 4);
    if (cut) count(cut, (const char *)name, record);
}

void cut_names_warn(const struct cut_names *cut)
{
    if (cut->n == 0) return;
    diag_warning("read names contain NUL bytes, which end a name: cut at the first NUL (records: "
                 "%" PRIu64 ", first: '%s')", cut->n, cut->first_name);
}
