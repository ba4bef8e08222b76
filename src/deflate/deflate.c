/*
 * deflate.c -- see deflate.h.
 *
 * The fields of short reads alternate so often that a whole payload uses one pair of codes. A field
 * of a long read may be a block of its own: neighbouring parts are joined unless two pairs of codes
 * are cheaper.
 */
#include "deflate/deflate.h"

#include "deflate/block_writer.h"
#include "deflate/matches.h"
#include "util/xalloc.h"

#include <assert.h>
#include <string.h>

struct deflater {
    int level;
    struct matcher matcher;
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

/* Joins a part with the next ones while that is cheaper. Returns the number of joined parts. */
static unsigned join_parts(struct part *part, unsigned n_parts)
{
    enum { CODES_PRICE = 720 * PRICE_OF_BIT };          /* of a further pair of codes */
    uint64_t price = prices_of_all(&part->counts);
    unsigned n = 1;
    for (; n < n_parts; n++) {
        struct token_counts both = part->counts;
        for (unsigned i = 0; i < N_LITERAL_SYMBOLS; i++)
            both.literals[i] += part[n].counts.literals[i];
        for (unsigned i = 0; i < N_DISTANCE_SYMBOLS; i++)
            both.distances[i] += part[n].counts.distances[i];
        uint64_t of_both = prices_of_all(&both), apart = price + prices_of_all(&part[n].counts);
        if (of_both >= apart + CODES_PRICE) break;
        part->counts = both;
        part->n_sequences += part[n].n_sequences;
        price = of_both;
    }
    return n;
}

size_t deflater_run(struct deflater *d, const uint8_t *payload, size_t n_bytes, uint8_t *out,
                    size_t room)
{
    uint8_t *bytes = d->padded + MATCHER_PAD_BYTES;
    struct bit_writer writer = {.at = d->made};
    assert(n_bytes <= MAX_PAYLOAD_BYTES);
    memcpy(bytes, payload, n_bytes);
    memset(bytes + n_bytes, 0, MATCHER_PAD_BYTES);
    matcher_run(&d->matcher, d->level, bytes, n_bytes);
    const struct sequence *sequences = d->matcher.sequences;
    const uint8_t *at = bytes;
    unsigned n_parts = d->matcher.n_parts;
    for (unsigned i = 0; i < n_parts;) {
        struct part *part = &d->matcher.parts[i];
        i += join_parts(part, n_parts - i);
        block_codes_make(&d->codes, &part->counts);
        block_write(&writer, &d->codes, i == n_parts, sequences, part->n_sequences, &at);
        sequences += part->n_sequences;
    }
    size_t size = (size_t)(writer.at - d->made) + (writer.n_bits > 0);
    if (size > room) return 0;
    memcpy(out, d->made, size);
    return size;
}
