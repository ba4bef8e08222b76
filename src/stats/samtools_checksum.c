/*
 * samtools_checksum.c -- computes the checksums of `samtools checksum` 1.24, and prints them as it
 * does: samtools_checksum_kind (stats_kinds.h).
 *
 * A record has a CRC-32 of each of seven things: some of its flag bits with its bases, and these
 * with its name, qualities, tags, place, CIGAR and mate. The sum of many records is the product of
 * their CRCs, modulo 2^31 - 1, so it does not depend on their order. Sums are kept for each read
 * group, apart for records that passed and failed quality control; all others are products of
 * these.
 *
 * With -O each CRC is mixed with the number of earlier records of its read group. A worker does not
 * know these, so its part keeps the CRCs, and combine multiplies them.
 *
 * Memory: 90 bytes and the name for each read group that occurs; with -O also 40 bytes for each
 * record of a part.
 */
#include "stats/stats_kinds.h"

#include "bam/bgzf_engine.h"
#include "bam/header_text.h"
#include "fixmate/sanitize.h"
#include "os/tape.h"
#include "util/byte_buffer.h"
#include "util/byte_order.h"
#include "util/diag.h"
#include "util/option_table.h"
#include "util/xalloc.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

enum checksum_column {
    COLUMN_SEQ, COLUMN_NAME, COLUMN_QUAL, COLUMN_AUX, COLUMN_POS, COLUMN_CIGAR, COLUMN_MATE,
    N_COLUMNS,
    N_PLAIN_COLUMNS = COLUMN_POS,       /* those that are always there */
};

static const uint64_t prime = INT32_MAX;

/* ---- options ---- */

enum { N_TAG_LETTERS = 'z' - '0' + 1 };

struct checksum_options {
    int exclude, require, mask; /* flags */
    bool plain_bases;           /* -c: those of reverse reads are not complemented */
    bool in_order;
    bool shows[N_COLUMNS];      /* of the last three */
    bool shows_quality, shows_empty, has_tabs;
    int sanitize;
    const char *tags;
    /* made of `tags` */
    bool is_all_but;            /* all tags except the listed ones */
    size_t n_tags;
    uint16_t places[N_TAG_LETTERS][N_TAG_LETTERS];      /* of a tag in the list, from 1; 0: none */
};

static int take_sanitize(void *arg, const char *text)
{
    struct checksum_options *o = arg;
    o->sanitize = sanitize_parse(text);
    return o->sanitize < 0 ? OPTION_WRONG : 0;
}

static int take_in_order(void *arg, const char *text)
{
    struct checksum_options *o = arg;
    (void)text;
    if (o->in_order) {
        diag_error("--samtools-checksum takes -O once");
        return -1;
    }
    o->in_order = true;
    return 0;
}

static int take_all(void *arg, const char *text)
{
    struct checksum_options *o = arg;
    (void)text;
    o->exclude = o->require = 0;
    o->mask = -1;
    o->plain_bases = o->in_order = true;
    for (int i = N_PLAIN_COLUMNS; i < N_COLUMNS; i++) o->shows[i] = true;
    o->sanitize = SANITIZE_ALL | SANITIZE_CIGARX;
    o->tags = "*,cF,MD,NM";
    return 0;
}

#define AT(of) offsetof(struct checksum_options, of)
#define FLAG(of) .kind = OPTION_FLAG, .member = AT(of)
#define CALL(function, what) .kind = OPTION_CALL, .take = (function), .takes = (what)
#define FLAGS(of)                                                                                  \
    .kind = OPTION_FLAGS, .member = AT(of), .high = INT_MAX,                                       \
    .takes = "flags such as 0x900 or SECONDARY,DUP"

