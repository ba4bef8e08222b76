/* duplicate_view.c -- see duplicate_view.h. */
#include "duplicates/duplicate_view.h"

#include "bam/bam_long.h"
#include "bam/read_score.h"
#include "duplicates/read_groups.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#define NO_MATE_CIGAR "has no tag MC, which --markdup needs: add --fixmate if the input is " \
    "grouped by name, or run samtools fixmate -m first"

enum {
    NOT_EXAMINED = BAM_FSECONDARY | BAM_FSUPPLEMENTARY | BAM_FUNMAP,
};

/* The tags that matter, each as its first occurrence has it. */
struct wanted_tags {
    const uint8_t *mate_cigar;  /* text; NULL: none */
    bool has_mate_cigar;        /* of whatever type */
    bool has_score, has_more_alignments;
    int64_t mate_score;
};

static void look_at_tags(const uint8_t *rec, struct wanted_tags *tags)
{
    const uint8_t *at = bam_record_tags(rec);
    struct bam_aux aux;
    *tags = (struct wanted_tags){0};
    while (bam_aux_read(rec, &at, &aux) > 0) {
        switch (aux.start[0] << 8 | aux.start[1]) {
        case 'M' << 8 | 'C':
            if (tags->has_mate_cigar) break;
            tags->has_mate_cigar = true;
            if (aux.type == 'Z' || aux.type == 'H') tags->mate_cigar = aux.value;
            break;
        case 'm' << 8 | 's':
            if (tags->has_score) break;
            tags->has_score = true;
            if (!bam_aux_integer(&aux, &tags->mate_score)) tags->mate_score = 0;
            break;
        case 'S' << 8 | 'A':
        case 'X' << 8 | 'A':
            tags->has_more_alignments = true;
            break;
        default: break;
        }
    }
}

/* ---- unclipped ends ---- */

struct unclipped { int64_t start, end; };

static bool is_clip(uint32_t op)
{
    return op == BAM_CSOFT_CLIP || op == BAM_CHARD_CLIP;
}

static struct unclipped unclip(const uint8_t *rec)
{
    struct bam_aux cg = {0};
    if (bam_record_has_placeholder(rec)) (void)bam_aux_find(rec, "CG", &cg);
    struct bam_cigar cigar = bam_record_cigar(rec, &cg);
    int64_t pos = bam_record_true_pos(rec), length = bam_cigar_reference_bases(cigar);
    struct unclipped ends = {pos + 1, pos + (length > 0 ? length : 1)};
    for (size_t i = 0; i < cigar.n_ops; i++) {
        uint32_t op = get_u32(cigar.ops + 4 * i);
        if (!is_clip(bam_cigar_op(op))) break;
        ends.start -= bam_cigar_oplen(op);
    }
    for (size_t i = cigar.n_ops; i > 0; i--) {
        uint32_t op = get_u32(cigar.ops + 4 * (i - 1));
        if (!is_clip(bam_cigar_op(op))) break;
        ends.end += bam_cigar_oplen(op);
    }
    return ends;
}

/* Ends of the mate, from its position and the text of its CIGAR. As in samtools, the end of a mate
   that covers no base of the reference is its position. */
static struct unclipped unclip_mate(int64_t pos, const uint8_t *cigar)
{
    enum { MORE_THAN_ANY = 1 << 28 };   /* operation has; not even a text of 2 GiB can overflow */
    struct unclipped ends = {pos + 1, pos};
    bool is_leading = true, has_bases = false;
    for (const uint8_t *at = cigar; *at && *at != '*'; at++) {
        int64_t n = 0;
        if (*at < '0' || *at > '9')
            n = 1;
        else
            for (; *at >= '0' && *at <= '9'; at++)
                if (n < MORE_THAN_ANY) n = 10 * n + (*at - '0');
        switch (*at) {
        case 'M': case 'D': case 'N': case '=': case 'X':
            ends.end += n;
            has_bases = true;
            is_leading = false;
            break;
        case 'S': case 'H':
            if (is_leading) ends.start -= n;
            if (has_bases) ends.end += n;
            break;
        case '\0': return ends;
        default: is_leading = false;
        }
    }
    return ends;
}

/* ---- places of pairs ---- */

struct pair_ends {
    struct unclipped own, mate;
    bool is_reverse, mate_is_reverse, is_first;
};

/* The end of the template at which the left read lies, if it is the left one. */
static int64_t template_end(const struct unclipped *ends, bool at_end)
{
    return at_end ? ends->end : ends->start;
}

