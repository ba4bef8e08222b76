/*
 * matches.c -- see matches.h.
 *
 * Looks up hashes of the next 3, 6 and 16 bytes in tables, which hold the last position of each
 * hash. There are no hash chains: in records the nearest match is as good as any other. Takes the
 * longest hash that matches, and extends that match to the left, over literals and over earlier
 * matches, while this saves bits: this repairs most mistakes of a greedy search and makes files 1.5
 * % smaller.
 *
 * Qualities have their own tables, and runs. The bases of a read match those of the reads that
 * overlap it, at a distance computed from their positions. Long reads have noisy fields: where
 * nothing matches, most positions are skipped.
 */
#include "deflate/matches.h"

#include "util/byte_order.h"

#include <assert.h>
#include <string.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum {
    LONG_READ_BASES = 2000,     /* the fields of longer reads may have codes of their own */
    NOISY_BASES = 400,          /* longer reads have too many gaps to be compared base by base */
    NOISY_QUALITIES = 1000,     /* longer reads have few matches in their qualities */
    MOST_OVERLAPS = 6,
    COUNT_BYTES = 8192,         /* bytes between two updates of the prices */
};

/* Search effort, a compile-time constant. */
struct effort {
    unsigned enough_bytes;      /* a match of this length ends the search */
    unsigned field_tries, quality_tries;        /* lazy matching: further positions to try */
};

ALWAYS_INLINE unsigned n_same(uint64_t difference)
{
    return (unsigned)__builtin_ctzll(difference) >> 3;
}

/* Returns how many bytes at `at` equal those at `at` - distance, at most `most`. The first n are
   known to be equal. */
ALWAYS_INLINE unsigned extend(const uint8_t *at, uint32_t distance, unsigned n, unsigned most)
{
    for (; n < most; n += 8) {
        uint64_t difference = get_u64(at + n) ^ get_u64(at + n - distance);
        if (difference) {
            n += n_same(difference);
            break;
        }
    }
    return n < most ? n : most;
}

ALWAYS_INLINE unsigned most_bytes(const struct matcher *matcher, const uint8_t *at)
{
    size_t left = (size_t)(matcher->end - at);
    return left < MAX_MATCH_BYTES ? (unsigned)left : MAX_MATCH_BYTES;
}

ALWAYS_INLINE unsigned price_of_literals(const struct prices *prices, const uint8_t *at, unsigned n)
{
    unsigned price = 0;
    for (unsigned i = 0; i < n; i++) price += prices->literals[at[i]];
    return price;
}

struct match {
    unsigned n_bytes, distance;
};

/* True if the match costs at least as much as literals. */
ALWAYS_INLINE bool is_dear(const struct prices *prices, const uint8_t *at, struct match match)
{
    return price_of_literals(prices, at, match.n_bytes) <=
           price_of_match(prices, match.n_bytes, match.distance);
}

/* Returns by how many bytes a match at `at` can be extended to the left, down to `first`. */
ALWAYS_INLINE unsigned extend_left(const struct matcher *matcher, const uint8_t *at,
                                   const uint8_t *first, struct match match)
{
    size_t most = (size_t)(at - first);
    size_t before = (size_t)(at - matcher->begin) - match.distance;
    if (most > before) most = before;
    if (most > MAX_MATCH_BYTES - match.n_bytes) most = MAX_MATCH_BYTES - match.n_bytes;
    for (unsigned n = 0; n < most; n += 8) {
        uint64_t difference = get_u64(at - n - 8) ^ get_u64(at - n - 8 - match.distance);
        if (!difference) continue;
        n += (unsigned)__builtin_clzll(difference) >> 3;
        return n < most ? n : (unsigned)most;
    }
    return (unsigned)most;
}

/* Extends the match at `at`, where the previous match ends, over that match if it covers all of it,
   or if the uncovered bytes cost less as literals than the previous match. */
