/*
 * test_header_union.c -- headers that agree and disagree, read groups and programs whose IDs
 * collide, and the records that follow them.
 * fuzz_header.c unites headers of any text.
 */
#include "child.h"
#include "unit_test.h"

#include "bam/bam_fields.h"
#include "input/header_union.h"
#include "util/byte_order.h"

#include <htslib/kstring.h>

OWNER(struct header_union, header_union_destroy)

enum { MAX_INPUTS = 6 };

#define SQ "@SQ\tSN:c1\tLN:100\n@SQ\tSN:c2\tLN:50\n"

static const char *const file_names[MAX_INPUTS] = {"a.bam", "b.bam", "c.bam",
                                                   "d.bam", "e.bam", "f.bam"};

/* Unites headers given as text, up to the first NULL. */
static struct header_union *unite(const char *const *texts)
{
    sam_hdr_t *headers[MAX_INPUTS];
    size_t n = 0;
    for (; n < MAX_INPUTS && texts[n]; n++) headers[n] = parse_header(texts[n]);
    struct header_union *u = NULL;
    int r = 0;
    for (size_t i = 1; r == 0 && i < n; i++)
        r = header_union_check_references(headers[0], file_names[0], headers[i], file_names[i]);
    if (r == 0) u = header_union_create(headers, file_names, n);
    for (size_t i = 0; i < n; i++) sam_hdr_destroy(headers[i]);
    return u;
}

/* ---- references ---- */

static void unite_in_child(void *texts)
{
    _exit(unite(texts) ? 1 : 0);
}

#define SAME_LINES "; inputs need the same @SQ lines, in the same order\n"

static const struct {
    const char *a, *b, *message;
} disagreements[] = {
    {SQ, "@SQ\tSN:c1\tLN:100\n@SQ\tSN:c2\tLN:51\n",
     "reference 2 is 'c2' of 50 bases in 'a.bam' and 'c2' of 51 in 'b.bam'"},
    {SQ, "@SQ\tSN:c1\tLN:100\n@SQ\tSN:C2\tLN:50\n",
     "reference 2 is 'c2' of 50 bases in 'a.bam' and 'C2' of 50 in 'b.bam'"},
    {SQ, "@SQ\tSN:c2\tLN:50\n@SQ\tSN:c1\tLN:100\n",
     "reference 1 is 'c1' of 100 bases in 'a.bam' and 'c2' of 50 in 'b.bam'"},
    {SQ, "@SQ\tSN:c1\tLN:100\n@RG\tID:r\n",
     "'a.bam' has 2 references, 'b.bam' only 1: it lacks reference 2, 'c2' of 50 bases"},
    {SQ, SQ "@SQ\tSN:c3\tLN:7\n",
     "'b.bam' has 3 references, 'a.bam' only 2: it lacks reference 3, 'c3' of 7 bases"},
    {SQ, "", "'a.bam' has 2 references, 'b.bam' only 0: it lacks reference 1, 'c1' of 100 bases"},
    {"@CO\tnone\n", SQ,
     "'b.bam' has 2 references, 'a.bam' only 0: it lacks reference 1, 'c1' of 100 bases"},
    {"@SQ\tSN:c1\tLN:10000000000\n", "@SQ\tSN:c1\tLN:10000000001\n",
     "reference 1 is 'c1' of 10000000000 bases in 'a.bam' and 'c1' of 10000000001 in 'b.bam'"},
};

TEST(test_references_that_disagree_are_refused)
{
    for (size_t k = 0; k < sizeof disagreements / sizeof *disagreements; k++) {
        char expected[1024];
        const char *texts[] = {disagreements[k].a, disagreements[k].b, NULL};
        /* A process prints its first error only. */
        struct ended_child ended = run_in_child(unite_in_child, texts);
        assert_int_equal(ended.status, 0);
        (void)snprintf(expected, sizeof expected, "samtools rocksort: %s%s",
                       disagreements[k].message, SAME_LINES);
        assert_string_equal(ended.text, expected);
    }
    /* Also if it is the third input; and in this process, for the sanitizers. */
    for (size_t k = 0; k < sizeof disagreements / sizeof *disagreements; k++) {
        const char *const texts[] = {disagreements[k].a, disagreements[k].a, disagreements[k].b,
                                     NULL};
        assert_null(unite(texts));
    }
}

