/*
 * test_minhash_index.c -- the k-mers of FASTA files against windows searched here as strings, and
 * files that cannot be read.
 */
#include "child.h"
#include "test_place.h"
#include "unit_test.h"

#include "order/minhash_index.h"

#include <htslib/bgzf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_SEQUENCES = 5, MAX_PLACES = 200000 };

struct reference {
    char *sequences[MAX_SEQUENCES];
    size_t n;
};

struct kmer_place {                  /* a window's k-mer and where it is */
    uint64_t kmer, place;
    size_t window;              /* order of the windows */
};

struct model {                  /* what the index should be */
    struct kmer_place *places;
    size_t n;
    uint64_t no_kmer_place;
};

static const char fasta[] = "ref.fa";

static int leave_fasta(void **state)
{
    (void)unlink(fasta);
    return leave_place(state);
}

#define TEST_OF_FASTA(test) TEST_WITH(test, enter_place, leave_fasta)

enum packing { PLAIN, GZIP, BGZIP, N_PACKINGS };

static void write_file(const char *path, enum packing packing, const char *text, size_t n)
{
    if (packing == BGZIP) {
        BGZF *out = bgzf_open(path, "w");
        assert_non_null(out);
        assert_int_equal(bgzf_write(out, text, n), n);
        assert_int_equal(bgzf_close(out), 0);
        return;
    }
    gzFile out = gzopen(path, packing == PLAIN ? "wT" : "w1");
    assert_non_null(out);
    assert_int_equal(gzwrite(out, text, (unsigned)n), n);
    assert_int_equal(gzclose(out), Z_OK);
}

/* Writes the sequences in lines of some width. */
static void write_fasta(struct rng *rng, const char *path, const struct reference *ref)
{
    size_t room = 1000, n = 0;
    for (size_t i = 0; i < ref->n; i++) room += 200 + 3 * strlen(ref->sequences[i]);
    OWNED char *text = test_alloc(room);
    size_t width = rng_one_in(rng, 3) ? SIZE_MAX : 1 + rng_below(rng, 100);
    const char *line_end = rng_one_in(rng, 3) ? "\r\n" : "\n";
    for (size_t i = 0; i < ref->n; i++) {
        n += (size_t)sprintf(text + n, ">s%zu a > b%s", i, line_end);
        size_t length = strlen(ref->sequences[i]);
        for (size_t at = 0; at < length; at += width) {
            size_t line = length - at < width ? length - at : width;
            n += (size_t)sprintf(text + n, "%.*s%s", (int)line, ref->sequences[i] + at, line_end);
            if (line < width) break;
        }
        if (rng_one_in(rng, 4)) n += (size_t)sprintf(text + n, "%s", line_end);
    }
    if (rng_one_in(rng, 4) && text[n - 1] == '\n') text[--n] = '\0';
    write_file(path, (enum packing)rng_below(rng, N_PACKINGS), text, n);
}

/* Stretches of random bases, runs of one base, repeats of what was before, other letters. */
static char *random_sequence(struct rng *rng, size_t length)
{
    char *sequence = test_alloc(length + 1);
    size_t n = 0;
    while (n < length) {
        size_t part = 1 + rng_below(rng, length - n < 300 ? length - n : 300);
        size_t kind = rng_below(rng, 8), back = n > 0 ? 1 + rng_below(rng, n) : 0;
        char base = "ACGTN"[rng_below(rng, 5)];
        for (size_t i = 0; i < part; i++, n++) {
            char random = "ACGT"[rng_below(rng, 4)];
            if (kind == 0)
                sequence[n] = base;
            else if (kind == 1 && back > 0)
                sequence[n] = sequence[n - back];
            else if (kind == 2)
                sequence[n] = "acgtuRYKMSWBDHVNn-*"[rng_below(rng, 19)];
            else
                sequence[n] = kind == 3 && n > 0 && rng_one_in(rng, 2) ? sequence[n - 1] : random;
        }
    }
    sequence[n] = '\0';
    return sequence;
}

static struct reference random_reference(struct rng *rng, size_t max_length)
{
    struct reference ref = {.n = 1 + rng_below(rng, MAX_SEQUENCES)};
    for (size_t i = 0; i < ref.n; i++)
        ref.sequences[i] = random_sequence(rng, rng_one_in(rng, 4) ? rng_below(rng, 120)
                                                                   : rng_below(rng, max_length));
    return ref;
}

static void release_reference(struct reference *ref)
{
    for (size_t i = 0; i < ref->n; i++) free(ref->sequences[i]);
}

/* Makes letters upper case and U a T. A character for which BAM has no code becomes N. */
static char normal_base(char c)
{
    static const char *const known = "ACGTRYKMSWBDHVN";
    if (c >= 'a' && c <= 'z') c = (char)(c - 'a' + 'A');
    if (c == 'U') return 'T';
    return strchr(known, c) ? c : 'N';
}

static uint64_t code_of(char c)
{
    return c == 'C' ? 1 : c == 'G' ? 2 : c == 'T' ? 3 : 0;
}

