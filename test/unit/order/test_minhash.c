/*
 * test_minhash.c -- the minimiser order against strings: every record is made from text. What it
 * should become is worked out on the text, and both are compared byte for byte.
 *
 * k-mers are compared here as text of the letters "0123", which is scrambled letter by letter. Only
 * the constant is the same as in the program.
 */
#include "unit_test.h"

#include "bam_sort_key.h"
#include "bam/bam_check.h"
#include "order/minhash.h"

#include <unistd.h>

enum { MAX_BASES = 400, MAX_TAIL_BYTES = 60 };

static const char alphabet[] = "=ACMGRSVTWYHKDBN";

struct sample {                 /* a record of the tail as text */
    struct record_fields fields;
    char bases[MAX_BASES + 1];
    uint8_t quals[MAX_BASES];
    uint8_t tags[MAX_TAIL_BYTES];
    uint8_t padding;            /* the half byte after an odd number of bases */
};

struct expected {
    bool turned;
    uint64_t value;
    uint32_t lead;
};

/* ---- making records ---- */

static void random_bases(struct rng *rng, char *out, size_t n)
{
    size_t kind = rng_below(rng, 8), period = 1 + rng_below(rng, 6);
    for (size_t i = 0; i < n; i++) {
        char random = "ACGT"[rng_below(rng, 4)];
        if (kind == 0)                          /* runs */
            out[i] = i > 0 && !rng_one_in(rng, 3) ? out[i - 1] : random;
        else if (kind == 1)                     /* repeats */
            out[i] = i >= period ? out[i - period] : random;
        else if (kind == 2)                     /* every letter */
            out[i] = alphabet[rng_below(rng, 16)];
        else if (kind == 3)
            out[i] = rng_one_in(rng, 10) ? 'N' : random;
        else
            out[i] = random;
    }
    out[n] = '\0';
}

static void random_sample(struct rng *rng, struct sample *s, const char *name, size_t n_bases)
{
    memset(s, 0, sizeof *s);
    s->fields = (struct record_fields){
        .name = name,
        .tid = -1,
        .pos = rng_one_in(rng, 2) ? -1 : (int32_t)rng_below(rng, INT32_MAX),
        .flag = random_flag(rng),
        .n_cigar = rng_one_in(rng, 8) ? 1 + (uint32_t)rng_below(rng, 3) : 0,
        .l_seq = (int32_t)n_bases,
        .tag_bytes = rng_below(rng, sizeof s->tags + 1),
    };
    random_bases(rng, s->bases, n_bases);
    bool no_quals = rng_one_in(rng, 8);
    for (size_t i = 0; i < n_bases; i++)
        s->quals[i] = no_quals ? 0xff : (uint8_t)rng_below(rng, 94);
    rng_fill(rng, s->tags, s->fields.tag_bytes);
    s->padding = rng_one_in(rng, 4) ? (uint8_t)rng_below(rng, 16) : 0;
}

/* Writes the sample as a record in memory of just its size. */
static uint8_t *make_record(const struct sample *s)
{
    size_t n = (size_t)s->fields.l_seq, bytes = record_size(&s->fields);
    uint8_t *rec = test_alloc(bytes);
    (void)put_record(rec, &s->fields, 0);
    uint8_t *seq = rec + bytes - s->fields.tag_bytes - n - (n + 1) / 2;
    for (size_t i = 0; i < n; i++) {
        size_t code = (size_t)(strchr(alphabet, s->bases[i]) - alphabet);
        seq[i / 2] |= (uint8_t)(i % 2 == 0 ? code << 4 : code);
    }
    if (n % 2 == 1) seq[n / 2] |= s->padding;
    memcpy(seq + (n + 1) / 2, s->quals, n);
    memcpy(rec + bytes - s->fields.tag_bytes, s->tags, s->fields.tag_bytes);
    return rec;
}

/* The sample as it should be in its final form. */
static void finish_sample(struct sample *s, bool turned)
{
    static const char from[] = "=ACMGRSVTWYHKDBN", to[] = "NTGKCYSBAWYDMHVN";
    s->fields.pos = -1;
    if (!turned) return;
    s->fields.flag ^= 0x10;
    struct sample before = *s;
    for (size_t i = 0, n = (size_t)s->fields.l_seq; i < n; i++) {
        s->bases[i] = to[strchr(from, before.bases[n - 1 - i]) - from];
        s->quals[i] = before.quals[n - 1 - i];
    }
}

/* ---- what to expect ---- */

struct kmer {
    char digits[MINHASH_K_MAX + 1];
    int64_t start, end;         /* see all_kmers */
};

