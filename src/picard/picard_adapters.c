/*
 * picard_adapters.c -- recognizes reads that begin with an Illumina adapter (picard_collect.h).
 *
 * The 16 bases are compared as the nibbles of a 64-bit word, with every 16 bases of each adapter
 * and of its reverse complement.
 */
#include "picard/picard_collect.h"

#include <pthread.h>

enum { KMER = 16, MOST_KMERS = 384 };

static const char *const adapters[] = {
    "AATGATACGGCGACCACCGAGATCTACACTCTTTCCCTACACGACGCTCTTCCGATCT",
    "AGATCGGAAGAGCTCGTATGCCGTCTTCTGCTTG",
    "AGATCGGAAGAGCGGTTCAGCAGGAATGCCGAGACCGATCTCGTATGCCGTCTTCTGCTTG",
    "AGATCGGAAGAGCACACGTCTGAACTCCAGTCACNNNNNNNNATCTCGTATGCCGTCTTCTGCTTG",
};

static uint64_t kmers[MOST_KMERS];
static size_t n_kmers;

static uint64_t complement(uint64_t code)
{
    return (code & 1) << 3 | (code & 2) << 1 | (code & 4) >> 1 | (code & 8) >> 3;
}

static void make_kmers(void)
{
    for (size_t i = 0; i < sizeof adapters / sizeof *adapters; i++) {
        for (const char *at = adapters[i]; strlen(at) >= KMER; at++) {
            uint64_t forward = 0, reverse = 0;
            for (int j = 0; j < KMER; j++) {
                /* An N of an adapter differs from each base, also from N. */
                uint64_t code = at[j] == 'N' ? 0 : seq_nt16_table[(unsigned char)at[j]];
                forward = forward << 4 | code;
                reverse |= complement(code) << 4 * j;
            }
            kmers[n_kmers++] = forward;
            kmers[n_kmers++] = reverse;
        }
    }
}

bool picard_is_adapter(const struct picard_read *read)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint64_t lows = UINT64_C(0x1111111111111111);
    if (read->n_bases < KMER) return false;
    bool is_turned = read->is_reverse && !(read->flag & BAM_FUNMAP);
    uint64_t first = 0;
    for (size_t i = 0; i < KMER; i++) {
        uint64_t code = picard_read_code(read, is_turned ? read->n_bases - 1 - i : i);
        first = first << 4 | (is_turned ? complement(code) : code);
    }
    if (pthread_once(&once, make_kmers) != 0) return false;
    for (size_t i = 0; i < n_kmers; i++) {
        uint64_t differs = first ^ kmers[i];
        differs |= differs >> 1;
        differs = (differs | differs >> 2) & lows;
        if ((differs & (differs - 1)) == 0) return true;
    }
    return false;
}
