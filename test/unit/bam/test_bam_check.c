/*
 * test_bam_check.c -- records that contradict themselves are refused, and neither the check nor
 * what may be done after it reads beyond the record.
 */
#include "unit_test.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "bam/bam_long.h"

enum { N_REFS = 3 };

struct lie {
    const char *what;
    size_t at, n_bytes;
    uint32_t value;
};

TEST(test_lying_records_are_refused)
{
    /* 36 fixed bytes, "name" and NUL, 3 operations, 5 bases in 3 bytes, 5 qualities, no tags. */
    struct record_fields f = {.name = "name", .tid = 1, .pos = 10, .n_cigar = 3, .l_seq = 5};
    enum { SIZE = 36 + 5 + 12 + 3 + 5 };
    const uint32_t minus = (uint32_t)-1;
    const struct lie lies[] = {
        {"size one too small", 0, 4, SIZE - 4 - 1},
        {"size of the fixed fields", 0, 4, 32},
        {"size below the fixed fields", 0, 4, 31},
        {"size 0", 0, 4, 0},
        {"tid beyond the header", 4, 4, N_REFS},
        {"tid far beyond the header", 4, 4, INT32_MAX},
        {"tid -2", 4, 4, minus - 1},
        {"tid -2^31", 4, 4, UINT32_C(1) << 31},
        {"pos -2", 8, 4, minus - 1},
        {"pos -2^31", 8, 4, UINT32_C(1) << 31},
        {"no name", 12, 1, 0},
        {"name shorter than its NUL", 12, 1, 4},
        {"name longer than its NUL", 12, 1, 6},
        {"name longer than the record", 12, 1, 255},
        {"CIGAR longer than the record by one", 16, 2, 4},
        {"CIGAR much longer than the record", 16, 2, 65535},
        {"bases longer than the record by one", 20, 4, 6},
        {"bases much longer than the record", 20, 4, INT32_MAX},
        {"-1 bases", 20, 4, minus},
        {"-2^31 bases", 20, 4, UINT32_C(1) << 31},
        {"mate's tid beyond the header", 24, 4, N_REFS},
        {"mate's tid -2", 24, 4, minus - 1},
        {"name without its NUL", 40, 1, 'x'},
        {"CIGAR of one base more than there are", 41, 4, 6 << 4 | BAM_CMATCH},
        {"CIGAR of one base less than there are", 41, 4, 4 << 4 | BAM_CMATCH},
        {"CIGAR of other operations", 41, 4, 5 << 4 | BAM_CDEL},
    };
    OWNED uint8_t *rec = test_alloc(SIZE), *lying = test_alloc(SIZE);
    assert_int_equal(put_record(rec, &f, 1), SIZE);
    assert_null(bam_record_check(rec, N_REFS));
    assert_null(bam_record_check(rec, 2));
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(lying, rec, SIZE);
        for (size_t k = 0; k < lies[i].n_bytes; k++)
            lying[lies[i].at + k] = (uint8_t)(lies[i].value >> (8 * k));
        if (!bam_record_check(lying, N_REFS)) fail_msg("%s was believed", lies[i].what);
    }
    /* Shorter than the fixed fields, which are not read then. */
    for (size_t size = 4; size < 36; size++) {
        OWNED uint8_t *stump = test_alloc(size);
        memset(stump, 0, size);
        test_put_u32(stump, (uint32_t)(size - 4));
        assert_non_null(bam_record_check(stump, N_REFS));
    }
}

/* The length of a long CIGAR must fit the sequence, and not only that of its placeholder. Once,
   such records were accepted and written, and htslib refused to read them. */
TEST(test_long_cigar_against_sequence)
{
    enum { L_SEQ = 5, TAG = 8 + 2 * 4 };
    struct record_fields f = {.name = "r", .tid = 0, .pos = 7, .n_cigar = 2, .l_seq = L_SEQ,
                              .tag_bytes = TAG};
    uint8_t rec[128];
    size_t size = put_record(rec, &f, 0);
    uint8_t *cigar = rec + 38, *tag = rec + size - TAG;
    test_put_u32(cigar, L_SEQ << 4 | BAM_CSOFT_CLIP);
    test_put_u32(cigar + 4, 9 << 4 | BAM_CREF_SKIP);
    memcpy(tag, "CGBI\2\0\0\0", 8);
    test_put_u32(tag + 8, 3 << 4 | BAM_CMATCH);
    for (uint32_t n = 0; n < 5; n++) {
        test_put_u32(tag + 12, n << 4 | BAM_CINS);
        assert_true((bam_record_check(rec, 1) == NULL) == (n == L_SEQ - 3));
    }
    /* htslib takes no CIGAR from these tags. */
    tag[3] = 'c';
    test_put_u32(tag + 4, 8);
    assert_null(bam_record_check(rec, 1));
    test_put_u32(tag + 4, 9);           /* longer than the record: no tag */
    assert_non_null(bam_record_check(rec, 1));
    /* htslib also looks for the tag in unmapped reads, but compares no lengths there. */
    test_put_u16(rec + 18, BAM_FUNMAP);
    assert_non_null(bam_record_check(rec, 1));
    test_put_u32(tag + 4, 8);
    test_put_u32(cigar + 4, 9 << 4 | BAM_CINS);
    assert_null(bam_record_check(rec, 1));
}