TEST(test_malformed_headers_are_refused)
{
    /* Set without htslib, which does not look at the text of a BAM file when it reads it. */
    static const char *const texts[] = {"@CO\tx\n@RG\tSM:s\n", "@CO\tx\n@PG\tPN:p\n",
                                        "@CO\ty\nno header line\n"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        sam_hdr_t *headers[2] = {parse_header("@CO\tx\n"), sam_hdr_init()};
        assert_non_null(headers[1]);
        headers[1]->text = strdup(texts[k]);
        assert_non_null(headers[1]->text);
        headers[1]->l_text = strlen(texts[k]);
        assert_null(header_union_create(headers, file_names, 2));
        sam_hdr_destroy(headers[0]);
        sam_hdr_destroy(headers[1]);
    }
}

/* ---- headers ---- */

struct header_case {
    const char *texts[MAX_INPUTS + 1];
    const char *united;
};

static const struct header_case header_cases[] = {
    /* One input, or equal ones: the header stays as it is. */
    {{"@CO\tx\n" SQ "@PG\tID:p\n@RG\tID:r\n@CO\tx\n"},
     "@CO\tx\n" SQ "@PG\tID:p\n@RG\tID:r\n@CO\tx\n"},
    {{""}, ""},
    {{"", "", ""}, ""},
    {{SQ "@PG\tID:p\n@RG\tID:r\tPG:p\n@PG\tID:q\tPP:p\n@CO\tx\n@CO\tx\n",
      SQ "@PG\tID:q\tPP:p\n@PG\tID:p\n@RG\tPG:p\tID:r\n@CO\tx\n"},
     SQ "@PG\tID:p\n@RG\tID:r\tPG:p\n@PG\tID:q\tPP:p\n@CO\tx\n@CO\tx\n"},
    /* @HD and @SQ are those of the first input. */
    {{"@HD\tVN:1.6\tSO:queryname\n" SQ, "@HD\tVN:1.5\tSO:coordinate\n" SQ, SQ},
     "@HD\tVN:1.6\tSO:queryname\n" SQ},
    {{SQ, "@HD\tVN:1.5\n" SQ}, SQ},
    {{"@SQ\tSN:c1\tLN:9\tM5:0f\n@CO\tx\n", "@SQ\tSN:c1\tUR:u\tLN:9\n@CO\ty\n"},
     "@SQ\tSN:c1\tLN:9\tM5:0f\n@CO\tx\n@CO\ty\n"},
    {{"@CO\tx\n", "@CO\ty\n", ""}, "@CO\tx\n@CO\ty\n"},
    {{"", "@CO\ty\n"}, "@CO\ty\n"},
    {{"@SQ\tSN:c1\tLN:10000000000\n", "@SQ\tSN:c1\tLN:10000000000\n@CO\ty\n"},
     "@SQ\tSN:c1\tLN:10000000000\n@CO\ty\n"},
    /* Comments and lines of other types stay in order; those of an earlier input are dropped. */
    {{"@CO\tone\n@CO\tone\n@XX\tab:c\n", "@CO\ttwo\n@CO\tone\n@CO\ttwo\n", "@CO\ttwo\n@XX\tab:c\n"
      "@CO\tone\t\n@XY\tab:c\n"},
     "@CO\tone\n@CO\tone\n@XX\tab:c\n@CO\ttwo\n@CO\ttwo\n@CO\tone\t\n@XY\tab:c\n"},
    /* Lines are put after the first input's of their type, or to the end. */
    {{"@CO\tx\n@RG\tID:a\n" SQ "@PG\tID:p\n", SQ "@RG\tID:b\n@PG\tID:q\n@CO\ty\n"},
     "@CO\tx\n@CO\ty\n@RG\tID:a\n@RG\tID:b\n" SQ "@PG\tID:p\n@PG\tID:q\n"},
    {{SQ "@PG\tID:p\n", SQ "@CO\ty\n@PG\tID:q\n@RG\tID:b\n"},
     SQ "@PG\tID:p\n@PG\tID:q\n@RG\tID:b\n@CO\ty\n"},
    /* One ID for different read groups. */
    {{SQ "@RG\tID:x\tSM:a\n", SQ "@RG\tID:x\tSM:b\n", SQ "@RG\tSM:c\tID:x\tLB:l\n",
      SQ "@RG\tID:x\tSM:b\n", SQ "@RG\tID:x\tSM:a\n", SQ "@RG\tID:x\n"},
     SQ "@RG\tID:x\tSM:a\n@RG\tID:x-2\tSM:b\n@RG\tSM:c\tID:x-3\tLB:l\n@RG\tID:x-6\n"},
    /* The new ID is none that another input has, earlier or later. */
    {{"@RG\tID:x-2\n@RG\tID:x\n", "@RG\tID:x\tSM:b\n", "@RG\tID:x\tSM:c\n@RG\tID:x-3\n",
      "@RG\tID:x\tSM:d\n"},
     "@RG\tID:x-2\n@RG\tID:x\n@RG\tID:x-4\tSM:b\n@RG\tID:x-5\tSM:c\n@RG\tID:x-3\n"
     "@RG\tID:x-6\tSM:d\n"},
    /* The order of tags does not count. Their values do, even if they are empty. */
    {{"@RG\tID:x\tSM:a\tLB:b\n", "@RG\tLB:b\tID:x\tSM:a\n", "@RG\tID:x\tSM:b\tLB:a\n",
      "@RG\tID:x\tSM:\tLB:b\n"},
     "@RG\tID:x\tSM:a\tLB:b\n@RG\tID:x-3\tSM:b\tLB:a\n@RG\tID:x-4\tSM:\tLB:b\n"},
    /* Lanes of one sample: as many programs as different command lines, with their chains. */
    {{"@RG\tID:1\tSM:s\n@PG\tID:bwa\tCL:1\n@PG\tID:view\tPP:bwa\n",
      "@RG\tID:2\tSM:s\n@PG\tID:bwa\tCL:2\n@PG\tID:view\tPP:bwa\n",
      "@RG\tID:3\tSM:s\n@PG\tID:bwa\tCL:2\n@PG\tID:view\tPP:bwa\tVN:2\n"},
     "@RG\tID:1\tSM:s\n@RG\tID:2\tSM:s\n@RG\tID:3\tSM:s\n"
     "@PG\tID:bwa\tCL:1\n@PG\tID:view\tPP:bwa\n@PG\tID:bwa-2\tCL:2\n"
     "@PG\tID:view-2\tPP:bwa-2\n@PG\tID:view-3\tPP:bwa-2\tVN:2\n"},
    /* Programs with the youngest first; a read group that differs only in its program. */
    {{"@RG\tID:r\tPG:b\n@PG\tID:c\tPP:b\n@PG\tID:b\tPP:a\n@PG\tID:a\n",
      "@PG\tID:c\tPP:b\n@PG\tID:b\tPP:a\n@PG\tID:a\tVN:2\n@RG\tID:r\tPG:b\n@RG\tID:s\tPG:c\n"},
     "@RG\tID:r\tPG:b\n@RG\tID:r-2\tPG:b-2\n@RG\tID:s\tPG:c-2\n@PG\tID:c\tPP:b\n@PG\tID:b\tPP:a\n"
     "@PG\tID:a\n@PG\tID:c-2\tPP:b-2\n@PG\tID:b-2\tPP:a-2\n@PG\tID:a-2\tVN:2\n"},
    /* An ID without a line in one input does not become that of a line of another. */
    {{"@PG\tID:a\n@PG\tID:b\tPP:c\n@RG\tID:r\tPG:d\n", "@PG\tID:q\tPP:a\n@PG\tID:b\tPP:c\n",
      "@PG\tID:c\n@PG\tID:b\tPP:c\n@PG\tID:d\n"},
     "@PG\tID:a\n@PG\tID:b\tPP:c\n@PG\tID:q\tPP:a-2\n@PG\tID:c-3\n"
     "@PG\tID:b-3\tPP:c-3\n@PG\tID:d-3\n@RG\tID:r\tPG:d\n"},
    /* If lines share an ID only the first counts; if fields of a line share a tag, likewise. */
    {{"@PG\tID:a\tCL:1\n", "@PG\tID:a\tCL:2\n@PG\tID:a\tCL:1\n@PG\tID:b\tPP:a\tPP:a\n"},
     "@PG\tID:a\tCL:1\n@PG\tID:a-2\tCL:2\n@PG\tID:b\tPP:a-2\tPP:a\n"},
    /* A chain that runs into itself is not united with another, but stays a chain. */
    {{"@PG\tID:a\tPP:b\n@PG\tID:b\tPP:c\n@PG\tID:c\tPP:b\n",
      "@PG\tID:a\tPP:b\n@PG\tID:b\tPP:c\n@PG\tID:c\tPP:b\n", "@PG\tID:b\tPP:b\n"},
     "@PG\tID:a\tPP:b\n@PG\tID:b\tPP:c\n@PG\tID:c\tPP:b\n"
     "@PG\tID:a-2\tPP:b-2\n@PG\tID:b-2\tPP:c-2\n@PG\tID:c-2\tPP:b-2\n@PG\tID:b-3\tPP:b-3\n"},
    /* Odd IDs. */
    {{"@RG\tID:\tSM:a\n@RG\tID:a b\n", "@RG\tSM:b\tID:\n@RG\tID:a b\tPG:\n"},
     "@RG\tID:\tSM:a\n@RG\tID:a b\n@RG\tSM:b\tID:-2\n@RG\tID:a b-2\tPG:\n"},
};

