/*
 * test_bam_sort_key.c -- keys against plain comparisons of records, which are written here from the
 * rules; what each order does to the header; and the names of orders.
 */
#include "child.h"
#include "test_rules.h"
#include "unit_test.h"

#include "bam_sort_key.h"
#include "order/slice_merge.h"

enum { N_RECORDS = 700, MAX_RECORD = 400 };

static const enum sort_order all_orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL,
                                             SORT_NAME_LEXICAL};

struct sample {                 /* a record, and the fields that it was made from */
    struct record_fields fields;
    char name[TEST_MAX_NAME + 1];
    uint8_t record[MAX_RECORD];
    uint8_t key[2 * MAX_RECORD];
    size_t key_bytes;
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Runs of digits compare by value, without leading zeros; all else by unsigned bytes. The shorter
   name comes first. */
static int compare_natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (!digit(*a) || !digit(*b)) {
            if (*a != *b) return sign((unsigned char)*a, (unsigned char)*b);
            a++;
            b++;
            continue;
        }
        size_t n_a = 0, n_b = 0;
        while (*a == '0') a++;
        while (*b == '0') b++;
        while (digit(a[n_a])) n_a++;
        while (digit(b[n_b])) n_b++;
        if (n_a != n_b) return sign((long long)n_a, (long long)n_b);
        for (; n_a > 0; n_a--, a++, b++)
            if (*a != *b) return sign(*a, *b);
    }
    return sign(*a != '\0', *b != '\0');
}

/* Neither, READ1, READ2, both. */
static int read_rank(uint32_t flag)
{
    return ((flag & BAM_FREAD1) ? 1 : 0) + ((flag & BAM_FREAD2) ? 2 : 0);
}

/* Primary, supplementary, secondary, both. */
static int kind_rank(uint32_t flag)
{
    return ((flag & BAM_FSUPPLEMENTARY) ? 1 : 0) + ((flag & BAM_FSECONDARY) ? 2 : 0);
}

static int compare_coordinate(const struct record_fields *a, const struct record_fields *b)
{
    if (a->tid != b->tid) {
        if (a->tid == -1) return 1;
        if (b->tid == -1) return -1;
        return sign(a->tid, b->tid);
    }
    if (a->pos != b->pos) return sign(a->pos, b->pos);
    return sign((a->flag & BAM_FREVERSE) != 0, (b->flag & BAM_FREVERSE) != 0);
}

static int compare_by_rules(enum sort_order order, const struct record_fields *a,
                            const struct record_fields *b)
{
    if (order == SORT_COORDINATE) return compare_coordinate(a, b);
    int c = order == SORT_NAME_NATURAL ? compare_natural(a->name, b->name)
                                       : sign(strcmp(a->name, b->name), 0);
    if (c) return c;
    c = sign(read_rank(a->flag), read_rank(b->flag));
    if (c) return c;
    return sign(kind_rank(a->flag), kind_rank(b->flag));
}

static struct sample *make_samples(struct rng *rng, size_t n)
{
    struct sample *samples = test_alloc(n * sizeof *samples);
    for (size_t i = 0; i < n; i++) {
        struct sample *s = &samples[i];
        tricky_name(rng, s->name);
        s->fields = (struct record_fields){.name = s->name, .flag = random_flag(rng)};
        random_place(rng, rng_one_in(rng, 4) ? INT32_MAX : 3, &s->fields);
        /* The same name or place with other flags: ties must be as frequent as near misses. */
        if (i > 0 && rng_one_in(rng, 4)) {
            const struct sample *other = &samples[rng_below(rng, i)];
            memcpy(s->name, other->name, sizeof s->name);
            s->fields.tid = other->fields.tid;
            s->fields.pos = other->fields.pos;
        }
        size_t size = put_record(s->record, &s->fields, 0);
        CHECK(rng, size <= sizeof s->record);
    }
    return samples;
}

static void encode_sample(struct rng *rng, enum sort_order order, struct sample *s)
{
    const uint8_t canary = 0xa5;
    if (sort_order_is_fixed(order)) {
        uint64_t key = sort_key_coordinate(s->record);
        sort_key_store_fixed(key, s->key);
        s->key_bytes = SORT_KEY_FIXED_BYTES;
        CHECK(rng, sort_key_load_fixed(s->key) == key);
        return;
    }
    s->key_bytes = test_key_bytes(order, s->record);
    CHECK(rng, s->key_bytes < sizeof s->key);
    memset(s->key, canary, sizeof s->key);
    CHECK(rng, test_key_encode(order, s->record, s->key) == s->key_bytes);
    for (size_t i = s->key_bytes; i < sizeof s->key; i++) CHECK(rng, s->key[i] == canary);
}

