/*
 * test_bam_key_template.c -- the keys of --template-coordinate: positions, ties and errors with the
 * answers of samtools 1.24. test/differential.py compares random records with it.
 */
#include "unit_test.h"

#include "order/bam_key_template.h"

OWNER(struct bam_key_template, bam_key_template_destroy)

enum { MAX_CIGAR = 64, MAX_TAGS_BYTES = 400 };

/* Read groups 1 to 6 and one that is not there; their libraries, "" if there is none. */
static const char header_text[] = "@HD\tVN:1.6\n@SQ\tSN:c1\tLN:2147483647\n@SQ\tSN:c2\tLN:1000\n"
                                  "@RG\tID:3\tLB:zz\n@RG\tID:1\tLB:b\n@RG\tID:2\tSM:s\n"
                                  "@RG\tID:6\tLB:lib9\n@RG\tID:5\tLB:lib10\n@RG\tID:4\tLB:b\n";

struct fields {                 /* what a record is made of; NULL is a tag that is not there */
    char name[TEST_MAX_NAME + 1];
    uint32_t flag;
    int32_t tid, pos, mate_tid, mate_pos;
    int32_t l_seq;
    char cigar[MAX_CIGAR];
    const char *mc, *mi, *cb;
    int group;                  /* 1 to 7; 0 for none */
    const char *more;           /* bytes after these tags */
    size_t n_more;
};

static struct bam_key_template *create_from(const char *text)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(text);
    struct bam_key_template *t = bam_key_template_create(header);
    assert_non_null(t);
    return t;
}

static size_t put_text_tag(uint8_t *at, const char *tag, const char *value)
{
    size_t n = strlen(value) + 1;
    memcpy(at, tag, 2);
    at[2] = 'Z';
    memcpy(at + 3, value, n);
    return 3 + n;
}

static size_t put_cigar(uint8_t *at, const char *cigar)
{
    size_t n = 0;
    char *end;
    for (; *cigar; cigar = end + 1, n += 4) {
        unsigned long length = strtoul(cigar, &end, 10);
        const char *op = strchr(BAM_CIGAR_STR, *end);
        assert_non_null(op);
        test_put_u32(at + n, (uint32_t)(length << 4) | (uint32_t)(op - BAM_CIGAR_STR));
    }
    return n;
}

/* The record in exact memory. */
static uint8_t *make_record(const struct fields *f)
{
    uint8_t cigar[4 * MAX_CIGAR], tags[MAX_TAGS_BYTES];
    char group[2] = {(char)('0' + f->group), '\0'};
    size_t n = 0, n_cigar = put_cigar(cigar, f->cigar);
    if (f->mi) n += put_text_tag(tags + n, "MI", f->mi);
    if (f->cb) n += put_text_tag(tags + n, "CB", f->cb);
    if (f->group) n += put_text_tag(tags + n, "RG", group);
    if (f->mc) n += put_text_tag(tags + n, "MC", f->mc);
    if (f->n_more) memcpy(tags + n, f->more, f->n_more);
    n += f->n_more;
    struct record_fields plain = {f->name, f->tid, f->pos, f->flag, (uint32_t)n_cigar / 4,
                                  f->l_seq, n};
    uint8_t *rec = test_alloc(record_size(&plain));
    size_t size = put_record(rec, &plain, 0);
    test_put_u32(rec + 24, (uint32_t)f->mate_tid);
    test_put_u32(rec + 28, (uint32_t)f->mate_pos);
    memcpy(rec + 36 + strlen(f->name) + 1, cigar, n_cigar);
    if (n) memcpy(rec + size - n, tags, n);
    return rec;
}

/* Key and size in exact memory; NULL and *problem if there is none. */
static uint8_t *make_key(const struct bam_key_template *t, const uint8_t *rec, size_t *n_bytes,
                         const char **problem)
{
    *problem = NULL;
    *n_bytes = bam_key_template_encode(t, rec, NULL, problem);
    assert_true((*n_bytes == 0) == (*problem != NULL));
    if (*n_bytes == 0) return NULL;
    assert_true(*n_bytes < 2 * bam_record_bytes(rec) - 40);
    uint8_t *key = test_alloc(*n_bytes);
    assert_int_equal(bam_key_template_encode(t, rec, key, problem), *n_bytes);
    assert_null(*problem);
    return key;
}

