/* bam_check.c -- see bam_check.h. */
#include "bam/bam_check.h"

#include "bam/bam_long.h"
#include "util/byte_order.h"

/* Returns the number of bases of the read that a CIGAR covers. */
static uint64_t query_length(struct bam_cigar cigar)
{
    uint64_t length = 0;
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        uint32_t op = get_u32(at);
        if (bam_cigar_type(bam_cigar_op(op)) & 1) length += bam_cigar_oplen(op);
    }
    return length;
}

/*
 * Compares the CIGAR of a mapped read with its sequence. The record must have a CIGAR, and its
 * fields must agree with its size. As in htslib, if the CIGAR may be in a CG tag, all tags up to CG
 * must be sound, even if the read is unmapped or has no sequence.
 */
static const char *check_cigar(const uint8_t *rec)
{
    struct bam_aux cg;
    int has_cg = bam_record_has_placeholder(rec) ? bam_aux_find(rec, "CG", &cg) : 0;
    if (has_cg < 0) return "its tags are damaged";
    uint32_t n_bases = (uint32_t)bam_record_n_bases(rec);
    if (n_bases == 0 || bam_record_flag(rec) & BAM_FUNMAP) return NULL;
    return query_length(bam_record_cigar(rec, has_cg ? &cg : NULL)) == n_bases
               ? NULL : "its CIGAR and its sequence differ in length";
}

const char *bam_record_check(const uint8_t *rec, int32_t n_refs)
{
    uint64_t size = bam_record_bytes(rec);
    if (size < BAM_RECORD_FIXED_BYTES) return "its size is below 32 bytes";
    int32_t tid = bam_record_tid(rec), mate_tid = bam_record_mate_tid(rec);
    if (tid < -1 || tid >= n_refs) return "its reference is not in the header";
    if (mate_tid < -1 || mate_tid >= n_refs) return "its mate's reference is not in the header";
    if (bam_record_pos(rec) < -1) return "its position is negative";
    uint64_t name_bytes = bam_record_name_bytes(rec), cigar_bytes = 4 * bam_record_n_ops(rec);
    int32_t n_bases = bam_record_n_bases(rec);
    if (name_bytes < 1) return "it has no read name";
    if (n_bases < 0) return "its sequence length is negative";
    uint64_t seq_bytes = ((uint64_t)n_bases + 1) / 2 + (uint64_t)n_bases;
    if (BAM_RECORD_FIXED_BYTES + name_bytes + cigar_bytes + seq_bytes > size)
        return "its fields are longer than the record";
    if (bam_record_name(rec)[name_bytes - 1] != 0) return "its read name has no end";
    const char *problem = cigar_bytes > 0 ? check_cigar(rec) : NULL;
    if (problem) return problem;
    return bam_record_long_is_sound(rec) ? NULL : "its positions are impossible";
}

const char *bam_record_check_input(const uint8_t *rec, int32_t n_refs, bool long_positions)
{
    const char *problem = bam_record_check(rec, n_refs);
    if (!problem && !long_positions && bam_record_is_long(rec))
        problem = "it has a tag whose name is not two letters or digits";
    return problem;
}

/* ---- guessing where records begin ---- */

/* True if a whole record may lie here, with any reference. */
static bool is_beginning(const uint8_t *rec, const uint8_t *end)
{
    size_t n_left = (size_t)(end - rec);
    return n_left >= BAM_RECORD_MIN_BYTES && bam_record_bytes(rec) <= n_left &&
           !bam_record_check(rec, INT32_MAX);
}

void speculative_scan_make(struct speculative_scan *guess, const uint8_t *span, size_t n_bytes)
{
    const uint8_t *from = span, *end = span + n_bytes;
    *guess = (struct speculative_scan){0};
    while (from < end && !is_beginning(from, end)) from++;
    struct bam_walk walk = {.at = from, .end = end};
    while (bam_walk_next(&walk)) guess->n_records++;
    guess->from = (size_t)(from - span);
    guess->to = (size_t)(walk.at - span);
}

size_t speculative_scan_go(const struct speculative_scan *guess, const uint8_t *span,
                           struct bam_walk *walk)
{
    for (size_t n_records = 0;; n_records++) {
        if (speculative_scan_is_met(guess, span, walk)) {
            n_records += guess->n_records;
            walk->at = span + guess->to;
        }
        if (!bam_walk_next(walk)) return n_records;
    }
}
