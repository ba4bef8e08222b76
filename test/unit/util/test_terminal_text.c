/* test_terminal_text.c -- what is printed as it is, and what is not. */
#include "random_records.h"

#include "util/terminal_text.h"

static void check_shown(const char *text, const char *wanted)
{
    size_t room = TERMINAL_TEXT_GROWTH * strlen(text) + 1;
    char *exact = test_alloc(strlen(text) + 1), *out = test_alloc(room);
    strcpy(exact, text);
    size_t n = terminal_text(exact, out, room);
    assert_string_equal(out, wanted);
    assert_int_equal(n, strlen(wanted));
    free(exact);
    free(out);
}

static void test_printable_text_stays(void **state)
{
    (void)state;
    check_shown("", "");
    check_shown("record 1 of 'in.bam': read 'a\\b%s%n~'", "record 1 of 'in.bam': read 'a\\b%s%n~'");
    check_shown("gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\xa7\xac.bam",
                "gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\xa7\xac.bam");
}

static void test_control_characters_are_spelled_out(void **state)
{
    (void)state;
    check_shown("\x1b[2Jgone", "\\x1b[2Jgone");
    check_shown("a\nsamtools rocksort: all is well\r\t\x7f", "a\\x0asamtools rocksort: all is well"
                                                            "\\x0d\\x09\\x7f");
    /* CSI as one character, in Latin-1 and in UTF-8; next line; U+00a0 is a blank. */
    check_shown("\x9b" "31m \xc2\x9b \xc2\x85 \xc2\xa0", "\\x9b31m \\xc2\\x9b \\xc2\\x85 \xc2\xa0");
    /* Right-to-left override, line separator, isolate. */
    check_shown("\xe2\x80\xae \xe2\x80\xa8 \xe2\x81\xa6",
                "\\xe2\\x80\\xae \\xe2\\x80\\xa8 \\xe2\\x81\\xa6");
}

static void test_malformed_utf8_is_spelled_out(void **state)
{
    (void)state;
    check_shown("\xff\xfe", "\\xff\\xfe");
    check_shown("\xc3", "\\xc3");                               /* cut short */
    check_shown("\xe2\x82", "\\xe2\\x82");
    check_shown("\xf0\x9f\xa7", "\\xf0\\x9f\\xa7");
    check_shown("\xc0\x9b \xe0\x82\x9b", "\\xc0\\x9b \\xe0\\x82\\x9b");   /* longer than need be */
    check_shown("\xf0\x80\x80\x8a", "\\xf0\\x80\\x80\\x8a");
    check_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");             /* a surrogate */
    check_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");    /* beyond Unicode */
    check_shown("\xc3\xc3\xb6", "\\xc3\xc3\xb6");
}

/* Never beyond the room, always ended, and nothing in it that a terminal could act on. */
static void test_any_bytes_in_any_room(void **state)
{
    (void)state;
    struct rng rng = rng_start(101);
    for (int round = 0; round < 20000; round++) {
        size_t n = rng_below(&rng, 24), room = 1 + rng_below(&rng, 60);
        char *text = test_alloc(n + 1), *out = test_alloc(room);
        rng_fill(&rng, (uint8_t *)text, n);
        if (n > 0 && rng_one_in(&rng, 2)) text[rng_below(&rng, n)] = (char)0xc2;
        text[n] = '\0';
        size_t shown = terminal_text(text, out, room);
        CHECK(&rng, shown < room && strlen(out) == shown);
        CHECK(&rng, room <= TERMINAL_TEXT_GROWTH * n || shown >= strlen(text));
        for (size_t i = 0; i < shown; i++) {
            uint8_t c = (uint8_t)out[i];
            CHECK(&rng, c >= 0x20 && c != 0x7f);
            CHECK(&rng, !(c >= 0x80 && c < 0xa0) || (i > 0 && (uint8_t)out[i - 1] >= 0x80));
            CHECK(&rng, !(c == 0xc2 && (uint8_t)out[i + 1] < 0xa0));
        }
        free(text);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable_text_stays),
        cmocka_unit_test(test_control_characters_are_spelled_out),
        cmocka_unit_test(test_malformed_utf8_is_spelled_out),
        cmocka_unit_test(test_any_bytes_in_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
