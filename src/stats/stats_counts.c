/* stats_counts.c -- see stats_counts.h. */
#include "stats/stats_counts.h"

#include "bam/bgzf_engine.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* ---- a record ---- */

enum { NEITHER = -1, BOTH = -2 };

static int fragment_of(uint32_t flag)
{
    if (!(flag & BAM_FPAIRED)) return STATS_FIRST;
    switch (flag & (BAM_FREAD1 | BAM_FREAD2)) {
    case BAM_FREAD1: return STATS_FIRST;
    case BAM_FREAD2: return STATS_LAST;
    case 0: return NEITHER;
    default: return BOTH;
    }
}

#define NAME(a, b) ((a) | (b) << 8)

/* Returns where a tag goes, or NULL. */
static struct bam_aux *place_of(struct stats_read *read, uint16_t name)
{
    switch (name) {
    case NAME('N', 'M'): return &read->nm;
    case NAME('B', 'C'): return &read->texts[0];
    case NAME('Q', 'T'): return &read->quals[0];
    case NAME('C', 'R'): return &read->texts[1];
    case NAME('C', 'Y'): return &read->quals[1];
    case NAME('O', 'X'): return &read->texts[2];
    case NAME('B', 'Z'): return &read->quals[2];
    case NAME('R', 'X'): return &read->texts[3];
    case NAME('Q', 'X'): return &read->quals[3];
    default: return NULL;
    }
}

static void find_tags(struct stats_read *read)
{
    const uint8_t *at = bam_record_tags(read->rec);
    struct bam_aux aux;
    read->nm.type = 0;
    for (int i = 0; i < STATS_N_BARCODES; i++) read->texts[i].type = read->quals[i].type = 0;
    while (bam_aux_read(read->rec, &at, &aux) > 0) {
        struct bam_aux *place = place_of(read, (uint16_t)get_u16(aux.start));
        if (place && !place->type) *place = aux;
    }
}

void stats_read_parse(struct stats_read *read, const uint8_t *rec)
{
    struct bam_aux cg;
    uint64_t length = (uint32_t)bam_record_n_bases(rec);
    read->rec = rec;
    read->flag = bam_record_flag(rec);
    read->n_bases = (uint32_t)length;
    read->fragment = fragment_of(read->flag);
    read->cigar = bam_record_find_cigar(rec, &cg);
    for (size_t i = 0; i < read->cigar.n_ops; i++) {
        const uint32_t op = get_u32(read->cigar.ops + 4 * i);
        if (bam_cigar_op(op) == BAM_CHARD_CLIP) length += bam_cigar_oplen(op);
    }
    read->length = length < INT32_MAX / 8 ? (uint32_t)length : INT32_MAX / 8;
    find_tags(read);
}

/* ---- rows ---- */

static uint64_t *row_at(struct stats_row *row, size_t i)
{
    xgrow_zeroed(&row->n, &row->room, i + 1, i / 2 + 64, sizeof *row->n);
    return &row->n[i];
}

/* ---- what is counted of a read ---- */

static void add_checksums(struct stats_counts *counts, const struct stats_read *read)
{
    const char *name = (const char *)bam_record_name(read->rec);
    const size_t n_bases = read->n_bases;
    uint64_t *n = counts->numbers;
    n[STATS_CRC_NAMES] += bgzf_engine_crc(0, (const uint8_t *)name,
                                          strnlen(name, bam_record_name_bytes(read->rec)));
    if (n_bases == 0) return;
    n[STATS_CRC_BASES] += bgzf_engine_crc(0, bam_record_seq(read->rec), (n_bases + 1) / 2);
    n[STATS_CRC_QUALS] += bgzf_engine_crc(0, bam_record_quals(read->rec), n_bases);
}

/* How many bases bwa would trim at the end of a read: as there, one less than the best. */
static uint32_t trimmed_bases(const struct stats_read *read, int trim_quality)
{
    enum { FEWEST_BASES = 35 };
    const uint8_t *quals = bam_record_quals(read->rec);
    const bool is_reverse = read->flag & BAM_FREVERSE;
    int64_t sum = 0, most = 0;
    uint32_t best = 0;
    for (uint32_t i = 0; i + FEWEST_BASES <= read->n_bases; i++) {
        sum += trim_quality - quals[is_reverse ? i : read->n_bases - 1 - i];
        if (sum < 0) break;
        if (sum <= most) continue;
        most = sum;
        best = i;
    }
    return best;
}

