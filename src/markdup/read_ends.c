/* read_ends.c -- see read_ends.h. */
#include "markdup/read_ends.h"

#include "bam/bam_long.h"
#include "bam/read_score.h"
#include "bam/read_groups.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#define NO_MATE_CIGAR "has no tag MC, which --markdup needs: add --fixmate if the input is " \
    "grouped by name, or run samtools fixmate -m first"

enum {
    NOT_EXAMINED = BAM_FSECONDARY | BAM_FSUPPLEMENTARY | BAM_FUNMAP,
};

/* The tags that are used; if one is repeated, its first occurrence. */
enum { TAG_MC, TAG_MS, TAG_SA, TAG_XA, N_TAGS };

static const char tag_names[N_TAGS][2] = {"MC", "ms", "SA", "XA"};

/* ---- unclipped ends ---- */

struct unclipped { int64_t start, end; };

/* pos: 0-based. An alignment without a reference base counts as least_bases. */
static struct unclipped unclip(int64_t pos, const struct bam_extent *extent, int64_t least_bases)
{
    int64_t length = extent->reference != 0 ? extent->reference : least_bases;
    return (struct unclipped){pos + 1 - extent->soft[0] - extent->hard[0],
                              pos + length + extent->soft[1] + extent->hard[1]};
}

static struct unclipped unclip_record(const uint8_t *rec)
{
    struct bam_aux cg;
    struct bam_extent extent = bam_cigar_extent(bam_record_find_cigar(rec, &cg));
    return unclip(bam_record_true_pos(rec), &extent, 1);
}

/* ---- places of pairs ---- */

struct pair_ends {
    struct unclipped own, mate;
    bool is_reverse, mate_is_reverse, is_first;
};

/* The end of the template on the side of the left read. */
static int64_t template_end(const struct unclipped *pair, bool at_end)
{
    return at_end ? pair->end : pair->start;
}

/* --mode t: both ends of the template. */
static void make_template_key(const struct pair_ends *p, struct read_ends *ends)
{
    bool same_strand = p->is_reverse == p->mate_is_reverse;
    if (ends->ref != ends->mate_ref)
        ends->is_left = ends->ref < ends->mate_ref;
    else if (same_strand)
        ends->is_left = p->is_reverse ? p->own.end <= p->mate.end : p->own.start <= p->mate.start;
    else
        ends->is_left = p->is_reverse ? p->own.end <= p->mate.start : p->own.start <= p->mate.end;
    if (same_strand) {
        ends->here = template_end(&p->own, !ends->is_left);
        ends->there = template_end(&p->mate, ends->is_left);
        bool forward = (p->is_first != p->is_reverse) == ends->is_left;
        ends->orientation = forward ? PAIR_FF : PAIR_RR;
    } else {
        ends->here = template_end(&p->own, p->is_reverse);
        ends->there = template_end(&p->mate, !p->is_reverse);
        ends->orientation = p->is_reverse == ends->is_left ? PAIR_RF : PAIR_FR;
    }
}

/* --mode s: the 5' ends of both reads. */
static void make_sequence_key(const struct pair_ends *p, int64_t mate_pos, struct read_ends *ends)
{
    bool same_strand = p->is_reverse == p->mate_is_reverse;
    ends->here = p->is_reverse ? p->own.end : p->own.start;
    ends->there = p->mate_is_reverse ? p->mate.end : p->mate.start;
    int64_t own = ends->here, other = ends->there;
    if (ends->ref != ends->mate_ref) {
        own = ends->ref;
        other = ends->mate_ref;
    } else if (own == other) {
        own = ends->pos;
        other = mate_pos;
    }
    ends->is_left = own != other ? own < other : p->is_first;
    bool is_forward = p->is_reverse != ends->is_left;
    if (same_strand)
        ends->orientation = is_forward ? PAIR_FF : PAIR_RR;
    else
        ends->orientation = is_forward ? PAIR_FR : PAIR_RF;
}

