/*
 * terminal_text.h -- makes any text safe to print on a terminal and in a log. Also reads UTF-8.
 *
 * Messages quote read names, tags of headers and file names, which may hold control characters.
 * Printable ASCII and UTF-8 stay as they are; every other byte becomes \xNN. A backslash is not
 * escaped: the original cannot be recovered. Pure; any thread.
 */
#ifndef ROCKSORT_UTIL_TERMINAL_TEXT_H
#define ROCKSORT_UTIL_TERMINAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERMINAL_TEXT_GROWTH = 4 };      /* one byte becomes at most this many */

/*
 * Writes the text, up to its NUL, to out, which has room_bytes (at least 1), and ends it with a
 * NUL. Stops before the first character that does not fit. Returns the length without the NUL.
 */
size_t terminal_text(const char *text, char *out, size_t room_bytes);

/*
 * Reads the UTF-8 character at `at`, in a text that ends with a NUL. Returns its number of bytes, 1
 * to 4, or 0 if there is none: a NUL, or bytes that RFC 3629 does not allow (cut short, longer than
 * necessary, a surrogate, above U+10FFFF).
 */
size_t utf8_decode(const char *at, uint32_t *character);

/* True if n_bytes of text are UTF-8. The text ends with a NUL and has no other. */
bool utf8_is_valid(const char *text, size_t n_bytes);

#endif
