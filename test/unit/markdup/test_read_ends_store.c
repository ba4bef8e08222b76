/* test_read_ends_store.c -- read ends that are encoded come back as they were. */
#include "unit_test.h"

#include "markdup/read_ends_store.h"

enum { N_ITEMS = 50, MOST_BARCODE = 255 };

static struct read_ends random_ends(struct rng *rng, uint32_t index, const char *name,
                                    const uint8_t *barcode)
{
    bool far = rng_one_in(rng, 8);
    struct read_ends ends = {
        .kind = (enum read_ends_kind)rng_below(rng, 4), .index = index,
        .ref = (int32_t)rng_below(rng, 3), .has_others = rng_one_in(rng, 2),
        .was_marked = rng_one_in(rng, 2), .failed_qc = rng_one_in(rng, 2), .ordinal = index};
    if (rng_one_in(rng, 3))
        ends.ordinal = (rng_one_in(rng, 2) ? rng_next(rng) : index + 1) & DUPLICATE_ORDINAL_MASK;
    if (rng_one_in(rng, 2)) {
        ends.name = (const uint8_t *)name;
        ends.name_bytes = (uint8_t)strlen(name);
    }
    if (rng_one_in(rng, 2)) ends.barcode = rng_next(rng);
    if (ends.barcode && rng_one_in(rng, 2)) {
        ends.barcode_text = barcode;
        ends.barcode_bytes = (uint8_t)(rng_one_in(rng, 3) ? MOST_BARCODE : 1 + rng_below(rng, 12));
    }
    if (ends.kind == READ_ENDS_OTHER) return ends;
    ends.pos = (int64_t)rng_below(rng, far ? (size_t)1 << 61 : 1000);
    ends.here = ends.pos + 1 - (int64_t)rng_below(rng, far ? 5000 : 2);
    ends.is_reverse = rng_one_in(rng, 2);
    ends.score = (int64_t)rng_below(rng, far ? SIZE_MAX >> 2 : 3000) - far;
    if (rng_one_in(rng, 2)) ends.group = (uint32_t)rng_next(rng);
    ends.other_place = ends.here + (rng_one_in(rng, 2) ? (int64_t)rng_below(rng, 5000) : 0);
    if (ends.kind == READ_ENDS_SINGLE) return ends;
    ends.mate_ref = (int32_t)rng_below(rng, 4) - 1;
    ends.there = (int64_t)rng_below(rng, far ? (size_t)1 << 61 : 1000);
    ends.orientation = (enum pair_orientation)rng_below(rng, 4);
    ends.is_left = rng_one_in(rng, 2);
    ends.lacks_score = rng_one_in(rng, 2);
    return ends;
}

/* Most names are fields of digits, with a few other characters. */
static void usual_name(struct rng *rng, char *name)
{
    static const char chars[] = "0123456789:0123456789:0123456789:0123456789:0123456789:._/-;?HX";
    size_t n = rng_below(rng, TEST_MAX_NAME);
    for (size_t i = 0; i < n; i++)
        name[i] = chars[rng_below(rng, i < n / 2 ? 22 : sizeof chars - 1)];
    name[n] = 0;
}

static bool same_text(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    if (!a || !b) return a == b;
    return a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0;
}

static void check_same(const struct rng *rng, const struct read_ends *got,
                       const struct read_ends *want)
{
    CHECK(rng, got->kind == want->kind && got->index == want->index && got->ref == want->ref);
    CHECK(rng, got->ordinal == want->ordinal);
    CHECK(rng, got->has_others == want->has_others && got->was_marked == want->was_marked);
    CHECK(rng, got->failed_qc == want->failed_qc && got->is_reverse == want->is_reverse);
    CHECK(rng, same_text(got->name, got->name_bytes, want->name, want->name_bytes));
    CHECK(rng, got->group == want->group && got->barcode == want->barcode);
    CHECK(rng, same_text(got->barcode_text, got->barcode_bytes, want->barcode_text,
                         want->barcode_bytes));
    if (want->kind == READ_ENDS_OTHER) return;
    CHECK(rng, got->pos == want->pos && got->here == want->here && got->score == want->score);
    if (want->kind == READ_ENDS_SINGLE || want->orientation == PAIR_FF ||
        want->orientation == PAIR_RR)
        CHECK(rng, got->other_place == want->other_place);
    if (want->kind == READ_ENDS_SINGLE) return;
    CHECK(rng, got->mate_ref == want->mate_ref && got->there == want->there);
    CHECK(rng, got->orientation == want->orientation && got->is_left == want->is_left);
    CHECK(rng, got->lacks_score == want->lacks_score);
}

TEST(test_encoded_ends_come_back)
{
    struct rng rng = rng_start(621);
    for (int i = 0; i < 2000; i++) {
        static char names[N_ITEMS][TEST_MAX_NAME + 1];
        uint8_t barcodes[N_ITEMS][MOST_BARCODE];
        struct read_ends all_ends[N_ITEMS], got;
        struct read_ends_coder encoder = {0}, decoder = {0};
        OWNED uint8_t *bytes =
            test_alloc(N_ITEMS * READ_ENDS_MAX_BYTES);
        uint8_t *end = bytes;
        uint32_t index = 0;
        for (size_t j = 0; j < N_ITEMS; j++) {
            if (rng_one_in(&rng, 2))
                tricky_name(&rng, names[j]);
            else
                usual_name(&rng, names[j]);
            if (j > 0 && rng_one_in(&rng, 3))   /* shares more */
                memcpy(names[j], names[j - 1], rng_below(&rng, strlen(names[j]) + 1));
            rng_fill(&rng, barcodes[j], MOST_BARCODE);
            /* read ends of several chunks may become one: then indexes also go back. */
            index += (uint32_t)rng_below(&rng, rng_one_in(&rng, 9) ? 1 << 20 : 2);
            if (rng_one_in(&rng, 20)) index = (uint32_t)rng_next(&rng);
            all_ends[j] = random_ends(&rng, index, names[j], barcodes[j]);
            uint8_t *begin = end;
            end = read_ends_encode(&encoder, &all_ends[j], end);
            CHECK(&rng, end - begin <= READ_ENDS_MAX_BYTES);
        }
        const uint8_t *at = bytes;
        for (size_t j = 0; j < N_ITEMS; j++) {
            read_ends_decode(&decoder, &at, &got);
            check_same(&rng, &got, &all_ends[j]);
        }
        CHECK(&rng, at == end);
    }
}
