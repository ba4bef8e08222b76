/*
 * base_mods.c -- see base_mods.h.
 *
 * Tags are read once. Correct tags stay where they are. Otherwise the draft gets a copy of its tags
 * in which MM, ML and MN are replaced or missing.
 *
 * Positions in a read are those of the read as it was sequenced: the first base of a record on the
 * reverse strand is the complement of the last one that the record holds.
 */
#include "fixmate/base_mods.h"

#include "util/byte_order.h"
#include "util/xalloc.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ANY_BASE = 15,
    MAX_CODES = 255,            /* in all lists of a record, as in htslib */
    LENGTH_ROOM = 8,            /* MN grows by less */
};

enum mod_tag { TAG_MM, TAG_ML, TAG_MN, N_MOD_TAGS };

struct mods {
    const uint8_t *start[N_MOD_TAGS];   /* of the tags that are used, or NULL */
    bool is_tidy;               /* no duplicates, and no draft names */
    bool has_wrong_type;        /* MM is not text, or ML not an array of bytes */
    const char *lists;          /* value of MM */
    size_t lists_bytes;         /* with the NUL */
    const uint8_t *likely;      /* elements of ML */
    size_t n_likely;
    int64_t length;             /* MN; -1 if there is none or it is not an integer */
    size_t length_bytes;        /* of an integer in MN */
    bool length_is_new;         /* MN was not read but computed */
    char *own_lists;            /* the cut lists, or NULL */
    uint8_t *own_likely;
};

/* ---- lists of modifications ---- */

