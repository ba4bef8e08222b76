/*
 * test_template_cut.c -- stretches have whole templates, and all records in their order, wherever
 * the stream is cut into spans.
 */
#include "unit_test.h"

#include "template/template_cut.h"

enum { MAX_RECORDS = 400, MAX_BYTES = MAX_RECORDS * 400 };

struct stream {
    uint8_t *at;
    size_t n_bytes, n_records;
};

/* Templates of 1 to most records, named by their number. */
static struct stream make_stream(struct rng *rng, size_t n_templates, size_t most)
{
    struct stream stream = {.at = test_alloc(MAX_BYTES)};
    for (size_t i = 0; i < n_templates && stream.n_records < MAX_RECORDS - most; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "t%zu", i);
        for (size_t n = 1 + rng_below(rng, most); n > 0; n--) {
            struct record_fields f = {.name = name, .l_seq = (int32_t)rng_below(rng, 40),
                                      .tag_bytes = rng_below(rng, 100)};
            stream.n_bytes += put_record(stream.at + stream.n_bytes, &f, (uint8_t)i);
            stream.n_records++;
        }
    }
    return stream;
}

/* What came out, one stretch after the other. */
struct result {
    uint8_t *at;
    size_t n_bytes, n_records;
    char last_name[24];         /* of the stretch before */
};

static void add_records(struct rng *rng, struct result *result, const uint8_t *from, size_t n_bytes,
                        bool begins_stretch)
{
    for (const uint8_t *rec = from; rec < from + n_bytes; rec += bam_record_bytes(rec)) {
        const char *name = (const char *)bam_record_name(rec);
        if (begins_stretch) CHECK(rng, strcmp(name, result->last_name) != 0);
        begins_stretch = false;
        (void)snprintf(result->last_name, sizeof result->last_name, "%s", name);
        result->n_records++;
    }
    if (n_bytes > 0) memcpy(result->at + result->n_bytes, from, n_bytes);
    result->n_bytes += n_bytes;
}

static void add_stretch(struct rng *rng, struct result *result, const uint8_t *piece,
                        const struct template_stretch *stretch)
{
    size_t n_before = result->n_records;
    add_records(rng, result, stretch->left.at, stretch->left.n_bytes, true);
    add_records(rng, result, piece + stretch->from, stretch->to - stretch->from,
                stretch->left.n_bytes == 0);
    CHECK(rng, result->n_records - n_before == stretch->n_records);
}

/* Adds the records of an open template, which all have its name. */
static void add_open(struct rng *rng, struct result *result, const uint8_t *piece,
                     const struct template_stretch *stretch)
{
    char name[24];
    size_t n_before = result->n_records;
    memcpy(name, result->last_name, sizeof name);
    add_records(rng, result, stretch->left.at, stretch->left.n_bytes, false);
    if (stretch->n_records > 0) CHECK(rng, n_before == 0 || strcmp(name, result->last_name) == 0);
    add_records(rng, result, piece + stretch->from, stretch->to - stretch->from, false);
    if (stretch->n_records > 0) CHECK(rng, n_before == 0 || strcmp(name, result->last_name) == 0);
    CHECK(rng, result->n_records - n_before == stretch->n_records);
}

struct span {                   /* whole records, in memory of their own */
    uint8_t *at;
    size_t n_bytes, n_records;
};

/* Takes the next records of a stream, as many as fit in n_bytes, but one at least. */
static struct span take_span(const struct stream *stream, size_t at, size_t n_bytes)
{
    struct span span = {.n_records = 0};
    while (at + span.n_bytes < stream->n_bytes) {
        size_t n = bam_record_bytes(stream->at + at + span.n_bytes);
        if (span.n_records > 0 && span.n_bytes + n > n_bytes) break;
        span.n_bytes += n;
        span.n_records++;
    }
    if (span.n_bytes > 0) span.at = memcpy(test_alloc(span.n_bytes), stream->at + at, span.n_bytes);
    return span;
}

/* Like template_cut, but takes the last template from the cutter at times. */
static void cut_open(struct rng *rng, struct template_cutter *cutter, struct span span,
                     bool is_last, struct template_stretch *stretch, struct result *result)
{
    size_t from = 0, n_before = 0;
    template_stretch_empty(stretch);
    if (cutter->is_open) {
        template_cut_more(cutter, span.at, span.n_bytes, stretch);
        add_open(rng, result, span.at, stretch);
        from = stretch->to;
        n_before = stretch->n_records;
        template_stretch_empty(stretch);
        if (is_last) cutter->is_open = false;
        if (cutter->is_open) return;
    }
    const uint8_t *rest = from > 0 ? span.at + from : span.at;
    template_cut(cutter, rest, span.n_bytes - from, span.n_records - n_before, is_last, stretch);
    stretch->from += from;
    stretch->to += from;
    if (cutter->n_kept == 0 || !rng_one_in(rng, 3)) return;
    add_stretch(rng, result, span.at, stretch);
    result->last_name[0] = 0;
    template_cut_open(cutter, stretch);
    add_records(rng, result, stretch->left.at, stretch->left.n_bytes, false);
    template_stretch_empty(stretch);
}