TEST(test_keys_order_as_rules_say)
{
    struct rng rng = rng_start(1);
    OWNED struct sample *samples = make_samples(&rng, N_RECORDS);
    for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
        enum sort_order order = all_orders[o];
        size_t n_ties = 0;
        for (size_t i = 0; i < N_RECORDS; i++) encode_sample(&rng, order, &samples[i]);
        for (size_t i = 0; i < N_RECORDS; i++) {
            for (size_t k = 0; k < N_RECORDS; k++) {
                const struct sample *a = &samples[i], *b = &samples[k];
                size_t n = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
                int by_key = sign(memcmp(a->key, b->key, n), 0);
                int by_rules = compare_by_rules(order, &a->fields, &b->fields);
                if (by_key != by_rules)
                    print_error("order %d: '%s' flag %u place %d:%d, '%s' flag %u place %d:%d\n",
                                (int)order, a->name, a->fields.flag, a->fields.tid, a->fields.pos,
                                b->name, b->fields.flag, b->fields.tid, b->fields.pos);
                CHECK(&rng, by_key == by_rules);
                /* Prefix-free: if the shorter key is the beginning of the other, they are equal. */
                if (by_key == 0) CHECK(&rng, a->key_bytes == b->key_bytes);
                n_ties += by_key == 0 && i != k;
            }
        }
        CHECK(&rng, n_ties > 0);
    }
}

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
            for (size_t o = 1; o < sizeof all_orders / sizeof *all_orders; o++) {
                size_t n = test_key_bytes(all_orders[o], record);
                CHECK(&rng, n + MERGE_BOUND_TAIL_BYTES <= TEST_BOUND_BYTES);
                if (n > longest) longest = n;
            }
        }
    }
    /* The longest case was among them: 127 digits of 3 bytes, 127 letters, NUL and flags. */
    assert_int_equal(longest, 127 * 3 + 127 + 3);
}

struct header_case {
    const char *before;
    const char *after[3];       /* of all_orders */
};

#define SQ "@SQ\tSN:c1\tLN:100\n"
#define REST SQ "@RG\tID:r\tSM:s\n@CO\ta comment\n"

static const struct header_case header_cases[] = {
    {"",
     {"@HD\tVN:1.6\tSO:coordinate\n", "@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n",
      "@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical\n"}},
    {REST,
     {"@HD\tVN:1.6\tSO:coordinate\n" REST,
      "@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n" REST,
      "@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical\n" REST}},
    {"@HD\tVN:1.5\n" REST,
     {"@HD\tVN:1.5\tSO:coordinate\n" REST,
      "@HD\tVN:1.5\tSO:queryname\tSS:queryname:natural\n" REST,
      "@HD\tVN:1.5\tSO:queryname\tSS:queryname:lexicographical\n" REST}},
    {"@HD\tVN:1.4\tSO:unsorted\tGO:query\n" REST,
     {"@HD\tVN:1.4\tSO:coordinate\n" REST,
      "@HD\tVN:1.4\tSO:queryname\tSS:queryname:natural\n" REST,
      "@HD\tVN:1.4\tSO:queryname\tSS:queryname:lexicographical\n" REST}},
    {"@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical\n" REST,
     {"@HD\tVN:1.6\tSO:coordinate\n" REST,
      "@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n" REST,
      "@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical\n" REST}},
    {"@HD\tVN:1.6\tGO:reference\tSS:coordinate:minhash\tSO:coordinate\n" REST,
     {"@HD\tVN:1.6\tSO:coordinate\n" REST,
      "@HD\tVN:1.6\tSS:queryname:natural\tSO:queryname\n" REST,
      "@HD\tVN:1.6\tSS:queryname:lexicographical\tSO:queryname\n" REST}},
};

TEST(test_header_says_the_order)
{
    for (size_t i = 0; i < sizeof header_cases / sizeof *header_cases; i++) {
        for (size_t o = 0; o < sizeof all_orders / sizeof *all_orders; o++) {
            const char *before = header_cases[i].before;
            OWNED_HEADER sam_hdr_t *header = parse_header(before);
            assert_int_equal(sort_rules_update_header(test_rules(all_orders[o]), true, header), 0);
            assert_string_equal(sam_hdr_str(header), header_cases[i].after[o]);
            /* A second time changes nothing. */
            assert_int_equal(sort_rules_update_header(test_rules(all_orders[o]), true, header), 0);
            assert_string_equal(sam_hdr_str(header), header_cases[i].after[o]);
        }
    }
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
    sample->keyed = test_alloc(offsetof(struct keyed_record, key) + (key_bytes < 4 ? 4 : key_bytes));
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