/* Compares the keys of two records, less n_last bytes at their ends; -1, 0 or 1. */
static int compare_keys(const struct bam_key_template *t, const struct fields *a,
                        const struct fields *b, size_t n_last)
{
    OWNED uint8_t *rec_a = make_record(a), *rec_b = make_record(b);
    const char *problem;
    size_t n_a, n_b;
    OWNED uint8_t *key_a = make_key(t, rec_a, &n_a, &problem);
    OWNED uint8_t *key_b = make_key(t, rec_b, &n_b, &problem);
    assert_true(key_a && key_b);
    int c = sign(memcmp(key_a, key_b, (n_a < n_b ? n_a : n_b) - n_last), 0);
    if (c == 0) assert_int_equal(n_a, n_b);
    return c;
}

struct position_case {
    const char *cigar;
    int read[2], mate[2];       /* forward and reverse; 0: not tested */
};

/* The positions that samtools gives a read at 100 with this CIGAR, and a mate at 100 with it. */
static const struct position_case position_cases[] = {
    {"10M", {100, 109}, {100, 109}},
    {"5S5M", {95, 104}, {95, 104}},
    {"5H5M", {100, 104}, {100, 104}},
    {"5H5S5M", {95, 104}, {95, 104}},
    {"5P5S5M", {100, 104}, {100, 104}},
    {"5H5I5S5M", {100, 104}, {100, 104}},
    {"2I3M", {100, 102}, {100, 102}},
    {"3M2I5S", {100, 107}, {100, 107}},
    {"3M5S3H", {100, 107}, {100, 107}},
    {"3M5S3P2S", {100, 104}, {100, 109}},
    {"5M3S2M4S", {100, 110}, {100, 113}},
    {"3S", {97, 103}, {97, 99}},
    {"5H3S4S7H", {93, 107}, {93, 99}},
    {"4H", {100, 100}, {100, 99}},
    {"5I3S", {100, 103}, {100, 99}},
    {"3S5I", {97, 100}, {97, 99}},
    {"0M3S", {100, 103}, {100, 102}},
    {"", {100, 100}, {100, 99}},
    {"10D5M", {100, 114}, {100, 114}},
    {"3=2X", {100, 104}, {100, 104}},
    /* Only a mate's CIGAR can be such text. */
    {"*", {0, 0}, {100, 99}},
    {"M", {0, 0}, {100, 100}},
    {"SM", {0, 0}, {99, 100}},
    {"5Bx", {0, 0}, {100, 99}},
    {"5M5", {0, 0}, {100, 104}},
    {"5m3M", {0, 0}, {100, 102}},
    {"+5S3M", {0, 0}, {100, 102}},
    {"5S*3S", {0, 0}, {95, 99}},
    {"5M*3M", {0, 0}, {100, 104}},
    {"5M 3M", {0, 0}, {100, 107}},
    {"99999999999999999999S1M", {0, 0}, {0, 100}},
};

TEST(test_positions_are_those_of_samtools)
{
    RELEASED(own_bam_key_template_destroy) struct bam_key_template *t = create_from(header_text);
    for (size_t i = 0; i < sizeof position_cases / sizeof *position_cases; i++) {
        const struct position_case *c = &position_cases[i];
        for (uint32_t reverse = 0; reverse < 2; reverse++) {
            struct fields read = {.name = "r", .flag = reverse << 4, .pos = 100};
            struct fields mate = {.name = "r", .mate_pos = 100, .mc = c->cigar};
            struct fields plain = {.name = "r", .flag = reverse << 4, .cigar = "1M"};
            mate.flag = BAM_FPAIRED | BAM_FUNMAP | reverse << 5;
            plain.pos = c->read[reverse];
            if (plain.pos) {
                strcpy(read.cigar, c->cigar);
                if (compare_keys(t, &read, &plain, 0) != 0)
                    fail_msg("%s: read with reverse %u", c->cigar, reverse);
            }
            /* A mate that is the lower end differs in the last byte from a lower read. */
            plain.pos = c->mate[reverse];
            if (plain.pos && (compare_keys(t, &mate, &plain, 1) != 0 ||
                              compare_keys(t, &plain, &mate, 0) != -1))
                fail_msg("%s: mate with reverse %u", c->cigar, reverse);
        }
    }
}

TEST(test_far_positions_are_in_order)
{
    static const struct fields in_order[] = {
        {.name = "r", .flag = 5, .mc = "9223372036854775807S"},
        {.name = "r", .flag = 5, .mc = "5000000000S"},
        {.name = "r", .cigar = "268435455S1M"},
        {.name = "r", .pos = -1, .cigar = "1M"},
        {.name = "r", .pos = 0, .cigar = "1M"},
        {.name = "r", .pos = INT32_MAX, .cigar = "1M"},
        {.name = "r", .pos = INT32_MAX, .flag = 16, .cigar = "1M268435455S"},
        {.name = "r", .flag = 5 | 32, .mc = "5000000000M"},
        {.name = "r", .tid = 1, .cigar = "1M"},
        {.name = "r", .flag = 4 | 16, .tid = 0, .pos = 5, .cigar = "1M"},
    };
    RELEASED(own_bam_key_template_destroy) struct bam_key_template *t = create_from(header_text);
    for (size_t i = 1; i < sizeof in_order / sizeof *in_order; i++)
        if (compare_keys(t, &in_order[i - 1], &in_order[i], 0) != -1) fail_msg("record %zu", i);
}

