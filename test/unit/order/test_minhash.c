/*
 * test_minhash.c -- the minimiser order: examples with the answers of samtools 1.24, and what
 * random reads do not show. test/differential.py compares random reads with samtools, with and
 * without an index.
 */
#include "unit_test.h"

#include "bam/bam_check.h"
#include "bam_sort_key.h"
#include "order/minhash.h"

#include <unistd.h>

enum { MAX_BASES = 40 };

static const char alphabet[] = "=ACMGRSVTWYHKDBN";

struct sample {
    struct record_fields fields;
    char bases[MAX_BASES + 1];
};

/* Writes the sample as a record in memory of just its size. */
static uint8_t *make_record(const struct sample *s)
{
    size_t n = (size_t)s->fields.l_seq, bytes = record_size(&s->fields);
    uint8_t *rec = test_alloc(bytes);
    (void)put_record(rec, &s->fields, 0);
    uint8_t *seq = rec + bytes - n - (n + 1) / 2;
    for (size_t i = 0; i < n; i++) {
        size_t code = (size_t)(strchr(alphabet, s->bases[i]) - alphabet);
        seq[i / 2] |= (uint8_t)(i % 2 == 0 ? code << 4 : code);
    }
    return rec;
}

static struct minhash_index *load_index(struct rng *rng, const char *bases,
                                        const struct minhash_settings *set, int window)
{
    char path[] = "/tmp/rocksort-test-minhash-XXXXXX";
    int file = mkstemp(path);
    CHECK(rng, file >= 0);
    CHECK(rng, dprintf(file, ">a\n%s\n", bases) > 0);
    CHECK(rng, close(file) == 0);
    struct minhash_index *index = minhash_index_load(path, set->k, window, set->squeeze);
    CHECK(rng, index != NULL);
    CHECK(rng, unlink(path) == 0);
    return index;
}

/* The values of the greatest k-mers of 31 bases wrap around, so these come first, as in
   samtools. */
TEST(test_values_of_the_greatest_kmers_wrap_around)
{
    struct rng rng = rng_start(2);
    const uint64_t constant = UINT64_C(0xdead7878beef7878), top = UINT64_C(1) << 62;
    struct minhash_settings set = {.k = 31, .forward_only = true};
    for (int i = 0; i < 100; i++) {
        struct sample sample = {.fields = {.name = "r", .tid = -1, .l_seq = 31}};
        /* All ones above the last 2 * (i % 31) bits. */
        uint64_t kmer = UINT64_MAX - (rng_next(&rng) & ((UINT64_C(1) << 2 * (i % 31)) - 1));
        for (int j = 0; j < 31; j++)
            sample.bases[j] = "ACGT"[(kmer ^ constant) >> 2 * (30 - j) & 3];
        OWNED uint8_t *rec = make_record(&sample);
        struct minhash_value value;
        minhash_apply(&set, rec, &value);
        CHECK(&rng, value.value == (kmer % top + (1 << 30)) % top && value.lead == 65535);
    }
}

TEST(test_distance_of_a_minimiser_has_16_bits)
{
    static const size_t distances[] = {0, 1, 65533, 65534, 65535, 65536, 69996};
    const size_t n = 70000;
    struct minhash_settings set = {.k = 4, .forward_only = true};
    struct record_fields fields = {.name = "r", .tid = -1, .pos = -1, .l_seq = (int32_t)n};
    OWNED uint8_t *rec = test_alloc(record_size(&fields));
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        (void)put_record(rec, &fields, 0x11);
        uint8_t *seq = rec + 36 + 2;
        for (size_t j = 0; j < 4; j++) {
            size_t at = distances[i] + j;
            seq[at / 2] &= at % 2 == 0 ? 0x0f : 0xf0;
            seq[at / 2] |= (uint8_t)("\x02\x08\x04\x01"[j] << (at % 2 == 0 ? 4 : 0));
        }
        struct minhash_value value;
        minhash_apply(&set, rec, &value);
        assert_int_equal(value.value, 1 << 30);
        assert_int_equal(value.lead, distances[i] < 65535 ? 65535 - distances[i] : 0);
    }
}

enum { N_READS = 12 };

static const char golden_reference[] =
    "TGTCCGGCGGGATCCATTAGGGCTTGGGCCCAAGGGTTTACTCGGCTTTGTCCCCACCCCCCCCGGTTCGGGGGAACTCGTAAAACAAACTTT"
    "CAAAAAAAAAACCCGAAACCCCTTGGTTTTTTCCTCTAATCCCTTTTTTAAGGGGGCCCAAACGGGCTTTTTGAATATGACAAAAAGGCAAAA"
    "TTTTTCGGGAATGGGCGTTGCCATGGCGGGCCCGCCCTCCGTCTTTGAAAGGGGCCCTAAAGTTTACGTCTGGG";

