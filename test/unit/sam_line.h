/*
 * sam_line.h -- raw records from lines of SAM and back, for unit tests. References are c and d.
 */
#ifndef ROCKSORT_TEST_SAM_LINE_H
#define ROCKSORT_TEST_SAM_LINE_H

#include "random_records.h"

#include "bam/bam_convert.h"

#include <htslib/kstring.h>

static inline sam_hdr_t *sam_line_header(void)
{
    return parse_header("@SQ\tSN:c\tLN:1000000\n@SQ\tSN:d\tLN:1000000\n");
}

/* The caller frees the record. */
static inline uint8_t *record_of_line(const char *text)
{
    OWNED_HEADER sam_hdr_t *header = sam_line_header();
    OWNED_RECORD bam1_t *b = bam_init1();
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    uint8_t *rec = NULL;
    size_t room = 0;
    assert_true(kputs(text, &line) >= 0 && sam_parse1(&line, header, b) >= 0);
    assert_null(bam_record_put(b, false, &rec, &room, 0));
    return rec;
}

static inline void assert_line_of_record(const uint8_t *rec, const char *expected)
{
    OWNED_HEADER sam_hdr_t *header = sam_line_header();
    OWNED_RECORD bam1_t *b = bam_init1();
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    bam_record_unpack(rec, b);
    assert_true(sam_format1(header, b, &line) >= 0);
    assert_string_equal(line.s, expected);
}

#endif
