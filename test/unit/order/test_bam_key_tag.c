/*
 * test_bam_key_tag.c -- the keys of -t TAG: their order against a plain comparison of values that
 * is written here from the rules, and examples with the answers of samtools 1.24.
 */
#include "unit_test.h"

#include "order/bam_key_tag.h"

#include <math.h>

enum {
    N_SAMPLES = 900,
    MAX_TEXT = 6,
    EXTRA_BYTES = 10,           /* most bytes that a key has more than the value */
};

enum rank { MISSING, CHARACTER, ARRAY, TEXT, NUMBER };  /* in order */

struct sample {                 /* a tag, and the value that it was made from */
    enum rank rank;
    bool is_integer;
    int64_t integer;
    double number;
    char text[MAX_TEXT + 1];
    uint8_t tags[64];
    size_t tag_bytes;
    size_t value_bytes;
    uint8_t *record;            /* in exact memory, as the key */
    uint8_t *key;
    size_t key_bytes;
};

static int sign(long long a, long long b)
{
    return (a > b) - (a < b);
}

static uint8_t *make_record(const uint8_t *tags, size_t n_bytes)
{
    struct record_fields f = {.name = "r", .tag_bytes = n_bytes};
    uint8_t *rec = test_alloc(record_size(&f));
    size_t size = put_record(rec, &f, 0);
    if (n_bytes) memcpy(rec + size - n_bytes, tags, n_bytes);
    return rec;
}

/* The key, in memory of exactly its size. */
static uint8_t *make_key(const uint8_t *rec, size_t *n_bytes)
{
    *n_bytes = bam_key_tag_encode("XX", rec, NULL, 0);
    uint8_t *key = test_alloc(*n_bytes);
    assert_int_equal(bam_key_tag_encode("XX", rec, key, *n_bytes), *n_bytes);
    return key;
}

static int compare_numbers(const struct sample *a, const struct sample *b)
{
    if (a->is_integer && b->is_integer) return sign(a->integer, b->integer);
    double x = a->is_integer ? (double)a->integer : a->number;
    double y = b->is_integer ? (double)b->integer : b->number;
    if (isnan(x) || isnan(y)) return sign(isnan(x) != 0, isnan(y) != 0);
    return (x > y) - (x < y);
}

static int compare_by_rules(const struct sample *a, const struct sample *b)
{
    if (a->rank != b->rank) return sign(a->rank, b->rank);
    switch (a->rank) {
    case CHARACTER: return sign(a->integer, b->integer);
    case TEXT: return sign(strcmp(a->text, b->text), 0);
    case NUMBER: return compare_numbers(a, b);
    default: return 0;
    }
}

static int64_t random_integer(struct rng *rng)
{
    static const int64_t edges[] = {0,     127,   128,   255,        256,        32767,     32768,
                                    65535, 65536, 1 << 24, INT32_MAX, 2147483648, UINT32_MAX};
    int64_t n = edges[rng_below(rng, sizeof edges / sizeof *edges)];
    if (rng_one_in(rng, 4)) n = (int64_t)(rng_next(rng) >> (32 + rng_below(rng, 32)));
    n += (int64_t)rng_below(rng, 3) - 1;
    if (rng_one_in(rng, 2)) n = -n;
    return n < INT32_MIN ? INT32_MIN : n > UINT32_MAX ? UINT32_MAX : n;
}

/* Stores an integer in one of the types that can hold it. */
static void put_integer(struct rng *rng, struct sample *s)
{
    static const struct {
        char type;
        size_t n_bytes;
        int64_t min, max;
    } holds[] = {
        {'c', 1, INT8_MIN, INT8_MAX},   {'C', 1, 0, UINT8_MAX},
        {'s', 2, INT16_MIN, INT16_MAX}, {'S', 2, 0, UINT16_MAX},
        {'i', 4, INT32_MIN, INT32_MAX}, {'I', 4, 0, UINT32_MAX},
    };
    s->is_integer = true;
    s->integer = random_integer(rng);
    size_t i;
    do {
        i = rng_below(rng, sizeof holds / sizeof *holds);
    } while (s->integer < holds[i].min || s->integer > holds[i].max);
    s->tags[2] = (uint8_t)holds[i].type;
    for (size_t k = 0; k < holds[i].n_bytes; k++)
        s->tags[3 + k] = (uint8_t)((uint64_t)s->integer >> 8 * k);
    s->value_bytes = holds[i].n_bytes;
}

