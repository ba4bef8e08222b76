/*
 * test_bam_aux.c -- tags of raw records: the walk finds what htslib finds, and stays within the
 * record whatever its bytes are.
 *
 * Records lie in memory of exactly their size, so that AddressSanitizer notices one byte too many.
 */
#include "unit_test.h"

#include "bam/bam_aux.h"
#include "bam/bam_convert.h"

enum { MAX_TAGS_BYTES = 600, MAX_VALUE = 40 };

static const char types[] = "AcCsSiIfdZHB";
static const char array_types[] = "cCsSiIf";

static size_t scalar_bytes(char type)
{
    return strchr("AcC", type) ? 1 : strchr("sS", type) ? 2 : type == 'd' ? 8 : 4;
}

/* A record with these tags, in exact memory. */
static uint8_t *make_record(const uint8_t *tags, size_t n_bytes)
{
    struct record_fields f = {.name = "r", .n_cigar = 1, .l_seq = 3, .tag_bytes = n_bytes};
    uint8_t *rec = test_alloc(record_size(&f));
    size_t size = put_record(rec, &f, 0);
    if (n_bytes) memcpy(rec + size - n_bytes, tags, n_bytes);
    return rec;
}

/* Writes a random tag and returns its size. */
static size_t put_tag(struct rng *rng, uint8_t *at)
{
    char type = types[rng_below(rng, strlen(types))];
    size_t n = 0;
    at[0] = (uint8_t)"XYZ"[rng_below(rng, 3)];
    at[1] = (uint8_t)"A1"[rng_below(rng, 2)];
    at[2] = (uint8_t)type;
    uint8_t *value = at + 3;
    if (type == 'Z' || type == 'H') {
        n = rng_below(rng, MAX_VALUE);
        for (size_t i = 0; i < n; i++) value[i] = (uint8_t)(1 + rng_below(rng, 255));
        value[n++] = 0;
    } else if (type == 'B') {
        char element = array_types[rng_below(rng, strlen(array_types))];
        size_t count = rng_below(rng, 10);
        value[0] = (uint8_t)element;
        test_put_u32(value + 1, (uint32_t)count);
        n = 5 + count * scalar_bytes(element);
        rng_fill(rng, value + 5, n - 5);
    } else {
        n = scalar_bytes(type);
        rng_fill(rng, value, n);
    }
    return 3 + n;
}

static size_t put_tags(struct rng *rng, uint8_t *tags)
{
    size_t n = 0;
    for (size_t i = rng_below(rng, 8); i > 0; i--) n += put_tag(rng, tags + n);
    return n;
}

TEST(test_find_agrees_with_htslib)
{
    struct rng rng = rng_start(2);
    uint8_t tags[MAX_TAGS_BYTES];
    size_t n_found = 0;
    OWNED_RECORD bam1_t *b = new_record();
    for (int round = 0; round < 4000; round++) {
        OWNED uint8_t *rec = make_record(tags, put_tags(&rng, tags));
        bam_record_unpack(rec, b);
        for (int i = 0; i < 6; i++) {
            char tag[3] = {"XYZ"[i % 3], "A1"[i / 3], '\0'};
            struct bam_aux aux;
            const uint8_t *theirs = bam_aux_get(b, tag);
            CHECK(&rng, bam_aux_find(rec, tag, &aux) == (theirs != NULL));
            if (!theirs) continue;
            n_found++;
            CHECK(&rng, aux.start - bam_record_tags(rec) == theirs - 2 - bam_get_aux(b));
            CHECK(&rng, memcmp(aux.start, theirs - 2, 3 + aux.value_bytes) == 0);
        }
    }
    CHECK(&rng, n_found > 1000);
}

/* However much of the last tag is missing, the tags before it are found and it is not. */
TEST(test_cut_tags_are_damaged)
{
    struct rng rng = rng_start(3);
    uint8_t tags[MAX_TAGS_BYTES];
    for (int round = 0; round < 500; round++) {
        size_t n_first = put_tag(&rng, tags), n_last = put_tag(&rng, tags + n_first);
        for (size_t n_left = 1; n_left < n_last; n_left++) {
            OWNED uint8_t *rec = make_record(tags, n_first + n_left);
            const uint8_t *at = bam_record_tags(rec);
            struct bam_aux aux;
            CHECK(&rng, bam_aux_read(rec, &at, &aux) == 1);
            const uint8_t *last = at;
            CHECK(&rng, bam_aux_read(rec, &at, &aux) == -1);
            CHECK(&rng, at == last);        /* and again */
            CHECK(&rng, bam_aux_read(rec, &at, &aux) == -1);
            CHECK(&rng, bam_aux_find(rec, "QQ", &aux) == -1);
            const char first_tag[2] = {(char)tags[0], (char)tags[1]};
            CHECK(&rng, bam_aux_find(rec, first_tag, &aux) == 1);
        }
    }
}

struct damage {
    const char *bytes;
    size_t n_bytes;
};

#define DAMAGE(text) {text, sizeof text - 1}

TEST(test_damaged_tags_are_refused)
{
    static const struct damage cases[] = {
        DAMAGE("X"),
        DAMAGE("XX"),
        DAMAGE("XXC"),
        DAMAGE("XXx1"),                                 /* no such type */
        DAMAGE("XX\0abcdefgh"),
        DAMAGE("XXZabc"),                               /* no NUL */
        DAMAGE("XXBc\0\0\0"),                           /* no whole count */
        DAMAGE("XXBc\2\0\0\0a"),                        /* more elements than bytes */
        DAMAGE("XXBI\1\0\0\0abc"),
        DAMAGE("XXBI\xff\xff\xff\xff" "abcdefgh"),
        DAMAGE("XXBd\xff\xff\xff\xff" "abcdefgh"),
        DAMAGE("XXBI\0\0\0\x40" "abcdefgh"),            /* 2^32 bytes: 0 in 32 bits */
        DAMAGE("XXBZ\1\0\0\0a\0"),                      /* arrays of elements without a size */
        DAMAGE("XXBB\1\0\0\0a\0"),
        DAMAGE("XXBx\0\0\0\0"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OWNED uint8_t *rec = make_record((const uint8_t *)cases[i].bytes, cases[i].n_bytes);
        const uint8_t *at = bam_record_tags(rec);
        struct bam_aux aux;
        if (bam_aux_read(rec, &at, &aux) != -1 || bam_aux_find(rec, "XX", &aux) != -1)
            fail_msg("case %zu is taken for a tag", i);
    }
}

TEST(test_tags_without_a_value_are_found)
{
    static const struct damage cases[] = {
        DAMAGE("XXZ\0"),
        DAMAGE("XXH\0"),
        DAMAGE("XXA\0"),
        DAMAGE("XXBI\0\0\0\0"),
    };
    struct bam_aux aux;
    uint8_t *rec = make_record(NULL, 0);
    assert_int_equal(bam_aux_find(rec, "XX", &aux), 0);
    free(rec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rec = make_record((const uint8_t *)cases[i].bytes, cases[i].n_bytes);
        assert_int_equal(bam_aux_find(rec, "XX", &aux), 1);
        assert_int_equal(aux.value_bytes, cases[i].n_bytes - 3);
        assert_int_equal(bam_aux_find(rec, "XY", &aux), 0);
        assert_int_equal(bam_aux_find(rec, "YX", &aux), 0);
        free(rec);
    }
}