static bool is_member_of_pair(uint32_t flag, const uint8_t *rec)
{
    return (flag & BAM_FPAIRED) && !(flag & BAM_FMUNMAP) &&
           !(bam_record_mate_tid(rec) == -1 && bam_record_mate_pos(rec) == -1);
}

/* True if a read is flagged as mapped but has neither reference nor position, which --fixmate
   corrects. As in samtools, it is never a duplicate. */
static bool is_nowhere(const struct read_ends *ends)
{
    return ends->ref == -1 && ends->pos == -1;
}

static void take_name(const uint8_t *rec, struct read_ends *ends)
{
    ends->name = bam_record_name(rec);
    ends->name_bytes = (uint8_t)(bam_record_name_bytes(rec) - 1);
}

/* Makes the read ends of a read of a pair. Returns NULL, or what is wrong with it. */
static const char *make_pair(const struct markdup_rules *rules, const uint8_t *rec,
                             const struct unclipped *own, const struct bam_aux *tags,
                             struct record_read_ends *made)
{
    if (!tags[TAG_MC].type) return NO_MATE_CIGAR;
    if (!bam_aux_is_text(&tags[TAG_MC]))
        return "has a tag MC that is not text: run samtools fixmate -m first";
    struct read_ends *ends = &made->ends[0];
    uint32_t flag = bam_record_flag(rec);
    int64_t mate_pos = bam_record_true_mate_pos(rec), mate_score = 0;
    struct bam_extent mate = bam_cigar_text_extent((const char *)tags[TAG_MC].value);
    const struct pair_ends pair = {
        *own, unclip(mate_pos, &mate, 0), ends->is_reverse, /* as in samtools, 0 */
        (flag & BAM_FMREVERSE) != 0, (flag & BAM_FREAD1) != 0};
    ends->kind = READ_ENDS_PAIR;
    ends->mate_ref = bam_record_mate_tid(rec);
    ends->lacks_score = !tags[TAG_MS].type;
    if (bam_aux_integer(&tags[TAG_MS], &mate_score)) ends->score += mate_score;
    take_name(rec, ends);
    if (rules->by_sequence)
        make_sequence_key(&pair, mate_pos, ends);
    else
        make_template_key(&pair, ends);
    made->as = EXAMINED_AS_PAIR;
    if (rules->ignores_strand) {
        ends->orientation = PAIR_FF;
        ends->other_place = ends->here == own->start ? own->end : own->start;
    }
    if (read_ends_meets_singles(rules, ends)) return NULL;
    made->ends[1] = *ends;
    made->ends[1].kind = READ_ENDS_END;
    made->ends[1].here = ends->other_place;
    made->ends[1].other_place = ends->here;
    made->n = 2;
    return NULL;
}

static uint32_t group_of(const struct markdup_rules *rules, const uint8_t *rec)
{
    if (!rules->groups) return 0;
    size_t group = read_groups_of(rules->groups, rec);
    return (uint32_t)(rules->use_read_groups ? group : read_groups_library(rules->groups, group));
}

static void take_barcode(const struct markdup_rules *rules, const uint8_t *rec,
                         struct record_read_ends *made)
{
    struct read_barcode barcode = read_barcode_of(rules, rec);
    struct read_ends *ends = &made->ends[0];
    made->lacks_barcode = barcode.is_unreadable;
    if (!barcode.text) return;
    ends->barcode = XXH3_64bits(barcode.text, barcode.n);
    if (rules->barcode_mismatches == 0 || barcode.n > UINT8_MAX) return;
    ends->barcode_text = (const uint8_t *)barcode.text;
    ends->barcode_bytes = (uint8_t)barcode.n;
}