TEST(test_headers_are_united_line_by_line)
{
    for (size_t k = 0; k < sizeof header_cases / sizeof *header_cases; k++) {
        RELEASED(own_header_union_destroy) struct header_union *u = unite(header_cases[k].texts);
        assert_non_null(u);
        const char *text = sam_hdr_str(u->header);
        assert_string_equal(text ? text : "", header_cases[k].united);
        /* What the sort does next. */
        assert_int_equal(sam_hdr_add_pg(u->header, "samtools", NULL), 0);
    }
    header_union_destroy(NULL);
}

/* ---- records ---- */

enum { MAX_TAGS = 24, MAX_TAG_BYTES = 80 };

struct tag {
    uint8_t bytes[MAX_TAG_BYTES];
    size_t n;
};

static struct tag string_tag(const char *tag, const char *value)
{
    struct tag t = {.n = 3 + strlen(value) + 1};
    assert_true(t.n <= sizeof t.bytes && strlen(tag) == 3);
    memcpy(t.bytes, tag, 3);
    memcpy(t.bytes + 3, value, t.n - 3);
    return t;
}

static struct tag raw_tag(const char *bytes, size_t n)
{
    struct tag t = {.n = n};
    assert_true(n <= sizeof t.bytes);
    memcpy(t.bytes, bytes, n);
    return t;
}

