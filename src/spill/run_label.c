/*
 * run_label.c -- see run_label.h. A label has 80 bytes, little-endian:
 *
 *     offset  bytes
 *          0      8  XXH3-64 of everything after this field
 *          8      4  magic "RSL" and the format version, 1
 *         12      4  number of the run
 *         16      4  number of the run before it
 *         20      4  1: some record has a reference
 *         24     24  number of records, their bytes, their sum
 *         48      8  size of the largest block that several records share
 *         56      8  number of the input, 4 bytes; zero, 4 bytes
 *         64     16  offset in it, number of its records before that
 */
#include "spill/run_label.h"

#include "util/long_hash.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'R', 'S', 'L', 1};

static const struct {
    size_t at, member, n_bytes;
} fields[] = {
    {12, offsetof(struct run_label, run), 4},
    {16, offsetof(struct run_label, before), 4},
    {20, offsetof(struct run_label, any_placed), sizeof(bool)},
    {24, offsetof(struct run_label, sum.n_records), 8},
    {32, offsetof(struct run_label, sum.n_bytes), 8},
    {40, offsetof(struct run_label, sum.hash), 8},
    {48, offsetof(struct run_label, open_bytes), 8},
    {56, offsetof(struct run_label, end.input), 4},
    {64, offsetof(struct run_label, end.offset), 8},
    {72, offsetof(struct run_label, end.n_records), 8},
};

enum { N_FIELDS = sizeof fields / sizeof *fields };

void run_label_encode(const struct run_label *label, uint8_t out[RUN_LABEL_BYTES])
{
    memset(out, 0, RUN_LABEL_BYTES);
    memcpy(out + 8, magic, sizeof magic);
    for (size_t i = 0; i < N_FIELDS; i++)
        memcpy(out + fields[i].at, (const char *)label + fields[i].member, fields[i].n_bytes);
    uint64_t checksum = long_hash(out + 8, RUN_LABEL_BYTES - 8);
    memcpy(out, &checksum, 8);
}

int run_label_decode(const uint8_t *bytes, size_t n_bytes, struct run_label *label)
{
    uint64_t checksum;
    if (n_bytes != RUN_LABEL_BYTES || memcmp(bytes + 8, magic, sizeof magic) != 0) return -1;
    memcpy(&checksum, bytes, 8);
    if (checksum != long_hash(bytes + 8, RUN_LABEL_BYTES - 8) || bytes[20] > 1) return -1;
    for (size_t i = 0; i < N_FIELDS; i++)
        memcpy((char *)label + fields[i].member, bytes + fields[i].at, fields[i].n_bytes);
    /* The numbers of a chain ascend. */
    bool is_first = label->before == RUN_LABEL_NONE;
    return label->run != RUN_LABEL_NONE && (is_first || label->before < label->run) ? 0 : -1;
}

static int compare_runs(const void *a_label, const void *b_label)
{
    const struct run_label *a = a_label, *b = b_label;
    return (a->run > b->run) - (a->run < b->run);
}

/* Compares by predecessor. The first run has none and comes first. */
static int compare_places(const void *a_label, const void *b_label)
{
    const struct run_label *a = a_label, *b = b_label;
    uint32_t x = a->before + 1, y = b->before + 1;
    if (x != y) return x < y ? -1 : 1;
    return compare_runs(a, b);
}

ssize_t run_labels_chain(struct run_label *labels, size_t n)
{
    uint32_t last = RUN_LABEL_NONE;
    size_t n_chain = 0;
    if (n == 0) return 0;
    qsort(labels, n, sizeof *labels, compare_runs);
    for (size_t i = 1; i < n; i++)
        if (labels[i].run == labels[i - 1].run) return -1;
    qsort(labels, n, sizeof *labels, compare_places);
    for (size_t i = 0; i < n; i++) {
        if (labels[i].before != last) continue;
        if (i + 1 < n && labels[i + 1].before == last) {
            if (labels[i].end.offset != INPUT_OFFSET_UNKNOWN) return -1;
            continue;           /* it was dropped when the next one was made */
        }
        last = labels[i].run;
        struct run_label found = labels[i];
        memmove(labels + n_chain + 1, labels + n_chain, (i - n_chain) * sizeof *labels);
        labels[n_chain++] = found;
    }
    return (ssize_t)n_chain;
}

size_t run_labels_known(const struct run_label *labels, size_t n_chain)
{
    while (n_chain > 0 && labels[n_chain - 1].end.offset == INPUT_OFFSET_UNKNOWN) n_chain--;
    return n_chain;
}