const char *read_ends_make(const struct markdup_rules *rules, const uint8_t *rec,
                           struct record_read_ends *made)
{
    uint32_t flag = bam_record_flag(rec);
    struct read_ends *ends = &made->ends[0];
    bool was_marked = (flag & BAM_FDUP) != 0;
    made->as = EXAMINED_NOT;
    made->n = 0;
    made->group = group_of(rules, rec);
    made->lacks_barcode = false;
    if (flag & NOT_EXAMINED) {
        if (!rules->marks_others) return NULL;
        *ends = (struct read_ends){.kind = READ_ENDS_OTHER, .was_marked = was_marked};
        take_name(rec, ends);
        made->n = 1;
        return NULL;
    }
    if ((flag & BAM_FQCFAIL) && !rules->include_fails) return NULL;
    struct bam_aux tags[N_TAGS];
    bam_aux_find_each(rec, tag_names, N_TAGS, tags);
    struct unclipped own = unclip_record(rec);
    bool is_reverse = (flag & BAM_FREVERSE) != 0;
    int64_t five = is_reverse ? own.end : own.start;
    int64_t here = rules->ignores_strand ? own.start : five;
    *ends = (struct read_ends){
        .kind = READ_ENDS_SINGLE,
        .ref = bam_record_tid(rec),
        .pos = bam_record_true_pos(rec),
        .here = here,
        .other_place = rules->ignores_strand ? own.end : five,
        .is_reverse = is_reverse,
        .failed_qc = (flag & BAM_FQCFAIL) != 0,
        .was_marked = was_marked,
        .group = made->group,
        .has_others = rules->marks_others && (tags[TAG_SA].type || tags[TAG_XA].type ||
                                             (flag & BAM_FMUNMAP)),
        .score = read_score(rec),
    };
    if (rules->barcode_source != BARCODE_NONE) take_barcode(rules, rec, made);
    made->as = EXAMINED_AS_SINGLE;
    made->n = 1;
    const char *problem = NULL;
    if (is_member_of_pair(flag, rec))
        problem = make_pair(rules, rec, &own, tags, made);
    else if (ends->has_others || markdup_rules_set_tags(rules))
        take_name(rec, ends);
    if (is_nowhere(ends)) made->n = 0;
    return problem;
}

/* ---- hashes of keys ---- */

struct duplicate_key duplicate_key_of_text(const void *text, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(text, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

/* Barcodes that will be joined are not part of the key yet. */
static uint64_t key_barcode(const struct markdup_rules *rules, const struct read_ends *ends)
{
    return rules->barcode_mismatches > 0 && ends->barcode_bytes > 0 ? 0 : ends->barcode;
}

struct duplicate_key duplicate_key_of_pair(const struct markdup_rules *rules,
                                           const struct read_ends *ends)
{
    uint64_t group = markdup_rules_keep_groups_apart(rules) ? ends->group : 0;
    const uint64_t words[] = {
        (uint64_t)ends->here,
        (uint64_t)ends->there,
        (uint64_t)(uint32_t)ends->ref << 32 | (uint32_t)ends->mate_ref,
        group << 8 | (uint64_t)ends->orientation << 1 | ends->is_left,
        key_barcode(rules, ends),
    };
    return duplicate_key_of_text(words, sizeof words);
}

/* Hashes a different number of words than the key of a pair, because both may be keys of sets. */
struct duplicate_key duplicate_key_of_single(const struct markdup_rules *rules,
                                             const struct read_ends *ends)
{
    int64_t here = ends->here, other = ends->other_place;
    uint64_t ref = (uint64_t)(uint32_t)ends->ref << 1;
    uint64_t group = markdup_rules_keep_groups_apart(rules) ? ends->group : 0;
    if (rules->ignores_strand) {
        bool is_end = here > other;
        const uint64_t words[] = {
            (uint64_t)(is_end ? other : here),
            (uint64_t)(is_end ? here : other),
            ref,
            group,
            key_barcode(rules, ends),
            0,
        };
        return duplicate_key_of_text(words, sizeof words);
    }
    const uint64_t words[] = {
        (uint64_t)(ends->kind == READ_ENDS_PAIR ? other : here),
        ref | ends->is_reverse,
        group,
        key_barcode(rules, ends),
    };
    return duplicate_key_of_text(words, sizeof words);
}


struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(barcode, n_bytes, key.low);
    return (struct duplicate_key){hash.low64 ^ key.high, hash.high64 ^ key.low};
}
