/*
 * bam_key_template.c -- see bam_key_template.h.
 *
 * The key is, most significant first: the references of both ends (4 bytes each, sign bit
 * flipped), their positions (8 bytes each, sign bit flipped), a byte with their strands, the rank
 * of the library (4 bytes), the CB text and a NUL, the MI text and a NUL, the read name and a NUL,
 * and a byte that is 1 if the read is not at the lower end.
 *
 * Rules found by sorting random records with samtools 1.24:
 *
 * - An unmapped end comes after all others and is not reversed, whatever its flags say. The mate of
 *   an unpaired read is unmapped.
 * - A mapped end without a reference (-1, which no aligner writes) comes before all others. (There
 *   the order of samtools is inconsistent.)
 * - If both ends are equal, the read's own end is the lower one if it is on the forward strand. So
 *   both records of such a pair count as lower, or neither does.
 * - The reverse strand comes before the forward strand.
 * - Soft-clipped bases count in a position. Hard-clipped bases do not, but a soft clip next to them
 *   still counts. For the read's own end, only the clips at the outer end of its CIGAR count. For
 *   the end of a reversed mate, every soft clip after its first base on the reference counts. A
 *   read without bases on the reference counts as one base long; such a mate as 0 bases long.
 * - MC must be there if the mate is mapped; CB and MI need not. Each may be of type Z or H, but RG
 *   only of type Z. If an MI ends in "/" and one more character, these two do not count.
 * - MI compares by signed characters, as on the platform of samtools: bytes from 0x80 on come
 *   before all others. Libraries, cell barcodes and read names compare by strcmp. A missing CB is
 *   the same as an empty one.
 */
#include "order/bam_key_template.h"

#include "bam/bam_long.h"
#include "bam/read_groups.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    ENDS_BYTES = 2 * 4 + 2 * 8 + 1 + 4,         /* ends and library */
    FIXED_BYTES = ENDS_BYTES + 1 + 1 + 1,       /* without the texts, but with the NULs of CB and
                                                   MI and the last byte */
};

struct bam_key_template {
    struct read_groups *groups;
    uint32_t *ranks;            /* of libraries, by number, in the order of strcmp; the rank of an
                                   unknown or empty one is 0 */
};

/* One end of a template. */
struct end {
    int32_t tid;
    int64_t pos;                /* 1-based */
    bool reverse;
};

/* The tags that the key depends on; if one is repeated, its first occurrence. */
enum { TAG_RG, TAG_MC, TAG_MI, TAG_CB, TAG_CG, N_TAGS };

static const char tag_names[N_TAGS][2] = {"RG", "MC", "MI", "CB", "CG"};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct bam_key_template *bam_key_template_create(sam_hdr_t *header)
{
    if (sam_hdr_count_lines(header, "RG") < 0) return NULL;
    struct bam_key_template *t = xcalloc(1, sizeof *t);
    t->groups = read_groups_create(header);
    const struct name_table *libraries = &t->groups->libraries;
    char **sorted = xmemdup(libraries->names, (libraries->n + 1) * sizeof *sorted);
    qsort(sorted, libraries->n, sizeof *sorted, compare_names);
    t->ranks = xcalloc(libraries->n + 1, sizeof *t->ranks);
    for (size_t i = 0; i < libraries->n; i++) {
        char **at = bsearch(&libraries->names[i], sorted, libraries->n, sizeof *at, compare_names);
        if (libraries->names[i][0]) t->ranks[i + 1] = (uint32_t)(at - sorted) + 1;
    }
    free(sorted);
    return t;
}

void bam_key_template_destroy(struct bam_key_template *t)
{
    if (!t) return;
    read_groups_destroy(t->groups);
    free(t->ranks);
    free(t);
}

/* Returns the position of the read's own 5' end. */
static int64_t read_pos(const uint8_t *rec, const struct bam_aux *cg)
{
    struct bam_extent extent = bam_cigar_extent(bam_record_cigar(rec, cg));
    int64_t pos = bam_record_true_pos(rec);
    if (!(bam_record_flag(rec) & BAM_FREVERSE)) return pos + 1 - extent.soft[0];
    return pos + (extent.reference ? extent.reference : 1) + extent.soft[1];
}

/* Returns the position of the mate's 5' end, computed from its CIGAR and its first position, which
   counts from 0. */
static int64_t mate_pos(int64_t first, const char *cigar, bool reverse)
{
    struct bam_extent extent = bam_cigar_text_extent(cigar);
    return reverse ? first + extent.reference + extent.soft[1] : first + 1 - extent.soft[0];
}

/* Returns why the end of the mate is unknown. */
static const char *no_mate_cigar(const struct bam_aux *mc, uint32_t flag)
{
    if (mc->type) return "has an MC tag that is not text; run 'samtools fixmate -m' first";
    /* fixmate adds no MC to secondary reads. */
    if (flag & BAM_FSECONDARY)
        return "is secondary without an MC tag; drop secondary reads: --fixmate=-r or "
               "'samtools view -F 256'";
    return "has a mapped mate but no MC tag; run 'samtools fixmate -m' first, on reads with mates";
}

