/*
 * json_writer.h -- writes JSON (RFC 8259) to a stream: objects a member a line, arrays of plain
 * values in one line.
 *
 * Order of calls: start; one top-level value; ferror of the stream says whether all was written.
 * Members of objects have a name; elements of arrays, and the top-level value, have none (NULL).
 * What is begun must be ended, innermost first.
 *
 * Texts may hold any bytes: what is no UTF-8 becomes U+FFFD, as in names of files, since JSON
 * cannot hold it. Numbers that are not finite become null.
 */
#ifndef ROCKSORT_UTIL_JSON_WRITER_H
#define ROCKSORT_UTIL_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_MOST_DEPTH = 16 };

struct json_writer {
    FILE *to;
    unsigned depth;             /* containers that are open, at most JSON_MOST_DEPTH */
    struct {
        bool is_array;
        bool has_lines;         /* its values stand on lines of their own */
        unsigned n;             /* values so far */
    } open[JSON_MOST_DEPTH];
};

void json_start(struct json_writer *json, FILE *to);

void json_begin_object(struct json_writer *json, const char *name);
void json_end_object(struct json_writer *json);
void json_begin_array(struct json_writer *json, const char *name);
void json_end_array(struct json_writer *json);

/* NULL is written as null. */
void json_string(struct json_writer *json, const char *name, const char *text);
void json_unsigned(struct json_writer *json, const char *name, uint64_t value);
void json_number(struct json_writer *json, const char *name, double value);
void json_bool(struct json_writer *json, const char *name, bool value);
void json_null(struct json_writer *json, const char *name);

#endif
