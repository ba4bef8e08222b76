/*
 * test_minhash_index.c -- FASTA files without windows, and files that cannot be read.
 * test/differential.py compares the order by the k-mers of random references with samtools.
 */
#include "child.h"
#include "test_place.h"
#include "unit_test.h"

#include "order/minhash_index.h"

#include <htslib/bgzf.h>
#include <sys/stat.h>
#include <unistd.h>

static const char fasta[] = "ref.fa";

static int leave_fasta(void **state)
{
    (void)unlink(fasta);
    return leave_place(state);
}

#define TEST_OF_FASTA(test) TEST_WITH(test, enter_place, leave_fasta)

enum packing { PLAIN, GZIP, BGZIP };

static void write_file(const char *path, enum packing packing, const char *text, size_t n)
{
    static const char *const modes[] = {[PLAIN] = "wu", [GZIP] = "wg", [BGZIP] = "w"};
    BGZF *out = bgzf_open(path, modes[packing]);
    assert_non_null(out);
    assert_int_equal(bgzf_write(out, text, n), n);
    assert_int_equal(bgzf_close(out), 0);
}

/* One sequence, n bytes in all. */
static char *random_fasta(struct rng *rng, size_t n)
{
    char *text = test_alloc(n);
    rng_fill_compressible(rng, (uint8_t *)text, n);
    memcpy(text, ">a\n", 3);
    return text;
}

static enum minhash_found find(const struct minhash_index *index, uint64_t kmer, uint64_t *place)
{
    enum minhash_found found = minhash_index_find(index, kmer, place);
    if (found != MINHASH_ABSENT && !minhash_index_may_have(index, kmer))
        fail_msg("the filter hides k-mer %" PRIx64, kmer);
    return found;
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
    OWNED char *text = random_fasta(&rng, 200000);
    for (size_t i = 0; i < 20; i++) {
        write_file(fasta, i % 2 ? GZIP : BGZIP, text, 200000);
        struct stat st;
        assert_int_equal(stat(fasta, &st), 0);
        /* Only the missing EOF block shows that a BGZF file which ends between blocks was cut. */
        off_t cut = (off_t)(40 + rng_below(&rng, (size_t)st.st_size - 80));
        assert_int_equal(truncate(fasta, cut), 0);
        check_fails(fasta, "truncated or damaged");
    }
}

TEST_OF_FASTA(test_bgzf_without_its_end_is_warned_about)
{
    struct rng rng = rng_start(8);
    OWNED char *text = random_fasta(&rng, 5000);
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
