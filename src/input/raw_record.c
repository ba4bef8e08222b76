/* raw_record.c -- see raw_record.h. */
#include "input/raw_record.h"

#include "bam/bam_convert.h"
#include "util/xalloc.h"

const char *raw_record_put(const bam1_t *record, bool long_positions, uint8_t **buffer,
                           size_t *room, size_t at)
{
    size_t n_bytes = bam_record_packed_bytes(record);
    bool is_long = n_bytes == 0 && long_positions;
    if (is_long) n_bytes = bam_record_long_bytes(record);
    if (n_bytes == 0) return "it lies beyond 2^31 or its CIGAR is too long";
    xgrow(buffer, room, at + n_bytes, (at + n_bytes) / 4, 1);
    if (is_long)
        bam_record_pack_long(record, *buffer + at);
    else
        bam_record_pack(record, *buffer + at);
    return NULL;
}
