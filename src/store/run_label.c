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
#include "store/run_label.h"

#include "util/long_hash.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'R', 'S', 'L', 1};

void run_label_encode(const struct run_label *label, uint8_t out[RUN_LABEL_BYTES])
{
    uint32_t any_placed = label->any_placed;
    memset(out, 0, RUN_LABEL_BYTES);
    memcpy(out + 8, magic, 4);
    memcpy(out + 12, &label->run, 4);
    memcpy(out + 16, &label->before, 4);
    memcpy(out + 20, &any_placed, 4);
    memcpy(out + 24, &label->sum.n_records, 8);
    memcpy(out + 32, &label->sum.n_bytes, 8);
    memcpy(out + 40, &label->sum.hash, 8);
    memcpy(out + 48, &label->open_bytes, 8);
    memcpy(out + 56, &label->end.input, 4);
    memcpy(out + 64, &label->end.offset, 8);
    memcpy(out + 72, &label->end.n_records, 8);
    uint64_t checksum = long_hash(out + 8, RUN_LABEL_BYTES - 8);
    memcpy(out, &checksum, 8);
}

int run_label_decode(const uint8_t *bytes, size_t n_bytes, struct run_label *label)
{
    uint64_t checksum;
    uint32_t any_placed;
    if (n_bytes != RUN_LABEL_BYTES || memcmp(bytes + 8, magic, 4) != 0) return -1;
    memcpy(&checksum, bytes, 8);
    if (checksum != long_hash(bytes + 8, RUN_LABEL_BYTES - 8)) return -1;
    memcpy(&label->run, bytes + 12, 4);
    memcpy(&label->before, bytes + 16, 4);
    memcpy(&any_placed, bytes + 20, 4);
    memcpy(&label->sum.n_records, bytes + 24, 8);
    memcpy(&label->sum.n_bytes, bytes + 32, 8);
    memcpy(&label->sum.hash, bytes + 40, 8);
    memcpy(&label->open_bytes, bytes + 48, 8);
    memcpy(&label->end.input, bytes + 56, 4);
    memcpy(&label->end.offset, bytes + 64, 8);
    memcpy(&label->end.n_records, bytes + 72, 8);
    label->any_placed = any_placed != 0;
    /* The numbers of a chain ascend. */
    bool is_first = label->before == RUN_LABEL_NONE;
    return label->run != RUN_LABEL_NONE && (is_first || label->before < label->run) ? 0 : -1;
}

static int compare_runs(const void *a_label, const void *b_label)
{
    const struct run_label *a = a_label, *b = b_label;
    return (a->run > b->run) - (a->run < b->run);
}

/* Compares by the run before. The first run has none, and comes first. */
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
            continue;           /* it was left out when the next one was made */
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
