/*
 * picard_read.c -- see picard_read.h.
 *
 * Two bases are unpacked at a time by a table of pairs. On the reverse strand the pairs are written
 * from the end to the beginning; if the number of bases is odd, the last pair, whose second base is
 * padding, begins a byte before the array.
 */
#include "picard/picard_read.h"

#include "util/xalloc.h"

#include <stdlib.h>

#define PAIR(hi, lo) {hi, lo}
#define ROW(hi)                                                                                    \
    PAIR(hi, 0), PAIR(hi, 1), PAIR(hi, 2), PAIR(hi, 3), PAIR(hi, 4), PAIR(hi, 5), PAIR(hi, 6),     \
        PAIR(hi, 7), PAIR(hi, 8), PAIR(hi, 9), PAIR(hi, 10), PAIR(hi, 11), PAIR(hi, 12),           \
        PAIR(hi, 13), PAIR(hi, 14), PAIR(hi, 15)

static const uint8_t pairs[256][2] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6),
                                      ROW(7), ROW(8), ROW(9), ROW(10), ROW(11), ROW(12), ROW(13),
                                      ROW(14), ROW(15)};

static void unpack_forward(const struct picard_read *read, uint8_t *codes)
{
    size_t n_bytes = (read->n_bases + 1) / 2;
    for (size_t i = 0; i < n_bytes; i++) memcpy(codes + 2 * i, pairs[read->seq[i]], 2);
}

static void unpack(struct picard_read *read)
{
    size_t n = read->n_bases, n_bytes = (n + 1) / 2;
    if (!read->is_reverse) {
        unpack_forward(read, read->codes);
        return;
    }
    uint8_t *to = read->codes + n;
    for (size_t i = 0; i < n_bytes; i++) {
        uint8_t byte = read->seq[i];
        to -= 2;
        memcpy(to, pairs[(uint8_t)(byte << 4 | byte >> 4)], 2);
    }
}

static void copy_quals(struct picard_read *read)
{
    size_t n = read->n_bases, i = 0;
    if (!read->is_reverse) {
        memcpy(read->cycle_quals, read->quals, n);
        return;
    }
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, read->quals + i, 8);
        eight = __builtin_bswap64(eight);
        memcpy(read->cycle_quals + n - i - 8, &eight, 8);
    }
    for (; i < n; i++) read->cycle_quals[n - 1 - i] = read->quals[i];
}

static void make_room(struct picard_read *read)
{
    size_t needed = read->n_bases + 2 * CYCLE_BLOCK;
    if (needed <= read->room) return;
    free(read->codes_memory);
    free(read->forward_memory);
    free(read->cycle_quals);
    read->forward_memory = NULL;
    read->room = needed + needed / 2;
    read->codes_memory = xcalloc(read->room + CYCLE_BLOCK, 1);
    read->codes = read->codes_memory + CYCLE_BLOCK;
    read->cycle_quals = xcalloc(read->room, 1);
}

static void find_no_calls(struct picard_read *read)
{
    read->n_no_calls = 0;
    const uint8_t *end = read->codes + read->n_bases, *at = read->codes;
    while (at < end && (at = memchr(at, CODE_N, (size_t)(end - at)))) {
        xgrow(&read->no_calls, &read->no_calls_room, read->n_no_calls + 1, read->n_no_calls,
              sizeof *read->no_calls);
        read->no_calls[read->n_no_calls++] = (uint32_t)(at++ - read->codes);
    }
}

void picard_read_set(struct picard_read *read, const uint8_t *rec)
{
    static const char names[N_TAGS][2] = {
        [TAG_RG] = {'R', 'G'}, [TAG_MQ] = {'M', 'Q'}, [TAG_SA] = {'S', 'A'},
        [TAG_XN] = {'X', 'N'}, [TAG_OQ] = {'O', 'Q'}, [TAG_CG] = {'C', 'G'}};
    enum { NO_QUALITY = 0xff };
    read->rec = rec;
    uint32_t flag = read->flag = bam_record_flag(rec);
    read->mapq = rec[BAM_MAPQ_AT];
    read->is_pf = !(flag & BAM_FQCFAIL);
    read->is_reverse = flag & BAM_FREVERSE;
    read->category = !(flag & BAM_FPAIRED) ? PICARD_UNPAIRED
                     : flag & BAM_FREAD1   ? PICARD_FIRST
                                           : PICARD_SECOND;
    read->n_bases = (size_t)bam_record_n_bases(rec);
    read->seq = bam_record_seq(rec);
    read->quals = bam_record_quals(rec);
    read->has_quals = read->n_bases > 0 && read->quals[0] != NO_QUALITY;
    bam_aux_find_each(rec, names, N_TAGS, read->tags);
    read->cigar = bam_record_cigar(rec, &read->tags[TAG_CG]);
    read->pos = bam_record_true_pos(rec);
    make_room(read);
    unpack(read);
    if (read->has_quals) copy_quals(read);
    else memset(read->cycle_quals, 0, read->n_bases);
    memset(read->codes + read->n_bases, 0, CYCLE_BLOCK);
    memset(read->cycle_quals + read->n_bases, 0, CYCLE_BLOCK);
    find_no_calls(read);
}

void picard_read_turn(struct picard_read *read)
{
    read->forward = read->codes;
    if (!read->is_reverse) return;
    if (!read->forward_memory) read->forward_memory = xmalloc(read->room);
    unpack_forward(read, read->forward_memory);
    read->forward = read->forward_memory;
}

void picard_read_release(struct picard_read *read)
{
    free(read->codes_memory);
    free(read->forward_memory);
    free(read->cycle_quals);
    free(read->no_calls);
}
