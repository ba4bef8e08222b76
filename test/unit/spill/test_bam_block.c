/*
 * test_bam_block.c -- the format of temporary blocks: what is written is read, and all damage is
 * found. Values are in memory of exactly their size, so that AddressSanitizer sees a read past
 * their end.
 */
#include "test_rules.h"
#include "unit_test.h"

#include "order/slice_merge.h"
#include "spill/bam_block.h"
#include "util/byte_order.h"

struct block_case {
    enum temp_codec codec;
    bool compressible;
    size_t raw_bytes;
    size_t last_bound_bytes;
    bool has_ordinals;
};

struct made_block {
    uint8_t *raw, *ordinals;    /* ordinals: or NULL */
    uint8_t last_bound[MERGE_BOUND_MOST_BYTES];
    size_t last_bound_bytes;
    uint8_t *value;             /* exactly value_bytes */
    size_t value_bytes;
    uint32_t n_records;
};

static struct made_block make_block(struct rng *rng, const struct block_case *c)
{
    struct made_block made = {.ordinals = NULL};
    RELEASED(temp_coder_release) struct temp_coder coder = {0};
    size_t room = bam_block_bound(c->codec, c->raw_bytes, c->last_bound_bytes);
    made.n_records = 1 + (uint32_t)rng_below(rng, c->raw_bytes / BAM_RECORD_MIN_BYTES);
    if (c->has_ordinals) {
        size_t ordinals_bytes = (size_t)BAM_BLOCK_ORDINAL_BYTES * made.n_records;
        made.ordinals = test_alloc(ordinals_bytes);
        rng_fill(rng, made.ordinals, ordinals_bytes);
        room += ordinals_bytes;
    }
    OWNED uint8_t *out = test_alloc(room);
    made.raw = test_alloc(c->raw_bytes);
    if (c->compressible)
        rng_fill_compressible(rng, made.raw, c->raw_bytes);
    else
        rng_fill(rng, made.raw, c->raw_bytes);
    made.last_bound_bytes = made.n_records > 1 ? c->last_bound_bytes : 0;
    rng_fill(rng, made.last_bound, c->last_bound_bytes);
    const struct bam_block content = {c->codec, made.n_records, c->raw_bytes, made.last_bound,
                                      made.last_bound_bytes, made.ordinals, .payload = made.raw};
    ssize_t size = bam_block_encode(&coder, &content, out);
    CHECK(rng, size > 0 && (size_t)size <= room);
    made.value_bytes = (size_t)size;
    made.value = test_alloc(made.value_bytes);
    memcpy(made.value, out, made.value_bytes);
    return made;
}

static void release_block(struct made_block *made)
{
    free(made->raw);
    free(made->ordinals);
    free(made->value);
}

static void check_round_trip(struct rng *rng, const struct block_case *c)
{
    struct bam_block block;
    RELEASED(temp_coder_release) struct temp_coder coder = {0};
    RELEASED(release_block) struct made_block made = make_block(rng, c);
    CHECK(rng, bam_block_verify(made.value, made.value_bytes));
    CHECK(rng, bam_block_parse(made.value, made.value_bytes, &block) == 0);
    CHECK(rng, block.codec == c->codec && block.n_records == made.n_records);
    CHECK(rng, block.raw_bytes == c->raw_bytes);
    CHECK(rng, block.last_bound_bytes == made.last_bound_bytes);
    CHECK(rng, memcmp(block.last_bound, made.last_bound, made.last_bound_bytes) == 0);
    CHECK(rng, block.payload + block.payload_bytes == made.value + made.value_bytes);
    CHECK(rng, (block.ordinals != NULL) == c->has_ordinals);
    for (uint32_t i = 0; i < made.n_records && c->has_ordinals; i++) {
        uint8_t ordinal[BAM_BLOCK_ORDINAL_BYTES];
        bam_block_put_ordinal(ordinal, bam_block_ordinal(block.ordinals, i));
        CHECK(rng, memcmp(ordinal, made.ordinals + sizeof ordinal * i, sizeof ordinal) == 0);
    }
    OWNED uint8_t *back = test_alloc(c->raw_bytes);
    CHECK(rng, temp_codec_decompress(&coder, block.codec, block.payload, block.payload_bytes, back,
                                     c->raw_bytes) == 0);
    CHECK(rng, memcmp(back, made.raw, c->raw_bytes) == 0);
}