static const struct option_row rows[] = {
    {"exclude-flags", 'F', "FLAG", FLAGS(exclude)},
    {"require-flags", 'f', "FLAG", FLAGS(require)},
    {"flag-mask", 'b', "FLAG", FLAGS(mask)},
    {"no-rev-comp", 'c', NULL, FLAG(plain_bases)},
    {"tags", 't', "LIST", .kind = OPTION_TEXT, .member = AT(tags)},
    {"in-order", 'O', NULL, CALL(take_in_order, NULL)},
    {"check-pos", 'P', NULL, FLAG(shows[COLUMN_POS])},
    {"check-cigar", 'C', NULL, FLAG(shows[COLUMN_CIGAR])},
    {"check-mate", 'M', NULL, FLAG(shows[COLUMN_MATE])},
    {"sanitize", 'z', "LIST",
     CALL(take_sanitize, "all, on, off or a list of pos, mqual, unmap, cigar, cigdup, cigarx and "
                         "aux")},
    {"show-qc", 'q', NULL, FLAG(shows_quality)},
    {"verbose", 'v', NULL, FLAG(shows_empty)},
    {"all", 'a', NULL, CALL(take_all, NULL)},
    {"tabs", 'T', NULL, FLAG(has_tabs)},
};

/* True for a letter of a tag that samtools checksum looks at. */
static bool is_letter(uint8_t c)
{
    return c >= '0' && c <= 'z';
}

/* Parses the list of tags. Returns 0, or -1 after a message. */
static int list_tags(struct checksum_options *o)
{
    o->is_all_but = o->tags[0] == '*';
    for (const char *at = o->tags; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        bool is_star = n == 1 && *at == '*';
        if (!is_star && (n != 2 || !is_letter((uint8_t)at[0]) || !is_letter((uint8_t)at[1]))) {
            diag_error("--samtools-checksum: -t takes a list such as BC,QT or *,NM, not '%s'",
                       o->tags);
            return -1;
        }
        o->n_tags++;
        if (!is_star) o->places[at[0] - '0'][at[1] - '0'] = (uint16_t)o->n_tags;
        at += n;
    }
    return 0;
}

static void *parse(int argc, char **argv)
{
    static const struct option_table table = {
        .rows = rows, .n_rows = sizeof rows / sizeof *rows, .option = "--samtools-checksum"};
    struct checksum_options *o = xcalloc(1, sizeof *o);
    o->exclude = BAM_FSECONDARY | BAM_FSUPPLEMENTARY;
    o->mask = BAM_FPAIRED | BAM_FREAD1 | BAM_FREAD2;
    o->tags = "BC,FI,QT,RT,TC";
    if (option_table_parse_all(&table, argc, argv, o) == 0 && list_tags(o) == 0) return o;
    free(o);
    return NULL;
}

/* ---- sums ---- */

struct sums {
    uint64_t n;                 /* records */
    uint32_t of[N_COLUMNS];
};

struct group {
    char *name;                 /* NULL: of records without a read group */
    struct sums sums[2];        /* passed, failed */
};

struct groups {
    struct group *all;          /* [0]: without a read group */
    size_t n, room;
    struct text_map numbers;    /* in `all`, by name */
};

static uint32_t multiply(uint64_t product, uint32_t crc)
{
    crc &= INT32_MAX;
    return (uint32_t)(product * (crc == 0 || crc == prime ? 1 : crc) % prime);
}

static const struct sums no_records = {0, {1, 1, 1, 1, 1, 1, 1}};

/* Multiplies a sum with other products, or with the CRCs of one record. */
static void add_sums(struct sums *sums, uint64_t n, const uint32_t *factors, uint32_t mix)
{
    sums->n += n;
    for (int i = 0; i < N_COLUMNS; i++) sums->of[i] = multiply(sums->of[i], factors[i] ^ mix);
}

/* Returns the number of a group. */
static size_t put_group(struct groups *groups, struct text name)
{
    size_t *number = groups->n > 0 && name.at ? text_map_find(&groups->numbers, name) : NULL;
    if (number) return *number;
    if (!name.at && groups->n > 0) return 0;
    xgrow(&groups->all, &groups->room, groups->n + 1, groups->n, sizeof *groups->all);
    struct group *group = &groups->all[groups->n];
    *group = (struct group){.sums = {no_records, no_records}};
    if (!name.at) return groups->n++;
    group->name = xasprintf("%.*s", (int)name.n, name.at);
    return text_map_put(&groups->numbers, text_of(group->name), groups->n++);
}

