/* cram_check.c -- see cram_check.h. The rules are those of process_one_read and cram_encode_aux in
   htslib 1.16 and 1.24. */
#include "output/cram_check.h"

#include "bam/bam_long.h"
#include "util/byte_order.h"

#include <stdbool.h>
#include <stdio.h>

enum { NO_DOUBT, NOTING, NOTED };       /* struct cram_doubt: state */

/* Keeps the name of the read if it is mapped; only the first one. */
static void note(struct cram_doubt *doubt, const uint8_t *rec, char type)
{
    int none = NO_DOUBT;
    if ((bam_record_flag(rec) & BAM_FUNMAP) != 0 ||
        !atomic_compare_exchange_strong(&doubt->state, &none, NOTING))
        return;
    (void)snprintf(doubt->read, sizeof doubt->read, "%s", (const char *)bam_record_name(rec));
    doubt->type = type;
    atomic_store(&doubt->state, NOTED);
}

const char *cram_doubt_read(const struct cram_doubt *doubt, char *type)
{
    if (atomic_load(&doubt->state) != NOTED) return NULL;
    *type = doubt->type;
    return doubt->read;
}

/* Returns the problem with the name of the tag at `at`, or NULL. htslib drops all tags after a name
   with a NUL. With a byte above 127, htslib 1.16 writes an unreadable CRAM. */
static const char *check_name(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2) return NULL;
    if (at[0] == 0 || at[1] == 0) return "the name of a tag has a NUL";
    return (at[0] | at[1]) > 127 ? "the name of a tag has a byte above 127" : NULL;
}

static bool is_tag(const struct bam_aux *aux, char first, char second)
{
    return aux->start[0] == first && aux->start[1] == second;
}

/* Sets *cg to the CG tag; its type is 0 if there is none. */
static const char *check_tags(const uint8_t *rec, struct cram_doubt *doubt, struct bam_aux *cg)
{
    const uint8_t *at = bam_record_tags(rec), *end = bam_record_end(rec);
    struct bam_aux aux;
    const char *problem;
    int r = 1;
    *cg = (struct bam_aux){.type = 0};
    while ((problem = check_name(at, end)) == NULL && (r = bam_aux_read(rec, &at, &aux)) > 0) {
        if (aux.type == 'd') return "it has a tag of type d";
        if (aux.type == 'B' && (aux.value[0] == 'A' || aux.value[0] == 'd'))
            return "it has an array of type A or d";
        if (!cg->type && is_tag(&aux, 'C', 'G')) *cg = aux;
        if (is_tag(&aux, 'N', 'M') && bam_aux_fixed_bytes[(uint8_t)aux.type] == 0)
            note(doubt, rec, aux.type);
    }
    return problem ? problem : r < 0 ? "its tags are damaged" : NULL;
}

const char *cram_record_check(const uint8_t *rec, struct cram_doubt *doubt)
{
    struct bam_aux cg;
    const char *problem = check_tags(rec, doubt, &cg);
    int64_t end = bam_record_true_pos(rec);
    if (problem) return problem;
    if (end >= INT32_MAX || bam_record_true_mate_pos(rec) >= INT32_MAX)
        return "its position or that of its mate is above 2147483647";
    if (bam_record_flag(rec) & BAM_FUNMAP) return NULL;
    if (end < 0) return "it is mapped and has no position";
    struct bam_cigar cigar = bam_record_cigar(rec, &cg);
    if (cigar.n_ops == 0 && bam_record_n_bases(rec) > 0)
        return "it is mapped and has bases, but no CIGAR";
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        uint32_t op = bam_cigar_op(get_u32(at));
        if (op == BAM_CBACK) return "its CIGAR has the operation B";
        if (op > BAM_CBACK) return "its CIGAR has an unknown operation";
        if (bam_cigar_type(op) & 2) end += bam_cigar_oplen(get_u32(at));
    }
    /* htslib would write an unreadable slice. */
    return end > INT32_MAX ? "it ends above position 2147483647" : NULL;
}