#define RAW_TAG(bytes) raw_tag(bytes, sizeof bytes - 1)

/* A record with these tags, in exactly the memory that it needs. */
static uint8_t *make_record(const struct tag *tags, size_t n_tags)
{
    struct record_fields f = {.name = "read", .n_cigar = 1, .l_seq = 5};
    for (size_t k = 0; k < n_tags; k++) f.tag_bytes += tags[k].n;
    uint8_t *rec = test_alloc(record_size(&f)), *end = rec + put_record(rec, &f, 7);
    for (size_t k = n_tags; k-- > 0;) {
        end -= tags[k].n;
        memcpy(end, tags[k].bytes, tags[k].n);
    }
    return rec;
}

/* The rewritten record, in exactly the memory that it needs; the bound must be enough. */
static uint8_t *rewrite(const struct header_union *u, size_t i, const uint8_t *rec)
{
    static const struct id_renames none;
    const struct id_renames *renames = header_union_renames(u, i);
    if (!renames) renames = &none;
    size_t bound = bam_record_bytes(rec) + renames->growth;
    OWNED uint8_t *out = test_alloc(bound);
    size_t size = id_renames_rewrite(renames, rec, out);
    assert_true(size <= bound);
    assert_int_equal(size, bam_record_bytes(out));
    bool changed = size != bam_record_bytes(rec) || memcmp(out, rec, size) != 0;
    assert_int_equal(id_renames_touch(renames, rec), changed);
    uint8_t *exact = test_alloc(size);
    memcpy(exact, out, size);
    return exact;
}

