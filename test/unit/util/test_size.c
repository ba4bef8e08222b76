/* test_size.c -- which sizes of the command line are accepted, and how sizes are printed. */
#include "unit_test.h"

#include "util/size.h"

TEST(test_accepted)
{
    const uint64_t k = 1024;
    const struct {
        const char *text;
        uint64_t n_bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"007", 7},
        {"1K", k},
        {"1k", k},
        {"640M", 640 * k * k},
        {"640m", 640 * k * k},
        {"512G", 512 * k * k * k},
        {"3g", 3 * k * k * k},
        {"2T", 2 * k * k * k * k},
        {"2t", 2 * k * k * k * k},
        {"0T", 0},
        {"768000000", 768000000},
        {"9223372036854775807", INT64_MAX},
        {"00000000000000000000009223372036854775807", INT64_MAX},
        {"9007199254740991K", (uint64_t)9007199254740991 * k},
        {"8388607T", 8388607 * k * k * k * k},
        {"768MB", 768 * k * k},
        {"768mb", 768 * k * k},
        {"768MiB", 768 * k * k},
        {"768mIb", 768 * k * k},
        {"1KB", k},
        {"4GB", 4 * k * k * k},
        {"1TiB", k * k * k * k},
        {"1.5G", 1536 * k * k},
        {"1.50GiB", 1536 * k * k},
        {"0.5T", 512 * k * k * k},
        {"0.1M", 104857},
        {"0.0000001K", 0},
        {"1.25K", 1280},
        {"0.999999999999999T", 1099511627775},
        {"8388607.9999999999999999999999T", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t n_bytes = 12345;
        if (size_parse(cases[i].text, &n_bytes) != 0)
            fail_msg("'%s' was refused", cases[i].text);
        if (n_bytes != cases[i].n_bytes)
            fail_msg("'%s' became %" PRIu64, cases[i].text, n_bytes);
    }
}

TEST(test_refused)
{
    static const char *const cases[] = {
        "",     " ",     "M",     "-1",   "+1",    "-0",   "1.5G.", "1,5G",  "4Q",     "1Kb ",
        "1Ki",  "1B",    "1P",    "1E",   "1 ",    " 1",   "1 M",   "\t1",   "1\n",    "1MM",
        "0x10", "10x",   "1e6",   "K1",   "1K1",   "abc",  "\xff",  "1\xff", "1M ",    "--",
        "1.5",  "1.",    ".5G",   "1.G",  "1..5G", "1.5B", "1.5Q",  "1iB",   "1BB",    "1KBB",
        "1KBi", "1KiBB", "1.5.5G", "1KB5", "1-G",  ".",    ".G",    "1.-5G", "1. 5G",  "1KiBi",
        "1.5e3K", "8388608.0T", "99999999999999999999.5K",
        /* 2^63 and what is larger, with and without suffix */
        "9223372036854775808", "18446744073709551615", "18446744073709551616",
        "18446744073709551617", "36893488147419103233", "99999999999999999999999999",
        "9007199254740992K", "8796093022208M", "8589934592G", "8388608T", "16777217T",
        "9223372036854775807K",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t n_bytes = 12345;
        if (size_parse(cases[i], &n_bytes) == 0)
            fail_msg("'%s' was taken as %" PRIu64, cases[i], n_bytes);
        assert_true(n_bytes == 12345);
    }
}

TEST(test_printed)
{
    char text[SIZE_TEXT_BYTES];
    assert_string_equal(size_format(0, text), "0 bytes");
    assert_string_equal(size_format(999999, text), "999999 bytes");
    assert_string_equal(size_format(1500000, text), "1.5 MB");
    assert_string_equal(size_format(2300000000u, text), "2.3 GB");
    assert_string_equal(size_format((uint64_t)12 << 40, text), "13.2 TB");
    assert_string_equal(size_format(UINT64_MAX, text), "18446744.1 TB");
}