/* --mode t: both ends of the template. */
static void make_template_key(const struct pair_ends *p, struct duplicate_view *view)
{
    bool same_strand = p->is_reverse == p->mate_is_reverse;
    if (view->ref != view->mate_ref)
        view->is_left = view->ref < view->mate_ref;
    else if (same_strand)
        view->is_left = p->is_reverse ? p->own.end <= p->mate.end : p->own.start <= p->mate.start;
    else
        view->is_left = p->is_reverse ? p->own.end <= p->mate.start : p->own.start <= p->mate.end;
    if (same_strand) {
        view->here = template_end(&p->own, !view->is_left);
        view->there = template_end(&p->mate, view->is_left);
        bool forward = (p->is_first != p->is_reverse) == view->is_left;
        view->orientation = forward ? PAIR_FF : PAIR_RR;
    } else {
        view->here = template_end(&p->own, p->is_reverse);
        view->there = template_end(&p->mate, !p->is_reverse);
        view->orientation = p->is_reverse == view->is_left ? PAIR_RF : PAIR_FR;
    }
}

/* --mode s: the 5' ends of both reads. */
static void make_sequence_key(const struct pair_ends *p, int64_t mate_pos,
                              struct duplicate_view *view)
{
    bool same_strand = p->is_reverse == p->mate_is_reverse;
    view->here = p->is_reverse ? p->own.end : p->own.start;
    view->there = p->mate_is_reverse ? p->mate.end : p->mate.start;
    int64_t own = view->here, other = view->there;
    if (view->ref != view->mate_ref) {
        own = view->ref;
        other = view->mate_ref;
    } else if (own == other) {
        own = view->pos;
        other = mate_pos;
    }
    view->is_left = own != other ? own < other : p->is_first;
    bool is_forward = p->is_reverse != view->is_left;
    if (same_strand)
        view->orientation = is_forward ? PAIR_FF : PAIR_RR;
    else
        view->orientation = is_forward ? PAIR_FR : PAIR_RF;
}

static bool is_member_of_pair(uint32_t flag, const uint8_t *rec)
{
    return (flag & BAM_FPAIRED) && !(flag & BAM_FMUNMAP) &&
           !(bam_record_mate_tid(rec) == -1 && bam_record_mate_pos(rec) == -1);
}

/* A read that counts as mapped but has neither reference nor position, which --fixmate corrects, is
   a duplicate of none, as in samtools. */
static bool is_nowhere(const struct duplicate_view *view)
{
    return view->ref == -1 && view->pos == -1;
}

static void take_name(const uint8_t *rec, struct duplicate_view *view)
{
    view->name = bam_record_name(rec);
    view->name_bytes = (uint8_t)(bam_record_name_bytes(rec) - 1);
}

/* Makes the views of a member of a pair. Returns NULL, or what is wrong with it. */
static const char *view_pair(const struct duplicate_rules *rules, const uint8_t *rec,
                             const struct unclipped *own, const struct wanted_tags *tags,
                             struct record_views *views)
{
    if (!tags->has_mate_cigar) return NO_MATE_CIGAR;
    if (!tags->mate_cigar) return "has a tag MC that is no text: run samtools fixmate -m first";
    struct duplicate_view *view = &views->view[0];
    uint32_t flag = bam_record_flag(rec);
    int64_t mate_pos = bam_record_true_mate_pos(rec);
    const struct pair_ends ends = {
        *own, unclip_mate(mate_pos, tags->mate_cigar), view->is_reverse,
        (flag & BAM_FMREVERSE) != 0, (flag & BAM_FREAD1) != 0};
    view->kind = VIEW_PAIR;
    view->mate_ref = bam_record_mate_tid(rec);
    view->lacks_score = !tags->has_score;
    view->score += tags->mate_score;
    take_name(rec, view);
    if (rules->by_sequence)
        make_sequence_key(&ends, mate_pos, view);
    else
        make_template_key(&ends, view);
    views->as = EXAMINED_AS_PAIR;
    if (rules->ignores_strand) {
        view->orientation = PAIR_FF;
        view->other_place = view->here == own->start ? own->end : own->start;
    }
    if (duplicate_view_meets_singles(rules, view)) return NULL;
    views->view[1] = *view;
    views->view[1].kind = VIEW_END;
    views->view[1].here = view->other_place;
    views->view[1].other_place = view->here;
    views->n = 2;
    return NULL;
}

static uint32_t group_of(const struct duplicate_rules *rules, const uint8_t *rec)
{
    if (!rules->groups) return 0;
    return (uint32_t)(rules->use_read_groups ? read_groups_of(rules->groups, rec)
                                             : read_groups_library_of(rules->groups, rec));
}

