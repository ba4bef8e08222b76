/*
 * test_order_check.c -- exactly the first violation is found, wherever spans begin and end and in
 * any order of joining; and which order a header claims.
 */
#include "unit_test.h"

#include "order/order_check.h"

enum { MAX_RECORDS = 60, RECORD_ROOM = 1400 };

struct file {
    uint8_t *bytes;
    size_t at[MAX_RECORDS + 1]; /* of each record, and the end */
    size_t n;
};

static void add_record(struct file *file, const char *name, int32_t tid, int32_t pos, uint32_t flag)
{
    struct record_fields f = {.name = name, .tid = tid, .pos = pos, .flag = flag, .l_seq = 4};
    size_t at = file->at[file->n];
    file->at[++file->n] = at + put_record(file->bytes + at, &f, 0x11);
}

static void make_claim(struct order_claim *claim, enum sort_order order)
{
    struct sort_rules rules = {.order = order};
    order_claim_of_rules(&rules, claim);
}

/* Cuts the file into spans at random, scans and joins them in random order; returns the verdict. */
static struct order_verdict verify(struct rng *rng, const struct order_claim *claim,
                                   const struct file *file)
{
    struct order_check *check = order_check_create(claim);
    struct order_span *spans[MAX_RECORDS];
    struct order_verdict verdict;
    size_t n_spans = 0;
    int stop = 0;
    for (size_t from = 0; from < file->n;) {
        size_t to = from + 1 + rng_below(rng, rng_one_in(rng, 2) ? 2 : file->n);
        if (to > file->n) to = file->n;
        struct record_problem problem;
        spans[n_spans] = order_check_scan(check, file->bytes + file->at[from],
                                          file->bytes + file->at[to], from, &problem);
        CHECK(rng, spans[n_spans] != NULL);
        n_spans++;
        from = to;
    }
    for (size_t i = n_spans; i > 0; i--) {
        size_t k = rng_below(rng, i);
        stop = order_check_join(check, spans[k]);
        spans[k] = spans[i - 1];
    }
    order_check_verdict(check, &verdict);
    CHECK(rng, !verdict.sorted == (stop != 0));
    CHECK(rng, !verdict.has_pair || verdict.before.number + 1 == verdict.after.number);
    order_check_destroy(check);
    return verdict;
}

/* The text of a header with this @HD line. */
static void claim_of(const char *hd, struct order_claim *claim)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(hd);
    order_claim_of_header(header, claim);
}

TEST(test_claims_of_headers_are_understood)
{
    static const struct {
        const char *hd;
        unsigned n;
        enum sort_order order;
        const char *tag;
    } cases[] = {
        {"@HD\tVN:1.6\tSO:coordinate\n", 2, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:coordinate\tSS:coordinate:minhash\n", 1, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:coordinate\tSS:queryname:natural\n", 2, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:queryname\n", 5, SORT_NAME_NATURAL, NULL},
        {"@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n", 3, SORT_NAME_NATURAL, NULL},
        {"@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical\n", 2, SORT_NAME_LEXICAL, NULL},
        {"@HD\tVN:1.6\tSO:unsorted\tSS:unsorted:CB:coordinate\n", 1, SORT_TAG, "CB"},
        {"@HD\tVN:1.6\tSO:unsorted\tSS:unsorted:CB:queryname:natural\n", 1, SORT_TAG, "CB"},
        {"@HD\tVN:1.6\tSO:unsorted\tGO:query\tSS:unsorted:template-coordinate\n", 1, SORT_TEMPLATE,
         NULL},
        {"@HD\tVN:1.6\tSO:unsorted\tSS:unsorted:CB\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:unsorted\tSS:unsorted:CBx:coordinate\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:unsorted\tSS:unsorted:minhash\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:unsorted\tGO:query\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:unknown\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\tSO:coordinates\n", 0, SORT_COORDINATE, NULL},
        {"@HD\tVN:1.6\n", 0, SORT_COORDINATE, NULL},
        {"@SQ\tSN:a\tLN:5\n", 0, SORT_COORDINATE, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct order_claim claim;
        claim_of(cases[i].hd, &claim);
        if (claim.n_candidates != cases[i].n) fail_msg("%s: %u", cases[i].hd, claim.n_candidates);
        assert_true(claim.header_says[0] != '\0');
        if (claim.n_candidates == 0) continue;
        assert_int_equal(claim.candidates[0].rules.order, cases[i].order);
        if (cases[i].tag) assert_memory_equal(claim.candidates[0].rules.tag, cases[i].tag, 2);
    }
}

/* SO:queryname may mean three orders, and only a part of their keys. */
TEST(test_queryname_may_mean_three_orders)
{
    static const struct {
        const char *names[4];
        bool sorted;
    } cases[] = {
        {{"a1", "a2", "a10", NULL}, true},      /* by value */
        {{"a1", "a10", "a2", NULL}, true},      /* by character */
        {{"a1", "a01", "a2", NULL}, true},      /* equal by value */
        {{"a01b", "a1a", "a2", NULL}, true},    /* zeros decide, as in samtools 1.16 */
        {{"a001", "a01", "a1", NULL}, true},
        {{"a10", "a2", "a1", NULL}, false},
        {{"b", "a", NULL}, false},
    };
    struct rng rng = rng_start(29);
    struct file file = {.bytes = test_alloc((size_t)MAX_RECORDS * RECORD_ROOM)};
    struct order_claim claim;
    claim_of("@HD\tVN:1.6\tSO:queryname\n", &claim);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file.n = 0;
        for (const char *const *name = cases[i].names; *name; name++) {
            /* The order of mates is not part of the claim. */
            add_record(&file, *name, -1, -1, 0x85);
            add_record(&file, *name, -1, -1, 0x45);
        }
        struct order_verdict verdict = verify(&rng, &claim, &file);
        if (verdict.sorted != cases[i].sorted) fail_msg("names %zu", i);
        assert_true(verdict.has_pair);
    }
    free(file.bytes);
}

/* The specification allows any order of the reads at one place; samtools orders them by strand. */
TEST(test_any_order_at_one_place_is_allowed)
{
    struct rng rng = rng_start(31);
    struct file file = {.bytes = test_alloc((size_t)MAX_RECORDS * RECORD_ROOM)};
    struct order_claim claim;
    claim_of("@HD\tVN:1.6\tSO:coordinate\n", &claim);
    add_record(&file, "a", 0, 5, 16);
    add_record(&file, "b", 0, 5, 0);
    add_record(&file, "c", -1, 7, 4);
    add_record(&file, "d", -1, -1, 4);
    struct order_verdict verdict = verify(&rng, &claim, &file);
    assert_true(verdict.sorted && verdict.has_pair);
    assert_int_equal(verdict.after.number, 2);
    assert_non_null(verdict.candidate->note);
    make_claim(&claim, SORT_COORDINATE);
    verdict = verify(&rng, &claim, &file);
    assert_false(verdict.sorted);
    assert_int_equal(verdict.after.number, 2);
    add_record(&file, "e", 0, 4, 0);
    claim_of("@HD\tVN:1.6\tSO:coordinate\n", &claim);
    verdict = verify(&rng, &claim, &file);
    assert_false(verdict.sorted);
    assert_int_equal(verdict.after.number, 5);
    free(file.bytes);
}
