/* test_sam_chunk.c -- lines of SAM in which htslib 1.16 would change something. */
#include "unit_test.h"

#include "input/reader_source.h"

#include <fcntl.h>
#include <unistd.h>

#define HEAD "r\t0\tc\t5\t9\t3M\t=\t7\t2\t"
#define LINE HEAD "ACG\tFFF"

struct line {
    const char *text;
    const char *problem;                /* part of its text; NULL: none */
    const char *corrected;              /* NULL: not changed */
};

static const struct line lines[] = {
    {LINE, NULL, NULL},
    {"", NULL, NULL},
    {"\t\t\t\t\t\t\t\t\t\t\t\t\t", NULL, NULL},
    {"r\t65535\tc\t5\t255\t3M\t*\t0\t0\tACG\tFFF", NULL, NULL},
    {"r\t0xffff\tc\t5\t9\t3M\t*\t0\t0\tACG\tFFF", NULL, NULL},
    {"r\tpPR\tc\t5\t9\t3M\t*\t0\t0\tACG\tFFF", NULL, NULL},
    {"r\t65536", "FLAG", NULL},
    {"r\t0x10000\tc\t5\t9\t3M\t*\t0\t0\tACG\tFFF", "FLAG", NULL},
    {"r\t99999999999999999999999\tc", "FLAG", NULL},
    {"r\t0\tc\t5\t256\t3M\t*\t0\t0\tACG\tFFF", "MAPQ", NULL},
    {"r\t0\tc\t5\t99999999999999999999999", "MAPQ", NULL},
    /* Arrays, of any type and anywhere among the tags. */
    {LINE "\tXB:B:c,-1,+2,3", NULL, NULL},
    {LINE "\tXB:B:C,,1,\tXI:i:1", NULL, NULL},
    {LINE "\tXB:B:f,1,-2.5e-3,nan,inf,-inf,.5", NULL, NULL},
    {LINE "\tXB:B:S", NULL, NULL},
    {LINE "\tXZ:Z:XB:B:C,-1", NULL, NULL},
    {HEAD "*\tX:B:C,-1", NULL, NULL},   /* qualities are no tag */
    {LINE "\tXB:B:C,-1", "array", NULL},
    {LINE "\tXB:B:S,1,-1\tXI:i:1", "array", NULL},
    {LINE "\tXI:i:1\tXB:B:I,-1", "array", NULL},
    {LINE "\tXB:B:c,1,2x", "array", NULL},
    {LINE "\tXB:B:i,0x10", "array", NULL},
    {LINE "\tXB:B:i,1.5", "array", NULL},
    {LINE "\tXB:B:i,1 ,2", "array", NULL},
    {LINE "\tXB:B:i,--1", "array", NULL},
    {LINE "\tXB:B:f,1,x\tXI:i:1", "array", NULL},
    {LINE "\tXB:B:f,1,2y", "array", NULL},
    {LINE "\tXB:B:i;1", "array", NULL},
    /* U, among the bases only. */
    {HEAD "UuU\tUUu\tXZ:Z:Uu", NULL, HEAD "TTT\tUUu\tXZ:Z:Uu"},
    {HEAD "AUuCU", NULL, HEAD "ATTCT"},
    {HEAD "\tU", NULL, NULL},
    {"U\t0\tU\t5\t9\t3M\tU\t0\t0\t*\tU", NULL, NULL},
};

TEST(test_lines_are_corrected_or_named)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        /* A copy of exactly its length, for the sanitizers. */
        OWNED char *line = strdup(lines[i].text);
        assert_non_null(line);
        const char *problem = sam_line_correct(line);
        if (!problem != !lines[i].problem || (problem && !strstr(problem, lines[i].problem)))
            fail_msg("'%s': %s", lines[i].text, problem ? problem : "no problem");
        assert_string_equal(line, lines[i].corrected ? lines[i].corrected : lines[i].text);
    }
}

static void *parse_bad_lines(void *header)
{
    static const char line[] = HEAD "ACG\tFF\n";
    char text[sizeof line];
    struct bam_reader reader = {.header = header};
    struct record_span span = {.packed = (uint8_t *)text, .packed_bytes = sizeof line - 1};
    bam1_t *record = bam_init1();
    for (int i = 0; record && i < 3000; i++) {
        memcpy(text, line, sizeof line);
        span.lines = (struct sam_lines){.problem = NULL};
        sam_chunk_parse(&reader, &span, record);
    }
    bam_destroy1(record);
    return span.lines.problem ? NULL : header;
}

/* One of two threads once kept the level of the other, which was off. */
TEST(test_two_bad_lines_at_once_leave_the_log_of_htslib_as_it_was)
{
    static const char text[] = "@SQ\tSN:c\tLN:1000\n";
    OWNED_HEADER sam_hdr_t *header = sam_hdr_parse(sizeof text - 1, text);
    assert_int_equal(sam_hdr_name2tid(header, "c"), 0);         /* makes the dictionary */
    pthread_t threads[2];
    void *problems[2];
    int messages = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    assert_true(messages >= 0 && nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0);
    hts_set_log_level(HTS_LOG_ERROR);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parse_bad_lines, header), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], &problems[i]), 0);
    assert_true(dup2(messages, STDERR_FILENO) >= 0);
    assert_int_equal(close(messages) | close(nowhere), 0);
    assert_true(!problems[0] && !problems[1]);
    assert_int_equal(hts_get_log_level(), HTS_LOG_ERROR);
}