static void scramble(struct kmer *kmer, int k)
{
    const uint64_t constant = UINT64_C(0xdead7878beef7878);
    for (int i = 0; i < k; i++)
        kmer->digits[i] =
            (char)('0' + ((kmer->digits[i] - '0') ^ (int)(constant >> 2 * (k - 1 - i) & 3)));
    kmer->digits[k] = '\0';
}

static uint64_t kmer_value(const struct kmer *kmer)
{
    uint64_t value = 0;
    for (const char *at = kmer->digits; *at; at++) value = value * 4 + (uint64_t)(*at - '0');
    return value;
}

/*
 * All k-mers of one strand, from left to right of the read as it is. `start` is where a k-mer
 * begins on its strand if each run is one base: on the forward strand it is counted back from the
 * first base of the last run; on the other strand it is where the first run ends. `end` is k - 1
 * bases after `start`.
 */
static size_t all_kmers(const struct minhash_settings *set, const char *bases, bool reverse,
                        struct kmer *kmers)
{
    size_t runs[MAX_BASES], n_runs = 0, n = 0, k = (size_t)set->k;
    int64_t length = (int64_t)strlen(bases);
    for (size_t i = 0; bases[i]; i++)
        if (!set->squeeze || i == 0 || bases[i] != bases[i - 1]) runs[n_runs++] = i;
    for (size_t first = 0; first + k <= n_runs; first++, n++) {
        int64_t last_base = (int64_t)runs[first + k - 1];
        for (size_t j = 0; j < k; j++) {
            char base = bases[runs[reverse ? first + k - 1 - j : first + j]];
            const char *known = strchr(reverse ? "TGCA" : "ACGT", base);
            const char *codes = reverse ? "TGCA" : "ACGT";
            kmers[n].digits[j] = known ? (char)('0' + (known - codes)) : '0';
        }
        scramble(&kmers[n], set->k);
        kmers[n].start = reverse ? length - 1 - last_base : last_base - (set->k - 1);
        kmers[n].end = kmers[n].start + set->k - 1;
    }
    return n;
}

static struct expected expect_plain(const struct minhash_settings *set, const char *bases)
{
    static struct kmer kmers[2][MAX_BASES];
    const struct kmer *best = NULL;
    bool turned = false;
    for (int reverse = 0; reverse <= !set->forward_only; reverse++) {
        size_t n = all_kmers(set, bases, reverse, kmers[reverse]);
        for (size_t i = 0; i < n; i++) {
            if (best && strcmp(kmers[reverse][i].digits, best->digits) >= 0) continue;
            best = &kmers[reverse][i];
            turned = reverse;
        }
    }
    if (!best) return (struct expected){false, (1 << 30) - 1, (uint32_t)(65535 + set->k - 1)};
    uint64_t value = (kmer_value(best) + (1 << 30)) % (UINT64_C(1) << 62);
    return (struct expected){turned, value, (uint32_t)(65535 - best->start)};
}

struct choice {                 /* the k-mer that stands for a strand */
    const struct kmer *kmer;
    enum minhash_found found;
    uint64_t place;
};

/* The smallest unique one, else the last repeated one, else the smallest. */
static struct choice choose(const struct minhash_index *index, const struct kmer *kmers, size_t n)
{
    struct choice best = {NULL, MINHASH_ABSENT, 0};
    for (size_t i = 0; i < n; i++) {
        struct choice c = {&kmers[i], MINHASH_ABSENT, 0};
        c.found = minhash_index_find(index, kmer_value(c.kmer), &c.place);
        bool smaller = best.kmer && strcmp(c.kmer->digits, best.kmer->digits) < 0;
        if (!best.kmer || c.found > best.found ||
            (c.found == best.found && (smaller || c.found == MINHASH_REPEATED)))
            best = c;
    }
    return best;
}

static struct expected expect_indexed(const struct minhash_settings *set, const char *bases)
{
    static struct kmer kmers[2][MAX_BASES];
    const uint64_t modulus = UINT64_C(1) << 62;
    struct choice best[2] = {{NULL, MINHASH_ABSENT, 0}, {NULL, MINHASH_ABSENT, 0}};
    for (int reverse = 0; reverse <= !set->forward_only; reverse++) {
        size_t n = all_kmers(set, bases, reverse, kmers[reverse]);
        best[reverse] = choose(set->index, kmers[reverse], n);
    }
    if (!best[0].kmer) return (struct expected){false, set->index->no_kmer_place % modulus, 0};
    bool turned = false;
    if (best[1].kmer) {
        bool smaller = strcmp(best[1].kmer->digits, best[0].kmer->digits) < 0;
        bool in[2] = {best[0].found != MINHASH_ABSENT, best[1].found != MINHASH_ABSENT};
        turned = in[1] && !in[0] ? true : in[0] && !in[1] ? false : smaller;
    }
    const struct choice *c = &best[turned];
    uint64_t from = c->found == MINHASH_ABSENT ? kmer_value(c->kmer) : c->place;
    return (struct expected){turned, (from - (uint64_t)c->kmer->end) % modulus, 0};
}