TEST(test_block_that_is_written_is_read)
{
    static const size_t raw_sizes[] = {37, 38, 1000, 65536, 262144 + 77, 3000000};
    static const size_t bound_sizes[] = {13, 20, 100, MERGE_BOUND_MOST_BYTES};
    struct rng rng = rng_start(51);
    struct block_case c;
    for (int codec = 0; codec < TEMP_CODEC_COUNT; codec++)
        for (size_t r = 0; r < sizeof raw_sizes / sizeof *raw_sizes; r++)
            for (size_t b = 0; b < sizeof bound_sizes / sizeof *bound_sizes; b++)
                for (int kind = 0; kind < 4; kind++) {
                    c = (struct block_case){(enum temp_codec)codec, kind % 2 == 1, raw_sizes[r],
                                            bound_sizes[b], kind / 2 == 1};
                    check_round_trip(&rng, &c);
                }
}

static void check_flips(struct rng *rng, const struct made_block *made, size_t at, unsigned flip)
{
    struct bam_block block;
    made->value[at] ^= (uint8_t)flip;
    CHECK(rng, !bam_block_verify(made->value, made->value_bytes));
    /* Parsing may accept the value or not, but must read only within it. */
    if (bam_block_parse(made->value, made->value_bytes, &block) == 0) {
        CHECK(rng, block.last_bound == made->value + BAM_BLOCK_HEADER_BYTES);
        const uint8_t *end = block.last_bound + block.last_bound_bytes;
        CHECK(rng, !block.ordinals || block.ordinals == end);
        if (block.ordinals) end += (size_t)BAM_BLOCK_ORDINAL_BYTES * block.n_records;
        CHECK(rng, block.payload == end);
        CHECK(rng, block.payload + block.payload_bytes == made->value + made->value_bytes);
        CHECK(rng, block.n_records > 0 && block.codec < TEMP_CODEC_COUNT);
    }
    made->value[at] ^= (uint8_t)flip;
}

TEST(test_every_flipped_byte_is_detected)
{
    struct rng rng = rng_start(53);
    for (int codec = 0; codec < TEMP_CODEC_COUNT; codec++) {
        /* Small blocks: every change of every byte. Large blocks: one change of every byte. */
        const struct block_case small = {(enum temp_codec)codec, true, 200, 21, codec == 1};
        const struct block_case large = {(enum temp_codec)codec, true, 6000, 200, codec != 1};
        RELEASED(release_block) struct made_block made = make_block(&rng, &small);
        for (size_t i = 0; i < made.value_bytes; i++)
            for (unsigned flip = 1; flip < 256; flip++) check_flips(&rng, &made, i, flip);
        CHECK(&rng, bam_block_verify(made.value, made.value_bytes));
        RELEASED(release_block) struct made_block more = make_block(&rng, &large);
        for (size_t i = 0; i < more.value_bytes; i++)
            check_flips(&rng, &more, i, 1 + (unsigned)rng_below(&rng, 255));
    }
}

TEST(test_truncation_to_every_length_is_detected)
{
    struct rng rng = rng_start(54);
    for (int codec = 0; codec < TEMP_CODEC_COUNT; codec++) {
        const struct block_case c = {(enum temp_codec)codec, true, 1500, 300, codec != 1};
            struct bam_block block;
        RELEASED(release_block) struct made_block made = make_block(&rng, &c);
        for (size_t n = 0; n < made.value_bytes; n++) {
            OWNED uint8_t *exact = test_alloc(n);
            memcpy(exact, made.value, n);
            CHECK(&rng, !bam_block_verify(exact, n));
            CHECK(&rng, bam_block_parse(exact, n, &block) == -1);
        }
        /* One byte more. */
        OWNED uint8_t *longer = test_alloc(made.value_bytes + 1);
        memcpy(longer, made.value, made.value_bytes);
        longer[made.value_bytes] = 0;
        CHECK(&rng, !bam_block_verify(longer, made.value_bytes + 1));
        CHECK(&rng, bam_block_parse(longer, made.value_bytes + 1, &block) == -1);
    }
}

