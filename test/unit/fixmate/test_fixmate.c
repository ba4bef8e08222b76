/*
 * test_fixmate.c -- what records of a template learn of each other, line by line.
 *
 * The expected lines are those that samtools fixmate -m 1.24 writes; test_fixmate.py compares both
 * programs on random templates. Here are the records that such templates do not have: very long
 * CIGARs and coordinates, damaged tags, and what 1.24 does wrong.
 */
#include "fixed_lines.h"
#include "unit_test.h"

#include "bam/read_score.h"

/* Only bases of the read are clipped at the end of the reference, not deleted ones; 1.24 counts
   these, too, and then CIGAR and sequence differ in length. */
TEST(test_clip_behind_a_deletion)
{
    CHECK_LINES(&usual, "q\t0\tc\t999\t9\t1M1D3S2H\t*\t0\t0\tACGT\tFFFF\n",
                "q\t0\tc\t999\t9\t1M5D1M2S2H\t*\t0\t0\tACGT\tFFFF");
}

/* As in 1.24. */
TEST(test_operation_begins_behind_the_reference)
{
    CHECK_LINES(&usual, "q\t4\tc\t999\t0\t*\t*\t0\t0\tACGT\tFFFF\n",
                "q\t0\tc\t999\t9\t2=2X\t*\t0\t0\tACGT\tFFFF");
}

/* The sum of two operations may be longer than one can be; 1.24 loses bases then. */
TEST(test_sum_of_operations_stays_within_28_bits)
{
    CHECK_LINES(&usual, "q\t0\td\t1\t9\t4M268435455N1N\t*\t0\t0\tACGT\tFFFF\n",
                "q\t0\td\t1\t9\t4M268435454N2N\t*\t0\t0\tACGT\tFFFF");
}

TEST(test_damaged_tags_are_refused_if_they_are_read)
{
    uint8_t rec[100];
    struct record_fields f = {.name = "q", .tid = -1, .pos = -1, .flag = BAM_FUNMAP,
                              .tag_bytes = 5};
    struct fixmate_space space = {.n_out = 0};
    size_t n = put_record(rec, &f, 0);
    memcpy(rec + n - 5, "NMZab", 5);
    assert_string_equal(fixmate_add(&usual, &space, rec), "its tags are damaged");
    struct fixmate_rules off = usual;
    off.sanitize = 0;
    fixmate_release(&space);
    assert_null(fixmate_add(&off, &space, rec));
    assert_true(fixmate_finish(&off, &space));
    assert_int_equal(space.n_out, 1);
    assert_memory_equal(space.out, rec, n);
    fixmate_release(&space);
}

TEST(test_long_coordinates_are_those_of_the_mate)
{
    CHECK_LINES(&usual,
                "q\t99\td\t5000000001\t9\t4M\t=\t8000000001\t3000000004\tACGT\tFFFF\tMQ:i:9\t"
                "MC:Z:4M\tms:i:148\n"
                "q\t147\td\t8000000001\t9\t4M\t=\t5000000001\t-3000000004\tACGT\tFFFF\tMQ:i:9\t"
                "MC:Z:4M\tms:i:148\n",
                "q\t99\td\t5000000001\t9\t4M\t*\t0\t0\tACGT\tFFFF",
                "q\t147\td\t8000000001\t9\t4M\t=\t8000000002\t0\tACGT\tFFFF");
}

/* A CIGAR that its field cannot count goes to the mate as text, and stays the last tag. */
TEST(test_long_cigar_goes_to_the_mate_as_text)
{
    enum { N_PAIRS = 40000 };
    OWNED_TEXT kstring_t cigar = KS_INITIALIZE, line = KS_INITIALIZE, result = KS_INITIALIZE;
    for (int i = 0; i < N_PAIRS; i++) assert_true(kputs("1M1I", &cigar) >= 0);
    assert_true(ksprintf(&line, "q\t147\td\t1\t9\t%s\t*\t0\t0\t*\t*\tXX:i:1", cigar.s) > 0);
    const char *const lines[] = {"q\t99\td\t1\t9\t4M\t*\t0\t0\tACGT\tFFFF", line.s};
    assert_null(fix(&usual, lines, 2, &result));
    char *mc = strstr(result.s, "MC:Z:");
    assert_non_null(mc);
    assert_memory_equal(mc + 5, cigar.s, cigar.l);
    char *second = strchr(result.s, '\n') + 1;
    assert_non_null(strstr(second, cigar.s));
    assert_string_equal(strstr(second, "XX:i:1"), "XX:i:1\tMQ:i:9\tMC:Z:4M\tms:i:148\n");
}

TEST(test_score_is_the_sum_of_qualities)
{
    struct rng rng = rng_start(8);
    for (int32_t n = 0; n < 5000; n += 1 + n / 20) {
        struct record_fields f = {.name = "q", .l_seq = n};
        uint8_t *rec = test_alloc(record_size(&f)), *quals = rec + 38 + (n + 1) / 2;
        uint32_t sum = 0;
        (void)put_record(rec, &f, 0);
        for (int32_t i = 0; i < n; i++) {
            quals[i] = (uint8_t)(rng_one_in(&rng, 3) ? 255 : rng_below(&rng, 60));
            if (quals[i] >= 15) sum += quals[i];
        }
        struct draft draft;
        draft_open(&draft, rec);
        CHECK(&rng, read_score(draft.rec) == sum);
        draft_close(&draft);
        free(rec);
    }
}

TEST(test_words_of_z)
{
    static const struct {
        const char *text;
        int flags;
    } cases[] = {
        {"", 0}, {"all", SANITIZE_ALL}, {"*", SANITIZE_ALL}, {"on", SANITIZE_ON}, {"off", 0},
        {"pos,none,aux", SANITIZE_AUX}, {"cigarx", SANITIZE_CIGARX | SANITIZE_CIGDUP},
        {",mqual,,unmap,", SANITIZE_MQUAL | SANITIZE_UNMAP}, {"al", -1}, {"cigars", -1},
        {"pos unmap", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sanitize_parse(cases[i].text), cases[i].flags);
}