static void put_float(struct rng *rng, struct sample *s)
{
    static const double values[] = {0.0, -0.0, 0.5, 1.5, 1, 128, 255, 65536, 16777217, 4294967295.0,
                                    2147483647.5, 1e300, 5e-324, 1e-45, 3e38, INFINITY, NAN};
    double d = values[rng_below(rng, sizeof values / sizeof *values)];
    if (rng_one_in(rng, 4)) d = (double)random_integer(rng) + 0.25 * (double)rng_below(rng, 4);
    if (rng_one_in(rng, 2)) d = -d;
    if (rng_one_in(rng, 2)) {
        float f = (float)d;
        s->tags[2] = 'f';
        s->value_bytes = sizeof f;
        memcpy(s->tags + 3, &f, sizeof f);
        s->number = (double)f;
    } else {
        s->tags[2] = 'd';
        s->value_bytes = sizeof d;
        memcpy(s->tags + 3, &d, sizeof d);
        s->number = d;
    }
}

static void put_text(struct rng *rng, struct sample *s)
{
    name_of_letters(rng, s->text, rng_below(rng, MAX_TEXT + 1), "aab\x01\x7f\x80\xff");
    s->tags[2] = (uint8_t)"ZH"[rng_below(rng, 2)];
    s->value_bytes = strlen(s->text) + 1;
    memcpy(s->tags + 3, s->text, s->value_bytes);
}

static void put_array(struct rng *rng, struct sample *s)
{
    size_t count = rng_below(rng, 4);
    s->tags[2] = 'B';
    s->tags[3] = 's';
    test_put_u32(s->tags + 4, (uint32_t)count);
    rng_fill(rng, s->tags + 8, 2 * count);
    s->value_bytes = 5 + 2 * count;
}

static void make_sample(struct rng *rng, struct sample *s)
{
    memset(s, 0, sizeof *s);
    memcpy(s->tags, "XX", 2);
    switch (rng_below(rng, 10)) {
    case 0: s->rank = MISSING; break;
    case 1:
        s->rank = CHARACTER;
        s->integer = (int64_t)rng_below(rng, 256);
        s->tags[2] = 'A';
        s->tags[3] = (uint8_t)s->integer;
        s->value_bytes = 1;
        break;
    case 2: s->rank = ARRAY; put_array(rng, s); break;
    case 3:
    case 4: s->rank = TEXT; put_text(rng, s); break;
    case 5:
    case 6: s->rank = NUMBER; put_float(rng, s); break;
    default: s->rank = NUMBER; put_integer(rng, s);
    }
    s->tag_bytes = s->rank == MISSING ? 0 : 3 + s->value_bytes;
}

/* Puts another tag before or after that of the sample. */
static void add_other_tag(struct rng *rng, struct sample *s)
{
    static const uint8_t other[] = "XYZXXC";            /* its NUL included */
    size_t n = sizeof other;
    if (rng_one_in(rng, 2)) {
        memmove(s->tags + n, s->tags, s->tag_bytes);
        memcpy(s->tags, other, n);
    } else {
        memcpy(s->tags + s->tag_bytes, other, n);
    }
    s->tag_bytes += n;
}

TEST(test_keys_order_as_rules_say)
{
    struct rng rng = rng_start(1);
    OWNED struct sample *samples = test_alloc(N_SAMPLES * sizeof *samples);
    size_t n_ties = 0;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        struct sample *s = &samples[i];
        make_sample(&rng, s);
        if (rng_one_in(&rng, 3)) add_other_tag(&rng, s);
        s->record = make_record(s->tags, s->tag_bytes);
        s->key = make_key(s->record, &s->key_bytes);
        CHECK(&rng, s->key_bytes <= s->value_bytes + EXTRA_BYTES);
    }
    for (size_t i = 0; i < N_SAMPLES; i++) {
        for (size_t k = 0; k < N_SAMPLES; k++) {
            const struct sample *a = &samples[i], *b = &samples[k];
            size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
            int by_key = sign(memcmp(a->key, b->key, n), 0);
            int by_rules = compare_by_rules(a, b);
            if (by_key != by_rules)
                print_error("%d %d '%s' %" PRId64 " %g, %d %d '%s' %" PRId64 " %g\n", a->rank,
                            a->is_integer, a->text, a->integer, a->number, b->rank, b->is_integer,
                            b->text, b->integer, b->number);
            CHECK(&rng, by_key == by_rules);
            /* Prefix-free: if the shorter key is the beginning of the other, they are equal. */
            if (by_key == 0) CHECK(&rng, a->key_bytes == b->key_bytes);
            n_ties += by_key == 0 && i != k;
        }
    }
    CHECK(&rng, n_ties > N_SAMPLES);
    for (size_t i = 0; i < N_SAMPLES; i++) {
        free(samples[i].record);
        free(samples[i].key);
    }
}

