/*
 * deflate.c -- see deflate.h.
 *
 * The fields of short reads alternate so often that one pair of codes serves a whole payload. A
 * field of a long read may fill a block of its own: payloads with long reads are cut into parts
 * where such fields end, and every few kilobytes; neighbours are joined again unless two pairs of
 * codes are cheaper.
 */
#include "deflate/deflate.h"

#include "deflate/block_writer.h"
#include "deflate/matches.h"
#include "util/xalloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_BYTES = 8192,          /* where no field ends */
    LEAST_PART_BYTES = 600,
    MOST_PARTS = MOST_CUTS + MAX_PAYLOAD_BYTES / PART_BYTES + 1,
    CODES_BITS = 720,           /* that a further pair of codes takes */
};

/* A part of a payload; it becomes a block. */
struct part {
    size_t n_sequences;
    struct token_counts counts;
};

struct deflater {
    int level;
    struct matcher matcher;
    struct sequence cut[MOST_SEQUENCES + 2 * MOST_PARTS];       /* the sequences of all parts */
    struct part parts[MOST_PARTS];
    struct block_codes codes;
    uint8_t padded[MATCHER_PAD_BYTES + MAX_PAYLOAD_BYTES + MATCHER_PAD_BYTES];
    uint8_t made[2 * MAX_PAYLOAD_BYTES];        /* no code has more than 14 bits */
};

struct deflater *deflater_create(int level)
{
    assert(level >= DEFLATE_FASTEST && level <= DEFLATE_SMALLEST);
    struct deflater *deflater = xcalloc(1, sizeof *deflater);
    deflater->level = level;
    return deflater;
}

void deflater_destroy(struct deflater *deflater)
{
    free(deflater);
}

/* Stores the places where parts end, the last one at n_bytes. Returns their number. */
static unsigned place_cuts(const struct matcher *matcher, uint32_t n_bytes,
                           uint32_t ends[MOST_PARTS])
{
    unsigned n = 0;
    uint32_t before = 0;
    for (unsigned i = 0; i <= matcher->n_cuts; i++) {
        uint32_t at = i < matcher->n_cuts ? matcher->cuts[i] : n_bytes;
        while (at - before > PART_BYTES + PART_BYTES / 4) ends[n++] = before += PART_BYTES;
        if (i < matcher->n_cuts && at - before >= LEAST_PART_BYTES &&
            n_bytes - at >= LEAST_PART_BYTES)
            ends[n++] = before = at;
    }
    ends[n++] = n_bytes;
    return n;
}

/* Divides the sequences among the parts: literals at their ends, matches to where they begin. */
static void cut_sequences(struct deflater *d, const uint32_t *ends, unsigned n_parts)
{
    const struct matcher *matcher = &d->matcher;
    const uint8_t *bytes = matcher->begin;
    struct sequence *next = d->cut, *first = next;
    uint32_t at = 0;
    unsigned part = 0;
    for (size_t i = 0; i < matcher->n_sequences; i++) {
        struct sequence sequence = matcher->sequences[i];
        for (; part + 1 < n_parts && at + sequence.n_literals >= ends[part]; part++) {
            uint32_t n = ends[part] > at ? ends[part] - at : 0;
            *next++ = (struct sequence){(uint16_t)n, 0, 1};
            sequence.n_literals = (uint16_t)(sequence.n_literals - n);
            at += n;
            d->parts[part].n_sequences = (size_t)(next - first);
            first = next;
        }
        *next++ = sequence;
        at += (uint32_t)sequence.n_literals + sequence.n_bytes;
    }
    d->parts[part].n_sequences = (size_t)(next - first);
    first = d->cut;
    for (unsigned i = 0; i < n_parts; first += d->parts[i++].n_sequences) {
        d->parts[i].counts = (struct token_counts){.literals = {0}};
        token_count(first, d->parts[i].n_sequences, &bytes, &d->parts[i].counts);
    }
}

/* Joins a part with those after it while that is cheaper. Returns how many it is made of. */
static unsigned join_parts(struct part *part, unsigned n_parts)
{
    uint64_t price = prices_of_all(&part->counts);
    unsigned n = 1;
    for (; n < n_parts; n++) {
        struct token_counts both = part->counts;
        token_counts_add(&both, &part[n].counts);
        uint64_t of_both = prices_of_all(&both), apart = price + prices_of_all(&part[n].counts);
        if (of_both >= apart + CODES_BITS * PRICE_OF_BIT) break;
        part->counts = both;
        part->n_sequences += part[n].n_sequences;
        price = of_both;
    }
    return n;
}

static void write_parts(struct deflater *d, struct bit_writer *writer)
{
    uint32_t ends[MOST_PARTS];
    const uint8_t *bytes = d->matcher.begin;
    const struct sequence *sequences = d->cut;
    unsigned n_parts = place_cuts(&d->matcher, (uint32_t)(d->matcher.end - bytes), ends);
    cut_sequences(d, ends, n_parts);
    for (unsigned i = 0; i < n_parts;) {
        struct part *part = &d->parts[i];
        i += join_parts(part, n_parts - i);
        block_codes_make(&d->codes, &part->counts);
        block_write(writer, &d->codes, i == n_parts, sequences, part->n_sequences, &bytes);
        sequences += part->n_sequences;
    }
}

static void write_whole(struct deflater *d, struct bit_writer *writer)
{
    const uint8_t *bytes = d->matcher.begin;
    block_codes_make(&d->codes, &d->matcher.counts);
    block_write(writer, &d->codes, true, d->matcher.sequences, d->matcher.n_sequences, &bytes);
}

size_t deflater_run(struct deflater *d, const uint8_t *payload, size_t n_bytes, uint8_t *out,
                    size_t room)
{
    enum { FEW_SEQUENCES = 64 };
    uint8_t *bytes = d->padded + MATCHER_PAD_BYTES;
    struct bit_writer writer = {.at = d->made};
    assert(n_bytes <= MAX_PAYLOAD_BYTES);
    memcpy(bytes, payload, n_bytes);
    memset(bytes + n_bytes, 0, MATCHER_PAD_BYTES);
    matcher_run(&d->matcher, d->level, bytes, n_bytes);
    if (d->matcher.n_cuts > 0 && d->matcher.n_sequences >= FEW_SEQUENCES)
        write_parts(d, &writer);
    else
        write_whole(d, &writer);
    size_t size = (size_t)(writer.at - d->made) + (writer.n_bits > 0);
    if (size > room) return 0;
    memcpy(out, d->made, size);
    return size;
}
