/* test_read_coords.c -- coordinates in read names, by colons and by patterns. */
#include "unit_test.h"

#include "markdup/read_names.h"

static const struct markdup_rules by_colons;

static struct markdup_rules pattern_rules(const char *text, unsigned t, unsigned x, unsigned y)
{
    char why[NAME_PATTERN_WHY_BYTES];
    struct markdup_rules rules = {.coords_t = t, .coords_x = x, .coords_y = y};
    rules.coords = name_pattern_compile(text, why);
    assert_non_null(rules.coords);
    return rules;
}

static void check_known(const struct markdup_rules *rules, const char *name, const char *part,
                        int64_t x, int64_t y)
{
    struct read_coords coords = read_coords_of(rules, name);
    if (!coords.known) fail_msg("'%s' has no coordinates", name);
    if (coords.x != x || coords.y != y)
        fail_msg("'%s' has x %" PRId64 ", y %" PRId64, name, coords.x, coords.y);
    assert_int_equal(coords.end - coords.begin, strlen(part));
    assert_memory_equal(name + coords.begin, part, strlen(part));
}

static void check_unknown(const struct markdup_rules *rules, const char *name)
{
    if (read_coords_of(rules, name).known) fail_msg("'%s' has coordinates", name);
}

TEST(test_coordinates_stand_between_colons)
{
    check_known(&by_colons, "M:1:10:20", "M:1:", 10, 20);
    check_known(&by_colons, "M:1:1101:10:20", "M:1:1101:", 10, 20);
    check_known(&by_colons, "M:1:F:2:1101:10:20", "M:1:F:2:1101:", 10, 20);
    check_known(&by_colons, "M:1:F:2:1101:10:20:ACGT", "M:1:F:2:1101:", 10, 20);
    check_known(&by_colons, ":::::7:8", ":::::", 7, 8);
    check_known(&by_colons, "M:1:10.5:20#ACGT/1", "M:1:", 10, 20);
    check_known(&by_colons, "M:1:-10:+20", "M:1:", -10, 20);
    check_known(&by_colons, "M:1:99999999999999999999:-99999999999999999999", "M:1:", INT64_MAX,
                -INT64_MAX);
    check_known(&by_colons, "M:1:9223372036854775807:9223372036854775808", "M:1:", INT64_MAX,
                INT64_MAX);
    static const char *const unknown[] = {
        "", "q", "M:1:10", "M:1:F:2:10:20", "M:1:F:2:1101:10:20:A:C", "M:1:x:20", "M:1:10:x",
        "M:1::20", "M:1:10:", "M:1:-:20", "M:1:10:+", "M:1: 10:20",
        "1:2:3:4:5:6:7:8:9:10:11:12:13",
    };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        check_unknown(&by_colons, unknown[i]);
    char longest[TEST_MAX_NAME + 1];
    memset(longest, 'x', TEST_MAX_NAME);
    strcpy(longest + TEST_MAX_NAME - 8, ":5:67:89");
    struct read_coords coords = read_coords_of(&by_colons, longest);
    assert_true(coords.known && coords.x == 67 && coords.y == 89);
    assert_int_equal(coords.end, TEST_MAX_NAME - 5);
}

TEST(test_coordinates_are_groups_of_a_pattern)
{
    struct markdup_rules rules = pattern_rules("([a-z]+)_([0-9]+)_([0-9]*)", 1, 2, 3);
    check_known(&rules, "Aab_10_20x", "ab", 10, 20);
    check_unknown(&rules, "ab_10_");
    check_unknown(&rules, "ab10_20");
    name_pattern_destroy(rules.coords);

    rules = pattern_rules("^([0-9]+)_([0-9]+)_(.*)$", 3, 1, 2);
    check_known(&rules, "10_20_", "", 10, 20);
    check_known(&rules, "10_20_abc", "abc", 10, 20);
    name_pattern_destroy(rules.coords);

    rules = pattern_rules("([0-9]+)_([0-9]+)", 0, 1, 2);
    check_known(&rules, "abc10_20", "", 10, 20);
    name_pattern_destroy(rules.coords);

    rules = pattern_rules("(t)?x([0-9]+)(y[0-9]+)?", 1, 2, 3);
    check_unknown(&rules, "tx5");
    check_unknown(&rules, "x5y6");
    check_unknown(&rules, "tx5y6");     /* y is no number */
    name_pattern_destroy(rules.coords);
}

static bool near(const char *a, const char *b, int64_t distance)
{
    struct read_coords of_a = read_coords_of(&by_colons, a), of_b = read_coords_of(&by_colons, b);
    bool is_near = read_coords_near(&of_a, a, &of_b, b, distance);
    assert_int_equal(is_near, read_coords_near(&of_b, b, &of_a, a, distance));
    return is_near;
}

TEST(test_near_reads_share_tile_and_distance)
{
    assert_true(near("M:1:10:20", "M:1:10:20", 0));
    assert_true(near("M:1:10:20", "M:1:15:15", 5));
    assert_false(near("M:1:10:20", "M:1:16:20", 5));
    assert_false(near("M:1:10:20", "M:1:10:26", 5));
    assert_false(near("M:1:10:20", "M:2:10:20", 100));
    /* 1.24 may take a prefix for that of a longer one. */
    assert_false(near("M:1:10:20", "M:11:10:20", 100));
    assert_false(near("M:1:10:20", "M:1:x:10:20", 100));
    /* Names without coordinates are near to nothing, not even to themselves. */
    assert_false(near("q", "q", 100));
    assert_false(near("q", "M:1:10:20", INT64_MAX));
    assert_true(near("M:1:9223372036854775807:1", "M:1:0:1", INT64_MAX));
    assert_false(near("M:1:9223372036854775807:1", "M:1:-1:1", INT64_MAX));
    assert_false(near("M:1:9223372036854775807:1", "M:1:-9223372036854775807:1", 2500));
}