struct example {
    int group;                  /* equal values have equal numbers, greater ones greater numbers */
    const char *tags;
    size_t n_bytes;
};

#define TAGS(text) text, sizeof text - 1

TEST(test_examples_are_in_order)
{
    static const struct example examples[] = {
        {0, TAGS("")},
        {0, TAGS("XYC\1")},
        {0, TAGS("YXC\1")},
        {0, TAGS("XXi123")},                        /* damaged: cut */
        {0, TAGS("XXZabc")},
        {0, TAGS("XX")},
        {0, TAGS("XYx1XXC\1")},                     /* after damage */
        {1, TAGS("XXAA")},
        {2, TAGS("XXAa")},
        {3, TAGS("XXA\xe9")},
        {4, TAGS("XXBc\1\0\0\0\1")},
        {4, TAGS("XXBf\0\0\0\0")},
        {5, TAGS("XXZ\0")},
        {5, TAGS("XXH\0")},
        {6, TAGS("XXH0A\0")},
        {6, TAGS("XXZ0A\0")},
        {7, TAGS("XXZA\0")},                        /* the character above, but as text */
        {8, TAGS("XXZA\1\0")},
        {9, TAGS("XXZz\0")},
        {10, TAGS("XXZ\xe9\0")},
        {11, TAGS("XXf\0\0\x80\xff")},              /* -inf */
        {12, TAGS("XXi\0\0\0\x80")},
        {13, TAGS("XXc\xff")},                      /* -1 */
        {13, TAGS("XXs\xff\xff")},
        {13, TAGS("XXf\0\0\x80\xbf")},
        {14, TAGS("XXC\0")},
        {14, TAGS("XXf\0\0\0\0")},
        {14, TAGS("XXf\0\0\0\x80")},                /* -0.0 */
        {14, TAGS("XXd\0\0\0\0\0\0\0\x80")},
        {15, TAGS("XXf\0\0\0\x3f")},                /* 0.5 */
        {16, TAGS("XXC\1XXC\0")},                   /* the first counts */
        {16, TAGS("XXI\1\0\0\0XYx1")},              /* damage after it does not matter */
        {17, TAGS("XXC\xff")},
        {17, TAGS("XXS\xff\0")},
        {18, TAGS("XXI\xff\xff\xff\xff")},
        {19, TAGS("XXf\0\0\x80\x7f")},              /* inf */
        {20, TAGS("XXf\0\0\xc0\x7f")},              /* NaN, of both signs and widths */
        {20, TAGS("XXf\0\0\xc0\xff")},
        {20, TAGS("XXd\1\0\0\0\0\0\xf8\x7f")},
    };
    size_t n_before = 0;
    uint8_t *before = NULL;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        OWNED uint8_t *rec = make_record((const uint8_t *)examples[i].tags, examples[i].n_bytes);
        size_t n;
        uint8_t *key = make_key(rec, &n);
        if (i > 0) {
            int c = sign(memcmp(before, key, n_before < n ? n_before : n), 0);
            bool same = examples[i].group == examples[i - 1].group;
            if (c != (same ? 0 : -1) || (same && n != n_before)) fail_msg("example %zu", i);
        }
        free(before);
        before = key;
        n_before = n;
    }
    free(before);
}

/* Random bytes in place of tags give a key, and the same key twice. */
TEST(test_any_bytes)
{
    struct rng rng = rng_start(2);
    static const char likely[] = "XXXXXXAcCsSiIfdZHB\0\0\1\2";
    uint8_t tags[40];
    for (int round = 0; round < 30000; round++) {
        size_t n = rng_below(&rng, sizeof tags), n_key, n_again;
        for (size_t i = 0; i < n; i++) tags[i] = (uint8_t)likely[rng_below(&rng, sizeof likely)];
        if (n > 3 && rng_one_in(&rng, 2)) memcpy(tags, "XX", 2);
        OWNED uint8_t *rec = make_record(tags, n);
        OWNED uint8_t *key = make_key(rec, &n_key), *again = make_key(rec, &n_again);
        CHECK(&rng, n_key == n_again && memcmp(key, again, n_key) == 0);
        CHECK(&rng, n_key <= n + EXTRA_BYTES);
    }
}