/* MI without its last "/x", by signed characters; the shorter text comes first. */
TEST(test_molecules_are_in_order)
{
    static const char *const in_order[] = {"", "\x80", "\xff", "1", "1\x80", "10", "2", "\x7f"};
    static const char *const equal[][2] = {{"1", "1/A"}, {"1/A", "1/B"}, {"", "/A"}};
    struct bam_key_template *t = create_from(header_text);
    struct fields a = {.name = "r", .cigar = "1M"}, b = a;
    for (size_t i = 1; i < sizeof in_order / sizeof *in_order; i++) {
        a.mi = in_order[i - 1];
        b.mi = in_order[i];
        if (compare_keys(t, &a, &b, 0) != -1) fail_msg("molecule %zu", i);
    }
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        a.mi = equal[i][0];
        b.mi = equal[i][1];
        assert_int_equal(compare_keys(t, &a, &b, 0), 0);
    }
    bam_key_template_destroy(t);
}

TEST(test_pairs_with_equal_ends)
{
    RELEASED(own_bam_key_template_destroy) struct bam_key_template *t = create_from(header_text);
    struct fields first = {.name = "r", .pos = 7, .mate_pos = 7, .cigar = "1M", .mc = "1M"};
    struct fields second = first;
    first.flag = 0x41;          /* both forward: both the lower end */
    second.flag = 0x81;
    assert_int_equal(compare_keys(t, &first, &second, 0), 0);
    first.flag = 0x71;          /* both reverse: both the upper end */
    second.flag = 0xb1;
    assert_int_equal(compare_keys(t, &first, &second, 0), 0);
    first.flag = 0x61;          /* the forward one is the lower end */
    second.flag = 0x91;
    assert_int_equal(compare_keys(t, &first, &second, 1), 0);
    assert_int_equal(compare_keys(t, &first, &second, 0), -1);
}

/* compare_keys for a record with more tags and one without. */
static int compare_with_tags(const struct bam_key_template *t, const struct fields *f,
                             const char *more, size_t n_more, const struct fields *other)
{
    struct fields longer = *f;
    longer.more = more;
    longer.n_more = n_more;
    return compare_keys(t, &longer, other, 0);
}

#define TAGS(text) text, sizeof text - 1

TEST(test_libraries_decide_by_name)
{
    /* The libraries in order: "", "", "", b, b, lib10, lib9, zz. */
    static const int ranks[] = {0, 1, 0, 4, 1, 2, 3, 0};    /* of no group and groups 1 to 7 */
    struct bam_key_template *t = create_from(header_text);
    struct fields a = {.name = "r", .cigar = "1M"}, b = a;
    for (a.group = 0; a.group < 8; a.group++)
        for (b.group = 0; b.group < 8; b.group++)
            assert_int_equal(compare_keys(t, &a, &b, 0), sign(ranks[a.group], ranks[b.group]));
    /* Only text of type Z is a group. The first one counts, but not after damage. */
    a.group = b.group = 0;
    assert_int_equal(compare_with_tags(t, &a, TAGS("RGZ3\0"), &b), 1);
    assert_int_equal(compare_with_tags(t, &a, TAGS("RGH3\0"), &b), 0);
    assert_int_equal(compare_with_tags(t, &a, TAGS("RGA3"), &b), 0);
    assert_int_equal(compare_with_tags(t, &a, TAGS("XXx1RGZ3\0"), &b), 0);
    b.group = 1;
    assert_int_equal(compare_with_tags(t, &a, TAGS("RGZ1\0RGZ3\0"), &b), 0);
    bam_key_template_destroy(t);

    t = create_from("@SQ\tSN:c1\tLN:9\n");
    b.group = 0;
    a.group = 3;
    assert_int_equal(compare_keys(t, &a, &b, 0), 0);
    bam_key_template_destroy(t);

    /* If two lines have the same ID the first one counts. */
    enum htsLogLevel level = hts_get_log_level();
    hts_set_log_level(HTS_LOG_OFF);
    t = create_from("@RG\tID:1\tLB:b\n@RG\tID:2\tLB:m\n@RG\tID:1\tLB:z\n");
    a.group = 1;
    b.group = 2;
    assert_int_equal(compare_keys(t, &a, &b, 0), -1);
    bam_key_template_destroy(t);
    OWNED_HEADER sam_hdr_t *bad = parse_header("");      /* as read from BAM: nothing was parsed */
    bad->text = strdup("@RG\tLB:b\n");
    bad->l_text = strlen(bad->text);
    assert_null(bam_key_template_create(bad));
    hts_set_log_level(level);
    bam_key_template_destroy(NULL);
}

