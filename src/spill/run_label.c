/* run_label.c -- see run_label.h. */
#include "spill/run_label.h"

#include "util/long_hash.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t magic[8] = "RSL\2";        /* with the version of the format */

void run_label_encode(const struct run_label *label, uint8_t out[RUN_LABEL_BYTES])
{
    struct run_label stored;
    memset(&stored, 0, sizeof stored);  /* what is between the members, too */
    stored.run = label->run;
    stored.before = label->before;
    stored.sum = label->sum;
    stored.any_placed = label->any_placed;
    stored.open_bytes = label->open_bytes;
    stored.end.input = label->end.input;
    stored.end.offset = label->end.offset;
    stored.end.n_records = label->end.n_records;
    memcpy(out + 8, magic, sizeof magic);
    memcpy(out + 16, &stored, sizeof stored);
    uint64_t checksum = long_hash(out + 8, RUN_LABEL_BYTES - 8);
    memcpy(out, &checksum, 8);
}

int run_label_decode(const uint8_t *bytes, size_t n_bytes, struct run_label *label)
{
    uint64_t checksum;
    if (n_bytes != RUN_LABEL_BYTES || memcmp(bytes + 8, magic, sizeof magic) != 0) return -1;
    memcpy(&checksum, bytes, 8);
    if (checksum != long_hash(bytes + 8, RUN_LABEL_BYTES - 8) ||
        bytes[16 + offsetof(struct run_label, any_placed)] > 1)
        return -1;
    memcpy(label, bytes + 16, sizeof *label);
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
