/* cram_check.c -- see cram_check.h. The rules are those of process_one_read and cram_encode_aux in
   htslib 1.16 and 1.24. */
#include "output/cram_check.h"

#include "bam/bam_long.h"
#include "util/byte_order.h"

/* What is wrong with the name of the tag at `at`, or NULL. htslib drops the tags from one with a NUL
   on. With a byte above 127 htslib 1.16 makes a CRAM that cannot be read. */
static const char *check_name(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 2) return NULL;
    if (at[0] == 0 || at[1] == 0) return "the name of a tag has a NUL";
    return (at[0] | at[1]) > 127 ? "the name of a tag has a byte above 127" : NULL;
}

/* Sets *cg to the CG tag; its type is 0 if there is none. */
static const char *check_tags(const uint8_t *rec, struct bam_aux *cg)
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
        if (!cg->type && aux.start[0] == 'C' && aux.start[1] == 'G') *cg = aux;
    }
    return problem ? problem : r < 0 ? "its tags are damaged" : NULL;
}

const char *cram_record_check(const uint8_t *rec)
{
    struct bam_aux cg;
    const char *problem = check_tags(rec, &cg);
    if (problem || bam_record_flag(rec) & BAM_FUNMAP) return problem;
    if (bam_record_true_pos(rec) < 0) return "it is mapped and has no position";
    struct bam_cigar cigar = bam_record_cigar(rec, &cg);
    if (cigar.n_ops == 0 && bam_record_n_bases(rec) > 0)
        return "it is mapped and has bases, but no CIGAR";
    for (const uint8_t *at = cigar.ops; at < cigar.ops + 4 * cigar.n_ops; at += 4) {
        uint32_t op = bam_cigar_op(get_u32(at));
        if (op == BAM_CBACK) return "its CIGAR has the operation B";
        if (op > BAM_CBACK) return "its CIGAR has an unknown operation";
    }
    return NULL;
}
