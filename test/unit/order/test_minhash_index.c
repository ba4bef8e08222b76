/*
 * test_minhash_index.c -- the k-mers of FASTA files against windows searched here as strings, and
 * files that cannot be read.
 */
#include "unit_test.h"

#include "order/minhash_index.h"

#include <htslib/bgzf.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_SEQUENCES = 5, MAX_PLACES = 200000 };

struct reference {
    char *sequences[MAX_SEQUENCES];
    size_t n;
};

struct place {                  /* a window's k-mer and where it is */
    uint64_t kmer, place;
    size_t window;              /* order of the windows */
};

struct model {                  /* what the index should be */
    struct place *places;
    size_t n;
    uint64_t no_kmer_place;
};

/* ---- files ---- */

struct dir {
    char path[64];
    char fasta[96];
};

static int make_dir(void **state)
{
    struct dir *dir = test_alloc(sizeof *dir);
    strcpy(dir->path, "/tmp/rocksort-test-minhash-XXXXXX");
    if (!mkdtemp(dir->path)) return -1;
    (void)snprintf(dir->fasta, sizeof dir->fasta, "%s/ref.fa", dir->path);
    *state = dir;
    return 0;
}

static int remove_dir(void **state)
{
    OWNED struct dir *dir = *state;
    (void)unlink(dir->fasta);
    int r = rmdir(dir->path);
    return r;
}

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

/* ---- the model ---- */

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
                m.places[m.n] = (struct place){kmer, place, m.n}, m.n++;
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
    const struct place *x = a, *y = b;
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
        struct place key = {.kmer = rng_next(rng) & ((UINT64_C(1) << 2 * k) - 1)};
        uint64_t place = 77;
        size_t at = 0;
        while (at < m->n && m->places[at].kmer < key.kmer) at++;
        if (at < m->n && m->places[at].kmer == key.kmer) continue;
        CHECK(rng, find(index, key.kmer, &place) == MINHASH_ABSENT && place == 77);
    }
}

static void check_reference(struct rng *rng, const char *fasta, size_t max_length, int max_window)
{
    int k = rng_one_in(rng, 3) ? 10 : 1 + (int)rng_below(rng, MINHASH_K_MAX);
    bool squeeze = rng_one_in(rng, 2);
    int window = MINHASH_WINDOW;
    if (rng_one_in(rng, 2)) window = (int)rng_below(rng, (size_t)max_window) - 5;
    struct reference ref = random_reference(rng, max_length);
    write_fasta(rng, fasta, &ref);
    struct model model = make_model(rng, &ref, k, window, squeeze);
    struct minhash_index *index = minhash_index_load(fasta, k, window, squeeze);
    CHECK(rng, index != NULL);
    check_index(rng, index, &model, k);
    minhash_index_destroy(index);
    free(model.places);
    release_reference(&ref);
}

TEST_WITH(test_small_references, make_dir, remove_dir)
{
    const struct dir *dir = *state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng = rng_start(seed);
        check_reference(&rng, dir->fasta, 2000, 300);
    }
}

/* Sequences and windows are longer than what is read at a time, and the table grows. */
TEST_WITH(test_large_references, make_dir, remove_dir)
{
    const struct dir *dir = *state;
    for (uint64_t seed = 1001; seed <= 1006; seed++) {
        struct rng rng = rng_start(seed);
        check_reference(&rng, dir->fasta, 200000, seed % 2 ? 100 : 2000);
    }
    struct rng rng = rng_start(1007);
    struct reference ref = {.sequences = {random_sequence(&rng, 150001)}, .n = 1};
    write_fasta(&rng, dir->fasta, &ref);
    struct minhash_index *index = minhash_index_load(dir->fasta, 12, 150000, false);
    assert_non_null(index);
    assert_int_equal(index->n_kmers, 2);
    minhash_index_destroy(index);
    release_reference(&ref);
}