ALWAYS_INLINE bool take_over(struct matcher *matcher, const uint8_t **at, struct match *match)
{
    enum { MOST_LEFT = 8 };
    if (matcher->n_sequences == matcher->n_counted) return false;
    const struct sequence *last = &matcher->sequences[matcher->n_sequences - 1];
    const uint8_t *first = *at - last->n_bytes;
    unsigned n = extend_left(matcher, *at, first, *match), n_left = last->n_bytes - n;
    if (n == 0 || n_left > MOST_LEFT ||
        price_of_literals(&matcher->prices, first, n_left) >
            price_of_match(&matcher->prices, last->n_bytes, last->distance))
        return false;
    matcher->n_sequences--;
    matcher->after = first - last->n_literals;
    *at -= n;
    match->n_bytes += n;
    return true;
}

/* Takes the match at `at`, and returns its end. */
ALWAYS_INLINE const uint8_t *take(struct matcher *matcher, const uint8_t *at, struct match match)
{
    const uint8_t *end = at + match.n_bytes;
    do {
        unsigned n = extend_left(matcher, at, matcher->after, match);
        at -= n;
        match.n_bytes += n;
    } while (at == matcher->after && take_over(matcher, &at, &match));
    matcher->sequences[matcher->n_sequences++] = (struct sequence){
        (uint16_t)(at - matcher->after), (uint16_t)match.n_bytes, (uint16_t)match.distance};
    matcher->after = end;
    return end;
}

static const uint64_t prime_a = 0x9E3779B185EBCA87, prime_b = 0xC2B2AE3D27D4EB4F;

/* The tables of fields or of qualities; threes is NULL for qualities. */
struct tables {
    uint16_t *threes, *sixes, *sixteens;
    unsigned bits;
};

/* Distances of the last positions with the same hashes. */
struct found {
    uint32_t threes, sixes, sixteens;
};

ALWAYS_INLINE uint32_t swap_in(uint16_t *table, uint64_t mixed, unsigned bits, uint32_t at)
{
    uint16_t *entry = &table[mixed >> (64 - bits)];
    uint32_t distance = (uint16_t)(at - *entry);
    *entry = (uint16_t)at;
    return distance;
}

/* Enters a position into all tables. x and y are its 16 bytes. */
ALWAYS_INLINE struct found enter(const struct tables *tables, uint64_t x, uint64_t y, uint32_t at)
{
    struct found found = {0};
    unsigned bits = tables->bits;
    found.sixteens = swap_in(tables->sixteens, (x + (y << 31 | y >> 33)) * prime_b, bits, at);
    found.sixes = swap_in(tables->sixes, (x << 16) * prime_a, bits, at);
    if (tables->threes) found.threes = swap_in(tables->threes, (x << 40) * prime_a, bits, at);
    return found;
}

ALWAYS_INLINE void enter_all(struct matcher *matcher, const struct tables *tables,
                             const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++)
        (void)enter(tables, get_u64(at), get_u64(at + 8), (uint32_t)(at - matcher->begin));
}

ALWAYS_INLINE bool is_distance(uint32_t distance)
{
    return distance - 1 < MAX_DISTANCE;
}

/* Enters a position and returns the match there; n_bytes is 0 if there is none. */
ALWAYS_INLINE struct match find(struct matcher *matcher, const struct tables *tables,
                                const uint8_t *at)
{
    const struct match none = {0, 1};
    uint64_t x = get_u64(at), y = get_u64(at + 8), difference;
    struct found found = enter(tables, x, y, (uint32_t)(at - matcher->begin));
    unsigned most = most_bytes(matcher, at);
    if (most < 8) return none;
    if (get_u64(at - found.sixteens) == x && is_distance(found.sixteens))
        return (struct match){extend(at, found.sixteens, 8, most), found.sixteens};
    difference = get_u64(at - found.sixes) ^ x;
    if (difference << 16 == 0 && is_distance(found.sixes)) {
        unsigned n = difference ? n_same(difference) : extend(at, found.sixes, 8, most);
        struct match match = {n, found.sixes};
        return n > 16 || !is_dear(&matcher->prices, at, match) ? match : none;
    }
    /* Qualities use runs instead of matches of 3 bytes. */
    uint32_t distance = tables->threes ? found.threes : 1;
    unsigned least = tables->threes ? 3 : 4;
    difference = get_u64(at - distance) ^ x;
    unsigned n = difference ? n_same(difference) : 8;
    if (n < least || !is_distance(distance)) return none;
    struct match match = {n < 8 ? n : extend(at, distance, 8, most), distance};
    return match.n_bytes < 6 && is_dear(&matcher->prices, at, match) ? none : match;
}

