/* test_read_groups.c -- read groups and libraries of headers and records. */
#include "sam_line.h"
#include "unit_test.h"

#include "bam/read_groups.h"

OWNER(struct read_groups, read_groups_destroy)

static struct read_groups *groups_of(const char *text)
{
    OWNED_HEADER sam_hdr_t *header = parse_header(text);
    struct read_groups *groups = read_groups_create(header);
    return groups;
}

static void check(const struct read_groups *groups, const char *tags, size_t group, size_t library)
{
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    assert_true(ksprintf(&line, "q\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tFFFF%s", tags) > 0);
    OWNED uint8_t *rec = record_of_line(line.s);
    assert_int_equal(read_groups_of(groups, rec), group);
    assert_int_equal(read_groups_library(groups, group), library);
}

TEST(test_groups_and_libraries_are_found_by_id)
{
    struct read_groups *groups = groups_of("@SQ\tSN:c\tLN:9\n@RG\tID:b\tLB:two\n@RG\tID:a\n"
                                           "@RG\tLB:one\tID:c\n@RG\tID:abc\tSM:x\tLB:two\n");
    assert_int_equal(groups->ids.n, 4);
    assert_string_equal(groups->ids.names[1 - 1], "b");
    assert_string_equal(groups->ids.names[4 - 1], "abc");
    assert_int_equal(groups->libraries.n, 2);
    assert_string_equal(groups->libraries.names[1 - 1], "two");
    assert_string_equal(groups->libraries.names[2 - 1], "one");
    check(groups, "\tXX:i:1\tRG:Z:b\tYY:i:1", 1, 1);
    check(groups, "\tRG:Z:a", 2, 0);
    check(groups, "\tRG:Z:c", 3, 2);
    check(groups, "\tRG:Z:abc", 4, 1);
    check(groups, "\tRG:Z:ab", 0, 0);
    check(groups, "\tRG:Z:abcd", 0, 0);
    check(groups, "\tRG:Z:", 0, 0);
    check(groups, "\tRG:A:a", 0, 0);
    check(groups, "", 0, 0);
    read_groups_destroy(groups);
    read_groups_destroy(NULL);
}

TEST(test_header_without_groups_has_none)
{
    RELEASED(own_read_groups_destroy) struct read_groups *groups = groups_of("@SQ\tSN:c\tLN:9\n");
    assert_int_equal(groups->ids.n, 0);
    assert_int_equal(groups->libraries.n, 0);
    check(groups, "\tRG:Z:a", 0, 0);
}

/* As in 1.24 the group is there, and the first line counts. */
TEST(test_one_id_twice)
{
    struct read_groups *groups = groups_of("@RG\tID:a\tLB:l\n@RG\tID:b\n@RG\tID:a\tLB:m\n");
    assert_int_equal(groups->ids.n, 2);
    check(groups, "\tRG:Z:a", 1, 1);
    check(groups, "\tRG:Z:b", 2, 0);
    assert_string_equal(groups->libraries.names[1 - 1], "l");
    read_groups_destroy(groups);
}

TEST(test_many_groups_share_few_libraries)
{
    enum { N = 3000 };
    OWNED_TEXT kstring_t text = KS_INITIALIZE;
    for (int i = 0; i < N; i++)
        assert_true(ksprintf(&text, "@RG\tID:g%d\tLB:l%d\n", 7 * i, i % 5) > 0);
    RELEASED(own_read_groups_destroy) struct read_groups *groups = groups_of(text.s);
    assert_int_equal(groups->ids.n, N);
    assert_int_equal(groups->libraries.n, 5);
    assert_string_equal(groups->libraries.names[5 - 1], "l4");
    for (int i = 0; i < N; i += 37) {
        char tag[20];
        (void)snprintf(tag, sizeof tag, "\tRG:Z:g%d", 7 * i);
        check(groups, tag, (size_t)i + 1, (size_t)(i % 5) + 1);
        (void)snprintf(tag, sizeof tag, "\tRG:Z:g%d", 7 * i + 1);
        check(groups, tag, 0, 0);
    }
}

/* Each group has a library of its own; one name is the beginning of another. */
TEST(test_each_group_may_have_its_own_library)
{
    enum { N = 3000 };
    OWNED_TEXT kstring_t text = KS_INITIALIZE;
    for (int i = 0; i < N; i++) assert_true(ksprintf(&text, "@RG\tID:g%d\tLB:%d\n", i, i) > 0);
    RELEASED(own_read_groups_destroy) struct read_groups *groups = groups_of(text.s);
    assert_int_equal(groups->libraries.n, N);
    for (int i = 0; i < N; i++) {
        assert_int_equal(read_groups_library(groups, (size_t)i + 1), i + 1);
        assert_int_equal(atoi(groups->libraries.names[i]), i);
    }
}