/* ---- tests ---- */

static void check_sample(struct rng *rng, const struct minhash_settings *set,
                         const struct sample *before)
{
    struct expected expected = set->index ? expect_indexed(set, before->bases)
                                          : expect_plain(set, before->bases);
    struct sample after = *before;
    finish_sample(&after, expected.turned);
    OWNED uint8_t *rec = make_record(before), *wanted = make_record(&after);
    size_t bytes = record_size(&before->fields);
    memcpy(wanted + 14, rec + 14, 2);       /* the bin does not matter */
    test_put_u32(rec + 28, rng_one_in(rng, 2) ? 12345 : (uint32_t)-1);
    test_put_u32(rec + 32, rng_one_in(rng, 2) ? (uint32_t)-678 : 0);
    struct minhash_value value, recalled;
    CHECK(rng, minhash_is_tail(rec));
    minhash_apply(set, rec, &value);
    if (value.value != expected.value || value.lead != expected.lead)
        print_error("k %d, squeeze %d, index %d: '%s' gives %" PRIx64 " %u\n", set->k,
                    set->squeeze, set->index != NULL, before->bases, value.value, value.lead);
    CHECK(rng, value.value == expected.value && value.lead == expected.lead);
    CHECK(rng, memcmp(rec, wanted, bytes) == 0);
    minhash_stash(rec, &value);
    minhash_recall(rec, &recalled);
    CHECK(rng, recalled.value == value.value && recalled.lead == value.lead);
    minhash_unstash(rec);
    CHECK(rng, memcmp(rec, wanted, bytes) == 0);
}

static struct minhash_settings random_settings(struct rng *rng)
{
    static const int usual[] = {1, 2, 10, 20, 30, 31};
    struct minhash_settings set = {
        .k = rng_one_in(rng, 2) ? usual[rng_below(rng, 6)] : 1 + (int)rng_below(rng, 31),
        .forward_only = rng_one_in(rng, 4),
        .squeeze = rng_one_in(rng, 2),
    };
    return set;
}