/* Parsing comes before verifying, so it must itself refuse lengths that do not fit. */
TEST(test_lying_headers_are_refused)
{
    struct rng rng = rng_start(55);
    const struct block_case c = {TEMP_CODEC_LZ4, true, 3000, MERGE_BOUND_MOST_BYTES, false};
    struct bam_block block;
    RELEASED(release_block) struct made_block made = make_block(&rng, &c);
    const struct {
        size_t at, n_bytes;
        uint32_t value;
    } lies[] = {
        {8, 1, 'r'}, {9, 1, 0}, {10, 1, 'b'}, {11, 1, 0}, {11, 1, 1},   /* magic, version */
        {11, 1, 4}, {11, 1, 5},                         /* ordinals that are not there */
        {12, 4, TEMP_CODEC_COUNT}, {12, 1, 255}, {13, 1, 1},            /* codec */
        {16, 4, 0}, {16, 4, 1},                                         /* number of records */
        {20, 4, 0}, {20, 4, MERGE_BOUND_TAIL_BYTES},                    /* size of the bound */
        {20, 4, MERGE_BOUND_MOST_BYTES - 1},
        {20, 4, MERGE_BOUND_MOST_BYTES + 1},
        {20, 4, UINT32_MAX},
        {32, 1, 0}, {36, 1, 1}, {39, 1, 255},           /* size of the payload */
    };
    OWNED uint8_t *changed = test_alloc(made.value_bytes);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(changed, made.value, made.value_bytes);
        for (size_t k = 0; k < lies[i].n_bytes; k++)
            changed[lies[i].at + k] = (uint8_t)(lies[i].value >> (8 * k));
        if (bam_block_parse(changed, made.value_bytes, &block) != -1)
            fail_msg("byte %zu = %u was believed", lies[i].at, lies[i].value);
    }
    /* A bound that does not end within the value. */
    size_t n = BAM_BLOCK_HEADER_BYTES + 100;
    OWNED uint8_t *exact = test_alloc(n);
    memcpy(exact, made.value, n);
    test_put_u32(exact + 32, 0);
    test_put_u32(exact + 20, 101);
    assert_int_equal(bam_block_parse(exact, n, &block), -1);
    exact[20] = 100;
    assert_int_equal(bam_block_parse(exact, n, &block), 0);
    assert_int_equal(block.payload_bytes, 0);
}

/* The size of a value is known from its first part; the keys of parts come right after the key of
   their block, in their order. */
TEST(test_parts_follow_their_block_in_order)
{
    struct rng rng = rng_start(57);
    for (int round = 0; round < 300; round++) {
        const struct block_case c = {(enum temp_codec)rng_below(&rng, TEMP_CODEC_COUNT),
                                     rng_one_in(&rng, 2), 37 + rng_below(&rng, 20000),
                                     13 + rng_below(&rng, TEST_BOUND_BYTES - 12),
                                     rng_one_in(&rng, 2)};
            RELEASED(release_block) struct made_block made = make_block(&rng, &c);
        size_t ordinary = bam_block_part_bytes(c.raw_bytes, 20, 0);
        CHECK(&rng, made.value_bytes <= ordinary);      /* one part */
        for (size_t n = BAM_BLOCK_HEADER_BYTES; n <= made.value_bytes; n += 1 + n / 2)
            CHECK(&rng, bam_block_value_bytes(made.value, n) == made.value_bytes);
        CHECK(&rng, bam_block_value_bytes(made.value, BAM_BLOCK_HEADER_BYTES - 1) == 0);
    }
    /* A megabyte in a run of small blocks: each part is found by its key. */
    assert_true(bam_block_part_bytes(1024, 20, 0) < 16 << 10);
    assert_true(bam_block_part_bytes(1024, 20, 1) >= 1 << 18);
    assert_true(bam_block_part_bytes(1024, 20, 4) >= 1 << 18);
    assert_true(bam_block_part_bytes(1 << 20, 20, 1) >= 1 << 20);
    /* A record with a long key, which each part would have. */
    assert_true(bam_block_part_bytes(1024, 50000, 0) >= 100000);
    uint8_t key[MERGE_BOUND_MOST_BYTES + 1], parts[2][BAM_BLOCK_PART_KEY_BYTES];
    for (size_t n = 13; n <= MERGE_BOUND_MOST_BYTES; n += 1 + n / 20) {
        rng_fill(&rng, key, n);
        uint32_t number = 1 + (uint32_t)rng_below(&rng, 1000);
        size_t n_part = bam_block_part_key(key, n, number, parts[0]);
        CHECK(&rng, bam_block_part_key(key, n, number + 1, parts[1]) == n_part);
        CHECK(&rng, memcmp(parts[0], key, n) == 0);
        CHECK(&rng, memcmp(parts[0], parts[1], n_part) < 0);
        CHECK(&rng, bam_block_is_part(parts[0], n_part, key, n));
        CHECK(&rng, !bam_block_is_part(key, n, key, n));
        parts[0][rng_below(&rng, n)] ^= 1;
        CHECK(&rng, !bam_block_is_part(parts[0], n_part, key, n));
    }
}