/* True if b, `ahead` bytes later, is better than a: if its additional bytes save more than its
   distance and the literals before it cost. */
ALWAYS_INLINE bool is_better(struct match b, struct match a, int ahead, bool is_quality)
{
    const int byte_price = is_quality ? 48 : 64, literal_price = is_quality ? 64 : 100;
    int more = (int)b.n_bytes + ahead - (int)a.n_bytes;
    return b.n_bytes > 0 && more > 0 &&
           byte_price * more > PRICE_OF_BIT * ((int)highest_bit(b.distance) -
                                               (int)highest_bit(a.distance)) +
                                   ahead * literal_price;
}

enum kind { FIELDS, NOISY_FIELDS, QUALITIES };

/* Chooses tokens from `at` to `stop`, or to the end of a match over `stop`. Returns the end. */
ALWAYS_INLINE const uint8_t *search(struct matcher *matcher, struct effort effort, enum kind kind,
                                    const uint8_t *at, const uint8_t *stop)
{
    /* Positions in the middle of long matches are not entered. */
    enum { ENTERED_BYTES = 12, MOST_SKIPPED = 8 };
    const bool is_quality = kind == QUALITIES;
    const struct tables tables =
        is_quality ? (struct tables){NULL, matcher->quality6, matcher->quality16, QUALITY_HASH_BITS}
                   : (struct tables){matcher->field3, matcher->field6, matcher->field16,
                                     FIELD_HASH_BITS};
    unsigned most_tries = is_quality ? effort.quality_tries : effort.field_tries;
    unsigned n_misses = 0;
    while (at < stop) {
        struct match match = find(matcher, &tables, at);
        if (match.n_bytes == 0) {
            at++;
            if (kind != NOISY_FIELDS) continue;
            unsigned skip = n_misses++ / 64;
            at += skip < MOST_SKIPPED ? skip : MOST_SKIPPED;
            continue;
        }
        n_misses /= 2;
        const uint8_t *next = at + 1;
        for (unsigned tries = 0;
             match.n_bytes < effort.enough_bytes && next < stop && tries < most_tries; next++) {
            struct match other = find(matcher, &tables, next);
            tries++;
            if (!is_better(other, match, (int)(next - at), is_quality)) continue;
            at = next;
            match = other;
            tries = 0;
        }
        at = take(matcher, at, match);
        if (is_quality && match.distance == 1 && at - next > ENTERED_BYTES)
            next = at - ENTERED_BYTES;
        if (at - next > 2 * ENTERED_BYTES) {
            enter_all(matcher, &tables, next, next + ENTERED_BYTES);
            next = at - ENTERED_BYTES;
        }
        enter_all(matcher, &tables, next, at);
    }
    return at < matcher->end ? at : matcher->end;
}

/* The earlier reads that overlap a read. */
struct overlaps {
    uint32_t distances[MOST_OVERLAPS];  /* of their bases */
    const uint8_t *ends[MOST_OVERLAPS]; /* the bases before it are known to be equal */
    unsigned n;
};

/* Finds the nearest earlier reads that overlap a read, and adds it to them. A byte holds two bases,
   so starts must differ by an even number for bytes to match. */
