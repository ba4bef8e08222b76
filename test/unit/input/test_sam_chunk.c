/* test_sam_chunk.c -- lines of SAM in which htslib 1.16 would change something. */
#include "unit_test.h"

#include "input/reader_source.h"

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
