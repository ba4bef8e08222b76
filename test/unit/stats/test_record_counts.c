/*
 * test_record_counts.c -- sums and percentages at their limits. test/cli/sort/test_counts.py
 * compares the counts of random records with those of samtools, byte for byte.
 */
#include "unit_test.h"

#include "stats/stats_kinds.h"

static struct record_observer *observe(const struct count_kind *kind, sam_hdr_t *header)
{
    const struct count_setup setup = {.header = header};
    struct record_observer *counts = kind->observe(&setup);
    assert_non_null(counts);
    return counts;
}

static char *print_counts(const struct record_observer *counts)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *to = open_memstream(&text, &n_bytes);
    assert_non_null(to);
    assert_int_equal(counts->kind->print(counts, 0, to), 0);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void add_record(struct record_observer *counts, void *part, const uint8_t *rec)
{
    const struct observed_records one = {.all = {rec, rec + bam_record_bytes(rec)}};
    assert_int_equal(counts->kind->add_records(counts, part, &one), 0);
}

static void finish(struct record_observer *counts, void *part)
{
    if (counts->kind->end) counts->kind->end(counts, part);
    assert_int_equal(counts->kind->combine(counts, part), 0);
}

/* High qualities of reads of all lengths around the steps in which they are added. */
TEST(test_high_qualities_of_any_length_are_summed)
{
    enum { MOST = 5000 };
    OWNED uint8_t *rec = test_alloc(MOST * 2);
    for (int32_t n = 1; n <= MOST; n += n < 40 ? 1 : 331) {
        OWNED_HEADER sam_hdr_t *header = parse_header("@SQ\tSN:a\tLN:10000\n");
        struct record_observer *counts = observe(&coverage_kind, header);
        void *part = counts->kind->begin(counts);
        const struct record_fields fields = {.name = "r", .pos = 3, .n_cigar = 1, .l_seq = n};
        (void)put_record(rec, &fields, 254);
        add_record(counts, part, rec);
        finish(counts, part);
        char *text = print_counts(counts), want[64];
        (void)snprintf(want, sizeof want, "\na\t1\t10000\t1\t%d\t", n);
        assert_non_null(strstr(text, want));
        assert_non_null(strstr(text, "\t254\t60\n"));
        free(text);
        counts->kind->destroy(counts);
    }
}

TEST(test_percentages_have_single_precision)
{
    OWNED_HEADER sam_hdr_t *header = sam_hdr_init();
    struct record_observer *counts = observe(&flagstat_kind, header);
    void *part = counts->kind->begin(counts);
    for (int i = 0; i < 160; i++) {
        uint8_t rec[256];
        const struct record_fields fields = {.name = "r", .flag = i < 153 ? 0 : BAM_FUNMAP};
        (void)put_record(rec, &fields, 0);
        add_record(counts, part, rec);
    }
    finish(counts, part);
    OWNED char *text = print_counts(counts);
    assert_non_null(strstr(text, "\n153 + 0 mapped (95.63% : N/A)\n"));       /* in double: 95.62 */
    assert_non_null(strstr(text, "\n0 + 0 properly paired (N/A : N/A)\n"));
    counts->kind->destroy(counts);
}