/* Adds a read to the counts of its share of G and C: each is for a range of shares. */
static void add_gc(struct stats_counts *counts, const struct stats_read *read)
{
    const uint64_t last = STATS_GC_STEPS - 1;
    uint64_t from = read->n_gc * last / read->n_bases;
    uint64_t to = (read->n_gc + UINT64_C(1)) * last / read->n_bases;
    counts->gc_steps[read->fragment][from]++;
    counts->gc_steps[read->fragment][to < last ? to : last]--;
}

static void add_barcodes(struct stats_counts *counts, struct barcode_order *order,
                         const struct stats_read *read)
{
    for (int i = 0; i < STATS_N_BARCODES; i++)
        if (read->texts[i].type)
            stats_barcodes_add(&counts->barcodes, order, i, &read->texts[i], &read->quals[i]);
}

/* Adds a mapped read to the counts by flags. */
static void add_mapped(uint64_t *n, const struct stats_read *read)
{
    const uint32_t proper = BAM_FPAIRED | BAM_FPROPER_PAIR;
    n[STATS_BASES_MAPPED] += read->n_bases;
    n[STATS_MAPQ_0] += read->rec[BAM_MAPQ_AT] == 0;
    if ((read->flag & (BAM_FPAIRED | BAM_FMUNMAP)) != BAM_FPAIRED) {
        n[STATS_MAPPED_SINGLE]++;
        return;
    }
    n[STATS_MAPPED_PAIRED]++;
    n[STATS_PROPER] += (read->flag & proper) == proper;
    n[STATS_OTHER_REFERENCE] += bam_record_tid(read->rec) != bam_record_mate_tid(read->rec);
}

/* Adds a record that is neither secondary nor supplementary. */
static void add_original(struct stats_counts *counts, const struct stats_options *options,
                         struct barcode_order *order, struct stats_read *read)
{
    uint64_t *n = counts->numbers;
    const int fragment = read->fragment;
    ++*row_at(&counts->lengths[STATS_LENGTHS_ALL], read->length);
    n[STATS_BASES] += read->n_bases;
    n[STATS_QC_FAILED] += (read->flag & BAM_FQCFAIL) != 0;
    n[STATS_PAIRED] += (read->flag & BAM_FPAIRED) != 0;
    if (fragment >= 0) {
        ++*row_at(&counts->lengths[1 + fragment], read->length);
        read->n_gc = stats_cycles_add(&counts->cycles, (enum stats_fragment)fragment, read->rec);
        add_gc(counts, read);
        n[STATS_READS_FIRST + fragment]++;
        n[STATS_BASES_FIRST + fragment] += read->n_bases;
    } else {
        n[STATS_READS_OTHER]++;
    }
    if (options->trim_quality > 0)
        n[STATS_BASES_TRIMMED] += trimmed_bases(read, options->trim_quality);
    if (fragment == STATS_FIRST) add_barcodes(counts, order, read);
    if (read->flag & BAM_FUNMAP)
        n[STATS_UNMAPPED]++;
    else
        add_mapped(n, read);
}

/* ---- mapped reads ---- */

static void add_insert(struct stats_counts *counts, const struct stats_options *options,
                       const struct stats_read *read)
{
    const uint8_t *rec = read->rec;
    const int32_t length = (int32_t)bam_record_true_template_length(rec);
    uint32_t size = length < 0 ? -(uint32_t)length : (uint32_t)length;
    if (options->most_insert > 0 && size > (uint32_t)options->most_insert)
        size = (uint32_t)options->most_insert;
    if (size == 0 && bam_record_tid(rec) != bam_record_mate_tid(rec)) return;
    const bool is_reverse = read->flag & BAM_FREVERSE, is_first = read->flag & BAM_FREAD1;
    const int64_t to_mate = bam_record_true_mate_pos(rec) - bam_record_true_pos(rec);
    enum stats_orientation way = STATS_OTHER_WAY;
    if (is_reverse != ((read->flag & BAM_FMREVERSE) != 0)) {
        /* Of the first fragment or, seen from its mate, of the last one. */
        const bool is_before = is_first ? to_mate > 0 : to_mate < 0;
        const bool is_forward = is_first != is_reverse;
        way = to_mate == 0 || is_before == is_forward ? STATS_INWARD : STATS_OUTWARD;
    }
    stats_inserts_add(&counts->inserts, size, way);
}