static void find_overlaps(struct matcher *matcher, const struct late_read *read, int32_t tid,
                          struct overlaps *overlaps)
{
    enum { MOST_TRIED = MOST_OVERLAPS + 4 };
    overlaps->n = 0;
    if (tid != matcher->tid) {
        matcher->tid = tid;
        matcher->n_reads[0] = matcher->n_reads[1] = 0;
    }
    struct late_read *reads = matcher->reads[read->start & 1];
    uint32_t n_reads = matcher->n_reads[read->start & 1]++;
    for (uint32_t k = 1;
         tid >= 0 && k <= n_reads && k <= MOST_TRIED && overlaps->n < MOST_OVERLAPS; k++) {
        const struct late_read *other = &reads[(n_reads - k) % MOST_LATE_READS];
        int64_t ahead = (int64_t)read->start - other->start;
        if (ahead >= other->n_bases || -ahead >= read->n_bases) continue;
        int64_t distance = (int64_t)read->at - other->at - ahead / 2;
        if (distance < 1 || distance > MAX_DISTANCE || distance > read->at) break;
        overlaps->distances[overlaps->n] = (uint32_t)distance;
        overlaps->ends[overlaps->n++] = matcher->begin;
    }
    reads[n_reads % MOST_LATE_READS] = *read;
}

/* Returns the overlap that saves most at `at`; its n_bytes is below 4 if there is none. */
ALWAYS_INLINE struct match find_overlap(struct matcher *matcher, struct overlaps *overlaps,
                                        const uint8_t *at)
{
    enum { BASE_PAIR_PRICE = 4 * PRICE_OF_BIT, LEAST_BYTES = 4 };
    struct match best = {0, 1};
    int most_saved = 0;
    uint32_t bases = get_u32(at);
    for (unsigned k = 0; k < overlaps->n; k++) {
        uint32_t distance = overlaps->distances[k];
        if (overlaps->ends[k] < at + LEAST_BYTES) {
            if (get_u32(at - distance) != bases) continue;
            overlaps->ends[k] = at + extend(at, distance, LEAST_BYTES,
                                            (unsigned)(matcher->end - at));
        }
        unsigned n = (unsigned)(overlaps->ends[k] - at);
        int saved = (int)n * BASE_PAIR_PRICE -
                    (int)matcher->prices.distances[highest_bit((distance - 1) | 1)];
        if (saved <= most_saved) continue;
        most_saved = saved;
        best = (struct match){n, distance};
    }
    return best;
}

ALWAYS_INLINE const uint8_t *search_bases(struct matcher *matcher, struct overlaps *overlaps,
                                          const uint8_t *at, const uint8_t *stop)
{
    while (at < stop) {
        unsigned most = most_bytes(matcher, at);
        uint64_t x = get_u64(at);
        uint32_t d3 = swap_in(matcher->bases3, (x << 40) * prime_a, BASES_HASH_BITS,
                              (uint32_t)(at - matcher->begin));
        struct match match = find_overlap(matcher, overlaps, at);
        if (match.n_bytes < 4 && is_distance(d3) && (get_u64(at - d3) ^ x) << 40 == 0)
            match = (struct match){extend(at, d3, 3, most), d3};
        if (match.n_bytes > most) match.n_bytes = most;
        if (match.n_bytes < MIN_MATCH_BYTES ||
            (match.n_bytes < 6 && is_dear(&matcher->prices, at, match))) {
            at++;
            continue;
        }
        const uint8_t *next = at + 1;
        at = take(matcher, at, match);
        for (const uint8_t *last = at < stop ? at : stop; next < last; next++)
            (void)swap_in(matcher->bases3, (get_u64(next) << 40) * prime_a, BASES_HASH_BITS,
                          (uint32_t)(next - matcher->begin));
    }
    return at;
}

