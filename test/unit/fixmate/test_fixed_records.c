/*
 * test_fixed_records.c -- templates that grow are fixed few at a time, and a damaged record has its
 * number. fuzz_template.c checks the groups in which templates are handed out.
 */
#include "unit_test.h"

#include "fixmate/fixed_records.h"

enum { N_TEMPLATES = 40, RECORD_BYTES = 400 };

static const int64_t reference_bases[] = {1 << 30};
static const struct fixmate_rules usual = {.sanitize = 0, .n_refs = 1,
                                           .reference_bases = reference_bases};

/* Two records for each template. The first n_left templates are left of earlier pieces; the others
   are in the piece. */
static void make_span(struct rng *rng, size_t n_left, uint8_t *piece,
                      struct template_span *templates)
{
    *templates = (struct template_span){.n_records = 2 * N_TEMPLATES};
    templates->left.at = test_alloc(2 * N_TEMPLATES * RECORD_BYTES);
    for (size_t i = 0; i < 2 * N_TEMPLATES; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "t%zu", i / 2);
        struct record_fields f = {.name = name, .l_seq = (int32_t)rng_below(rng, 40),
                                  .flag = i / 2 % 3 == 0 ? BAM_FUNMAP : 0};
        bool is_left = i / 2 < n_left;
        uint8_t *at =
            is_left ? templates->left.at + templates->left.n_bytes : piece + templates->to;
        *(is_left ? &templates->left.n_bytes : &templates->to) += put_record(at, &f, (uint8_t)i);
    }
}

/* A long CIGAR is in many short records of its template when they are fixed. */
static size_t put_growing(uint8_t *at, size_t number)
{
    enum { N_OPS = 50, N_OTHERS = 20 };
    char name[24];
    (void)snprintf(name, sizeof name, "t%zu", number);
    struct record_fields f = {.name = name, .flag = BAM_FPAIRED | BAM_FREAD2, .n_cigar = N_OPS};
    size_t n_bytes = put_record(at, &f, 0);
    for (size_t i = 0; i < N_OPS; i++)
        test_put_u32(at + 36 + strlen(name) + 1 + 4 * i, (uint32_t)(100000 + i) << 4 | BAM_CMATCH);
    f.n_cigar = 0;
    for (uint32_t i = 0; i < N_OTHERS; i++) {
        f.flag = BAM_FPAIRED | BAM_FREAD1 | (i > 0 ? BAM_FSUPPLEMENTARY : 0);
        n_bytes += put_record(at + n_bytes, &f, (uint8_t)i);
    }
    return n_bytes;
}

TEST(test_few_templates_are_fixed_at_a_time_where_they_grow)
{
    enum { USUAL = 40000, MOST_BYTES = 2000 };
    struct rng rng = rng_start(3);
    OWNED uint8_t *piece = test_alloc(N_TEMPLATES * MOST_BYTES), *whole = test_alloc(1 << 20);
    for (int i = 0; i < 100; i++) {
        size_t n_left = rng_below(&rng, 4), whole_bytes = 0, n_records = 0;
        struct template_span templates = {.from = 0}, again;
        templates.left.at = test_alloc(4 * MOST_BYTES);
        for (size_t t = 0; t < N_TEMPLATES; t++)
            *(t < n_left ? &templates.left.n_bytes : &templates.to) += put_growing(
                t < n_left ? templates.left.at + templates.left.n_bytes : piece + templates.to, t);
        again = templates;
        struct fixmate_rules rules = usual;
        RELEASED(fixed_records_release) struct fixed_records fixed = {.n_ends = 0};
        struct record_problem problem = {.record = 0};
        assert_int_equal(fixed_records_make(&fixed, &rules, piece, &again, &problem), 0);
        assert_false(fixed.has_rest);
        assert_in_range(whole_bytes = fixed.space.out_bytes, 8 * USUAL, 1 << 20);
        memcpy(whole, fixed.space.out, whole_bytes);
        rules.max_template_bytes = 1 << 20;
        rules.usual_bytes = USUAL;
        size_t n_bytes = 0, n_rounds = 0;
        do {
            struct fixed_group group;
            assert_int_equal(fixed_records_make(&fixed, &rules, piece, &templates, &problem), 0);
            assert_int_equal(fixed.too_large, 0);
            assert_in_range(fixed.space.out_bytes, 1, 2 * USUAL + 4 * templates.left.n_bytes);
            while (fixed_records_take(&fixed, rng_below(&rng, 90000), &group)) {
                assert_memory_equal(group.at, whole + n_bytes, group.n_bytes);
                n_bytes += group.n_bytes;
                n_records += group.n_records;
            }
            n_rounds++;
        } while (fixed.has_rest);
        assert_int_equal(n_bytes, whole_bytes);
        assert_int_equal(n_records, 21 * N_TEMPLATES);
        assert_in_range(n_rounds, 4, N_TEMPLATES);
        template_span_release(&templates);
    }
}