static void release_groups(struct groups *groups)
{
    for (size_t i = 0; i < groups->n; i++) free(groups->all[i].name);
    free(groups->all);
    text_map_release(&groups->numbers);
}

/* ---- CRCs of a record ---- */

struct crcs {
    uint32_t of[N_COLUMNS];
    uint32_t group;
    bool failed;
};

struct checksum_part {
    struct groups groups;
    size_t last_group;          /* of the last record */
    struct byte_buffer bases, quals;    /* of one record, as text */
    uint16_t pairs[256];        /* the letters of two bases */
    struct crcs *records;       /* with -O: those that count, in their order */
    size_t n_records, records_room;
};

struct checksum {
    struct record_observer base;        /* must be the first member */
    const struct count_setup *setup;
    const struct checksum_options *options;
    struct groups groups;
};

static struct checksum *of(struct record_observer *observer)
{
    return (struct checksum *)observer;
}

static const char complements[] = "=TGKCYSBAWRDMHVN";   /* of htslib's seq_nt16_str */

static void *begin(const struct record_observer *observer)
{
    struct checksum_part *part = xcalloc(1, sizeof *part);
    (void)observer;
    (void)put_group(&part->groups, (struct text){NULL, 0});
    for (unsigned i = 0; i < 256; i++) {
        const char letters[2] = {seq_nt16_str[i >> 4], seq_nt16_str[i & 15]};
        memcpy(&part->pairs[i], letters, 2);
    }
    return part;
}

static void discard(void *arg)
{
    struct checksum_part *part = arg;
    release_groups(&part->groups);
    free(part->bases.bytes);
    free(part->quals.bytes);
    free(part->records);
    free(part);
}

/* Writes the bases and qualities as text; those of a reverse read as they were sequenced. */
static void write_bases(const struct checksum_options *o, struct checksum_part *part,
                        const uint8_t *rec)
{
    size_t n = (size_t)bam_record_n_bases(rec);
    const uint8_t *seq = bam_record_seq(rec), *quals = bam_record_quals(rec);
    part->bases.n_bytes = part->quals.n_bytes = 0;
    uint8_t *to = byte_buffer_reserve(&part->bases, n + 2);
    uint8_t *quals_to = byte_buffer_reserve(&part->quals, n + 1);
    if (bam_record_flag(rec) & BAM_FREVERSE && !o->plain_bases) {
        for (size_t i = 0; i < n; i++) to[n - 1 - i] = (uint8_t)complements[bam_seqi(seq, i)];
        for (size_t i = 0; i < n; i++) quals_to[n - 1 - i] = (uint8_t)(quals[i] + 33);
        return;
    }
    for (size_t i = 0; i < (n + 1) / 2; i++) memcpy(to + 2 * i, &part->pairs[seq[i]], 2);
    for (size_t i = 0; i < n; i++) quals_to[i] = (uint8_t)(quals[i] + 33);
}

/* Adds a tag. An integer counts in its smallest type, unsigned if it is not negative. */
static uint32_t add_tag(uint32_t crc, const struct bam_aux *tag)
{
    int64_t value;
    if (!bam_aux_integer(tag, &value))
        return bgzf_engine_crc(crc, tag->start, tag->value_bytes + 3);
    bool is_negative = value < 0;
    int size = is_negative ? (value >= INT8_MIN ? 0 : value >= INT16_MIN ? 1 : 2)
                           : (value <= UINT8_MAX ? 0 : value <= UINT16_MAX ? 1 : 2);
    uint8_t bytes[7] = {tag->start[0], tag->start[1], (uint8_t)(is_negative ? "csi" : "CSI")[size]};
    (void)put_u32(bytes + 3, (uint64_t)value);
    return bgzf_engine_crc(crc, bytes, 3 + (1u << size));
}

struct ordered_tag {
    uint32_t place;
    struct bam_aux tag;
};