/* Where the fields of a record begin, cut at the end of the payload. */
struct fields {
    const uint8_t *cigar, *bases, *qualities, *tags, *end;
    int32_t tid, start, n_bases;
};

static const uint8_t *go_ahead(const uint8_t *at, const uint8_t *end, uint64_t n_bytes)
{
    return n_bytes < (uint64_t)(end - at) ? at + n_bytes : end;
}

/* Returns false if no record begins at `at`. */
static bool find_fields(const uint8_t *at, const uint8_t *end, struct fields *fields)
{
    enum { FIXED_BYTES = 36, SOFT_CLIP = 4, HARD_CLIP = 5 };
    if (end - at < FIXED_BYTES) return false;
    uint64_t n_bytes = 4 + (uint64_t)get_u32(at);
    uint32_t name_bytes = at[12], n_ops = get_u32(at + 16) & 0xffff;
    fields->tid = (int32_t)get_u32(at + 4);
    fields->start = (int32_t)get_u32(at + 8);
    fields->n_bases = (int32_t)get_u32(at + 20);
    if (fields->tid < -1 || fields->start < -1 || fields->n_bases < 0 || name_bytes == 0)
        return false;
    uint64_t bases_at = FIXED_BYTES + name_bytes + 4 * (uint64_t)n_ops;
    uint64_t qualities_at = bases_at + ((uint64_t)fields->n_bases + 1) / 2;
    uint64_t tags_at = qualities_at + (uint64_t)fields->n_bases;
    if (tags_at > n_bytes) return false;
    fields->cigar = go_ahead(at, end, FIXED_BYTES + name_bytes);
    fields->bases = go_ahead(at, end, bases_at);
    fields->qualities = go_ahead(at, end, qualities_at);
    fields->tags = go_ahead(at, end, tags_at);
    fields->end = go_ahead(at, end, n_bytes);
    if (fields->cigar[-1] != 0) return false;
    if (end - fields->cigar < 8 || n_ops == 0) return true;
    uint32_t op = get_u32(fields->cigar);
    if ((op & 15) == HARD_CLIP && n_ops > 1) op = get_u32(fields->cigar + 4);
    if ((op & 15) == SOFT_CLIP)
        fields->start = (int32_t)((uint32_t)fields->start - (op >> 4));
    return true;
}

/* Returns where the first record begins, or the end. The payload may begin within a record. */
static const uint8_t *find_record(const uint8_t *begin, const uint8_t *end)
{
    enum { MOST_REFERENCES = 1 << 24, LONGEST_BYTES = 1 << 28 };
    struct fields fields;
    for (const uint8_t *at = begin; at < end; at++) {
        if (!find_fields(at, end, &fields)) continue;
        if (get_u32(at) < LONGEST_BYTES && fields.tid < MOST_REFERENCES &&
            get_u32(at + 24) + 1 <= MOST_REFERENCES && at[36] >= '!' && at[36] <= '~')
            return at;
    }
    return end;
}

static const uint8_t *later(const uint8_t *a, const uint8_t *b)
{
    return a > b ? a : b;
}

/* Counts the sequences so far. */
static void count(struct matcher *matcher)
{
    struct part *part = &matcher->parts[matcher->n_parts];
    size_t n = matcher->n_sequences - matcher->n_counted;
    token_count(matcher->sequences + matcher->n_counted, n, &matcher->counted, &part->counts);
    matcher->n_counted += n;
    part->n_sequences += n;
}

/* Ends a part at `end`, or at the end of a match over it. */
static void end_part(struct matcher *matcher, const uint8_t *end)
{
    if (end > matcher->after) {
        matcher->sequences[matcher->n_sequences++] =
            (struct sequence){(uint16_t)(end - matcher->after), 0, 1};
        matcher->after = end;
    }
    count(matcher);
    matcher->parts[++matcher->n_parts] = (struct part){0};
}