/* The smallest k-mer of text[0 .. n), 0 if there is none. *last is where its last base begins. */
static bool model_smallest(const char *text, int64_t n, int k, bool squeeze, uint64_t *kmer,
                           int64_t *last)
{
    uint64_t scramble = UINT64_C(0xdead7878beef7878);
    bool found = false;
    for (int64_t start = 0; start < n; start++) {
        if (squeeze && start > 0 && text[start] == text[start - 1]) continue;
        uint64_t value = 0;
        int64_t at = start, end = start;
        int taken = 0;
        for (; at < n && taken < k; at++) {
            if (squeeze && at > start && text[at] == text[at - 1]) continue;
            value = value * 4 + code_of(text[at]);
            end = at;
            taken++;
        }
        if (taken < k) break;
        for (int bit = 0; bit < 2 * k; bit++) value ^= scramble & UINT64_C(1) << bit;
        if (found && value >= *kmer) continue;
        found = true;
        *kmer = value;
        *last = end;
    }
    return found;
}

static struct model make_model(struct rng *rng, const struct reference *ref, int k, int window,
                               bool squeeze)
{
    struct model m = {.places = test_alloc(MAX_PLACES * sizeof *m.places)};
    uint64_t offset = 0;
    for (size_t i = 0; i < ref->n; i++) {
        int64_t length = (int64_t)strlen(ref->sequences[i]), from = 0, to;
        if (length < window) continue;
        OWNED char *text = test_alloc((size_t)length + 1);
        for (int64_t j = 0; j <= length; j++) text[j] = normal_base(ref->sequences[i][j]);
        do {
            to = from + window < length ? from + window : length;
            uint64_t kmer = 0;
            int64_t last = 0;
            bool found = model_smallest(from < length ? text + from : text, to - from, k, squeeze,
                                        &kmer, &last);
            int64_t first = from + last - (k - 1);
            uint64_t place = (offset + (uint64_t)first) & ((UINT64_C(1) << 60) - 1);
            CHECK(rng, m.n < MAX_PLACES);
            if (found)
                m.places[m.n] = (struct kmer_place){kmer, place, m.n}, m.n++;
            else
                m.no_kmer_place = place;
            from = first + 1 > from + k ? first + 1 : from + k;
        } while (to != length);
        offset += (uint64_t)length;
    }
    return m;
}

static int compare_places(const void *a, const void *b)
{
    const struct kmer_place *x = a, *y = b;
    if (x->kmer != y->kmer) return x->kmer < y->kmer ? -1 : 1;
    return x->window < y->window ? -1 : x->window > y->window;
}

static enum minhash_found find(const struct minhash_index *index, uint64_t kmer, uint64_t *place)
{
    enum minhash_found found = minhash_index_find(index, kmer, place);
    if (found != MINHASH_ABSENT && !minhash_index_may_have(index, kmer))
        fail_msg("the filter hides k-mer %" PRIx64, kmer);
    return found;
}

static void check_index(struct rng *rng, const struct minhash_index *index, struct model *m, int k)
{
    size_t n_kmers = 0;
    qsort(m->places, m->n, sizeof *m->places, compare_places);
    for (size_t i = 0, next; i < m->n; i = next) {
        for (next = i + 1; next < m->n && m->places[next].kmer == m->places[i].kmer;) next++;
        uint64_t place = 0;
        enum minhash_found expected = next - i == 1 ? MINHASH_UNIQUE : MINHASH_REPEATED;
        CHECK(rng, find(index, m->places[i].kmer, &place) == expected);
        CHECK(rng, place == m->places[next - 1].place);
        n_kmers++;
    }
    CHECK(rng, index->n_kmers == n_kmers);
    CHECK(rng, index->no_kmer_place == m->no_kmer_place);
    CHECK(rng, minhash_index_bytes(index) >= 16 * n_kmers);
    for (size_t i = 0; i < 200; i++) {
        struct kmer_place key = {.kmer = rng_next(rng) & ((UINT64_C(1) << 2 * k) - 1)};
        uint64_t place = 77;
        size_t at = 0;
        while (at < m->n && m->places[at].kmer < key.kmer) at++;
        if (at < m->n && m->places[at].kmer == key.kmer) continue;
        CHECK(rng, find(index, key.kmer, &place) == MINHASH_ABSENT && place == 77);
    }
}

static void check_reference(struct rng *rng, size_t max_length, int max_window)
{
    int k = rng_one_in(rng, 3) ? 10 : 1 + (int)rng_below(rng, MINHASH_K_MAX);
    bool squeeze = rng_one_in(rng, 2);
    int window = MINHASH_WINDOW;
    if (rng_one_in(rng, 2)) window = (int)rng_below(rng, (size_t)max_window) - 5;
    RELEASED(release_reference) struct reference ref = random_reference(rng, max_length);
    write_fasta(rng, fasta, &ref);
    struct model model = make_model(rng, &ref, k, window, squeeze);
    struct minhash_index *index = minhash_index_load(fasta, k, window, squeeze);
    CHECK(rng, index != NULL);
    check_index(rng, index, &model, k);
    minhash_index_destroy(index);
    free(model.places);
}

