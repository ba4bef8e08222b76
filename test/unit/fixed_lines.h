/*
 * fixed_lines.h -- fixes templates that are given as lines of SAM (fixmate.h), for unit tests.
 */
#ifndef ROCKSORT_TEST_FIXED_LINES_H
#define ROCKSORT_TEST_FIXED_LINES_H

#include "random_records.h"

#include "bam/bam_check.h"
#include "bam/bam_convert.h"
#include "fixmate/fixmate.h"

#include <htslib/kstring.h>

static const char header_text[] = "@SQ\tSN:c\tLN:1000\n@SQ\tSN:d\tLN:9000000000\n";
static const int64_t reference_bases[] = {1000, INT64_C(9000000000)};

enum { MAX_LINES = 8 };

/* Fixes the templates of some lines of SAM. The result is SAM, too, and starts empty. */
static inline const char *fix(const struct fixmate_rules *rules, const char *const *lines, size_t n,
                              kstring_t *result)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(header_text);
    OWNED_RECORD bam1_t *b = bam_init1();
    RELEASED(fixmate_release) struct fixmate_space space = {.n_out = 0};
    uint8_t *records[MAX_LINES] = {NULL};
    const char *problem = NULL;
    for (size_t i = 0; i < n && !problem; i++) {
        OWNED_TEXT kstring_t line = KS_INITIALIZE;
        size_t room = 0;
        assert_true(kputs(lines[i], &line) >= 0 && sam_parse1(&line, header, b) >= 0);
        assert_null(bam_record_put(b, true, &records[i], &room, 0));
        problem = fixmate_add(rules, &space, records[i]);
    }
    if (!problem && !fixmate_finish(rules, &space)) problem = "it is too large";
    const uint8_t *rec = space.out, *end = rec + space.out_bytes;
    for (size_t i = 0; i < space.n_out; i++, rec += bam_record_bytes(rec)) {
        OWNED_TEXT kstring_t line = KS_INITIALIZE;
        assert_null(bam_record_check(rec, 2));
        bam_record_unpack(rec, b);
        assert_true(sam_format1(header, b, &line) >= 0);
        assert_true(kputs(line.s, result) >= 0 && kputc('\n', result) >= 0);
    }
    if (!problem) assert_ptr_equal(rec, end);
    for (size_t i = 0; i < n; i++) free(records[i]);
    return problem;
}

static const struct fixmate_rules usual = {.sanitize = SANITIZE_ALL,
                                           .reference_bases = reference_bases};

static inline void check(const struct fixmate_rules *rules, const char *const *lines, size_t n,
                         const char *expected)
{
    OWNED_TEXT kstring_t result = KS_INITIALIZE;
    assert_null(fix(rules, lines, n, &result));
    assert_string_equal(result.s ? result.s : "", expected);
}

#define CHECK_LINES(rules, expected, ...)                                                  \
    do {                                                                                   \
        const char *const lines_[] = {__VA_ARGS__};                                        \
        check(rules, lines_, sizeof lines_ / sizeof *lines_, expected);                    \
    } while (0)

#endif