/* Adds an insertion or deletion before base number `at` of the record. */
static void add_indel(struct stats_counts *counts, const struct stats_read *read, int kind,
                      uint32_t length, int64_t at)
{
    int64_t cycle = at;
    if (read->flag & BAM_FREVERSE)
        cycle = read->n_bases - at - (kind == STATS_INSERTIONS ? length : 1);
    else if (kind == STATS_DELETIONS)
        cycle--;                /* the base before it */
    if (cycle < 0 || cycle > read->length) return;
    if (length <= STATS_MOST_INDEL) counts->indels[kind][length - 1]++;
    if (read->fragment >= 0)
        ++*row_at(&counts->indel_cycles[kind][read->fragment], (size_t)cycle);
}

/* The bases of an aligned stretch that begins at pos (from 1) that are on the target. */
static int64_t on_target(const struct stats_target *target, int64_t pos, int64_t n)
{
    int64_t left = n;
    if (pos < target->first) left -= target->first - pos;
    if (pos + n - 1 > target->last) left -= pos + n - 1 - target->last;
    return left > 0 ? left : 0;
}

/* Adds what the CIGAR says. With targets, as in samtools, insertions move the position on the
   reference, and deletions and introns do not. */
static void add_cigar(struct stats_counts *counts, struct stats_read *read)
{
    const struct stats_target *target = read->target;
    int64_t pos = bam_record_true_pos(read->rec) + 1, at = 0, n_aligned = 0;
    const uint8_t *end = read->cigar.ops + 4 * read->cigar.n_ops;
    read->n_deleted = 0;
    for (const uint8_t *op_at = read->cigar.ops; op_at < end; op_at += 4) {
        const uint32_t op = get_u32(op_at), n = bam_cigar_oplen(op);
        if (n == 0) continue;
        switch (bam_cigar_op(op)) {
        case BAM_CMATCH:
        case BAM_CEQUAL:
        case BAM_CDIFF:
            n_aligned += target ? on_target(target, pos, n) : n;
            pos += n;
            at += n;
            break;
        case BAM_CINS:
            add_indel(counts, read, STATS_INSERTIONS, n, at);
            pos += n;
            if (!target || (pos >= target->first && pos <= target->last)) n_aligned += n;
            at += n;
            break;
        case BAM_CDEL:
            add_indel(counts, read, STATS_DELETIONS, n, at);
            read->n_deleted += n;
            break;
        case BAM_CSOFT_CLIP: at += n; break;
        default: break;
        }
    }
    counts->numbers[STATS_BASES_CIGAR] += (uint64_t)n_aligned;
}

void stats_counts_add(struct stats_counts *counts, const struct stats_options *options,
                      struct barcode_order *order, struct stats_read *read)
{
    const uint32_t unusual = BAM_FUNMAP | BAM_FSECONDARY | BAM_FSUPPLEMENTARY | BAM_FQCFAIL |
                             BAM_FDUP;
    uint64_t *n = counts->numbers;
    read->n_gc = 0;
    read->has_place = false;
    add_checksums(counts, read);
    if (read->flag & BAM_FSECONDARY) {
        n[STATS_SECONDARY]++;
        return;
    }
    const bool is_original = !(read->flag & BAM_FSUPPLEMENTARY);
    n[STATS_SUPPLEMENTARY] += !is_original;
    if (read->n_bases == 0) return;
    if (read->flag & BAM_FDUP) {
        n[STATS_DUPLICATES]++;
        n[STATS_BASES_DUPLICATED] += read->n_bases;
    }
    for (int i = 0; i < STATS_N_LENGTHS; i++)
        if ((i == STATS_LENGTHS_ALL || i == 1 + read->fragment) &&
            counts->longest[i] < read->length)
            counts->longest[i] = read->length;
    if (!(read->flag & unusual)) counts->mapqs[read->rec[BAM_MAPQ_AT]]++;
    if (is_original) add_original(counts, options, order, read);
    if (read->flag & BAM_FUNMAP) return;
    if (is_original && (read->flag & (BAM_FPAIRED | BAM_FMUNMAP)) == BAM_FPAIRED)
        add_insert(counts, options, read);
    int64_t n_mismatches;
    if (read->nm.type && bam_aux_integer(&read->nm, &n_mismatches))
        n[STATS_MISMATCHES] += (uint64_t)n_mismatches;
    add_cigar(counts, read);
    read->has_place = true;
}