static bool same_record(const uint8_t *a, const uint8_t *b)
{
    return bam_record_bytes(a) == bam_record_bytes(b) && memcmp(a, b, bam_record_bytes(a)) == 0;
}

/* Checks that a record of input i with the tags `before` becomes one with the tags `after`. */
static void check_rewrite(const struct header_union *u, size_t i, const struct tag *before,
                          const struct tag *after, size_t n)
{
    OWNED uint8_t *rec = make_record(before, n), *expected = make_record(after, n);
    OWNED uint8_t *found = rewrite(u, i, rec);
    assert_true(same_record(found, expected));
}

static struct header_union *unite_for_records(void)
{
    /* Input 1: x becomes x-2, p p-2, the missing m m-2; long-name-of-a-group and q stay. */
    static const char *const texts[] = {
        "@RG\tID:x\n@PG\tID:p\n@PG\tID:m\n",
        "@RG\tID:x\tSM:s\n@RG\tID:long-name-of-a-group\n@PG\tID:p\tCL:c\n@PG\tID:q\tPP:m\n",
        "@RG\tID:x\n@PG\tID:q\tPP:m\n@PG\tID:m\n",
        "",
        NULL};
    struct header_union *u = unite(texts);
    assert_non_null(u);
    return u;
}

TEST(test_tags_of_records_follow_their_ids)
{
    RELEASED(own_header_union_destroy) struct header_union *u = unite_for_records();
    assert_null(header_union_renames(u, 0));
    assert_non_null(header_union_renames(u, 1));
    assert_non_null(header_union_renames(u, 2));
    assert_null(header_union_renames(u, 3));
    const struct tag fill[] = {RAW_TAG("X0i\1\2\3\4"), RAW_TAG("XBBs\2\0\0\0RGZx"),
                               string_tag("XZZ", "RGZx"), RAW_TAG("XAAx")};
    /* The two tags at every place among the others. */
    for (size_t rg = 0; rg <= 4; rg++) {
        for (size_t pg = 0; pg <= 5; pg++) {
            struct tag before[6], after[6];
            size_t n = 0;
            for (size_t k = 0; k < 6; k++) {
                if (k == pg) {
                    before[k] = string_tag("PGZ", "p");
                    after[k] = string_tag("PGZ", "p-2");
                } else if (k - (k > pg) == rg) {
                    before[k] = string_tag("RGZ", "x");
                    after[k] = string_tag("RGZ", "x-2");
                } else {
                    before[k] = after[k] = fill[n++];
                }
            }
            check_rewrite(u, 1, before, after, 6);
            check_rewrite(u, 0, before, before, 6);
            check_rewrite(u, 3, before, before, 6);
        }
    }
    check_rewrite(u, 1, fill, fill, 4);
    check_rewrite(u, 1, NULL, NULL, 0);
}

TEST(test_which_ids_follow)
{
    static const struct {
        size_t input;
        const char *tag, *before, *after;
    } cases[] = {
        {1, "RGZ", "x", "x-2"},     {1, "RGZ", "long-name-of-a-group", "long-name-of-a-group"},
        {1, "RGZ", "p", "p"},       {1, "RGZ", "", ""},
        {1, "RGZ", "xx", "xx"},     {1, "RGZ", "x-2", "x-2"},
        {1, "PGZ", "p", "p-2"},     {1, "PGZ", "m", "m-2"},
        {1, "PGZ", "q", "q"},       {1, "PGZ", "x", "x"},
        {1, "PUZ", "x", "x"},       {1, "rgZ", "x", "x"},
        {1, "RGH", "x", "x"},       {0, "RGZ", "x", "x"},
        {2, "RGZ", "x", "x"},       {2, "PGZ", "q", "q-3"},
        {2, "PGZ", "m", "m"},       {3, "PGZ", "p", "p"},
    };
    RELEASED(own_header_union_destroy) struct header_union *u = unite_for_records();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct tag before = string_tag(cases[k].tag, cases[k].before);
        struct tag after = string_tag(cases[k].tag, cases[k].after);
        check_rewrite(u, cases[k].input, &before, &after, 1);
    }
}