TEST(test_all_lengths)
{
    struct rng rng = rng_start(1);
    char name[TEST_MAX_NAME + 1];
    struct sample sample;
    for (size_t i = 0; i < 12; i++) {
        for (size_t n_bases = 0; n_bases <= MAX_BASES; n_bases++) {
            struct minhash_settings set = random_settings(&rng);
            tricky_name(&rng, name);
            random_sample(&rng, &sample, name, n_bases);
            check_sample(&rng, &set, &sample);
        }
    }
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

/* Takes the bases of a read from the reference, on either strand, with errors. */
static void take_read(struct rng *rng, const char *reference, struct sample *s)
{
    size_t n = (size_t)s->fields.l_seq, length = strlen(reference);
    if (n > length || rng_one_in(rng, 6)) return;
    memcpy(s->bases, reference + rng_below(rng, length - n + 1), n);
    for (size_t i = 0; i < n; i++)
        if (rng_one_in(rng, 100)) s->bases[i] = "ACGTN"[rng_below(rng, 5)];
    if (!rng_one_in(rng, 2)) return;
    struct sample turned = *s;
    finish_sample(&turned, true);
    memcpy(s->bases, turned.bases, n);
}

TEST(test_reads_of_a_reference)
{
    char reference[6001];
    struct sample sample;
    for (uint64_t seed = 100; seed < 180; seed++) {
        struct rng rng = rng_start(seed);
        struct minhash_settings set = random_settings(&rng);
        /* Parts of different kinds. The last repeats the first, so that k-mers are repeated. */
        for (size_t i = 0; i < 5; i++) random_bases(&rng, reference + 1000 * i, 1000);
        memcpy(reference + 5000, reference, 1000);
        reference[rng_one_in(&rng, 4) ? 300 : 6000] = '\0';
        int window = rng_one_in(&rng, 3) ? (int)rng_below(&rng, 200) : MINHASH_WINDOW;
        struct minhash_index *index = load_index(&rng, reference, &set, window);
        set.index = index;
        for (size_t i = 0; i < 50; i++) {
            random_sample(&rng, &sample, "r", rng_below(&rng, MAX_BASES + 1));
            take_read(&rng, reference, &sample);
            check_sample(&rng, &set, &sample);
        }
        minhash_index_destroy(index);
    }
}

/* The values of the greatest k-mers of 31 bases wrap around, so these come first, as in
   samtools. */
TEST(test_sum_wraps)
{
    struct rng rng = rng_start(2);
    const uint64_t constant = UINT64_C(0xdead7878beef7878);
    struct minhash_settings set = {.k = 31, .forward_only = true};
    for (int i = 0; i < 100; i++) {
        struct sample sample;
        random_sample(&rng, &sample, "r", 31);
        /* All ones above the last 2 * (i % 31) bits. */
        uint64_t kmer = UINT64_MAX - (rng_next(&rng) & ((UINT64_C(1) << 2 * (i % 31)) - 1));
        for (int j = 0; j < 31; j++)
            sample.bases[j] = "ACGT"[(kmer ^ constant) >> 2 * (30 - j) & 3];
        check_sample(&rng, &set, &sample);
    }
}

/* CTGA is the smallest 4-mer; its distance from the beginning has 16 bits. */
TEST(test_far_minimisers)
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

/* ---- examples with the answers of samtools 1.24 ---- */

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

/* Every letter, turned around. */
TEST(test_complement_of_samtools)
{
    struct sample sample = {.fields = {.name = "r", .tid = -1, .l_seq = 20}};
    strcpy(sample.bases, "=ACMGRSVTWYHKDBNTCAG");
    struct sample after = sample;
    after.fields.pos = -1;
    after.fields.flag = 0x10;
    strcpy(after.bases, "CTGANVHMDYWABSYCKGTN");
    OWNED uint8_t *rec = make_record(&sample), *wanted = make_record(&after);
    memcpy(wanted + 14, rec + 14, 2);
    memset(rec + 28, 0xff, 4);
    struct minhash_settings set = {.k = 4};
    struct minhash_value value;
    minhash_apply(&set, rec, &value);
    assert_memory_equal(rec, wanted, record_size(&sample.fields));
}

/* ---- keys ---- */

struct keyed {
    struct minhash_value value;
    bool reverse;
    uint8_t *key;               /* in memory of just its size */
};

static int compare_keyed(const struct keyed *a, const struct keyed *b)
{
    if (a->value.value != b->value.value) return a->value.value < b->value.value ? -1 : 1;
    if (a->value.lead != b->value.lead) return a->value.lead > b->value.lead ? -1 : 1;
    return (int)a->reverse - (int)b->reverse;
}

static void make_keyed(struct rng *rng, struct keyed *k)
{
    const uint64_t top = (UINT64_C(1) << 62) - 1;
    static const uint32_t leads[] = {0, 1, 32767, 32768, 65534, 65535, 65536, 65565};
    static const uint64_t values[] = {0, 1, (1 << 30) - 1, 1 << 30, UINT64_C(1) << 31,
                                      UINT64_C(1) << 61};
    k->value.value = values[rng_below(rng, 6)];
    if (rng_one_in(rng, 4)) k->value.value = top - rng_below(rng, 2);
    if (rng_one_in(rng, 4)) k->value.value = rng_next(rng) & top;
    k->value.lead = rng_one_in(rng, 4) ? (uint32_t)rng_below(rng, 65566) : leads[rng_below(rng, 8)];
    struct record_fields fields = {.name = "", .tid = -1, .pos = -1, .flag = random_flag(rng)};
    k->reverse = (fields.flag & BAM_FREVERSE) != 0;
    uint8_t rec[64];
    struct minhash_value recalled;
    (void)put_record(rec, &fields, 0);
    minhash_stash(rec, &k->value);
    minhash_recall(rec, &recalled);
    CHECK(rng, recalled.value == k->value.value && recalled.lead == k->value.lead);
    CHECK(rng, bam_record_check(rec, 0) == NULL);
    k->key = test_alloc(MINHASH_KEY_BYTES);
    CHECK(rng, minhash_key_encode(&recalled, rec, k->key) == MINHASH_KEY_BYTES);
}

TEST(test_keys_are_in_order)
{
    enum { N = 400 };
    struct rng rng = rng_start(4);
    struct keyed keys[N];
    for (size_t i = 0; i < N; i++) make_keyed(&rng, &keys[i]);
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            int c = memcmp(keys[i].key, keys[j].key, MINHASH_KEY_BYTES);
            CHECK(&rng, (c > 0) - (c < 0) == compare_keyed(&keys[i], &keys[j]));
        }
    }
    /* Placed records come before all of them, and their keys are not the beginning of these. */
    for (size_t i = 0; i < 1000; i++) {
        struct record_fields fields = {.name = "", .flag = random_flag(&rng)};
        random_place(&rng, INT32_MAX, &fields);
        if (fields.tid < 0) fields.tid = INT32_MAX - 1;
        uint8_t rec[64], placed[SORT_KEY_FIXED_BYTES];
        (void)put_record(rec, &fields, 0);
        CHECK(&rng, !minhash_is_tail(rec));
        sort_key_store_fixed(sort_key_coordinate(rec), placed);
        CHECK(&rng, memcmp(placed, keys[i % N].key, sizeof placed) < 0);
    }
    for (size_t i = 0; i < N; i++) free(keys[i].key);
}