/* ---- differences to the reference ---- */

struct aligned {                /* the place in a read where an aligned stretch begins */
    const uint8_t *bases;       /* of the reference */
    int64_t n_known;            /* of these; it ends before the others */
    size_t base;                /* number in the record */
    int64_t cycle;              /* as number in the record, with hard clips */
};

static void compare_stretch(struct stats_counts *counts, const struct stats_read *read,
                            const struct aligned *from, size_t n)
{
    const uint8_t *seq = bam_record_seq(read->rec), *quals = bam_record_quals(read->rec);
    const bool is_reverse = read->flag & BAM_FREVERSE;
    for (size_t i = 0; i < n; i++) {
        const size_t base = from->base + i;
        const uint8_t code = (uint8_t)bam_seqi(seq, base), expected = (int64_t)i < from->n_known ? from->bases[i] : 0;
        const bool is_unknown = code == 15;
        if (!is_unknown && (!expected || !code || expected == code)) continue;
        int64_t cycle = from->cycle + (int64_t)i;
        if (is_reverse) cycle = read->length - cycle - 1;
        if (cycle < 0 || cycle >= read->length) continue;
        /* As in samtools, a missing quality counts as an N. */
        const uint8_t column = is_unknown ? 0 : (uint8_t)(quals[base] + 1);
        ++*row_at(&counts->mismatches, (size_t)cycle * STATS_MISMATCH_COLUMNS + column);
    }
}

/* samtools leaves introns out of the position on the reference. Reads each stretch of that by
   itself: deletions may be long. */
int stats_counts_mismatches(struct stats_counts *counts, struct fasta_window *reference,
                            const struct stats_read *read)
{
    const int64_t pos = bam_record_true_pos(read->rec), n = read->n_deleted + read->n_bases;
    const int32_t tid = bam_record_tid(read->rec);
    int64_t at = 0;
    struct aligned from = {0};
    if (pos < 0) return 0;
    for (size_t i = 0; i < read->cigar.n_ops; i++) {
        const uint32_t op = get_u32(read->cigar.ops + 4 * i);
        const uint32_t length = bam_cigar_oplen(op);
        switch (bam_cigar_op(op)) {
        case BAM_CMATCH:
        case BAM_CEQUAL:
        case BAM_CDIFF:
            if (at + length > n || from.base + length > read->n_bases) return 0;
            if (fasta_window_move(reference, tid, pos + at, pos + at + length) < 0) return -1;
            from.n_known = reference->end - (pos + at);
            from.bases = from.n_known > 0 ? reference->codes + (pos + at - reference->begin) : NULL;
            compare_stretch(counts, read, &from, length);
            at += length;
            from.base += length;
            from.cycle += length;
            break;
        case BAM_CINS:
        case BAM_CSOFT_CLIP:
            from.base += length;
            from.cycle += length;
            break;
        case BAM_CDEL: at += length; break;
        case BAM_CHARD_CLIP: from.cycle += length; break;
        default: break;
        }
    }
    return 0;
}

void stats_counts_release(struct stats_counts *counts)
{
    for (int i = 0; i < STATS_N_LENGTHS; i++) free(counts->lengths[i].n);
    for (int i = 0; i < STATS_N_INDELS; i++)
        for (int k = 0; k < STATS_N_FRAGMENTS; k++) free(counts->indel_cycles[i][k].n);
    free(counts->mismatches.n);
    stats_inserts_release(&counts->inserts);
    stats_cycles_release(&counts->cycles);
    stats_barcodes_release(&counts->barcodes);
}
