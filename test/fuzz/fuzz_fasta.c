/*
 * fuzz_fasta.c -- the FASTA of option -I: any text, plain or compressed, any k and window. Each
 * k-mer of the index must fit into its bits, lie within the bases, and be found again.
 */
#include "fuzz_file.h"

#include "order/minhash_index.h"

static struct fuzz_file file;

void fuzz_begin(void)
{
    fuzz_file_create(&file);
}

static void check_index(const struct minhash_index *index, int k, size_t n_bases)
{
    size_t n_slots = (size_t)1 << index->slot_bits, n = 0;
    uint64_t place;
    for (size_t i = 0; i < n_slots; i++) {
        if (index->slots[i].kmer == 0) continue;
        uint64_t kmer = index->slots[i].kmer - 1;
        n++;
        FUZZ_CHECK(kmer <= minhash_mask(k) && index->slots[i].place >> 1 <= n_bases);
        FUZZ_CHECK(minhash_index_may_have(index, kmer));
        FUZZ_CHECK(minhash_index_find(index, kmer, &place) != MINHASH_ABSENT);
        FUZZ_CHECK(place == index->slots[i].place >> 1);
    }
    FUZZ_CHECK(n == index->n_kmers && n < n_slots);
    for (uint64_t kmer = 0; kmer < 64 && kmer <= minhash_mask(k); kmer++)
        (void)minhash_index_find(index, kmer, &place);
    FUZZ_CHECK(minhash_index_bytes(index) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    int k = 1 + (int)fuzz_below(&in, 31), window = fuzz_u8(&in);
    bool squeeze = fuzz_u8(&in) & 1;
    fuzz_file_write(&file, in.at, fuzz_left(&in));
    diag_renew();
    struct minhash_index *index = minhash_index_load(file.path, k, window, squeeze);
    FUZZ_CHECK(index || diag_failed());
    /* If the text is compressed the number of bases is not known. */
    bool compressed = fuzz_left(&in) > 2 && in.at[0] == 31 && in.at[1] == 139;
    if (index) check_index(index, k, compressed ? SIZE_MAX / 2 : fuzz_left(&in));
    minhash_index_destroy(index);
    return 0;
}