/* Ends a part at the end of a large field of a long read. */
static void end_field(struct matcher *matcher, const struct fields *fields, const uint8_t *end)
{
    enum { LEAST_BYTES = 600 };
    if (fields->n_bases >= LONG_READ_BASES && end - matcher->counted >= LEAST_BYTES &&
        matcher->end - end >= LEAST_BYTES && matcher->n_parts < MOST_PARTS - 1)
        end_part(matcher, end);
}

/* Chooses tokens for the rest of a record, from `at`. */
ALWAYS_INLINE const uint8_t *search_record(struct matcher *matcher, struct effort effort,
                                           const struct fields *fields, const uint8_t *at)
{
    struct overlaps overlaps = {.n = 0};
    at = search(matcher, effort, FIELDS, at, fields->bases);
    end_field(matcher, fields, fields->bases);
    if (fields->n_bases < NOISY_BASES) {
        const struct late_read read = {(uint32_t)(fields->bases - matcher->begin), fields->start,
                                       fields->n_bases};
        find_overlaps(matcher, &read, fields->tid, &overlaps);
    }
    at = later(at, fields->bases);
    if (overlaps.n > 0)
        at = search_bases(matcher, &overlaps, at, fields->qualities);
    else if (fields->n_bases < LONG_READ_BASES)
        at = search(matcher, effort, fields->n_bases >= NOISY_BASES ? NOISY_FIELDS : FIELDS, at,
                    fields->qualities);
    at = later(at, fields->qualities);
    end_field(matcher, fields, fields->qualities);
    if (fields->n_bases >= NOISY_QUALITIES && at < fields->tags) {
        const struct prices others = matcher->prices;
        prices_guess(&matcher->prices, at, (size_t)(fields->tags - at), true);
        at = search(matcher, effort, NOISY_FIELDS, at, fields->tags);
        matcher->prices = others;
    } else {
        at = search(matcher, effort, QUALITIES, at, fields->tags);
    }
    end_field(matcher, fields, fields->tags);
    return search(matcher, effort, FIELDS, later(at, fields->tags), fields->end);
}

ALWAYS_INLINE void search_all(struct matcher *matcher, struct effort effort)
{
    const uint8_t *record = find_record(matcher->begin, matcher->end), *at = matcher->begin + 1;
    struct fields fields;
    at = search(matcher, effort, NOISY_FIELDS, at, record);
    while (record < matcher->end && find_fields(record, matcher->end, &fields)) {
        at = search_record(matcher, effort, &fields, later(at, record));
        record = fields.end;
        if (matcher->after - matcher->counted < COUNT_BYTES) continue;
        count(matcher);
        prices_set(&matcher->prices, &matcher->parts[matcher->n_parts].counts);
    }
    (void)search(matcher, effort, NOISY_FIELDS, later(at, record), matcher->end);
}

void matcher_run(struct matcher *matcher, int level, const uint8_t *payload, size_t n_bytes)
{
    assert(n_bytes <= MAX_PAYLOAD_BYTES);
    memset(matcher->field3, 0, (size_t)((uint8_t *)matcher->reads - (uint8_t *)matcher->field3));
    matcher->begin = matcher->after = matcher->counted = payload;
    matcher->end = payload + n_bytes;
    matcher->tid = -2;
    matcher->n_reads[0] = matcher->n_reads[1] = 0;
    matcher->n_sequences = matcher->n_counted = 0;
    matcher->n_parts = 0;
    matcher->parts[0] = (struct part){0};
    prices_guess(&matcher->prices, payload, n_bytes, false);
    /* The compiler specialises the loops for each effort. */
    switch (level) {
    case 1: search_all(matcher, (struct effort){0, 0, 0}); break;
    case 2: search_all(matcher, (struct effort){8, 1, 1}); break;
    case 3: search_all(matcher, (struct effort){32, 1, 1}); break;
    default: search_all(matcher, (struct effort){32, 1, 2}); break;
    }
    end_part(matcher, matcher->end);
}