static void take_barcode(const struct duplicate_rules *rules, const uint8_t *rec,
                         struct record_views *views)
{
    struct read_barcode barcode = read_barcode_of(rules, rec);
    struct duplicate_view *view = &views->view[0];
    views->lacks_barcode = barcode.is_unreadable;
    if (!barcode.text) return;
    view->barcode = XXH3_64bits(barcode.text, barcode.n);
    if (rules->barcode_mismatches == 0 || barcode.n > UINT8_MAX) return;
    view->barcode_text = (const uint8_t *)barcode.text;
    view->barcode_bytes = (uint8_t)barcode.n;
}

const char *duplicate_views_make(const struct duplicate_rules *rules, const uint8_t *rec,
                                 struct record_views *views)
{
    uint32_t flag = bam_record_flag(rec);
    struct duplicate_view *view = &views->view[0];
    bool was_marked = (flag & BAM_FDUP) != 0;
    views->as = EXAMINED_NOT;
    views->n = 0;
    views->group = group_of(rules, rec);
    views->lacks_barcode = false;
    if (flag & NOT_EXAMINED) {
        if (!rules->marks_others) return NULL;
        *view = (struct duplicate_view){.kind = VIEW_OTHER, .was_marked = was_marked};
        take_name(rec, view);
        views->n = 1;
        return NULL;
    }
    if ((flag & BAM_FQCFAIL) && !rules->include_fails) return NULL;
    struct wanted_tags tags;
    look_at_tags(rec, &tags);
    struct unclipped own = unclip(rec);
    bool is_reverse = (flag & BAM_FREVERSE) != 0;
    int64_t five = is_reverse ? own.end : own.start;
    int64_t here = rules->ignores_strand ? own.start : five;
    *view = (struct duplicate_view){
        .kind = VIEW_SINGLE,
        .ref = bam_record_tid(rec),
        .pos = bam_record_true_pos(rec),
        .here = here,
        .other_place = rules->ignores_strand ? own.end : five,
        .is_reverse = is_reverse,
        .failed_qc = (flag & BAM_FQCFAIL) != 0,
        .was_marked = was_marked,
        .group = views->group,
        .has_others = rules->marks_others && (tags.has_more_alignments || (flag & BAM_FMUNMAP)),
        .score = read_score(bam_record_quals(rec), (size_t)bam_record_n_bases(rec)),
    };
    if (rules->barcode_source != BARCODE_NONE) take_barcode(rules, rec, views);
    views->as = EXAMINED_AS_SINGLE;
    views->n = 1;
    const char *problem = NULL;
    if (is_member_of_pair(flag, rec))
        problem = view_pair(rules, rec, &own, &tags, views);
    else if (view->has_others || duplicate_rules_set_tags(rules))
        take_name(rec, view);
    if (is_nowhere(view)) views->n = 0;
    return problem;
}

/* ---- hashes of keys ---- */

struct duplicate_key duplicate_key_of_text(const void *text, size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(text, n_bytes);
    return (struct duplicate_key){hash.low64, hash.high64};
}

struct duplicate_key duplicate_key_of_pair(const struct duplicate_rules *rules,
                                           const struct duplicate_view *view)
{
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    const uint64_t words[] = {
        (uint64_t)view->here,
        (uint64_t)view->there,
        (uint64_t)(uint32_t)view->ref << 32 | (uint32_t)view->mate_ref,
        group << 8 | (uint64_t)view->orientation << 1 | view->is_left,
        view->barcode,
    };
    return duplicate_key_of_text(words, sizeof words);
}

/* Hashes other numbers of words than the key of a pair has: both may be keys of sets. */
struct duplicate_key duplicate_key_of_single(const struct duplicate_rules *rules,
                                             const struct duplicate_view *view)
{
    int64_t here = view->here, other = view->other_place;
    uint64_t ref = (uint64_t)(uint32_t)view->ref << 1;
    uint64_t group = duplicate_rules_keep_groups_apart(rules) ? view->group : 0;
    if (rules->ignores_strand) {
        bool is_end = here > other;
        const uint64_t words[] = {
            (uint64_t)(is_end ? other : here),
            (uint64_t)(is_end ? here : other),
            ref,
            group,
            view->barcode,
            0,
        };
        return duplicate_key_of_text(words, sizeof words);
    }
    const uint64_t words[] = {
        (uint64_t)(view->kind == VIEW_PAIR ? other : here),
        ref | view->is_reverse,
        group,
        view->barcode,
    };
    return duplicate_key_of_text(words, sizeof words);
}


struct duplicate_key duplicate_key_with_barcode(struct duplicate_key key, const uint8_t *barcode,
                                                size_t n_bytes)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(barcode, n_bytes, key.low);
    return (struct duplicate_key){hash.low64 ^ key.high, hash.high64 ^ key.low};
}
