/* json_writer.c -- see json_writer.h. Ignores the results of stdio, because the stream remembers
   its errors and the caller checks it once, at the end. */
#include "util/json_writer.h"

#include "util/terminal_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

void json_start(struct json_writer *json, FILE *to)
{
    *json = (struct json_writer){.to = to, .indent = 2};
}

/* Writes an ASCII character within quotes. */
static void write_escaped(FILE *to, char c)
{
    switch (c) {
    case '"': (void)fputs("\\\"", to); break;
    case '\\': (void)fputs("\\\\", to); break;
    case '\n': (void)fputs("\\n", to); break;
    case '\t': (void)fputs("\\t", to); break;
    default:
        if (c < 0x20 || c == 0x7f)
            (void)fprintf(to, "\\u%04x", (unsigned)c);
        else
            (void)fputc(c, to);
    }
}

static void write_text(FILE *to, const char *text)
{
    (void)fputc('"', to);
    while (*text) {
        uint32_t character;
        size_t n = utf8_decode(text, &character);
        if (n == 1)
            write_escaped(to, *text);
        else if (n > 1)
            (void)fwrite(text, 1, n, to);
        else
            (void)fputs("\\ufffd", to);
        text += n > 0 ? n : 1;
    }
    (void)fputc('"', to);
}

static void new_line(const struct json_writer *json)
{
    (void)fprintf(json->to, "\n%*s", (int)(json->indent * json->depth), "");
}

/* Writes the comma, the new line and the name before a value. */
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

void json_end(struct json_writer *json)
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

void json_begin_array(struct json_writer *json, const char *name)
{
    begin_container(json, name, true);
}

void json_string(struct json_writer *json, const char *name, const char *text)
{
    begin_value(json, name, false);
    if (text)
        write_text(json->to, text);
    else
        (void)fputs("null", json->to);
}

void json_unsigned(struct json_writer *json, const char *name, uint64_t value)
{
    begin_value(json, name, false);
    (void)fprintf(json->to, "%" PRIu64, value);
}

void json_number(struct json_writer *json, const char *name, double value)
{
    if (!isfinite(value)) {
        json_string(json, name, NULL);
        return;
    }
    begin_value(json, name, false);
    /* printf writes the decimal point as ".", because setlocale is never called. Nine digits
       resolve nanoseconds within a second, and ten microseconds within an hour. */
    (void)fprintf(json->to, "%.9g", value);
}

void json_bool(struct json_writer *json, const char *name, bool value)
{
    begin_value(json, name, false);
    (void)fputs(value ? "true" : "false", json->to);
}
