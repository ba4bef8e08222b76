/*
 * test_bam_sort_key.c -- examples of natural order, the bounds of long keys, and the names of
 * orders. test/differential.py compares the orders and headers of random records with those of
 * samtools.
 */
#include "test_rules.h"
#include "unit_test.h"

#include "bam_sort_key.h"
#include "order/slice_merge.h"

enum { MAX_RECORD = 400 };

static const enum sort_order name_orders[] = {SORT_NAME_NATURAL, SORT_NAME_LEXICAL};

/* Examples about which samtools 1.16 and 1.24 disagree. */
TEST(test_examples_of_natural_names)
{
    static const char *const groups[][4] = {        /* in order; equal within a group */
        {"", NULL},
        {"!", NULL},
        {"0", "00", "000", NULL},
        {"1", "01", "001", NULL},
        {"1x", "01x", NULL},
        {"2", NULL},
        {"10", "0010", NULL},
        {"a", NULL},
        {"a0", "a00", NULL},
        {"a0b", NULL},
        {"a1", "a01", "a001", NULL},
        {"a1b", NULL},
        {"a2", NULL},
        {"a10", NULL},
        {"a:1:01", "a:1:1", NULL},
        {"b", NULL},
        {"\x80", NULL},
        {"\xff", NULL},
    };
    uint8_t record[MAX_RECORD], keys[2][MAX_RECORD];
    size_t n_before = 0;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (size_t i = 0; i < 4 && groups[g][i]; i++) {
            struct record_fields fields = {.name = groups[g][i]};
            (void)put_record(record, &fields, 0);
            size_t n = test_key_encode(SORT_NAME_NATURAL, record, keys[1]);
            size_t shorter = n < n_before ? n : n_before;
            int c = g + i == 0 ? -1 : memcmp(keys[0], keys[1], shorter);
            if (i == 0)
                assert_true(c < 0);
            else
                assert_true(c == 0 && n == n_before);
            memcpy(keys[0], keys[1], n);
            n_before = n;
        }
    }
}

TEST(test_longest_keys_fit_a_bound)
{
    struct rng rng = rng_start(2);
    static const char *const alphabets[] = {"1a", "0a", "0", "9", "a", "09", "01a"};
    uint8_t record[MAX_RECORD];
    char name[TEST_MAX_NAME + 1];
    struct record_fields fields = {.name = name, .flag = 0xfff};
    size_t longest = 0;
    for (size_t length = 0; length <= TEST_MAX_NAME; length++) {
        for (size_t kind = 0; kind < 2 + sizeof alphabets / sizeof *alphabets; kind++) {
            if (kind < 2)
                alternating_name(name, length, kind == 1);
            else
                name_of_letters(&rng, name, length, alphabets[kind - 2]);
            (void)put_record(record, &fields, 0);
            for (size_t o = 0; o < sizeof name_orders / sizeof *name_orders; o++) {
                size_t n = test_key_bytes(name_orders[o], record);
                CHECK(&rng, n + MERGE_BOUND_TAIL_BYTES <= TEST_BOUND_BYTES);
                if (n > longest) longest = n;
            }
        }
    }
    /* The longest case was among them: 127 digits of 3 bytes, 127 letters, NUL and flags. */
    assert_int_equal(longest, 127 * 3 + 127 + 3);
}

TEST(test_words_name_one_order_each)
{
    for (int order = SORT_COORDINATE; order <= SORT_SHUFFLE; order++) {
        const char *word = sort_order_word((enum sort_order)order);
        assert_int_equal(sort_order_of_word(word), order);
        assert_non_null(sort_order_name((enum sort_order)order));
        assert_non_null(sort_order_text((enum sort_order)order));
    }
    assert_int_equal(sort_order_of_word("queryname"), -1);
    assert_int_equal(sort_order_of_word(""), -1);
    assert_int_equal(sort_order_of_word(NULL), -1);
}

