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

#include "bam/bam_aux.h"
#include "bam/bam_long.h"
#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    ENDS_BYTES = 2 * 4 + 2 * 8 + 1 + 4,         /* ends and library */
    FIXED_BYTES = ENDS_BYTES + 1 + 1 + 1,       /* without the texts, but with the NULs of CB and
                                                   MI and the last byte */
};

struct read_group {
    const char *id;
    const char *library;        /* "" if it has none */
    uint32_t rank;              /* rank of the library, from 1; the rank of "" is 0 */
};

struct bam_key_template {
    struct read_group *groups;  /* sorted by ID; htslib keeps one line for each ID */
    size_t n_groups;
};

/* One end of a template. */
struct end {
    int32_t tid;
    int64_t pos;                /* 1-based */
    bool reverse;
};

/* The tags that the key depends on; type 0: the record has no such tag. */
struct tags {
    struct bam_aux rg, mc, mi, cb, cg;
};

static int compare_ids(const void *left, const void *right)
{
    const struct read_group *a = left, *b = right;
    return strcmp(a->id, b->id);
}

static int compare_libraries(const void *left, const void *right)
{
    const struct read_group *a = left, *b = right;
    return strcmp(a->library, b->library);
}

/* Returns a copy of the value of a tag in one @RG line of a parsed header; "" if the line lacks the
   tag. */
static char *copy_rg_tag(sam_hdr_t *header, int line, const char *tag)
{
    kstring_t value = KS_INITIALIZE;
    int r = sam_hdr_find_tag_pos(header, "RG", line, tag, &value);
    xalloc_require(r >= -1);
    char *copy = xstrdup(r < 0 ? "" : ks_c_str(&value));
    ks_free(&value);
    return copy;
}

struct bam_key_template *bam_key_template_create(sam_hdr_t *header)
{
    int n_lines = sam_hdr_count_lines(header, "RG");
    if (n_lines < 0) return NULL;
    struct bam_key_template *t = xcalloc(1, sizeof *t);
    t->groups = xcalloc((size_t)n_lines, sizeof *t->groups);
    for (int i = 0; i < n_lines; i++) {
        struct read_group *group = &t->groups[t->n_groups++];
        group->id = copy_rg_tag(header, i, "ID");
        group->library = copy_rg_tag(header, i, "LB");
    }
    qsort(t->groups, t->n_groups, sizeof *t->groups, compare_libraries);
    uint32_t rank = 0;
    const char *last = "";
    for (size_t i = 0; i < t->n_groups; i++) {
        if (strcmp(t->groups[i].library, last) != 0) rank++;
        t->groups[i].rank = rank;
        last = t->groups[i].library;
    }
    qsort(t->groups, t->n_groups, sizeof *t->groups, compare_ids);
    return t;
}

void bam_key_template_destroy(struct bam_key_template *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_groups; i++) {
        free((char *)t->groups[i].id);
        free((char *)t->groups[i].library);
    }
    free(t->groups);
    free(t);
}

static uint32_t library_rank(const struct bam_key_template *t, const struct bam_aux *rg)
{
    if (rg->type != 'Z') return 0;
    struct read_group wanted = {.id = (const char *)rg->value};
    const struct read_group *group =
        bsearch(&wanted, t->groups, t->n_groups, sizeof wanted, compare_ids);
    return group ? group->rank : 0;
}

static bool is_text(const struct bam_aux *aux)
{
    return aux->type == 'Z' || aux->type == 'H';
}

/* Collects the first tag of each name, up to the first damaged tag. */
static void find_tags(const uint8_t *rec, struct tags *tags)
{
    const uint8_t *at = bam_record_tags(rec);
    struct bam_aux aux, *to;
    *tags = (struct tags){0};
    while (bam_aux_read(rec, &at, &aux) > 0) {
        switch (aux.start[0] << 8 | aux.start[1]) {
        case 'R' << 8 | 'G': to = &tags->rg; break;
        case 'M' << 8 | 'C': to = &tags->mc; break;
        case 'M' << 8 | 'I': to = &tags->mi; break;
        case 'C' << 8 | 'B': to = &tags->cb; break;
        case 'C' << 8 | 'G': to = &tags->cg; break;
        default: continue;
        }
        if (!to->type) *to = aux;
    }
}

/* Returns the number of soft-clipped bases at one end of the CIGAR; skips hard clips. */
static int64_t soft_clipped(const struct bam_cigar *cigar, bool at_end)
{
    int64_t n_bases = 0;
    for (size_t i = 0; i < cigar->n_ops; i++) {
        uint32_t op = get_u32(cigar->ops + 4 * (at_end ? cigar->n_ops - 1 - i : i));
        if (bam_cigar_op(op) == BAM_CSOFT_CLIP)
            n_bases += bam_cigar_oplen(op);
        else if (bam_cigar_op(op) != BAM_CHARD_CLIP)
            break;
    }
    return n_bases;
}