TEST(test_damaged_and_repeated_tags_stay)
{
    RELEASED(own_header_union_destroy) struct header_union *u = unite_for_records();
    const struct tag x = string_tag("RGZ", "x"), x_2 = string_tag("RGZ", "x-2");
    /* If a tag stands there twice only the first counts, whatever its type. */
    check_rewrite(u, 1, (struct tag[]){x, x}, (struct tag[]){x_2, x}, 2);
    const struct tag number = RAW_TAG("RGi\1\0\0\0");
    check_rewrite(u, 1, (struct tag[]){number, x}, (struct tag[]){number, x}, 2);
    /* Damaged bytes stay as they are, with all that follows them. */
    static const char damaged[][12] = {"RGZx",  "RG",       "R",       "RGZ",   "?",
                                       "XX?1",  "XBBi\377", "XBBz\1\0\0\0a", "XSs\1", "\0\0\0\0"};
    for (size_t k = 0; k < sizeof damaged / sizeof *damaged; k++) {
        size_t n = strlen(damaged[k]);
        const struct tag bad = raw_tag(damaged[k], n > 0 ? n : 4);
        check_rewrite(u, 1, &bad, &bad, 1);
        check_rewrite(u, 1, (struct tag[]){x, bad}, (struct tag[]){x_2, bad}, 2);
        if (n == 0 || bad.bytes[0] == 'X')
            check_rewrite(u, 1, (struct tag[]){bad, x}, (struct tag[]){bad, x}, 2);
    }
}

/* Random bytes for tags: for the sanitizers; nothing changes except RG:Z and PG:Z. */
TEST(test_random_tag_bytes)
{
    struct rng rng = rng_start(1);
    RELEASED(own_header_union_destroy) struct header_union *u = unite_for_records();
    for (size_t k = 0; k < 20000; k++) {
        struct tag noise = {.n = rng_below(&rng, 40)};
        for (size_t at = 0; at < noise.n; at++)
            noise.bytes[at] = (uint8_t)"RGPZxpBis\0\1\2"[rng_below(&rng, 12)];
        OWNED uint8_t *rec = make_record(&noise, 1), *found = rewrite(u, 1, rec);
        size_t n = bam_record_bytes(rec), n_found = bam_record_bytes(found);
        CHECK(&rng, n_found == n || n_found == n + 2 || n_found == n + 4);
        if (n_found == n) CHECK(&rng, same_record(rec, found));
    }
}

TEST(test_work_is_not_quadratic_in_inputs)
{
    enum { N_INPUTS = 2000, N_GROUPS = 10 };
    OWNED sam_hdr_t **headers = test_alloc(N_INPUTS * sizeof *headers);
    OWNED const char **names = test_alloc(N_INPUTS * sizeof *names);
    for (size_t i = 0; i < N_INPUTS; i++) {
        OWNED_TEXT kstring_t text = KS_INITIALIZE;
        assert_true(kputs(SQ, &text) >= 0);
        for (size_t k = 0; k < N_GROUPS; k++)
            assert_true(ksprintf(&text, "@RG\tID:%zu\tSM:%zu\tPG:p%zu\n@PG\tID:p%zu\tCL:%zu\n", k,
                                 i, k, k, i / 2) >= 0);
        headers[i] = parse_header(text.s);
        names[i] = "lane.bam";
    }
    struct header_union *u = header_union_create(headers, names, N_INPUTS);
    assert_non_null(u);
    sam_hdr_t *header = u->header;
    assert_int_equal(sam_hdr_count_lines(header, "RG"), N_INPUTS * N_GROUPS);
    assert_int_equal(sam_hdr_count_lines(header, "PG"), N_INPUTS / 2 * N_GROUPS);
    struct tag before = string_tag("RGZ", "7"), after = string_tag("RGZ", "7-2000");
    check_rewrite(u, N_INPUTS - 1, &before, &after, 1);
    header_union_destroy(u);
    for (size_t i = 0; i < N_INPUTS; i++) sam_hdr_destroy(headers[i]);
}
