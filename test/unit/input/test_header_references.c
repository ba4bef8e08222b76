/* test_header_references.c -- when the @SQ lines of a BAM header are rewritten from its list, what
   they become, and which lists are refused. */
#include "child.h"
#include "unit_test.h"

#include "input/header_references.h"

struct listed {
    const char *name;
    uint32_t n_bases;
};

enum { MOST_LISTED = 3 };         /* with a name that is NULL at the end */

/* A header that htslib has read and not parsed. */
static sam_hdr_t *make_header(const char *text, const struct listed list[MOST_LISTED])
{
    sam_hdr_t *header = sam_hdr_init();
    assert_non_null(header);
    header->l_text = strlen(text);
    header->text = strdup(text);
    header->target_name = test_alloc(MOST_LISTED * sizeof *header->target_name);
    header->target_len = test_alloc(MOST_LISTED * sizeof *header->target_len);
    for (int i = 0; list[i].name; i++) {
        header->target_name[i] = strdup(list[i].name);
        header->target_len[i] = list[i].n_bases;
        header->n_targets++;
    }
    return header;
}

#define HD "@HD\tVN:1.6\n"
#define A "@SQ\tSN:a\tLN:10\n"
#define B "@SQ\tM5:x\tLN:20\tSN:b\n"
#define LONG "@SQ\tSN:a\tLN:5000000000\n"

static const struct header_case {
    const char *text;
    struct listed list[MOST_LISTED];
    const char *want, *message;         /* NULL: the text stays; no message */
    int status;                         /* 1: it is refused */
} cases[] = {
    {A "@CO\tz\n" B, {{"a", 10}, {"b", 20}}, NULL, NULL, 0},
    {"@SQ\tSN:a\tLN:10\tSN:b\n", {{"a", 10}}, NULL, NULL, 0},
    {LONG, {{"a", UINT32_MAX}}, NULL, NULL, 0},
    {LONG, {{"a", 9}}, "@SQ\tSN:a\tLN:9\n", "1 is 'a' of 5000000000 bases", 0},
    {HD B "@CO\tz\n" A, {{"a", 10}, {"b", 20}}, HD A B "@CO\tz\n", "1 is 'b' of 20 bases in", 0},
    {A B, {{"a", 10}, {"b", 21}}, A "@SQ\tSN:b\tLN:21\n", "2 is 'b' of 20 bases in", 0},
    {A HD, {{"a", 10}, {"c", 7}}, A "@SQ\tSN:c\tLN:7\n" HD, "2 is missing in the lines", 0},
    {A B, {{"a", 10}}, A, "2 is 'b' of 20 bases in the lines, missing in the list", 0},
    {A, {{"b", 10}}, "@SQ\tSN:b\tLN:10\n", "1 is 'a' of 10 bases in the lines, 'b' of 10 bases", 0},
    {HD "@CO\tz", {{"a", 10}}, HD "@CO\tz\n" A, NULL, 0},
    {A, {{"a", 10}, {"", 5}}, NULL, "damaged: reference 2 of its list, '', has no name", 1},
    {A, {{"a", 10}, {"c\td", 5}}, NULL, "'c\\x09d', has a name with a tab or a newline in it", 1},
    {A, {{"c\n", 5}}, NULL, "reference 1 of its list, 'c\\x0a', has a name with a tab or a", 1},
    {A, {{"c", 0}}, NULL, "'c', has no length above 0", 1},
};

static bool is_quiet;

static void settle(void *arg)
{
    const struct header_case *c = arg;
    OWNED_HEADER sam_hdr_t *header = make_header(c->text, c->list);
    if (header_references_settle(header, "in", is_quiet) < 0) _exit(1);
    if (strcmp(header->text, c->want ? c->want : c->text) == 0 &&
        header->l_text == strlen(header->text))
        _exit(0);
}

TEST(test_list_of_references_takes_precedence_over_lines_or_is_refused)
{
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct header_case c = cases[i / 2];
        is_quiet = i % 2;
        const struct ended_child ended = run_in_child(settle, &c);
        assert_int_equal(ended.status, c.status);
        if (c.message && (c.status == 1 || !is_quiet))
            assert_non_null(strstr(ended.text, c.message));
        else
            assert_string_equal(ended.text, "");
    }
}
