/*
 * test_bam_key_tag.c -- the keys of -t TAG: examples with the answers of samtools 1.24.
 * test/differential.py compares random tags, fuzz_keys.c makes keys of any bytes.
 */
#include "unit_test.h"

#include "order/bam_key_tag.h"

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
            int c = memcmp(before, key, n_before < n ? n_before : n);
            bool same = examples[i].group == examples[i - 1].group;
            if (same ? c != 0 || n != n_before : c >= 0) fail_msg("example %zu", i);
        }
        free(before);
        before = key;
        n_before = n;
    }
    free(before);
}
