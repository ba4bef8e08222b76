/* test_terminal_text.c -- which characters are printed as they are, and which are escaped. */
#include "unit_test.h"

#include "util/terminal_text.h"

static void check_shown(const char *text, const char *wanted)
{
    size_t room = TERMINAL_TEXT_GROWTH * strlen(text) + 1;
    OWNED char *exact = test_alloc(strlen(text) + 1), *out = test_alloc(room);
    strcpy(exact, text);
    size_t n = terminal_text(exact, out, room);
    assert_string_equal(out, wanted);
    assert_int_equal(n, strlen(wanted));
}

TEST(test_printable_text_stays)
{
    check_shown("", "");
    check_shown("record 1 of 'in.bam': read 'a\\b%s%n~'", "record 1 of 'in.bam': read 'a\\b%s%n~'");
    check_shown("gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\xa7\xac.bam",
                "gr\xc3\xb6\xc3\x9f" "e \xe2\x82\xac \xf0\x9f\xa7\xac.bam");
}

TEST(test_control_characters_are_escaped)
{
    check_shown("\x1b[2Jgone", "\\x1b[2Jgone");
    check_shown("a\nsamtools rocksort: all is well\r\t\x7f", "a\\x0asamtools rocksort: all is well"
                                                            "\\x0d\\x09\\x7f");
    /* CSI as one character, in Latin-1 and in UTF-8; U+0085, a new line; U+00a0, a space. */
    check_shown("\x9b" "31m \xc2\x9b \xc2\x85 \xc2\xa0", "\\x9b31m \\xc2\\x9b \\xc2\\x85 \xc2\xa0");
    /* Right-to-left override, line separator, isolate. */
    check_shown("\xe2\x80\xae \xe2\x80\xa8 \xe2\x81\xa6",
                "\\xe2\\x80\\xae \\xe2\\x80\\xa8 \\xe2\\x81\\xa6");
}

TEST(test_malformed_utf8_is_escaped)
{
    check_shown("\xff\xfe", "\\xff\\xfe");
    check_shown("\xc3", "\\xc3");                               /* cut short */
    check_shown("\xe2\x82", "\\xe2\\x82");
    check_shown("\xf0\x9f\xa7", "\\xf0\\x9f\\xa7");
    check_shown("\xc0\x9b \xe0\x82\x9b", "\\xc0\\x9b \\xe0\\x82\\x9b");   /* too long */
    check_shown("\xf0\x80\x80\x8a", "\\xf0\\x80\\x80\\x8a");
    check_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");             /* a surrogate */
    check_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");    /* beyond Unicode */
    check_shown("\xc3\xc3\xb6", "\\xc3\xc3\xb6");
}

TEST(test_decoded_characters)
{
    static const struct {
        const char *text;
        size_t n_bytes;
        uint32_t character;
    } cases[] = {
        {"", 0, 0},          {"a", 1, 'a'},       {"\x01", 1, 1},      {"\x7f", 1, 0x7f},
        {"\xc2\x80", 2, 0x80},     {"\xdf\xbf", 2, 0x7ff},
        {"\xe0\xa0\x80", 3, 0x800},         {"\xef\xbf\xbf", 3, 0xffff},
        {"\xed\x9f\xbf", 3, 0xd7ff},        {"\xee\x80\x80", 3, 0xe000},
        {"\xf0\x90\x80\x80", 4, 0x10000},   {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        {"\x80", 0, 0},      {"\xc1\xbf", 0, 0},  {"\xe0\x9f\xbf", 0, 0},
        {"\xed\xa0\x80", 0, 0},     {"\xf0\x8f\xbf\xbf", 0, 0},
        {"\xf4\x90\x80\x80", 0, 0}, {"\xf8\x88\x80\x80\x80", 0, 0}, {"\xff", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t character;
        assert_int_equal(utf8_decode(cases[i].text, &character), cases[i].n_bytes);
        if (cases[i].n_bytes > 0) assert_int_equal(character, cases[i].character);
    }
}

/* Each character is decoded from its bytes, and not from fewer bytes. */
TEST(test_all_characters)
{
    for (uint32_t c = 0x80; c <= 0x10ffff; c++) {
        size_t n = c >= 0x10000 ? 4 : c >= 0x800 ? 3 : 2;
        char text[5] = "";
        uint32_t rest = c, character;
        for (size_t i = n - 1; i > 0; i--, rest >>= 6) text[i] = (char)(0x80 | (rest & 0x3f));
        text[0] = (char)((0xf00u >> n & 0xff) | rest);
        bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
        assert_int_equal(utf8_decode(text, &character), is_surrogate ? 0 : n);
        if (!is_surrogate) assert_int_equal(character, c);
        text[n - 1] = '\0';
        assert_int_equal(utf8_decode(text, &character), 0);
    }
}

/* The result never exceeds the room, ends with a NUL, and holds nothing that a terminal acts on. */
TEST(test_any_bytes_in_any_room)
{
    struct rng rng = rng_start(101);
    for (int round = 0; round < 20000; round++) {
        size_t n = rng_below(&rng, 24), room = 1 + rng_below(&rng, 60);
        OWNED char *text = test_alloc(n + 1), *out = test_alloc(room);
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
    }
}