/* Returns the position of the read's own 5' end. */
static int64_t read_pos(const uint8_t *rec, const struct bam_aux *cg)
{
    struct bam_cigar cigar = bam_record_cigar(rec, cg);
    int64_t pos = bam_record_true_pos(rec);
    if (!(bam_record_flag(rec) & BAM_FREVERSE)) return pos + 1 - soft_clipped(&cigar, false);
    int64_t n_bases = bam_cigar_reference_bases(cigar);
    return pos + (n_bases ? n_bases : 1) + soft_clipped(&cigar, true);
}

/* Reads the length before an operation of a CIGAR in text and moves *at to the operation. Returns 1
   if there is no length. */
static uint64_t take_length(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9') return 1;
    uint64_t length = (uint64_t)strtoll(*at, &end, 10);
    *at = end;
    return length;
}

/*
 * Returns the position of the mate's 5' end, computed from its CIGAR, which may be any text, and
 * its first position, which counts from 0. Sums wrap around as in samtools.
 */
static int64_t mate_pos(int64_t first, const char *cigar, bool reverse)
{
    uint64_t pos = (uint64_t)first;
    bool on_reference = false;
    if (!reverse) {
        for (pos++;; cigar++) {
            uint64_t length = take_length(&cigar);
            if (*cigar == 'S')
                pos -= length;
            else if (*cigar != 'H')
                return (int64_t)pos;
        }
    }
    while (*cigar && *cigar != '*') {
        uint64_t length = take_length(&cigar);
        if (*cigar == '\0') break;
        if (strchr("MDN=X", *cigar)) on_reference = true;
        if (strchr("MDN=X", *cigar) || (*cigar == 'S' && on_reference)) pos += length;
        cigar++;
    }
    return (int64_t)pos;
}

/* Returns why the end of the mate is unknown. */
static const char *no_mate_cigar(const struct tags *tags, uint32_t flag)
{
    if (tags->mc.type) return "has an MC tag that is not text; run 'samtools fixmate -m' first";
    /* fixmate adds no MC to secondary reads. */
    if (flag & BAM_FSECONDARY)
        return "is secondary without an MC tag; drop secondary reads: --fixmate=-r or "
               "'samtools view -F 256'";
    return "has a mapped mate but no MC tag; run 'samtools fixmate -m' first, on reads with mates";
}

/* Finds the lower and the upper end. Returns 1 if the read is at the upper end, 0 if it is not, or
   -1 with *problem. */
static int find_ends(const uint8_t *rec, const struct tags *tags, struct end ends[2],
                     const char **problem)
{
    const struct end unmapped = {INT32_MAX, HTS_POS_MAX, false};
    struct end own = unmapped, mate = unmapped;
    uint32_t flag = bam_record_flag(rec);
    if (!(flag & BAM_FUNMAP)) {
        own.tid = bam_record_tid(rec);
        own.pos = read_pos(rec, &tags->cg);
        own.reverse = flag & BAM_FREVERSE;
    }
    if ((flag & BAM_FPAIRED) && !(flag & BAM_FMUNMAP)) {
        if (!is_text(&tags->mc)) {
            *problem = no_mate_cigar(tags, flag);
            return -1;
        }
        int64_t first = bam_record_true_mate_pos(rec);
        mate.tid = bam_record_mate_tid(rec);
        mate.reverse = flag & BAM_FMREVERSE;
        mate.pos = mate_pos(first, (const char *)tags->mc.value, mate.reverse);
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
    struct tags tags;
    struct end ends[2];
    find_tags(rec, &tags);
    int is_upper = find_ends(rec, &tags, ends, problem);
    if (is_upper < 0) return -1;
    if (tags.cb.type && !is_text(&tags.cb)) {
        *problem = "has a CB tag that is not text; write cell barcodes as CB:Z";
        return -1;
    }
    if (tags.mi.type && !is_text(&tags.mi)) {
        *problem = "has an MI tag that is not text; run 'samtools fixmate -m', then group to MI:Z";
        return -1;
    }
    *parts = (struct parts){.cb = tags.cb.value, .mi = tags.mi.value,
                            .name = (const char *)bam_record_name(rec),
                            .is_upper = (uint8_t)is_upper};
    if (tags.cb.type) parts->cb_bytes = tags.cb.value_bytes - 1;
    if (tags.mi.type) parts->mi_bytes = tags.mi.value_bytes - 1;
    if (parts->mi_bytes >= 2 && parts->mi[parts->mi_bytes - 2] == '/') parts->mi_bytes -= 2;
    uint8_t *out = parts->ends;
    for (int i = 0; i < 2; i++) out = put_big_endian(out, (uint32_t)ends[i].tid ^ 1u << 31, 4);
    for (int i = 0; i < 2; i++)
        out = put_big_endian(out, (uint64_t)ends[i].pos ^ UINT64_C(1) << 63, 8);
    *out++ = (uint8_t)(!ends[0].reverse << 1 | !ends[1].reverse);
    (void)put_big_endian(out, library_rank(t, &tags.rg), 4);
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