/* Sorts tags by their places. Insertion: records have few, and sorters write them in one order. */
static void sort_tags(struct ordered_tag *tags, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct ordered_tag tag = tags[i];
        size_t k = i;
        for (; k > 0 && tags[k - 1].place > tag.place; k--) tags[k] = tags[k - 1];
        tags[k] = tag;
    }
}

/* The place of a tag among those that count, or 0. */
static uint32_t place_of(const struct checksum_options *o, const struct bam_aux *tag)
{
    const uint8_t *name = tag->start;
    if (!is_letter(name[0]) || !is_letter(name[1])) return 0;
    uint32_t place = o->places[name[0] - '0'][name[1] - '0'];
    if (!o->is_all_but) return place;
    return place == 0 ? (uint32_t)name[0] << 8 | name[1] : 0;
}

/* True if sanitizing leaves the tag out. */
static bool is_left_out(const struct draft *draft, const struct bam_aux *tag)
{
    static const char names[][2] = {{'N', 'M'}, {'M', 'D'}, {'C', 'G'}, {'S', 'M'}};
    if (tag->start == draft->long_cigar) return true;
    for (size_t i = 0; draft->without_alignment_tags && i < sizeof names / sizeof *names; i++)
        if (memcmp(tag->start, names[i], 2) == 0) return true;
    return false;
}

/* Adds the tags that count, and finds the read group. */
static uint32_t add_tags(const struct checksum_options *o, const struct draft *draft, uint32_t crc,
                         struct text *group)
{
    struct ordered_tag few[64], *tags = few;
    struct bam_aux tag;
    size_t n = 0, room = 64;
    const uint8_t *at = draft->tags, *end = at + draft->tags_bytes;
    while (bam_aux_next_before(end, &at, &tag) > 0) {
        if (memcmp(tag.start, "RGZ", 3) == 0)
            *group = (struct text){(const char *)tag.value, tag.value_bytes - 1};
        uint32_t place = place_of(o, &tag);
        if (place == 0 || is_left_out(draft, &tag)) continue;
        if (n == room) {
            struct ordered_tag *more = xmalloc((room *= 2) * sizeof *more);
            memcpy(more, tags, n * sizeof *more);
            if (tags != few) free(tags);
            tags = more;
        }
        tags[n++] = (struct ordered_tag){place, tag};
    }
    sort_tags(tags, n);
    /* Of tags that were listed, the last one with a name counts. */
    for (size_t i = 0; i < n; i++)
        if (o->is_all_but || i + 1 == n || tags[i + 1].place != tags[i].place)
            crc = add_tag(crc, &tags[i].tag);
    if (tags != few) free(tags);
    return crc;
}

/* Computes the CRCs of a record; returns its read group. */
static struct text compute(const struct checksum_options *o, struct checksum_part *part,
                           const struct draft *draft, uint32_t of[N_COLUMNS])
{
    const uint8_t *rec = draft->rec, *name = bam_record_name(rec);
    size_t n = (size_t)bam_record_n_bases(rec);
    uint8_t flags = (uint8_t)(draft->flag & (uint32_t)o->mask), bytes[20];
    struct text group = {NULL, 0};
    write_bases(o, part, rec);
    const uint8_t *bases = part->bases.bytes;
    uint32_t seq = of[COLUMN_SEQ] = bgzf_engine_crc(bgzf_engine_crc(0, &flags, 1), bases, n);
    uint32_t crc = bgzf_engine_crc(0, name, strlen((const char *)name) + 1);
    of[COLUMN_NAME] = bgzf_engine_crc(bgzf_engine_crc(crc, &flags, 1), bases, n);
    of[COLUMN_QUAL] = bgzf_engine_crc(seq, part->quals.bytes, n);
    of[COLUMN_AUX] = add_tags(o, draft, seq, &group);
    (void)put_u64(put_u32(bytes, (uint32_t)draft->tid), (uint64_t)draft->pos);
    of[COLUMN_POS] = o->shows[COLUMN_POS] ? bgzf_engine_crc(seq, bytes, 12) : 0;
    (void)put_u32(bytes, draft->mapq);
    of[COLUMN_CIGAR] = 0;
    if (o->shows[COLUMN_CIGAR])
        of[COLUMN_CIGAR] = bgzf_engine_crc(bgzf_engine_crc(seq, bytes, 4), draft->cigar.ops,
                                           4 * draft->cigar.n_ops);
    (void)put_u64(put_u64(put_u32(bytes, (uint32_t)draft->mate_tid), (uint64_t)draft->mate_pos),
                  (uint64_t)draft->template_length);
    of[COLUMN_MATE] = o->shows[COLUMN_MATE] ? bgzf_engine_crc(seq, bytes, 20) : 0;
    return group;
}

