/*
 * json_writer.h -- writes JSON (RFC 8259) to a stream. Each member of an object is on its own line;
 * an array of plain values is on one line.
 *
 * Order of calls: json_start; one value, usually an object with its members; then the caller checks
 * ferror(stream). Objects and arrays must be ended, the innermost first. Pass NULL as the name of
 * array elements and of the outermost value.
 *
 * Bytes of texts that are not UTF-8 become U+FFFD. A number that is not finite becomes null. One
 * thread at a time.
 */
#ifndef ROCKSORT_UTIL_JSON_WRITER_H
#define ROCKSORT_UTIL_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MOST_DEPTH = 16 };

struct json_writer {
    FILE *to;
    unsigned indent;            /* blanks per level; json_start sets 2, the caller may change it */
    unsigned depth;             /* open objects and arrays, at most JSON_MOST_DEPTH */
    struct {
        bool is_array;
        bool has_lines;         /* each value is on its own line */
        unsigned n;             /* values so far */
    } open[JSON_MOST_DEPTH];
};

void json_start(struct json_writer *json, FILE *to);

void json_begin_object(struct json_writer *json, const char *name);
void json_begin_array(struct json_writer *json, const char *name);
void json_end(struct json_writer *json);

/* NULL is written as null. */
void json_string(struct json_writer *json, const char *name, const char *text);
void json_unsigned(struct json_writer *json, const char *name, uint64_t value);
void json_number(struct json_writer *json, const char *name, double value);
void json_bool(struct json_writer *json, const char *name, bool value);

#endif