/* The CIGAR field is the placeholder "<bases>S<reference bases>N", and a tag has the CIGAR. */
TEST(test_long_cigar_counts)
{
    static const char tag[] = "CGBI\3\0\0\0\x14\0\0\0\x40\0\0\0\x25\0\0";   /* 1S 4M 2H */
    RELEASED(own_bam_key_template_destroy) struct bam_key_template *t = create_from(header_text);
    struct fields real = {.name = "r", .pos = 50, .l_seq = 5, .cigar = "1S4M2H"};
    struct fields stub = real;
    strcpy(stub.cigar, "5S4N");
    for (real.flag = 0; real.flag <= 16; real.flag += 16) {
        char changed[sizeof tag];
        memcpy(changed, tag, sizeof tag);
        stub.flag = real.flag;
        assert_int_equal(compare_with_tags(t, &stub, changed, sizeof tag, &real), 0);
        changed[3] = 'i';
        assert_int_equal(compare_with_tags(t, &stub, changed, sizeof tag, &real), 0);
        changed[3] = 'f';
        assert_int_equal(compare_with_tags(t, &stub, changed, sizeof tag, &stub), 0);
        /* One operation for a placeholder of two: too few. */
        int c = compare_with_tags(t, &stub, TAGS("CGBI\1\0\0\0\x50\0\0\0"), &stub);
        assert_int_equal(c, 0);
        struct fields other = real;
        strcpy(other.cigar, "4S4N");        /* no placeholder */
        assert_int_equal(compare_with_tags(t, &other, tag, sizeof tag, &other), 0);
        strcpy(other.cigar, "5M4N");
        assert_int_equal(compare_with_tags(t, &other, tag, sizeof tag, &other), 0);
        other = stub;
        other.pos = -1;
        assert_int_equal(compare_with_tags(t, &other, tag, sizeof tag, &other), 0);
    }
}

struct problem_case {
    uint32_t flag;
    const char *tags;
    size_t n_bytes;
    const char *word;           /* in the message; NULL if there is none */
};

TEST(test_records_without_a_key_are_explained)
{
    static const struct problem_case cases[] = {
        {1, TAGS(""), "MC"},                    /* mate mapped */
        {1 | 4, TAGS(""), "MC"},
        {1 | 0x100, TAGS(""), "MC"},
        {1 | 0x800, TAGS(""), "MC"},
        {1, TAGS("MCA1"), "MC"},
        {1, TAGS("MCA1MCZ1M\0"), "MC"},
        {1, TAGS("XXx1MCZ1M\0"), "MC"},         /* after damage */
        {1, TAGS("MCZ1M"), "MC"},               /* damaged itself */
        {1, TAGS("MCZ1M\0"), NULL},
        {1, TAGS("MCH1M\0"), NULL},
        {1, TAGS("MCZ1M\0XXx1"), NULL},
        {1 | 8, TAGS(""), NULL},                /* mate unmapped */
        {1 | 8, TAGS("MCA1"), NULL},
        {0, TAGS(""), NULL},                    /* not paired */
        {0, TAGS("MCA1"), NULL},
        {0, TAGS("MIA1"), "MI"},
        {4, TAGS("MIi1234"), "MI"},
        {0, TAGS("MIZ1\0MIA1"), NULL},
        {0, TAGS("MIH1A\0"), NULL},
        {0, TAGS("XXx1MIA1"), NULL},
        {0, TAGS("RGA1"), NULL},
        {0, TAGS("CBA1"), "CB"},
        {4, TAGS("CBBc\1\0\0\0x"), "CB"},
        {0, TAGS("CBH1A\0"), NULL},
    };
    RELEASED(own_bam_key_template_destroy) struct bam_key_template *t = create_from(header_text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fields f = {.name = "r", .flag = cases[i].flag, .cigar = "1M"};
        f.more = cases[i].tags;
        f.n_more = cases[i].n_bytes;
        OWNED uint8_t *rec = make_record(&f);
        const char *problem;
        size_t n;
        OWNED uint8_t *key = make_key(t, rec, &n, &problem);
        if (!key != !!cases[i].word || (problem && !strstr(problem, cases[i].word)))
            fail_msg("case %zu: %s", i, problem ? problem : "no problem");
    }
}