static void add_record(const struct checksum *sum, struct checksum_part *part, const uint8_t *rec)
{
    const struct checksum_options *o = sum->options;
    uint32_t flag = bam_record_flag(rec);
    if (flag & (uint32_t)o->exclude || (flag & (uint32_t)o->require) != (uint32_t)o->require)
        return;
    struct draft draft;
    struct crcs crcs;
    draft_open(&draft, rec);
    int64_t n_bases =
        draft.tid >= 0 ? (int64_t)sam_hdr_tid2len(sum->setup->header, draft.tid) : 0;
    /* Damaged tags are an error of the whole sort elsewhere: here those before them count. */
    if (o->sanitize) (void)sanitize_draft(&draft, (unsigned)o->sanitize, n_bases);
    struct text group = compute(o, part, &draft, crcs.of);
    const struct group *last = &part->groups.all[part->last_group];
    if (!text_equal(group, last->name ? text_of(last->name) : (struct text){NULL, 0}))
        part->last_group = put_group(&part->groups, group);
    crcs.group = (uint32_t)part->last_group;
    crcs.failed = (draft.flag & BAM_FQCFAIL) != 0;
    draft_close(&draft);
    if (!o->in_order) {
        add_sums(&part->groups.all[crcs.group].sums[crcs.failed], 1, crcs.of, 0);
        return;
    }
    xgrow(&part->records, &part->records_room, part->n_records + 1, part->n_records + 64,
          sizeof *part->records);
    part->records[part->n_records++] = crcs;
}

static int add_records(struct record_observer *observer, void *part,
                       const struct observed_records *observed)
{
    struct bam_records records = observed->all;
    for (const uint8_t *rec; (rec = bam_records_next(&records));)
        add_record(of(observer), part, rec);
    return 0;
}

static int combine(struct record_observer *observer, void *arg)
{
    struct groups *groups = &of(observer)->groups;
    struct checksum_part *part = arg;
    uint32_t *numbers = xcalloc(part->groups.n, sizeof *numbers);
    for (size_t i = 0; i < part->groups.n; i++) {
        const struct group *from = &part->groups.all[i];
        numbers[i] = (uint32_t)put_group(groups, from->name ? text_of(from->name)
                                                            : (struct text){NULL, 0});
        for (int failed = 0; failed < 2; failed++)
            add_sums(&groups->all[numbers[i]].sums[failed], from->sums[failed].n,
                     from->sums[failed].of, 0);
    }
    for (size_t i = 0; i < part->n_records; i++) {
        const struct crcs *crcs = &part->records[i];
        struct sums *sums = groups->all[numbers[crcs->group]].sums;
        uint8_t bytes[8];
        (void)put_u64(bytes, sums[0].n + sums[1].n);
        add_sums(&sums[crcs->failed], 1, crcs->of, bgzf_engine_crc(0, bytes, sizeof bytes));
    }
    free(numbers);
    discard(arg);
    return 0;
}

/* ---- the report ---- */

static void print_sums(const struct checksum_options *o, const char *name, int row,
                       const struct sums *sums, FILE *to)
{
    static const char *const rows_of[] = {"all", "pass", "fail"};
    if (sums->n == 0 && !o->shows_empty) return;
    uint64_t all = multiply(multiply(1, (uint32_t)(sums->n >> 32)), (uint32_t)sums->n);
    (void)fprintf(to, o->has_tabs ? "%s\t%s\t%" PRIu64 : "%-10s %-4s %12" PRIu64, name,
                  rows_of[row], sums->n);
    for (int i = 0; i < N_COLUMNS; i++) {
        if (i >= N_PLAIN_COLUMNS && !o->shows[i]) continue;
        (void)fprintf(to, o->has_tabs ? "\t%" PRIx32 : "  %08" PRIx32, sums->of[i]);
        /* samtools 1.24 takes the bases twice, instead of the qualities. */
        all = multiply(all, sums->of[i == COLUMN_QUAL ? COLUMN_SEQ : i]);
    }
    (void)fprintf(to, o->has_tabs ? "\t%" PRIx64 "\n" : "  %08" PRIx64 "\n", all);
}