/* Cuts a stream into spans of about most_bytes at most, and puts the stretches together again.
   opens: some templates are taken from the cutter. */
static void cut_stream(struct rng *rng, const struct stream *stream, size_t most_bytes, bool opens,
                       struct template_cutter *cutter, struct result *result)
{
    RELEASED(template_stretch_release) struct template_stretch stretch = {.n_records = 0};
    bool is_last = false;
    for (size_t at = 0; !is_last;) {
        struct span span = take_span(stream, at, 1 + rng_below(rng, most_bytes));
        at += span.n_bytes;
        is_last = span.n_records == 0 || (at == stream->n_bytes && rng_one_in(rng, 2));
        if (opens)
            cut_open(rng, cutter, span, is_last, &stretch, result);
        else
            template_cut(cutter, span.at, span.n_bytes, span.n_records, is_last, &stretch);
        add_stretch(rng, result, span.at, &stretch);
        free(span.at);
    }
}

static void check_sizes(uint64_t seed, size_t most_records, size_t most_bytes, bool opens)
{
    struct rng rng = rng_start(seed);
    for (int i = 0; i < 200; i++) {
        struct stream stream = make_stream(&rng, 1 + rng_below(&rng, 60), most_records);
        struct result result = {.at = test_alloc(MAX_BYTES)};
        RELEASED(template_cutter_release) struct template_cutter cutter = {.n_kept = 0};
        cut_stream(&rng, &stream, most_bytes, opens, &cutter, &result);
        CHECK(&rng, cutter.n_kept == 0 && result.n_records == stream.n_records);
        CHECK(&rng, result.n_bytes == stream.n_bytes &&
                        memcmp(result.at, stream.at, stream.n_bytes) == 0);
        free(result.at);
        free(stream.at);
    }
}

TEST(test_spans_of_one_record)
{
    check_sizes(1, 3, 60, false);
}

TEST(test_spans_of_some_records)
{
    check_sizes(2, 3, 2000, false);
}

TEST(test_spans_of_many_templates)
{
    check_sizes(3, 4, 50000, false);
}

/* More records than the cutter remembers. */
TEST(test_long_templates)
{
    check_sizes(4, 100, 20000, false);
    check_sizes(5, 60, 300, false);
}

/* Templates that the caller takes before they have ended. */
TEST(test_open_templates)
{
    check_sizes(11, 3, 60, true);
    check_sizes(12, 3, 2000, true);
    check_sizes(13, 40, 1000, true);
    check_sizes(14, 100, 20000, true);
}

/* A name that is longer than its record is not read, and equals no other. */
TEST(test_names_that_do_not_fit)
{
    OWNED uint8_t *a = test_alloc(36), *b = test_alloc(36);
    memset(a, 0, 36);
    a[0] = 32;
    a[12] = 200;
    memcpy(b, a, 36);
    assert_false(template_same_name(a, b));
    a[12] = b[12] = 0;
    assert_true(template_same_name(a, b));
}

/* Zeros may follow a name. */
TEST(test_padded_names)
{
    static const struct {
        const char *a, *b;      /* with a zero after each */
        size_t a_bytes, b_bytes;
        bool is_same;
    } cases[] = {
        {"q", "q\0\0", 2, 4, true}, {"q\0a", "q\0b", 4, 4, true}, {"q", "qq", 2, 3, false},
        {"qq", "q\0", 3, 3, false}, {"", "\0", 1, 2, true}, {"qa", "qb", 3, 3, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t a[40] = {0}, b[40] = {0};
        a[0] = (uint8_t)(32 + cases[i].a_bytes);
        b[0] = (uint8_t)(32 + cases[i].b_bytes);
        a[12] = (uint8_t)cases[i].a_bytes;
        b[12] = (uint8_t)cases[i].b_bytes;
        memcpy(a + 36, cases[i].a, cases[i].a_bytes);
        memcpy(b + 36, cases[i].b, cases[i].b_bytes);
        assert_int_equal(template_same_name(a, b), cases[i].is_same);
        assert_int_equal(template_same_name(b, a), cases[i].is_same);
    }
}