TEST_WITH(test_file_without_windows, make_dir, remove_dir)
{
    const struct dir *dir = *state;
    static const char *const texts[] = {">", ">a", ">a\n", ">a\n>b\n", ">a\n\n\n", ">a\nACGT\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(dir->fasta, PLAIN, texts[i], strlen(texts[i]));
        struct minhash_index *index = minhash_index_load(dir->fasta, 20, 100, false);
        uint64_t place;
        assert_non_null(index);
        assert_int_equal(index->n_kmers, 0);
        assert_int_equal(find(index, 0, &place), MINHASH_ABSENT);
        assert_int_equal(index->no_kmer_place, 0);
        minhash_index_destroy(index);
    }
    /* A window of fewer than k bases: its k-mer would begin 19 bases before its last. */
    struct minhash_index *index = minhash_index_load(dir->fasta, 20, 4, false);
    assert_non_null(index);
    assert_int_equal(index->n_kmers, 0);
    assert_true(index->no_kmer_place == (UINT64_C(1) << 60) - 19);
    minhash_index_destroy(index);
    minhash_index_destroy(NULL);
}

/* ---- bad files ---- */

/* Loads in a child process, which prints its message to `message`. True if it failed. */
static bool load_fails(const char *fasta, char *message, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
        struct minhash_index *index = minhash_index_load(fasta, 20, 100, false);
        bool loaded = index != NULL;
        minhash_index_destroy(index);       /* memcheck looks for leaks in the child, too */
        _exit(loaded ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t n = 0;
    ssize_t r;
    while ((r = read(ends[0], message + n, room - 1 - n)) > 0) n += (size_t)r;
    message[n] = '\0';
    (void)close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void check_fails(const char *fasta, const char *why)
{
    char message[4096];
    if (!load_fails(fasta, message, sizeof message)) fail_msg("%s: loaded", why);
    const char *own = strstr(message, "samtools rocksort: ");
    if (!own || !strstr(own, fasta) || !strstr(own, why) || strstr(own + 1, "samtools rocksort: "))
        fail_msg("%s: the message is '%s'", why, message);
}

TEST_WITH(test_bad_files, make_dir, remove_dir)
{
    const struct dir *dir = *state;
    char missing[128];
    (void)snprintf(missing, sizeof missing, "%s/nothing.fa", dir->path);
    check_fails(missing, "No such file");
    check_fails(dir->path, "directory");
    static const char *const texts[] = {"", "\n", "ACGT\n", "@r\nACGT\n+\nIIII\n", " >a\nACGT\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(dir->fasta, PLAIN, texts[i], strlen(texts[i]));
        check_fails(dir->fasta, "not a FASTA file");
    }
    struct rng rng = rng_start(7);
    struct reference ref = {.sequences = {random_sequence(&rng, 200000)}, .n = 1};
    for (size_t i = 0; i < 20; i++) {
        OWNED char *text = test_alloc(200010);
        int n = sprintf(text, ">long\n%s", ref.sequences[0]);
        enum packing packing = i % 2 ? GZIP : BGZIP;
        write_file(dir->fasta, packing, text, (size_t)n);
        struct stat st;
        assert_int_equal(stat(dir->fasta, &st), 0);
        /* Only the missing EOF block shows that a BGZF file which ends between blocks was cut. */
        off_t cut = (off_t)(40 + rng_below(&rng, (size_t)st.st_size - 80));
        assert_int_equal(truncate(dir->fasta, cut), 0);
        check_fails(dir->fasta, "truncated or damaged");
    }
    release_reference(&ref);
}

TEST_WITH(test_bgzf_without_its_end_is_warned_about, make_dir, remove_dir)
{
    const struct dir *dir = *state;
    struct rng rng = rng_start(8);
    char *text = random_sequence(&rng, 5000), message[4096];
    memcpy(text, ">a\n", 3);
    write_file(dir->fasta, BGZIP, text, 5000);
    assert_false(load_fails(dir->fasta, message, sizeof message));
    assert_string_equal(message, "");
    struct stat st;
    assert_int_equal(stat(dir->fasta, &st), 0);
    assert_int_equal(truncate(dir->fasta, st.st_size - 28), 0);
    assert_false(load_fails(dir->fasta, message, sizeof message));
    assert_non_null(strstr(message, "warning: "));
    assert_non_null(strstr(message, dir->fasta));
    free(text);
}