static void print_group(const struct checksum_options *o, const char *name,
                        const struct sums sums[2], FILE *to)
{
    struct sums all = sums[0];
    add_sums(&all, sums[1].n, sums[1].of, 0);
    print_sums(o, name, 0, &all, to);
    for (int failed = 0; failed < 2 && o->shows_quality; failed++)
        print_sums(o, name, 1 + failed, &sums[failed], to);
}

static void print_head(const struct checksum *sum, FILE *to)
{
    static const char *const names[] = {"+chr/pos", "+cigar  ", "+mate   "};
    const struct checksum_options *o = sum->options;
    const char *output = sum->setup->places ? sum->setup->places->output : NULL;
    char *flags = bam_flag2str(o->mask);
    xalloc_require(flags != NULL);
    const char tab = o->has_tabs ? '\t' : ' ';
    (void)fprintf(to, "# Checksum 1.0 for file:%c%s\n", tab, output ? output : "-");
    (void)fprintf(to, "# Aux tags:%s%s\n", o->has_tabs ? "\t" : "          ", o->tags);
    (void)fprintf(to, "# BAM flags:%s%s\n\n", o->has_tabs ? "\t" : "         ", flags);
    free(flags);
    (void)fputs(o->has_tabs
                    ? "# Group\tQC\tcount\tflag+seq\t+name\t+qual\t+aux"
                    : "# Group    QC          count  flag+seq  +name     +qual     +aux    ", to);
    for (int i = N_PLAIN_COLUMNS; i < N_COLUMNS; i++) {
        const char *name = names[i - N_PLAIN_COLUMNS];
        int n = o->has_tabs ? (int)strcspn(name, " ") : (int)strlen(name);
        if (o->shows[i]) (void)fprintf(to, "%s%.*s", o->has_tabs ? "\t" : "  ", n, name);
    }
    (void)fputs(o->has_tabs ? "\tcombined\n" : "  combined\n", to);
}

static int compare_names(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int print(const struct record_observer *observer, unsigned file, FILE *to)
{
    const struct checksum *sum = (const struct checksum *)observer;
    const struct checksum_options *o = sum->options;
    struct group *groups = sum->groups.all;
    struct sums all[2] = {no_records, no_records};
    (void)file;
    for (size_t i = 0; i < sum->groups.n; i++)
        for (int failed = 0; failed < 2; failed++)
            add_sums(&all[failed], groups[i].sums[failed].n, groups[i].sums[failed].of, 0);
    print_head(sum, to);
    print_group(o, "all", all, to);
    print_group(o, "-", groups[0].sums, to);
    if (sum->groups.n > 1)      /* the map of names is not used any more */
        qsort(groups + 1, sum->groups.n - 1, sizeof *groups, compare_names);
    for (size_t i = 1; i < sum->groups.n; i++)
        print_group(o, groups[i].name, groups[i].sums, to);
    return 0;
}

static void destroy(struct record_observer *observer)
{
    release_groups(&of(observer)->groups);
    free(observer);
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct observer_kind kind = {
        .begin = begin, .add_records = add_records, .combine = combine, .discard = discard,
        .print = print, .destroy = destroy};
    struct checksum *sum = xcalloc(1, sizeof *sum);
    sum->base.kind = &kind;
    sum->setup = setup;
    sum->options = setup->options;
    (void)put_group(&sum->groups, (struct text){NULL, 0});
    return &sum->base;
}

const struct count_kind samtools_checksum_kind = {
    .parse = parse, .free_options = free, .observe = observe};