static const char *const golden_reads[N_READS] = {
    "GATCCATTNGGGCTTGGGCCCAAGGGTTTACTCGGC",
    "CCCGAAAAATTTTGCCTTTTTGTCATATTCAAAAAG",
    "TTTTTAAGGGGGCCCAAACGGGCTTTTTGAATATGA",
    "CNTTTCAAAGACGGAGGGCGGGCCCGCCATGGCAAC",
    "TTCGGGGGAACTCGTAAAACAAACTTTCAAAAAAAA",
    "AAAAACCAAGGGGTTTCGGGTTTTTTTTTTGAAAGT",
    "ACTTTCAAANAAAAAACCCGAAACCCCTTGGTTTTT",
    "AAAGCCGAGTAAACCCTTGGGCCCAAGCCCTAATGG",
    "ACGTACG",
    "AAAAAAAAAAAAAAAAAAAA",
    "",
    "ACACACACACACACACAC",
};

static const struct {
    struct minhash_settings settings;
    int window;                 /* 0: without an index */
    int order[N_READS];         /* numbers of the reads from 1, negative if turned */
} golden_orders[] = {
    {{.k = 10}, 0, {9, 11, 6, -7, 5, -3, 4, -8, 1, -2, -10, -12}},
    {{.k = 10, .forward_only = true}, 0, {9, 11, 6, 5, 7, 4, 1, 3, 2, 8, 12, 10}},
    {{.k = 10, .squeeze = true}, 0, {9, 10, 11, 2, -4, -1, 8, -5, -12, -3, -6, 7}},
    {{.k = 10}, 100, {9, 11, 5, 6, -7, -3, 4, 1, -8, -2, -10, -12}},
    {{.k = 10, .squeeze = true}, 100, {9, 10, 11, 1, -8, -4, 2, -5, -12, -3, -6, 7}},
    {{.k = 5}, 20, {11, 9, 12, 5, 7, -6, 10, 3, -2, 8, -1, 4}},
};

TEST(test_orders_of_samtools)
{
    struct rng rng = rng_start(3);
    for (size_t o = 0; o < sizeof golden_orders / sizeof *golden_orders; o++) {
        struct minhash_settings set = golden_orders[o].settings;
        struct minhash_index *index = NULL;
        if (golden_orders[o].window)
            index = load_index(&rng, golden_reference, &set, golden_orders[o].window);
        set.index = index;
        uint8_t before[MINHASH_KEY_BYTES];
        for (size_t i = 0; i < N_READS; i++) {
            int number = golden_orders[o].order[i];
            const char *bases = golden_reads[abs(number) - 1];
            struct sample sample = {
                .fields = {.name = "r", .tid = -1, .flag = 4, .l_seq = (int32_t)strlen(bases)}};
            strcpy(sample.bases, bases);
            uint8_t *rec = make_record(&sample), key[MINHASH_KEY_BYTES];
            struct minhash_value value;
            minhash_apply(&set, rec, &value);
            assert_int_equal(minhash_key_encode(&value, rec, key), sizeof key);
            assert_int_equal(bam_record_flag(rec), number < 0 ? 0x14 : 4);
            if (i > 0) assert_true(memcmp(before, key, sizeof key) <= 0);
            memcpy(before, key, sizeof key);
            free(rec);
        }
        minhash_index_destroy(index);
    }
}

/* Bases, in all numbers, by the complements of samtools, and qualities. */
TEST(test_turned_reads_are_reversed_and_complemented)
{
    static const char complements[] = "NTGKCYSBAWYDMHVN";
    struct rng rng = rng_start(5);
    struct minhash_settings set = {.k = 4};
    size_t n_turned[2] = {0, 0};
    for (size_t i = 0; i < 400; i++) {
        size_t n = 1 + i % MAX_BASES;
        struct sample sample = {.fields = {.name = "r", .tid = -1, .l_seq = (int32_t)n}};
        name_of_letters(&rng, sample.bases, n, alphabet);
        OWNED uint8_t *rec = make_record(&sample);
        uint8_t *quals = rec + record_size(&sample.fields) - n;
        for (size_t k = 0; k < n; k++) quals[k] = (uint8_t)k;
        struct minhash_value value;
        minhash_apply(&set, rec, &value);
        bool turned = bam_record_flag(rec) & BAM_FREVERSE;
        n_turned[(n + 1) / 2 % 2] += turned;
        for (size_t k = 0; k < n; k++) {
            size_t from = turned ? n - 1 - k : k;
            size_t code = (size_t)(strchr(alphabet, sample.bases[from]) - alphabet);
            CHECK(&rng, quals[k] == from);
            CHECK(&rng, seq_nt16_str[bam_seqi(bam_record_seq(rec), k)] ==
                            (turned ? complements[code] : alphabet[code]));
        }
    }
    CHECK(&rng, n_turned[0] > 50 && n_turned[1] > 50);
}

/* Of equal minimisers the first one counts. */
TEST(test_first_of_equal_minimisers_counts)
{
    struct sample sample = {.fields = {.name = "r", .tid = -1, .l_seq = 14}};
    strcpy(sample.bases, "AACTGAAAACTGAA");
    OWNED uint8_t *rec = make_record(&sample);
    struct minhash_settings set = {.k = 4, .forward_only = true};
    struct minhash_value value;
    minhash_apply(&set, rec, &value);
    assert_int_equal(value.lead, 65535 - 2);
}