/* A long tag counts only at the end of the record, and only with positions that SAM can have. */
TEST(test_forged_long_coordinates)
{
    static const uint8_t tag[8] = {1, 1, 'B', 'I', 6, 0, 0, 0};
    struct rng rng = rng_start(72);
    struct record_fields f = {.name = "r", .tid = 0, .pos = INT32_MAX, .tag_bytes = 32 + 8};
    uint8_t rec[128];
    size_t size = put_record(rec, &f, 0);
    uint8_t *values = rec + size - 24, *before = rec + size - 40;
    int64_t sound[3] = {INT64_C(1) << 40, -1, INT64_MIN};
    memcpy(before, "XZZ1234", 8);
    memcpy(values - 8, tag, sizeof tag);
    memcpy(values, sound, sizeof sound);
    assert_true(bam_record_is_long(rec) && !bam_record_check(rec, 1));
    assert_true(bam_record_true_pos(rec) == sound[0]);
    for (int i = 0; i < 2; i++) {
        static const int64_t impossible[] = {-2, INT64_MIN, INT64_MAX, INT64_C(1) << 62};
        for (size_t k = 0; k < 4; k++) {
            memcpy(values + 8 * i, &impossible[k], 8);
            assert_non_null(bam_record_check(rec, 1));
        }
        memcpy(values, sound, sizeof sound);
    }
    /* The same bytes within another tag, or after bytes that are no tag. */
    memcpy(before, "XZBC\x20\0\0", 8);
    assert_true(!bam_record_is_long(rec) && !bam_record_check(rec, 1));
    assert_true(bam_record_true_pos(rec) == INT32_MAX);
    for (int round = 0; round < 1000; round++) {
        rng_fill(&rng, before, 8);
        (void)bam_record_is_long(rec);
        (void)bam_record_check(rec, 1);
    }
    /* The same bytes as qualities. */
    f = (struct record_fields){.name = "r", .tid = 0, .pos = INT32_MAX, .l_seq = 60};
    size = put_record(rec, &f, 0);
    memcpy(rec + size - 32, tag, sizeof tag);
    assert_true(!bam_record_is_long(rec) && !bam_record_check(rec, 1));
}

/* With random bytes, neither the check nor unpacking what it accepts reads beyond the record. */
TEST(test_random_bytes_stay_within_the_record)
{
    struct rng rng = rng_start(74);
    OWNED_RECORD bam1_t *b = bam_init1();
    assert_non_null(b);
    size_t n_accepted = 0;
    for (int round = 0; round < 200000; round++) {
        size_t size = 36 + rng_below(&rng, 60);
        OWNED uint8_t *rec = test_alloc(size);
        rng_fill(&rng, rec, size);
        test_put_u32(rec, (uint32_t)(size - 4));
        /* Most fields get likely values, or hardly any record would be accepted. */
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 4, (uint32_t)rng_below(&rng, 4) - 1);
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 8, (uint32_t)rng_below(&rng, 100));
        if (!rng_one_in(&rng, 9)) rec[12] = (uint8_t)rng_below(&rng, 8);
        if (!rng_one_in(&rng, 9)) test_put_u16(rec + 16, (uint32_t)rng_below(&rng, 6));
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 20, (uint32_t)rng_below(&rng, 20));
        if (!rng_one_in(&rng, 9)) test_put_u32(rec + 24, (uint32_t)rng_below(&rng, 4) - 1);
        if (36 + (size_t)rec[12] <= size && rec[12] > 0 && !rng_one_in(&rng, 9))
            rec[36 + rec[12] - 1] = 0;
        if (!bam_record_check(rec, N_REFS)) {
            n_accepted++;
            bam_record_unpack(rec, b);
            CHECK(&rng, strlen((const char *)bam_record_name(rec)) < bam_record_name_bytes(rec));
        }
    }
    CHECK(&rng, n_accepted > 1000 && n_accepted < 199000);
}