TEST_OF_FASTA(test_kmers_are_those_of_all_windows)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng = rng_start(seed);
        check_reference(&rng, 2000, 300);
    }
}

/* Sequences and windows are longer than what is read at a time, and the table grows. */
TEST_OF_FASTA(test_long_sequences_and_windows_are_indexed)
{
    for (uint64_t seed = 1001; seed <= 1006; seed++) {
        struct rng rng = rng_start(seed);
        check_reference(&rng, 200000, seed % 2 ? 100 : 2000);
    }
    struct rng rng = rng_start(1007);
    struct reference ref = {.sequences = {random_sequence(&rng, 150001)}, .n = 1};
    write_fasta(&rng, fasta, &ref);
    struct minhash_index *index = minhash_index_load(fasta, 12, 150000, false);
    assert_non_null(index);
    assert_int_equal(index->n_kmers, 2);
    minhash_index_destroy(index);
    release_reference(&ref);
}

TEST_OF_FASTA(test_file_without_windows)
{
    static const char *const texts[] = {">", ">a", ">a\n", ">a\n>b\n", ">a\n\n\n", ">a\nACGT\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(fasta, PLAIN, texts[i], strlen(texts[i]));
        struct minhash_index *index = minhash_index_load(fasta, 20, 100, false);
        uint64_t place;
        assert_non_null(index);
        assert_int_equal(index->n_kmers, 0);
        assert_int_equal(find(index, 0, &place), MINHASH_ABSENT);
        assert_int_equal(index->no_kmer_place, 0);
        minhash_index_destroy(index);
    }
    /* A window of fewer than k bases: its k-mer would begin 19 bases before its last. */
    struct minhash_index *index = minhash_index_load(fasta, 20, 4, false);
    assert_non_null(index);
    assert_int_equal(index->n_kmers, 0);
    assert_true(index->no_kmer_place == (UINT64_C(1) << 60) - 19);
    minhash_index_destroy(index);
    minhash_index_destroy(NULL);
}

static void load(void *name)
{
    struct minhash_index *index = minhash_index_load(name, 20, 100, false);
    bool loaded = index != NULL;
    minhash_index_destroy(index);       /* memcheck looks for leaks in the child, too */
    _exit(loaded ? 0 : 1);
}

/* Loads in a child process. */
static struct ended_child load_in_child(const char *name)
{
    return run_in_child(load, (void *)(uintptr_t)name);
}

static void check_fails(const char *name, const char *why)
{
    struct ended_child ended = load_in_child(name);
    const char *own = strstr(ended.text, "samtools rocksort: ");
    if (ended.status != 1 || !own || !strstr(own, name) || !strstr(own, why) ||
        strstr(own + 1, "samtools rocksort: "))
        fail_msg("%s: status %d, the message is '%s'", why, ended.status, ended.text);
}

TEST_OF_FASTA(test_files_that_are_no_fasta_are_refused)
{
    check_fails("nothing.fa", "No such file");
    check_fails(".", "directory");
    static const char *const texts[] = {"", "\n", "ACGT\n", "@r\nACGT\n+\nIIII\n", " >a\nACGT\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(fasta, PLAIN, texts[i], strlen(texts[i]));
        check_fails(fasta, "not a FASTA file");
    }
    struct rng rng = rng_start(7);
    struct reference ref = {.sequences = {random_sequence(&rng, 200000)}, .n = 1};
    for (size_t i = 0; i < 20; i++) {
        OWNED char *text = test_alloc(200010);
        int n = sprintf(text, ">long\n%s", ref.sequences[0]);
        enum packing packing = i % 2 ? GZIP : BGZIP;
        write_file(fasta, packing, text, (size_t)n);
        struct stat st;
        assert_int_equal(stat(fasta, &st), 0);
        /* Only the missing EOF block shows that a BGZF file which ends between blocks was cut. */
        off_t cut = (off_t)(40 + rng_below(&rng, (size_t)st.st_size - 80));
        assert_int_equal(truncate(fasta, cut), 0);
        check_fails(fasta, "truncated or damaged");
    }
    release_reference(&ref);
}

TEST_OF_FASTA(test_bgzf_without_its_end_is_warned_about)
{
    struct rng rng = rng_start(8);
    OWNED char *text = random_sequence(&rng, 5000);
    memcpy(text, ">a\n", 3);
    write_file(fasta, BGZIP, text, 5000);
    struct ended_child ended = load_in_child(fasta);
    assert_int_equal(ended.status, 0);
    assert_string_equal(ended.text, "");
    struct stat st;
    assert_int_equal(stat(fasta, &st), 0);
    assert_int_equal(truncate(fasta, st.st_size - 28), 0);
    ended = load_in_child(fasta);
    assert_int_equal(ended.status, 0);
    assert_non_null(strstr(ended.text, "warning: "));
    assert_non_null(strstr(ended.text, fasta));
}
