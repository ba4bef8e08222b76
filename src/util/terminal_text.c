/*
 * terminal_text.c -- see terminal_text.h.
 *
 * Control characters are 0x00 to 0x1f, 0x7f and, in UTF-8, U+0080 to U+009F. U+009B is one of them:
 * it means the same as ESC [. A terminal that is set to Latin-1 reads the single bytes 0x80 to 0x9f
 * as these control characters. Characters that change the direction of writing or separate lines
 * can disguise a message. So a UTF-8 character is printed only if it is well-formed and is none of
 * these characters.
 */
#include "util/terminal_text.h"

#include "util/byte_order.h"

#include <string.h>

size_t utf8_decode(const char *at, uint32_t *character)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *bytes = (const uint8_t *)at;
    *character = bytes[0];
    if (bytes[0] < 0x80) return bytes[0] != '\0';
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4) return 0;
    size_t n = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    uint32_t c = bytes[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;        /* true for the NUL at the end, too */
        c = c << 6 | (bytes[i] & 0x3f);
    }
    *character = c;
    bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    return c >= least[n] && c <= 0x10ffff && !is_surrogate ? n : 0;
}

bool utf8_is_valid(const char *text, size_t n_bytes)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0;
    while (at + 8 <= n_bytes && !(get_u64(bytes + at) & UINT64_C(0x8080808080808080))) at += 8;
    for (; at < n_bytes && bytes[at] < 0x80; at++) continue;
    while (at < n_bytes) {
        uint32_t character;
        size_t n = utf8_decode(text + at, &character);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

static bool is_harmless(uint32_t c)
{
    bool is_control = c < 0x20 || (c >= 0x7f && c <= 0x9f);
    bool separates_lines = c == 0x2028 || c == 0x2029;
    bool turns_writing = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069);
    return !is_control && !separates_lines && !turns_writing;
}

/* Returns how many bytes at `at` may be printed; 0 if the first must be escaped. */
static size_t printable_bytes(const char *at)
{
    uint32_t character;
    size_t n = utf8_decode(at, &character);
    return n > 0 && is_harmless(character) ? n : 0;
}

size_t terminal_text(const char *text, char *out, size_t room_bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (const char *at = text; *at;) {
        size_t n_plain = printable_bytes(at);
        if (room_bytes - 1 - n < (n_plain ? n_plain : TERMINAL_TEXT_GROWTH)) break;
        if (n_plain > 0) {
            memcpy(out + n, at, n_plain);
            n += n_plain;
            at += n_plain;
            continue;
        }
        uint8_t byte = (uint8_t)*at++;
        const char escaped[TERMINAL_TEXT_GROWTH] = {'\\', 'x', digits[byte >> 4],
                                                    digits[byte & 15]};
        memcpy(out + n, escaped, sizeof escaped);
        n += sizeof escaped;
    }
    out[n] = '\0';
    return n;
}