/* Finds the lower and the upper end. Returns 1 if the read is at the upper end, 0 if it is not, or
   -1 with *problem. */
static int find_ends(const uint8_t *rec, const struct bam_aux *tags, struct end ends[2],
                     const char **problem)
{
    const struct end unmapped = {INT32_MAX, HTS_POS_MAX, false};
    struct end own = unmapped, mate = unmapped;
    uint32_t flag = bam_record_flag(rec);
    if (!(flag & BAM_FUNMAP)) {
        own.tid = bam_record_tid(rec);
        own.pos = read_pos(rec, &tags[TAG_CG]);
        own.reverse = flag & BAM_FREVERSE;
    }
    if ((flag & BAM_FPAIRED) && !(flag & BAM_FMUNMAP)) {
        if (!bam_aux_is_text(&tags[TAG_MC])) {
            *problem = no_mate_cigar(&tags[TAG_MC], flag);
            return -1;
        }
        int64_t first = bam_record_true_mate_pos(rec);
        mate.tid = bam_record_mate_tid(rec);
        mate.reverse = flag & BAM_FMREVERSE;
        mate.pos = mate_pos(first, (const char *)tags[TAG_MC].value, mate.reverse);
    }
    bool lower = own.tid != mate.tid   ? own.tid < mate.tid
                 : own.pos != mate.pos ? own.pos < mate.pos
                                       : !own.reverse;
    ends[0] = lower ? own : mate;
    ends[1] = lower ? mate : own;
    return !lower;
}

/* A key before it is encoded. */
struct parts {
    uint8_t ends[ENDS_BYTES];
    const uint8_t *cb, *mi;
    size_t cb_bytes, mi_bytes;
    const char *name;
    uint8_t is_upper;
};

/* Makes the parts of a key. Returns 0, or -1 with *problem. */
static int take_apart(const struct bam_key_template *t, const uint8_t *rec, struct parts *parts,
                      const char **problem)
{
    struct bam_aux tags[N_TAGS];
    const struct bam_aux *cb = &tags[TAG_CB], *mi = &tags[TAG_MI];
    struct end ends[2];
    bam_aux_find_each(rec, tag_names, N_TAGS, tags);
    int is_upper = find_ends(rec, tags, ends, problem);
    if (is_upper < 0) return -1;
    if (cb->type && !bam_aux_is_text(cb)) {
        *problem = "has a CB tag that is not text; write cell barcodes as CB:Z";
        return -1;
    }
    if (mi->type && !bam_aux_is_text(mi)) {
        *problem = "has an MI tag that is not text; run 'samtools fixmate -m', then group to MI:Z";
        return -1;
    }
    *parts = (struct parts){.cb = cb->value, .mi = mi->value,
                            .name = (const char *)bam_record_name(rec),
                            .is_upper = (uint8_t)is_upper};
    if (cb->type) parts->cb_bytes = cb->value_bytes - 1;
    if (mi->type) parts->mi_bytes = mi->value_bytes - 1;
    if (parts->mi_bytes >= 2 && parts->mi[parts->mi_bytes - 2] == '/') parts->mi_bytes -= 2;
    const char *group = tags[TAG_RG].type == 'Z' ? (const char *)tags[TAG_RG].value : "";
    size_t library = read_groups_library(t->groups, read_groups_number(t->groups, group));
    uint8_t *out = parts->ends;
    for (int i = 0; i < 2; i++) out = put_big_endian(out, (uint32_t)ends[i].tid ^ 1u << 31, 4);
    for (int i = 0; i < 2; i++)
        out = put_big_endian(out, (uint64_t)ends[i].pos ^ UINT64_C(1) << 63, 8);
    *out++ = (uint8_t)(!ends[0].reverse << 1 | !ends[1].reverse);
    (void)put_big_endian(out, t->ranks[library], 4);
    return 0;
}

size_t bam_key_template_encode(const struct bam_key_template *t, const uint8_t *rec, uint8_t *out,
                               const char **problem)
{
    struct parts parts;
    if (take_apart(t, rec, &parts, problem) < 0) return 0;
    size_t name_bytes = strlen(parts.name) + 1;
    if (out) {
        out = copy_bytes(out, parts.ends, ENDS_BYTES);
        out = copy_bytes(out, parts.cb, parts.cb_bytes);
        *out++ = 0;
        /* Maps bytes to the order of signed characters; none becomes 0. */
        for (size_t i = 0; i < parts.mi_bytes; i++)
            *out++ = (uint8_t)(parts.mi[i] < 0x80 ? parts.mi[i] + 0x80 : parts.mi[i] - 0x7f);
        *out++ = 0;
        out = copy_bytes(out, parts.name, name_bytes);
        *out = parts.is_upper;
    }
    return FIXED_BYTES + parts.cb_bytes + parts.mi_bytes + name_bytes;
}