/* Text of letters that shares its beginning with others. */
static size_t put_long_tag(struct rng *rng, uint8_t *at, const char *tag)
{
    static const size_t lengths[] = {0, 3, 470, 511, 512, 513, 900};
    size_t n = lengths[rng_below(rng, sizeof lengths / sizeof *lengths)];
    memcpy(at, tag, 2);
    at[2] = 'Z';
    memset(at + 3, 'x', n);
    for (size_t i = rng_below(rng, 3); i > 0; i--)
        at[3 + n++] = (uint8_t)"x\x80/1"[rng_below(rng, 4)];
    at[3 + n] = 0;
    return 4 + n;
}

struct long_sample {            /* a record with long tags, and its key */
    uint8_t record[4000];
    struct keyed_record *keyed;
};

static void make_long_sample(struct rng *rng, const struct sort_rules *rules,
                             struct long_sample *sample)
{
    char name[TEST_MAX_NAME + 1];
    uint8_t tags[3000];
    const char *problem = NULL;
    struct record_fields f = {.name = name, .pos = (int32_t)rng_below(rng, 2),
                              .flag = rng_one_in(rng, 2) ? BAM_FREVERSE : 0};
    tricky_name(rng, name);
    if (!rng_one_in(rng, 8)) f.tag_bytes += put_long_tag(rng, tags + f.tag_bytes, "CB");
    if (!rng_one_in(rng, 2)) f.tag_bytes += put_long_tag(rng, tags + f.tag_bytes, "MI");
    size_t n = put_record(sample->record, &f, 0);
    memcpy(sample->record + n - f.tag_bytes, tags, f.tag_bytes);
    size_t key_bytes = sort_key_bytes(rules, sample->record, &problem);
    assert_null(problem);
    /* Nothing after the key may be written. */
    sample->keyed =
        test_alloc(offsetof(struct keyed_record, key) + (key_bytes < 4 ? 4 : key_bytes));
    sample->keyed->record = sample->record;
    sample->keyed->key_bytes = (uint32_t)sort_key_encode(rules, sample->record, sample->keyed->key);
    CHECK(rng, sample->keyed->key_bytes == key_bytes);
}

TEST(test_entries_and_bounds_of_long_keys_compare_alike)
{
    enum { N = 150 };
    struct rng rng = rng_start(26);
    OWNED_HEADER sam_hdr_t *header = sam_hdr_parse(3, "@HD");
    struct bam_key_template *template_ends = bam_key_template_create(header);
    static const enum sort_order below[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL};
    OWNED struct long_sample *samples = test_alloc(N * sizeof *samples);
    RELEASED(merge_bound_release) struct merge_bound bound = {0}, own = {0};
    for (int round = 0; round < 5; round++) {
        struct sort_rules rules = {.order = round < 4 ? SORT_TAG : SORT_TEMPLATE,
                                   .below = below[round % 3], .long_positions = round == 3,
                                   .tag = {'C', 'B'}, .template_ends = template_ends};
        for (size_t i = 0; i < N; i++) make_long_sample(&rng, &rules, &samples[i]);
        for (size_t i = 0; i < N * N; i++) {
            struct keyed_record *a = samples[i / N].keyed, *b = samples[i % N].keyed;
            size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
            int wanted = sign(memcmp(a->key, b->key, n), 0);
            const struct sort_entry entry = {0, a}, other = {0, b};
            const struct merge_source source = {&entry, 1, 5, 0}, before = {&other, 1, 4, 0};
            CHECK(&rng, sign(keyed_record_compare(a, b, 0), 0) == wanted);
            merge_bound_set(&bound, rules.order, &before, 0);
            merge_bound_set(&own, rules.order, &source, 0);
            CHECK(&rng, sign(merge_compare(&rules, &entry, &bound), 0) == wanted);
            CHECK(&rng, merge_cut(&rules, &source, &bound) == (wanted < 0));
            /* Of equal keys that of the earlier run comes first. */
            CHECK(&rng, sign(merge_bound_compare(&own, &bound), 0) == (wanted ? wanted : 1));
        }
        for (size_t i = 0; i < N; i++) free(samples[i].keyed);
    }
    bam_key_template_destroy(template_ends);
}