/* Counts and sizes that no block can have are refused before memory is taken for them. A payload of
   8 GB was once believed, whatever the size of the records. */
TEST(test_implausible_sizes_are_refused)
{
    const struct {
        uint32_t n_records;
        uint64_t raw_bytes;
        bool plausible;
    } cases[] = {
        {1, 37, true}, {1, 36, false}, {2, 74, true}, {2, 73, false}, {1, UINT32_MAX, true},
        {1, (uint64_t)UINT32_MAX + 1, false}, {1, UINT64_MAX, false}, {UINT32_MAX, 1000, false},
    };
    uint8_t head[BAM_BLOCK_HEADER_BYTES] = "--------RSB\3";
    for (uint32_t codec = 0; codec < TEMP_CODEC_COUNT; codec++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            size_t raw_bytes = cases[i].plausible ? cases[i].raw_bytes : 1000;
            size_t bound_bytes = cases[i].n_records == 1 ? 0 : 20;
            size_t most = temp_codec_bound((enum temp_codec)codec, raw_bytes);
            const size_t payloads[] = {0, most, most + 1, ((size_t)1 << 33) - 1, SIZE_MAX - 1000};
            for (size_t k = 0; k < sizeof payloads / sizeof *payloads; k++) {
                test_put_u32(head + 12, codec);
                test_put_u32(head + 16, cases[i].n_records);
                test_put_u32(head + 20, (uint32_t)bound_bytes);
                test_put_u32(head + 24, (uint32_t)cases[i].raw_bytes);
                test_put_u32(head + 28, (uint32_t)(cases[i].raw_bytes >> 32));
                test_put_u32(head + 32, (uint32_t)payloads[k]);
                test_put_u32(head + 36, (uint32_t)(payloads[k] >> 32));
                size_t wanted = sizeof head + bound_bytes + payloads[k];
                if (!cases[i].plausible || k >= 2) wanted = 0;
                assert_true(bam_block_value_bytes(head, sizeof head) == wanted);
            }
        }
    }
}

enum { N_REFS = 3 };

/* Unpacks a block whose payload is `raw`. Returns the bytes of its keyed_records, or -1. */
static ssize_t measure(const struct sort_rules *rules, struct bam_block block, const uint8_t *raw)
{
    size_t keyed_bytes;
    struct temp_coder coder = {0};
    block.codec = TEMP_CODEC_NONE;
    block.payload = raw;
    block.payload_bytes = block.raw_bytes;
    OWNED uint8_t *copy = bam_block_unpack(&block, rules, N_REFS, &coder, &keyed_bytes);
    if (copy) assert_memory_equal(copy, raw, block.raw_bytes);
    return copy ? (ssize_t)keyed_bytes : -1;
}

TEST(test_records_are_measured_and_checked)
{
    enum { N = 5 };
    struct rng rng = rng_start(56);
    char name[TEST_MAX_NAME + 1];
    uint8_t raw[N * 400];
    size_t starts[N + 1] = {0}, keyed_bytes = 0;
    const struct sort_rules *by_name = test_rules(SORT_NAME_NATURAL);
    for (size_t i = 0; i < N; i++) {
        tricky_name(&rng, name);
        struct record_fields f = {.name = name, .tid = 0, .pos = 5, .l_seq = 20};
        starts[i + 1] = starts[i] + put_record(raw + starts[i], &f, 0);
        keyed_bytes += keyed_record_bytes(test_key_bytes(SORT_NAME_NATURAL, raw + starts[i]));
    }
    struct bam_block block = {.n_records = N, .raw_bytes = starts[N]};
    assert_int_equal(measure(by_name, block, raw), keyed_bytes);
    assert_int_equal(measure(test_rules(SORT_COORDINATE), block, raw), 0);
    for (block.n_records = 0; block.n_records < 2 * N; block.n_records++)
        if (block.n_records != N)
            assert_int_equal(measure(by_name, block, raw), -1);
    block.n_records = N;
    for (block.raw_bytes = 0; block.raw_bytes < starts[N]; block.raw_bytes++)
        assert_int_equal(measure(by_name, block, raw), -1);
    /* Whatever is damaged, nothing is read past the end of the memory. */
    block.raw_bytes = starts[N];
    OWNED uint8_t *damaged = test_alloc(starts[N]);
    for (int round = 0; round < 20000; round++) {
        memcpy(damaged, raw, starts[N]);
        size_t at = starts[rng_below(&rng, N)] + rng_below(&rng, 36);
        damaged[at] = (uint8_t)rng_next(&rng);
        (void)measure(by_name, block, damaged);
    }
}
