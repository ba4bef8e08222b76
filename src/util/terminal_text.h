/*
 * terminal_text.h -- text that may hold anything, made fit for a terminal and a log.
 *
 * Messages print read names, tags of headers and file names. Whoever wrote these may have put
 * control characters into them: an escape sequence that clears the screen, or a newline and what
 * looks like another message. Printable ASCII and UTF-8 stay as they are; every byte of anything
 * else becomes \xNN. A backslash stays, so that the text is for reading, not for reading back.
 *
 * Pure; any thread.
 */
#ifndef ROCKSORT_UTIL_TERMINAL_TEXT_H
#define ROCKSORT_UTIL_TERMINAL_TEXT_H

#include <stddef.h>

enum { TERMINAL_TEXT_GROWTH = 4 };      /* a byte becomes so many at most */

/*
 * Writes the text, up to its NUL, to out, which has room_bytes (at least 1), and ends it with a
 * NUL. Stops before what does not fit. Returns the length without the NUL.
 */
size_t terminal_text(const char *text, char *out, size_t room_bytes);

#endif