TEST(test_damaged_record_has_its_number)
{
    struct rng rng = rng_start(2);
    struct fixed_records fixed = {.n_ends = 0};
    OWNED uint8_t *piece = test_alloc(2 * N_TEMPLATES * RECORD_BYTES + 100);
    for (int i = 0; i < 100; i++) {
        struct template_span templates;
        size_t bad = rng_below(&rng, 2 * N_TEMPLATES), n_left = rng_below(&rng, N_TEMPLATES + 1);
        make_span(&rng, n_left, piece, &templates);
        uint8_t *rec = bad < 2 * n_left ? templates.left.at : piece;
        for (size_t k = bad < 2 * n_left ? 0 : 2 * n_left; k < bad; k++)
            rec += bam_record_bytes(rec);
        test_put_u32(rec + BAM_TID_AT, 5);
        struct record_problem problem = {.record = 7};
        CHECK(&rng, fixed_records_make(&fixed, &usual, piece, &templates, &problem) == -1);
        CHECK(&rng, problem.record == 7 + bad);
        CHECK(&rng, strstr(problem.text, "reference") != NULL);
        template_span_release(&templates);
        fixed_records_release(&fixed);  /* the templates before it were not ended */
    }
}

/* Takes all groups, and returns how many records they have. */
static size_t count_taken(struct fixed_records *fixed)
{
    struct fixed_group group;
    size_t n = 0;
    while (fixed_records_take(fixed, SIZE_MAX, &group)) n += group.n_records;
    return n;
}

TEST(test_templates_around_a_too_large_one_are_handed_out)
{
    enum { LARGE_BASES = 200, MAX_BYTES = 700 };
    struct fixmate_rules rules = usual;
    struct rng rng = rng_start(3);
    RELEASED(fixed_records_release) struct fixed_records fixed = {.n_ends = 0};
    OWNED uint8_t *piece = test_alloc(2 * N_TEMPLATES * RECORD_BYTES);
    rules.max_template_bytes = MAX_BYTES;
    for (int i = 0; i < 200; i++) {
        struct template_span templates;
        size_t n_left = rng_below(&rng, N_TEMPLATES + 1), large = rng_below(&rng, N_TEMPLATES);
        make_span(&rng, n_left, piece, &templates);
        bool is_left = large < n_left;
        uint8_t *from = is_left ? templates.left.at : piece, *at = from;
        size_t *end = is_left ? &templates.left.n_bytes : &templates.to;
        for (size_t k = is_left ? 0 : n_left; k < large; k++)
            for (int n = 0; n < 2; n++) at += bam_record_bytes(at);
        uint8_t *after = at, rest[2 * N_TEMPLATES * RECORD_BYTES];
        for (int n = 0; n < 2; n++) after += bam_record_bytes(after);
        size_t rest_bytes = (size_t)(from + *end - after);
        memcpy(rest, after, rest_bytes);
        const struct record_fields f = {.name = "large", .l_seq = LARGE_BASES};
        for (int n = 0; n < 2; n++) at += put_record(at, &f, 1);
        memcpy(at, rest, rest_bytes);
        *end = (size_t)(at - from) + rest_bytes;
        struct record_problem problem = {.record = 7};
        CHECK(&rng, fixed_records_make(&fixed, &rules, piece, &templates, &problem) == 0);
        CHECK(&rng, fixed.too_large == 2 && fixed.n_done == 2 * large + 2);
        CHECK(&rng, count_taken(&fixed) == 2 * large);
        CHECK(&rng, fixed_records_make(&fixed, &rules, piece, &templates, &problem) == 0);
        CHECK(&rng, fixed.too_large == 0 && problem.record == 7 + 2 * N_TEMPLATES);
        CHECK(&rng, count_taken(&fixed) == 2 * (N_TEMPLATES - 1 - large));
        template_span_release(&templates);
    }
}
