/* json_writer.c -- see json_writer.h. */
#include "util/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

/* Errors of the stream are sticky: whoever closes it looks once. */

void json_start(struct json_writer *json, FILE *to)
{
    *json = (struct json_writer){.to = to};
}

/* Bytes of the valid UTF-8 sequence at text, 0 if there is none: RFC 3629, without surrogates and
   overlong forms. */
static size_t utf8_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first, last;      /* of the first byte */
        unsigned char low, high;        /* of the second; those behind it are 0x80 to 0xbf */
        size_t n_bytes;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last) continue;
        if (forms[i].n_bytes == 1) return 1;
        if (text[1] < forms[i].low || text[1] > forms[i].high) return 0;
        for (size_t k = 2; k < forms[i].n_bytes; k++)   /* the end of the text is none of these */
            if (text[k] < 0x80 || text[k] > 0xbf) return 0;
        return forms[i].n_bytes;
    }
    return 0;
}

static void write_escaped(FILE *to, unsigned char c)
{
    switch (c) {
    case '"': (void)fputs("\\\"", to); break;
    case '\\': (void)fputs("\\\\", to); break;
    case '\n': (void)fputs("\\n", to); break;
    case '\t': (void)fputs("\\t", to); break;
    default:
        if (c < 0x20 || c == 0x7f)
            (void)fprintf(to, "\\u%04x", c);
        else
            (void)fputc(c, to);
    }
}

static void write_text(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t n = utf8_bytes(at);
        if (n == 1)
            write_escaped(to, *at);
        else if (n > 1)
            (void)fwrite(at, 1, n, to);
        else
            (void)fputs("\\ufffd", to);
        at += n > 0 ? n : 1;
    }
    (void)fputc('"', to);
}

static void new_line(const struct json_writer *json)
{
    (void)fprintf(json->to, "\n%*s", (int)(2 * json->depth), "");
}

/* What stands before a value: comma, line, name. */
static void begin_value(struct json_writer *json, const char *name, bool is_container)
{
    if (json->depth == 0) return;
    unsigned at = json->depth - 1;
    if (json->open[at].n++ > 0) (void)fputc(',', json->to);
    if (!json->open[at].is_array || is_container) {
        json->open[at].has_lines = true;
        new_line(json);
    } else if (json->open[at].n > 1) {
        (void)fputc(' ', json->to);
    }
    if (name) {
        write_text(json->to, name);
        (void)fputs(": ", json->to);
    }
}

static void begin_container(struct json_writer *json, const char *name, bool is_array)
{
    assert(json->depth < JSON_MOST_DEPTH);
    begin_value(json, name, true);
    json->open[json->depth].is_array = is_array;
    json->open[json->depth].has_lines = false;
    json->open[json->depth].n = 0;
    json->depth++;
    (void)fputc(is_array ? '[' : '{', json->to);
}

static void end_container(struct json_writer *json)
{
    assert(json->depth > 0);
    json->depth--;
    if (json->open[json->depth].has_lines) new_line(json);
    (void)fputc(json->open[json->depth].is_array ? ']' : '}', json->to);
    if (json->depth == 0) (void)fputc('\n', json->to);
}

void json_begin_object(struct json_writer *json, const char *name)
{
    begin_container(json, name, false);
}

void json_end_object(struct json_writer *json)
{
    end_container(json);
}

void json_begin_array(struct json_writer *json, const char *name)
{
    begin_container(json, name, true);
}

void json_end_array(struct json_writer *json)
{
    end_container(json);
}

void json_string(struct json_writer *json, const char *name, const char *text)
{
    if (!text) {
        json_null(json, name);
        return;
    }
    begin_value(json, name, false);
    write_text(json->to, text);
}

void json_unsigned(struct json_writer *json, const char *name, uint64_t value)
{
    begin_value(json, name, false);
    (void)fprintf(json->to, "%" PRIu64, value);
}

void json_number(struct json_writer *json, const char *name, double value)
{
    if (!isfinite(value)) {
        json_null(json, name);
        return;
    }
    begin_value(json, name, false);
    /* The locale is that of C: nobody calls setlocale. Nanoseconds of a second, microseconds of an
       hour. */
    (void)fprintf(json->to, "%.9g", value);
}

void json_bool(struct json_writer *json, const char *name, bool value)
{
    begin_value(json, name, false);
    (void)fputs(value ? "true" : "false", json->to);
}

void json_null(struct json_writer *json, const char *name)
{
    begin_value(json, name, false);
    (void)fputs("null", json->to);
}