/* Returns 0 if the letter is not a base that can have a list. */
static uint32_t base_of(char letter)
{
    switch (letter) {
    case 'A': return 1;
    case 'C': return 2;
    case 'G': return 4;
    case 'T':
    case 'U': return 8;
    case 'N': return ANY_BASE;
    default: return 0;
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns -1 if there is no number, or if it has more than 31 bits. htslib allows a plus sign. */
static int64_t take_number(const char **at)
{
    const char *c = *at;
    int64_t n = 0;
    if (*c == '+') c++;
    if (!is_digit(*c)) return -1;
    for (; is_digit(*c); c++) {
        n = 10 * n + (*c - '0');
        if (n > INT32_MAX) return -1;
    }
    *at = c;
    return n;
}

/* Reads what precedes the steps. As in htslib, the codes may be missing. */
static int take_head(const char **at, struct mod_list *list)
{
    const char *c = *at;
    *list = (struct mod_list){.text = c, .base = base_of(*c)};
    c++;
    if (list->base == 0 || (*c != '+' && *c != '-')) return -1;
    c++;
    if (is_digit(*c)) {
        if (take_number(&c) < 0) return -1;
        list->n_codes = 1;
    } else {
        for (; is_letter(*c); c++) list->n_codes++;
    }
    if (*c == '.' || *c == '?') c++;
    list->steps = *at = c;
    return 0;
}

int mod_lists_next(const char **at, struct mod_list *list)
{
    if (!**at) return 0;
    if (take_head(at, list) < 0) return -1;
    while (**at == ',') {
        ++*at;
        int64_t step = take_number(at);
        if (step < 0) return -1;
        list->n_steps++;
        list->n_bases += (uint64_t)step + 1;
    }
    if (**at != ';') return -1;
    ++*at;
    return 1;
}

uint32_t mod_lists_step(const char **at)
{
    ++*at;
    return (uint32_t)take_number(at);
}

/* ---- finding the tags ---- */

/* Which of the tags this is, or -1. */
static int which_mod_tag(const uint8_t *name)
{
    if (name[0] != 'M') return -1;
    switch (name[1]) {
    case 'M':
    case 'm': return TAG_MM;
    case 'L':
    case 'l': return TAG_ML;
    case 'N': return TAG_MN;
    default: return -1;
    }
}

static bool has_draft_name(const uint8_t *tag)
{
    return tag[1] == 'm' || tag[1] == 'l';
}

static void take_value(struct mods *mods, int tag, const struct bam_aux *aux)
{
    if (tag == TAG_MM) {
        if (aux->type != 'Z') mods->has_wrong_type = true;
        mods->lists = (const char *)aux->value;
        mods->lists_bytes = aux->value_bytes;
    } else if (tag == TAG_ML) {
        if (aux->type != 'B' || aux->value[0] != 'C') {
            mods->has_wrong_type = true;
            return;
        }
        mods->likely = aux->value + BAM_AUX_ARRAY_HEAD_BYTES;
        mods->n_likely = aux->value_bytes - BAM_AUX_ARRAY_HEAD_BYTES;
    } else if (bam_aux_integer(aux, &mods->length)) {
        mods->length_bytes = aux->value_bytes;
    }
}

/*
 * Finds the tags of a draft. As in htslib, takes the first of duplicates, and prefers MM and ML to
 * Mm and Ml. Returns false if there are none.
 */
static bool find_mods(const struct draft *draft, struct mods *mods)
{
    const uint8_t *at = draft->tags, *end = at + draft->tags_bytes;
    struct bam_aux aux, found[N_MOD_TAGS];
    bool has_any = false;
    *mods = (struct mods){.is_tidy = true, .length = -1};
    while (bam_aux_next_before(end, &at, &aux) > 0) {
        int tag = which_mod_tag(aux.start);
        if (tag < 0) continue;
        const uint8_t **start = &mods->start[tag];
        has_any = true;
        if (*start || has_draft_name(aux.start)) mods->is_tidy = false;
        if (*start && (!has_draft_name(*start) || has_draft_name(aux.start))) continue;
        *start = aux.start;
        found[tag] = aux;
    }
    for (int tag = 0; tag < N_MOD_TAGS; tag++)
        if (mods->start[tag]) take_value(mods, tag, &found[tag]);
    return has_any;
}

static void release_mods(struct mods *mods)
{
    free(mods->own_lists);
    free(mods->own_likely);
}

/* ---- the read ---- */

struct base_counts {
    uint64_t of[16];            /* by their code in BAM; ANY_BASE: all bases */
};

static uint32_t complement(uint32_t base)
{
    return (base & 1) << 3 | (base & 2) << 1 | (base & 4) >> 1 | (base & 8) >> 3;
}

/* Counts bases `from` to `to` - 1 of a read as it was sequenced. */
static struct base_counts count_bases(const struct draft *draft, size_t from, size_t to)
{
    const uint8_t *seq = bam_record_seq(draft->rec);
    size_t n_bases = (size_t)bam_record_n_bases(draft->rec);
    bool is_reverse = draft->flag & BAM_FREVERSE;
    uint64_t upper[16] = {0}, lower[16] = {0};
    size_t i = is_reverse ? n_bases - to : from, end = is_reverse ? n_bases - from : to;
    if (i < end && i % 2 == 1) lower[seq[i++ / 2] & 15]++;
    for (; i + 2 <= end; i += 2) {
        upper[seq[i / 2] >> 4]++;
        lower[seq[i / 2] & 15]++;
    }
    if (i < end) upper[seq[i / 2] >> 4]++;
    struct base_counts counts;
    for (uint32_t base = 0; base < 16; base++) {
        uint32_t stored = is_reverse ? complement(base) : base;
        counts.of[base] = upper[stored] + lower[stored];
    }
    counts.of[ANY_BASE] = to - from;
    return counts;
}

/* How many bases of the read are not in the record. */
struct clips {
    size_t first, last;         /* before its first base and after its last one */
};

static struct clips hard_clips(const struct draft *draft)
{
    struct clips clips = {0, 0};
    size_t n = draft->cigar.n_ops;
    uint32_t left = n > 0 ? get_u32(draft->cigar.ops) : 0;
    uint32_t right = n > 1 ? get_u32(draft->cigar.ops + 4 * (n - 1)) : 0;
    if (bam_cigar_op(left) == BAM_CHARD_CLIP) clips.first = bam_cigar_oplen(left);
    if (bam_cigar_op(right) == BAM_CHARD_CLIP) clips.last = bam_cigar_oplen(right);
    if (draft->flag & BAM_FREVERSE) return (struct clips){clips.last, clips.first};
    return clips;
}

/* ---- checking ---- */

/* True if MM is well-formed, ML has a probability for each item of MM, and the read has the bases.
   bases NULL: not known. */
static bool lists_are_valid(const struct mods *mods, const struct base_counts *bases)
{
    const char *at = mods->lists;
    struct mod_list list;
    uint64_t n_likely = 0;
    size_t n_codes = 0;
    int r;
    if (mods->has_wrong_type) return false;
    while ((r = mod_lists_next(&at, &list)) > 0) {
        n_likely += (uint64_t)list.n_steps * list.n_codes;
        n_codes += list.n_codes;
        if (n_codes > MAX_CODES) return false;
        if (bases && list.n_codes > 0 && list.n_bases > bases->of[list.base]) return false;
    }
    return r == 0 && (!mods->start[TAG_ML] || n_likely == mods->n_likely);
}

/* True if the tags agree with the record. A record without a sequence on the forward strand may
   have lists; on the reverse strand it may not, as in htslib. */
static bool are_valid(const struct draft *draft, const struct mods *mods)
{
    size_t n_bases = (size_t)bam_record_n_bases(draft->rec);
    if (n_bases == 0 && !(draft->flag & BAM_FREVERSE)) return lists_are_valid(mods, NULL);
    if (n_bases > 0 && mods->start[TAG_MN] && mods->length != (int64_t)n_bases) return false;
    struct base_counts bases = count_bases(draft, 0, n_bases);
    return lists_are_valid(mods, &bases);
}

/* ---- cutting ---- */

/* The part of a read that a record contains, counted in bases of each kind. */
struct part {
    struct base_counts from, to;
};

static struct part part_of(const struct draft *primary, const struct clips *clips)
{
    size_t n_bases = (size_t)bam_record_n_bases(primary->rec);
    struct part part = {.from = count_bases(primary, 0, clips->first)};
    part.to = count_bases(primary, clips->first, n_bases - clips->last);
    for (int i = 0; i < 16; i++) part.to.of[i] += part.from.of[i];
    return part;
}

/* The output of cutting, which is never larger than the input. */
struct cut {
    char *lists;
    uint8_t *likely;
    const uint8_t *old_likely;  /* the rest of ML, or NULL if there is no ML */
};

static void put_text(struct cut *cut, const char *from, const char *to)
{
    memcpy(cut->lists, from, (size_t)(to - from));
    cut->lists += to - from;
}

/* Writes the steps of a list that lead to bases `from` to `to` - 1 of their kind. The first step
   counts from `from`. */
static void cut_list(struct cut *cut, const struct mod_list *list, uint64_t from, uint64_t to)
{
    const char *at = list->steps;
    uint64_t next = 0, next_kept = from;
    put_text(cut, list->text, list->steps);
    for (size_t i = 0; i < list->n_steps; i++) {
        const char *text = at;
        uint64_t step = mod_lists_step(&at), place = next + step;
        next = place + 1;
        if (place >= from && place < to) {
            if (place - next_kept == step)
                put_text(cut, text, at);
            else
                cut->lists += sprintf(cut->lists, ",%u", (unsigned)(place - next_kept));
            next_kept = next;
            if (cut->old_likely) {
                memcpy(cut->likely, cut->old_likely, list->n_codes);
                cut->likely += list->n_codes;
            }
        }
        if (cut->old_likely) cut->old_likely += list->n_codes;
    }
    *cut->lists++ = ';';
}

/* Cuts the tags of a whole read to the part that a record holds. Returns false if they are
   malformed. */
static bool cut_mods(struct mods *mods, const struct draft *primary, const struct clips *clips)
{
    if (!lists_are_valid(mods, NULL)) return false;
    struct part part = part_of(primary, clips);
    mods->own_lists = xmalloc(mods->lists_bytes);
    mods->own_likely = xmalloc(mods->n_likely + 1);
    struct cut cut = {mods->own_lists, mods->own_likely, mods->likely};
    struct mod_list list;
    for (const char *at = mods->lists; mod_lists_next(&at, &list) > 0;)
        cut_list(&cut, &list, part.from.of[list.base], part.to.of[list.base]);
    *cut.lists++ = 0;
    mods->lists = mods->own_lists;
    mods->lists_bytes = (size_t)(cut.lists - mods->own_lists);
    mods->n_likely = (size_t)(cut.likely - mods->own_likely);
    if (mods->likely) mods->likely = mods->own_likely;
    return true;
}

/* ---- writing ---- */

static uint8_t *put_mod_tag(uint8_t *out, const struct mods *mods, enum mod_tag tag)
{
    *out++ = 'M';
    *out++ = (uint8_t)"MLN"[tag];
    if (tag == TAG_MN) return bam_aux_put_count(out, (uint32_t)mods->length, mods->length_bytes);
    if (tag == TAG_MM) {
        *out++ = 'Z';
        return copy_bytes(out, mods->lists, mods->lists_bytes);
    }
    *out++ = 'B';
    *out++ = 'C';
    out = put_u32(out, mods->n_likely);
    return copy_bytes(out, mods->likely, mods->n_likely);
}

/* Replaces the modifications in the draft's tags; mods NULL: removes them. */
static void replace_tags(struct draft *draft, const struct mods *mods)
{
    uint8_t *tags = xmalloc(draft->tags_bytes + LENGTH_ROOM), *out = tags;
    const uint8_t *at = draft->tags, *end = at + draft->tags_bytes;
    struct bam_aux aux;
    while (bam_aux_next_before(end, &at, &aux) > 0) {
        int tag = which_mod_tag(aux.start);
        bool is_kept = tag < 0 || (mods && aux.start == mods->start[tag]);
        if (tag < 0 || (is_kept && tag == TAG_MN && !mods->length_is_new))
            out = copy_bytes(out, aux.start, (size_t)(at - aux.start));
        else if (is_kept)
            out = put_mod_tag(out, mods, (enum mod_tag)tag);
    }
    draft_take_tags(draft, tags, (size_t)(out - tags));
}

/* ---- the rules ---- */

/* What to do with the tags of a record. */
struct decision {
    bool keeps;                 /* else they are removed */
    bool sets_length;           /* MN gets the length of the sequence */
    bool is_cut;                /* then MN is removed and appended after the other tags */
};

static void apply(struct draft *draft, struct mods *mods, struct decision what)
{
    int32_t n_bases = bam_record_n_bases(draft->rec);
    bool has_length = mods->start[TAG_MN] && !what.is_cut;
    if (what.sets_length) {
        mods->length = n_bases;
        mods->length_is_new = true;
    }
    if (!what.keeps || !are_valid(draft, mods)) {
        replace_tags(draft, NULL);
        return;
    }
    if (!mods->is_tidy || what.is_cut || (what.sets_length && has_length))
        replace_tags(draft, mods);
    if (what.sets_length && !has_length)
        draft_set_tag(draft, DRAFT_MN, NULL);
    else if (what.is_cut)
        draft_remove_tag(draft, DRAFT_MN);
}

void base_mods_fix_primary(struct draft *draft)
{
    struct mods mods;
    if (!find_mods(draft, &mods)) return;
    struct decision what = {.keeps = mods.start[TAG_MM] != NULL};
    struct clips clips = hard_clips(draft);
    int32_t n_bases = bam_record_n_bases(draft->rec);
    if (clips.first > 0 || clips.last > 0)      /* the tags may be those of the whole read */
        what.keeps = what.keeps && mods.length == n_bases;
    else
        what.sets_length = mods.length <= 0 && n_bases > 0;
    apply(draft, &mods, what);
}

/* Decides on a record that has no MN, or one that is not the length of its sequence. */
static struct decision fit_to_read(const struct draft *draft, struct mods *mods,
                                   const struct draft *primary)
{
    struct clips clips = hard_clips(draft);
    size_t n_bases = (size_t)bam_record_n_bases(draft->rec);
    size_t read_bases = (size_t)bam_record_n_bases(primary->rec);
    struct decision what = {.sets_length = n_bases > 0};
    what.is_cut = clips.first > 0 || clips.last > 0;
    what.keeps = read_bases == n_bases + clips.first + clips.last;
    if (what.keeps && what.is_cut) {
        bool are_of_read = mods->length < 0 || mods->length == (int64_t)read_bases;
        what.keeps = are_of_read && cut_mods(mods, primary, &clips);
    }
    return what;
}

void base_mods_fix_other(struct draft *draft, const struct draft *primary)
{
    struct mods mods;
    if (!find_mods(draft, &mods)) return;
    if (!primary) {
        if (mods.start[TAG_MM] && !are_valid(draft, &mods)) replace_tags(draft, NULL);
        return;
    }
    struct decision what = {.keeps = mods.start[TAG_MM] != NULL};
    if (what.keeps && mods.length != bam_record_n_bases(draft->rec))
        what = fit_to_read(draft, &mods, primary);
    apply(draft, &mods, what);
    release_mods(&mods);
}
