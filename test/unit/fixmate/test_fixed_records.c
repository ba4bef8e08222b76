/*
 * test_fixed_records.c -- the templates of a span are handed out in groups that fit, each once,
 * with the places where the input goes on.
 */
#include "unit_test.h"

#include "fixmate/fixed_records.h"

enum { N_TEMPLATES = 40, RECORD_BYTES = 400 };

static const int64_t reference_bases[] = {1 << 30};
static const struct fixmate_rules usual = {.sanitize = 0, .n_refs = 1,
                                           .reference_bases = reference_bases};
static const struct fixmate_rules removing = {.sanitize = 0, .n_refs = 1, .removes = true,
                                              .reference_bases = reference_bases};

/* Two records for each template, after `from` other bytes. Returns their end. */
static size_t make_span(struct rng *rng, size_t from, uint8_t *span)
{
    for (size_t i = 0; i < 2 * N_TEMPLATES; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "t%zu", i / 2);
        struct record_fields f = {.name = name, .l_seq = (int32_t)rng_below(rng, 40),
                                  .flag = i / 2 % 3 == 0 ? BAM_FUNMAP : 0};
        from += put_record(span + from, &f, (uint8_t)i);
    }
    return from;
}

/* Takes all groups, and checks that they follow each other. Returns how many records they have. */
static size_t take_all(struct rng *rng, struct fixed_records *fixed, size_t room)
{
    struct fixed_group group;
    size_t n_bytes = 0, n_before = 0, n_records = 0;
    while (fixed_records_take(fixed, room, &group)) {
        CHECK(rng, group.n_before == n_before);
        CHECK(rng, group.n_bytes == 0 || group.at == fixed->space.out + n_bytes);
        CHECK(rng, (group.n_bytes == 0) == (group.n_records == 0));
        size_t n = 0;
        for (size_t at = 0; at < group.n_bytes; n++) at += bam_record_bytes(group.at + at);
        CHECK(rng, n == group.n_records);
        n_bytes += group.n_bytes;
        n_before = group.end.n_records;
        n_records += group.n_records;
    }
    CHECK(rng, n_bytes == fixed->space.out_bytes && n_before == 2 * N_TEMPLATES);
    CHECK(rng, !fixed_records_take(fixed, room, &group));
    return n_records;
}

TEST(test_groups_of_templates_are_fixed)
{
    struct rng rng = rng_start(1);
    RELEASED(fixed_records_release) struct fixed_records fixed = {.n_ends = 0};
    OWNED uint8_t *piece = test_alloc(2 * N_TEMPLATES * RECORD_BYTES + 100);
    for (int i = 0; i < 300; i++) {
        size_t at = rng_below(&rng, 100), to = make_span(&rng, at, piece);
        const struct fixmate_rules *rules = i % 2 ? &removing : &usual;
        struct record_problem problem = {.record = 7};
        CHECK(&rng, fixed_records_make(&fixed, rules, piece, &at, to, &problem) == 0);
        CHECK(&rng, problem.record == 7 + 2 * N_TEMPLATES && at == to);
        CHECK(&rng, fixed.n_ends == N_TEMPLATES && fixed.ends[N_TEMPLATES - 1].at == to);
        size_t n = take_all(&rng, &fixed, rng_below(&rng, 3000));
        CHECK(&rng, n == (i % 2 ? 2 * (N_TEMPLATES - 14) : 2 * N_TEMPLATES));
        fixed_records_shrink(&fixed, rng_below(&rng, 20000));
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
    size_t n_piece = 0, whole_bytes, at = 0;
    for (size_t t = 0; t < N_TEMPLATES; t++) n_piece += put_growing(piece + n_piece, t);
    struct fixmate_rules rules = usual;
    RELEASED(fixed_records_release) struct fixed_records fixed = {.n_ends = 0};
    struct record_problem problem = {.record = 0};
    assert_int_equal(fixed_records_make(&fixed, &rules, piece, &at, n_piece, &problem), 0);
    assert_int_equal(at, n_piece);
    assert_in_range(whole_bytes = fixed.space.out_bytes, 8 * USUAL, 1 << 20);
    memcpy(whole, fixed.space.out, whole_bytes);
    rules.max_template_bytes = 1 << 20;
    rules.usual_bytes = USUAL;
    for (int i = 0; i < 100; i++) {
        size_t n_bytes = 0, n_rounds = 0, n_records = 0;
        for (at = 0; at < n_piece; n_rounds++) {
            struct fixed_group group;
            size_t most = 2 * USUAL + 4 * (n_piece > USUAL / 2 ? n_piece - USUAL / 2 : 0);
            assert_int_equal(fixed_records_make(&fixed, &rules, piece, &at, n_piece, &problem), 0);
            assert_int_equal(fixed.too_large, 0);
            assert_in_range(fixed.space.out_bytes, 1, most);
            while (fixed_records_take(&fixed, rng_below(&rng, 90000), &group)) {
                assert_memory_equal(group.at, whole + n_bytes, group.n_bytes);
                n_bytes += group.n_bytes;
                n_records += group.n_records;
            }
        }
        assert_int_equal(n_bytes, whole_bytes);
        assert_int_equal(n_records, 21 * N_TEMPLATES);
        assert_in_range(n_rounds, 2, N_TEMPLATES);
    }
}

TEST(test_damaged_record_has_its_number)
{
    struct rng rng = rng_start(2);
    struct fixed_records fixed = {.n_ends = 0};
    OWNED uint8_t *piece = test_alloc(2 * N_TEMPLATES * RECORD_BYTES + 100);
    for (int i = 0; i < 100; i++) {
        size_t bad = rng_below(&rng, 2 * N_TEMPLATES), at = 0, to = make_span(&rng, 0, piece);
        uint8_t *rec = piece;
        for (size_t k = 0; k < bad; k++) rec += bam_record_bytes(rec);
        test_put_u32(rec + BAM_TID_AT, 5);
        struct record_problem problem = {.record = 7};
        CHECK(&rng, fixed_records_make(&fixed, &usual, piece, &at, to, &problem) == -1);
        CHECK(&rng, problem.record == 7 + bad);
        CHECK(&rng, strstr(problem.text, "reference") != NULL);
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
        size_t large = rng_below(&rng, N_TEMPLATES), to = make_span(&rng, 0, piece);
        uint8_t *at = piece, rest[2 * N_TEMPLATES * RECORD_BYTES];
        for (size_t k = 0; k < 2 * large; k++) at += bam_record_bytes(at);
        uint8_t *after = at + bam_record_bytes(at);
        after += bam_record_bytes(after);
        size_t rest_bytes = (size_t)(piece + to - after), from = 0;
        memcpy(rest, after, rest_bytes);
        const struct record_fields f = {.name = "large", .l_seq = LARGE_BASES};
        for (int n = 0; n < 2; n++) at += put_record(at, &f, 1);
        memcpy(at, rest, rest_bytes);
        to = (size_t)(at - piece) + rest_bytes;
        struct record_problem problem = {.record = 7};
        CHECK(&rng, fixed_records_make(&fixed, &rules, piece, &from, to, &problem) == 0);
        CHECK(&rng, fixed.too_large == 2 && fixed.n_done == 2 * large + 2);
        CHECK(&rng, piece + from == at && count_taken(&fixed) == 2 * large);
        CHECK(&rng, fixed_records_make(&fixed, &rules, piece, &from, to, &problem) == 0);
        CHECK(&rng, fixed.too_large == 0 && problem.record == 7 + 2 * N_TEMPLATES);
        CHECK(&rng, count_taken(&fixed) == 2 * (N_TEMPLATES - 1 - large));
    }
}
