/*
 * terminal_text.c -- see terminal_text.h.
 *
 * Control characters are 0x00 to 0x1f, 0x7f and, in UTF-8, U+0080 to U+009f, among which is the
 * one-character form of ESC [. The bytes 0x80 to 0x9f alone mean the same to a terminal that is set
 * to Latin-1. Characters that turn the direction of writing, or separate lines, can make a message
 * read as something else. So UTF-8 passes only if it is well-formed and none of these.
 */
#include "util/terminal_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Takes apart the UTF-8 character of two to four bytes at `at`. Returns its number of bytes, or 0
   if it is none, or is longer than it needs to be. The NUL behind the text ends it as well. */
static size_t decode_utf8(const uint8_t *at, uint32_t *character)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
    *character = at[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        *character = *character << 6 | (at[i] & 0x3f);
    }
    return *character >= least[n] ? n : 0;
}

static bool is_harmless(uint32_t c)
{
    bool separates_lines = c == 0x2028 || c == 0x2029;
    bool turns_writing = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069);
    bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    return c > 0x9f && c <= 0x10ffff && !separates_lines && !turns_writing && !is_surrogate;
}

/* The number of bytes at `at` that may stay as they are; 0 if the first must not. */
static size_t printable_bytes(const uint8_t *at)
{
    uint32_t character;
    if (at[0] < 0x80) return at[0] >= 0x20 && at[0] != 0x7f;
    size_t n = decode_utf8(at, &character);
    return n > 0 && is_harmless(character) ? n : 0;
}

size_t terminal_text(const char *text, char *out, size_t room_bytes)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = (const uint8_t *)text;
    size_t n = 0;
    while (*at) {
        size_t n_plain = printable_bytes(at);
        if (room_bytes - 1 - n < (n_plain ? n_plain : TERMINAL_TEXT_GROWTH)) break;
        if (n_plain > 0) {
            memcpy(out + n, at, n_plain);
            n += n_plain;
            at += n_plain;
            continue;
        }
        const char escaped[TERMINAL_TEXT_GROWTH] = {'\\', 'x', digits[*at >> 4], digits[*at & 15]};
        memcpy(out + n, escaped, sizeof escaped);
        n += sizeof escaped;
        at++;
    }
    out[n] = '\0';
    return n;
}
