/* guessed_walk.c -- see guessed_walk.h. */
#include "bam/guessed_walk.h"

/* True if a record may begin here. The name must end with a NUL, which few wrong places have. */
static bool is_plausible(const uint8_t *rec, size_t n_left)
{
    if (n_left < BAM_RECORD_FIXED_BYTES) return false;
    int32_t n_bases = bam_record_n_bases(rec);
    size_t name_end = BAM_RECORD_FIXED_BYTES + bam_record_name_bytes(rec);
    if (n_bases < 0 || n_left < name_end || rec[name_end - 1] != '\0') return false;
    size_t least = name_end + 4 * bam_record_n_ops(rec) + 3 * (size_t)n_bases / 2;
    return bam_record_bytes(rec) >= least && bam_record_bytes(rec) <= INT32_MAX &&
           bam_record_tid(rec) >= -1 && bam_record_name_bytes(rec) > 0;
}

/* True if a whole record may lie here, and another one behind it. */
static bool is_beginning(const uint8_t *rec, const uint8_t *end)
{
    size_t n_left = (size_t)(end - rec);
    if (!is_plausible(rec, n_left) || bam_record_bytes(rec) > n_left) return false;
    const uint8_t *next = rec + bam_record_bytes(rec);
    n_left = (size_t)(end - next);
    return n_left < BAM_RECORD_FIXED_BYTES + UINT8_MAX || is_plausible(next, n_left);
}

void guessed_walk_make(struct guessed_walk *guess, const uint8_t *stretch, size_t n_bytes)
{
    const uint8_t *from = stretch, *end = stretch + n_bytes;
    *guess = (struct guessed_walk){0};
    while (from < end && !is_beginning(from, end)) from++;
    struct bam_walk walk = {.at = from, .end = end};
    while (bam_walk_next(&walk)) guess->n_records++;
    guess->from = (size_t)(from - stretch);
    guess->to = (size_t)(walk.at - stretch);
}

size_t guessed_walk_go(const struct guessed_walk *guess, const uint8_t *stretch,
                       struct bam_walk *walk)
{
    for (size_t n_records = 0;; n_records++) {
        if (guessed_walk_is_met(guess, stretch, walk)) {
            n_records += guess->n_records;
            walk->at = stretch + guess->to;
        }
        if (!bam_walk_next(walk)) return n_records;
    }
}
