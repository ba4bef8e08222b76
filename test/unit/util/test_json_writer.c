/* test_json_writer.c -- escapes, nesting and numbers, as RFC 8259 wants them. */
#include "unit_test.h"

#include "util/json_writer.h"

#include <math.h>

struct written {
    FILE *to;
    char *text;
    size_t n;
    struct json_writer json;
};

static void begin(struct written *w)
{
    *w = (struct written){0};
    w->to = open_memstream(&w->text, &w->n);
    assert_non_null(w->to);
    json_start(&w->json, w->to);
}

static void check(struct written *w, const char *expected)
{
    assert_int_equal(fclose(w->to), 0);
    assert_string_equal(w->text, expected);
    free(w->text);
}

static void check_string(const char *text, const char *expected)
{
    struct written w;
    begin(&w);
    json_string(&w.json, NULL, text);
    check(&w, expected);
}

TEST(test_strings_are_quoted)
{
    check_string("", "\"\"");
    check_string("reads.bam", "\"reads.bam\"");
    check_string("a \"b\" \\ /", "\"a \\\"b\\\" \\\\ /\"");
    check_string("a\tb\nc\r\x01\x1f\x7f", "\"a\\tb\\nc\\u000d\\u0001\\u001f\\u007f\"");
    check_string(NULL, "null");
}

TEST(test_invalid_utf8_is_replaced)
{
    check_string("Gr\xc3\xb6\xc3\x9f" "e", "\"Gr\xc3\xb6\xc3\x9f" "e\"");
    check_string("\xe2\x82\xac\xf0\x9f\xa7\xac", "\"\xe2\x82\xac\xf0\x9f\xa7\xac\"");
    check_string("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf",
                 "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"");
}

TEST(test_no_other_bytes_are_taken_for_utf8)
{
    check_string("a\xff" "b", "\"a\\ufffdb\"");
    check_string("\xc3", "\"\\ufffd\"");                /* ends within a sequence */
    check_string("\xe2\x82", "\"\\ufffd\\ufffd\"");
    check_string("\xf0\x9f\xa7", "\"\\ufffd\\ufffd\\ufffd\"");
    check_string("\xc3(", "\"\\ufffd(\"");
    check_string("\x80", "\"\\ufffd\"");
    check_string("\xc0\xaf", "\"\\ufffd\\ufffd\"");     /* overlong */
    check_string("\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\"");
    check_string("\xf0\x80\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check_string("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"");  /* a surrogate */
    check_string("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check_string("\xf5\x80\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

TEST(test_numbers_are_written)
{
    struct written w;
    begin(&w);
    json_begin_array(&w.json, NULL);
    json_unsigned(&w.json, NULL, 0);
    json_unsigned(&w.json, NULL, UINT64_MAX);
    json_number(&w.json, NULL, 0.25);
    json_number(&w.json, NULL, -3);
    json_number(&w.json, NULL, 12345.678901);
    json_number(&w.json, NULL, 1e-7);
    json_number(&w.json, NULL, NAN);
    json_number(&w.json, NULL, -INFINITY);
    json_bool(&w.json, NULL, true);
    json_bool(&w.json, NULL, false);
    json_string(&w.json, NULL, NULL);
    json_end(&w.json);
    check(&w, "[0, 18446744073709551615, 0.25, -3, 12345.6789, 1e-07, null, null, true, false, "
              "null]\n");
}

TEST(test_objects_and_arrays_nest)
{
    struct written w;
    begin(&w);
    json_begin_object(&w.json, NULL);
    json_string(&w.json, "a \"name\"", "x");
    json_begin_object(&w.json, "empty");
    json_end(&w.json);
    json_begin_array(&w.json, "none");
    json_end(&w.json);
    json_begin_array(&w.json, "objects");
    for (int i = 0; i < 2; i++) {
        json_begin_object(&w.json, NULL);
        json_unsigned(&w.json, "i", (uint64_t)i);
        json_end(&w.json);
    }
    json_end(&w.json);
    json_begin_array(&w.json, "numbers");
    json_unsigned(&w.json, NULL, 1);
    json_unsigned(&w.json, NULL, 2);
    json_end(&w.json);
    json_end(&w.json);
    check(&w, "{\n"
              "  \"a \\\"name\\\"\": \"x\",\n"
              "  \"empty\": {},\n"
              "  \"none\": [],\n"
              "  \"objects\": [\n"
              "    {\n"
              "      \"i\": 0\n"
              "    },\n"
              "    {\n"
              "      \"i\": 1\n"
              "    }\n"
              "  ],\n"
              "  \"numbers\": [1, 2]\n"
              "}\n");
}
