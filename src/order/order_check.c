/*
 * order_check.c -- see order_check.h.
 *
 * A span keeps, for each candidate, the first and the last key and the first violation within the
 * span. Joining compares the last key so far with the first key of the next span. Once a candidate
 * is violated in joined spans, later scans skip it: they could only find later violations.
 */
#include "order/order_check.h"

#include "bam/bam_aux.h"
#include "bam/bam_long.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order_key {
    uint8_t *bytes;
    size_t n, room;
};

struct order_violation {
    bool found;
    struct order_record before, after;
};

struct span_candidate {
    struct order_key first, last;
    struct order_violation order_violation;
};

struct order_span {
    struct order_span *next;
    uint64_t first_record, n_records;
    struct order_record first, last;
    struct span_candidate candidates[ORDER_MAX_CANDIDATES];
};

struct order_check {
    const struct order_claim *claim;
    atomic_uint violated;       /* a bit for each candidate */
    struct order_span *last;    /* the last joined one, for its last keys */
    struct order_span *waiting; /* spans after one that is still missing */
    uint64_t n_records;
    struct order_violation violations[ORDER_MAX_CANDIDATES];
};

struct order_check *order_check_create(const struct order_claim *claim)
{
    struct order_check *check = xcalloc(1, sizeof *check);
    check->claim = claim;
    return check;
}

static void free_span(struct order_span *span)
{
    if (!span) return;
    for (unsigned i = 0; i < ORDER_MAX_CANDIDATES; i++) {
        free(span->candidates[i].first.bytes);
        free(span->candidates[i].last.bytes);
    }
    free(span);
}

void order_check_destroy(struct order_check *check)
{
    if (!check) return;
    free_span(check->last);
    while (check->waiting) {
        struct order_span *span = check->waiting;
        check->waiting = span->next;
        free_span(span);
    }
    free(check);
}

/* ---- keys ---- */

static void reserve_key(struct order_key *key, size_t n_bytes)
{
    xgrow(&key->bytes, &key->room, n_bytes, n_bytes / 2 + 32, 1);
}

static int compare_keys(const struct order_key *a, const struct order_key *b)
{
    return compare_bytes(a->bytes, a->n, b->bytes, b->n);
}

/* Makes the key of a record without a reference in the minimiser order. */
static void make_minimiser_key(const struct order_candidate *candidate, uint8_t *rec,
                               struct order_key *key)
{
    enum { LAST_OF_VALUE = 11, LEAD_BITS = 3 };         /* 4 bytes 0xff, 62 bits value, lead */
    struct minhash_value value;
    reserve_key(key, MINHASH_KEY_BYTES);
    minhash_apply(&candidate->rules.minhash, rec, &value);
    key->n = minhash_key_encode(&value, rec, key->bytes);
    if (candidate->part != ORDER_MINIMISERS) return;
    key->n = LAST_OF_VALUE + 1;
    key->bytes[LAST_OF_VALUE] &= (uint8_t)~LEAD_BITS;
}

/* Makes the part of the key that the candidate compares. Returns 0, or -1 with *problem. */
static int make_key(const struct order_candidate *candidate, uint8_t *rec, struct order_key *key,
                    const char **problem)
{
    enum { FLAG_BYTES = 2, REFERENCE_BYTES = 3, STRAND_BIT = 1 };       /* see bam_sort_key.c */
    const struct sort_rules *rules = &candidate->rules;
    if (sort_order_is_fixed(rules->order)) {
        reserve_key(key, SORT_KEY_FIXED_BYTES);
        sort_key_store_fixed(sort_key_fixed(rules, rec), key->bytes);
        key->n = SORT_KEY_FIXED_BYTES;
    } else if (rules->order == SORT_MINHASH && minhash_is_tail(rec)) {
        make_minimiser_key(candidate, rec, key);
    } else {
        size_t n_bytes = sort_key_bytes(rules, rec, problem);
        if (n_bytes == 0) return -1;
        reserve_key(key, n_bytes);
        key->n = sort_key_encode(rules, rec, key->bytes);
    }
    if (candidate->part == ORDER_NAMES) key->n -= FLAG_BYTES;
    if (candidate->part != ORDER_PLACES) return 0;
    if (bam_record_tid(rec) < 0)
        key->n = REFERENCE_BYTES;       /* more than those of any reference */
    else
        key->bytes[key->n - 1] &= (uint8_t)~STRAND_BIT;
    return 0;
}

/* ---- descriptions ---- */

/* "CB:Z:ACGT", or "no CB". */
static void describe_tag(const char *tag, const uint8_t *rec, char *text, size_t room)
{
    struct bam_aux aux;
    kstring_t value = {0, 0, NULL};
    if (bam_aux_find(rec, tag, &aux) <= 0)
        (void)snprintf(text, room, "no %.2s", tag);
    else if (aux.type != 'B' &&
             sam_format_aux1(aux.start, (uint8_t)aux.type, aux.value,
                             aux.value + aux.value_bytes, &value) &&
             kputsn("", 0, &value) == 0)        /* htslib ends the text of Z with no '\0' */
        (void)snprintf(text, room, "%s", value.s);
    else
        (void)snprintf(text, room, "%.2s:%c", tag, aux.type);
    ks_free(&value);
}

void order_record_describe(const struct sort_rules *rules, const uint8_t *rec, uint64_t number,
                           struct order_record *told)
{
    told->number = number + 1;
    told->tid = bam_record_tid(rec);
    told->pos = bam_record_true_pos(rec);
    told->flag = bam_record_flag(rec);
    told->value[0] = '\0';
    (void)snprintf(told->name, sizeof told->name, "%s", (const char *)bam_record_name(rec));
    if (rules->order == SORT_TAG) describe_tag(rules->tag, rec, told->value, sizeof told->value);
}

/* ---- spans ---- */

/* Scans a span for one candidate. Returns 0, or -1 with *problem. */
static int scan_candidate(const struct order_check *check, unsigned i, uint8_t *from,
                          const uint8_t *to, struct order_span *span,
                          struct record_problem *problem)
{
    const struct order_candidate *candidate = &check->claim->candidates[i];
    struct span_candidate *scan = &span->candidates[i];
    struct order_key key = {0};
    const uint8_t *before = NULL;
    int r = 0;
    problem->record = span->first_record;
    for (uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec), problem->record++) {
        r = make_key(candidate, rec, &key, &problem->text);
        if (r < 0) {
            problem->read_name = (const char *)bam_record_name(rec);
            break;
        }
        if (!before) {
            reserve_key(&scan->first, key.n);
            memcpy(scan->first.bytes, key.bytes, key.n);
            scan->first.n = key.n;
        } else if (compare_keys(&scan->last, &key) > 0) {
            scan->order_violation.found = true;
            order_record_describe(&candidate->rules, before, problem->record - 1,
                                  &scan->order_violation.before);
            order_record_describe(&candidate->rules, rec, problem->record,
                                  &scan->order_violation.after);
            break;
        }
        struct order_key swapped = scan->last;
        scan->last = key;
        key = swapped;
        before = rec;
    }
    free(key.bytes);
    return r;
}

struct order_span *order_check_scan(struct order_check *check, uint8_t *from, const uint8_t *to,
                                    uint64_t first_record, struct record_problem *problem)
{
    *problem = (struct record_problem){.record = first_record};
    struct order_span *span = xcalloc(1, sizeof *span);
    unsigned violated = atomic_load(&check->violated);
    const uint8_t *last = from;
    span->first_record = first_record;
    for (const uint8_t *rec = from; rec < to; rec += bam_record_bytes(rec)) {
        last = rec;
        span->n_records++;
    }
    /* Describes the records first, because scanning for -M may reverse-complement them. */
    const struct sort_rules *rules = &check->claim->candidates[0].rules;
    order_record_describe(rules, from, first_record, &span->first);
    order_record_describe(rules, last, first_record + span->n_records - 1, &span->last);
    for (unsigned i = 0; i < check->claim->n_candidates; i++) {
        if (violated & 1u << i || scan_candidate(check, i, from, to, span, problem) == 0) continue;
        free_span(span);
        return NULL;
    }
    return span;
}

/* Joins the span that comes next in the file. */
static void join_next(struct order_check *check, struct order_span *span)
{
    unsigned violated = atomic_load(&check->violated);
    for (unsigned i = 0; i < check->claim->n_candidates; i++) {
        if (violated & 1u << i) continue;
        const struct span_candidate *scan = &span->candidates[i];
        struct order_violation *order_violation = &check->violations[i];
        if (check->last && compare_keys(&check->last->candidates[i].last, &scan->first) > 0)
            *order_violation = (struct order_violation){true, check->last->last, span->first};
        else if (scan->order_violation.found)
            *order_violation = scan->order_violation;
        if (order_violation->found) violated |= 1u << i;
    }
    atomic_store(&check->violated, violated);
    check->n_records += span->n_records;
    free_span(check->last);
    check->last = span;
}

/* Removes the next span of the file from the waiting ones and returns it; NULL if it is still
   missing. */
static struct order_span *take_next(struct order_check *check)
{
    for (struct order_span **at = &check->waiting; *at; at = &(*at)->next) {
        struct order_span *span = *at;
        if (span->first_record != check->n_records) continue;
        *at = span->next;
        return span;
    }
    return NULL;
}

int order_check_join(struct order_check *check, struct order_span *span)
{
    span->next = check->waiting;
    check->waiting = span;
    while ((span = take_next(check)) != NULL) join_next(check, span);
    return atomic_load(&check->violated) == (1u << check->claim->n_candidates) - 1;
}

void order_check_verdict(const struct order_check *check, struct order_verdict *verdict)
{
    const struct order_claim *claim = check->claim;
    const struct order_violation *told = &check->violations[0];
    unsigned best = 0;
    *verdict = (struct order_verdict){0};
    for (unsigned i = 0; i < claim->n_candidates && !verdict->sorted; i++) {
        const struct order_violation *order_violation = &check->violations[i];
        verdict->sorted = !order_violation->found;
        bool later = order_violation->after.number > check->violations[best].after.number;
        if (verdict->sorted || later) best = i;
        if (!verdict->sorted && later) told = order_violation;
    }
    if (verdict->sorted) told = &check->violations[0];
    verdict->candidate = &claim->candidates[best];
    verdict->has_pair = told->found;
    verdict->before = told->before;
    verdict->after = told->after;
}

/* ---- claims ---- */

/* Adds a candidate with its name in messages. */
static struct order_candidate *add(struct order_claim *claim, enum sort_order order,
                                   const char *text)
{
    struct order_candidate *candidate = &claim->candidates[claim->n_candidates++];
    *candidate = (struct order_candidate){.rules = {.order = order}};
    (void)snprintf(candidate->words, sizeof candidate->words, "sorted by %s", text);
    return candidate;
}

/* Adds the last candidate again, but compares only a part of its keys. */
static struct order_candidate *add_looser(struct order_claim *claim, enum order_part part,
                                          const char *note)
{
    struct order_candidate *looser = &claim->candidates[claim->n_candidates++];
    *looser = claim->candidates[claim->n_candidates - 2];
    looser->part = part;
    looser->note = note;
    return looser;
}

static void add_coordinate(struct order_claim *claim)
{
    (void)add(claim, SORT_COORDINATE, sort_order_text(SORT_COORDINATE));
    (void)add_looser(claim, ORDER_PLACES, "reads at one place are not in the order of samtools");
}

static void add_natural(struct order_claim *claim)
{
    (void)add(claim, SORT_NAME_NATURAL, sort_order_text(SORT_NAME_NATURAL));
    (void)add_looser(claim, ORDER_NAMES, "reads of one name are not in the order of samtools 1.20");
    add_looser(claim, ORDER_NAMES, "leading zeros count, as in samtools 1.16")->rules.zeros_count =
        true;
}

static void add_lexical(struct order_claim *claim)
{
    (void)add(claim, SORT_NAME_LEXICAL, sort_order_text(SORT_NAME_LEXICAL));
    (void)add_looser(claim, ORDER_NAMES, "reads of one name are not in the order of samtools");
}

static void add_tag(struct order_claim *claim, const char *tag, enum sort_order below)
{
    char text[64];
    (void)snprintf(text, sizeof text, "tag %.2s, then by %s", tag, sort_order_text(below));
    struct sort_rules *rules = &add(claim, SORT_TAG, text)->rules;
    rules->below = below;
    memcpy(rules->tag, tag, 2);
}

/* Adds the order that follows "unsorted:" in SS: "template-coordinate", or "TAG:ORDER". */
static void add_sub_sort(struct order_claim *claim, const char *sub)
{
    static const enum sort_order below[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL};
    if (strcmp(sub, sort_order_name(SORT_TEMPLATE)) == 0) {
        (void)add(claim, SORT_TEMPLATE, sort_order_text(SORT_TEMPLATE));
        return;
    }
    if (strlen(sub) < 4 || sub[2] != ':') return;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (strcmp(sub + 3, sort_order_name(below[i])) == 0) add_tag(claim, sub, below[i]);
}

/* Returns the text after "ORDER:" in the value of SS; "" if it is missing or belongs to another
   order, because then the specification ignores it. */
static const char *sub_sort_of(const char *order, const char *sub_sort)
{
    size_t n = strlen(order);
    bool fits = strncmp(sub_sort, order, n) == 0 && sub_sort[n] == ':';
    return fits ? sub_sort + n + 1 : "";
}

/* Adds the candidates for SO:order and SS:sub_sort; "" if one is missing. */
static void find_candidates(const char *order, const char *sub_sort, struct order_claim *claim)
{
    const char *sub = sub_sort_of(order, sub_sort);
    if (strcmp(order, "coordinate") == 0) {
        add_coordinate(claim);
        if (!*sub) return;
        /* Reads at one position are in another order, for example by minimiser, which cannot be
           checked, because SS lacks the value of -K. */
        claim->candidates[0] = claim->candidates[1];
        claim->candidates[0].note = NULL;
        claim->n_candidates = 1;
    } else if (strcmp(order, "queryname") == 0) {
        bool natural = strcmp(sub, "natural") == 0;
        bool lexical = strcmp(sub, "lexicographical") == 0;
        if (natural || !lexical) add_natural(claim);
        if (lexical || !natural) add_lexical(claim);
    } else {
        /* Some programs write no SO, or SO:unknown, with an SS that begins with "unsorted:". */
        add_sub_sort(claim, sub_sort_of("unsorted", sub_sort));
    }
}

/* Reads a tag of the @HD line into value; "" if there is none. */
static void read_tag(sam_hdr_t *header, const char *tag, kstring_t *value)
{
    if (sam_hdr_find_tag_hd(header, tag, value) == 0) return;
    value->l = 0;
    xalloc_require(kputs("", value) >= 0);
}

void order_claim_of_header(sam_hdr_t *header, struct order_claim *claim)
{
    static const char *const tags[] = {"SO", "SS", "GO"};
    kstring_t values[3] = {{0}, {0}, {0}};
    *claim = (struct order_claim){0};
    char *says = claim->header_says;
    size_t room = sizeof claim->header_says, n = 0;
    for (int i = 0; i < 3; i++) {
        read_tag(header, tags[i], &values[i]);
        if (values[i].l == 0 || n >= room) continue;
        int added = snprintf(says + n, room - n, "%s%s:%s", n ? " " : "@HD ", tags[i], values[i].s);
        n += added > 0 ? (size_t)added : 0;
    }
    if (n == 0) (void)snprintf(says, room, "no SO in @HD");
    claim->is_unsorted = strcmp(values[0].s, "unsorted") == 0;
    find_candidates(values[0].s, values[1].s, claim);
    for (int i = 0; i < 3; i++) ks_free(&values[i]);
}

void order_claim_of_rules(const struct sort_rules *rules, struct order_claim *claim)
{
    *claim = (struct order_claim){0};
    switch (rules->order) {
    case SORT_COORDINATE:
    case SORT_COORDINATE_LONG: add_coordinate(claim); break;
    case SORT_NAME_NATURAL: add_natural(claim); break;
    case SORT_NAME_LEXICAL: add_lexical(claim); break;
    case SORT_TAG: add_tag(claim, rules->tag, rules->below); break;
    case SORT_TEMPLATE:
        (void)add(claim, SORT_TEMPLATE, sort_order_text(SORT_TEMPLATE));
        break;
    case SORT_MINHASH:
        (void)add(claim, SORT_MINHASH, sort_order_text(SORT_MINHASH));
        /* The sorter may have reverse-complemented the read. Then the position of the minimiser in
           the original read is unknown. */
        if (!rules->minhash.forward_only) claim->candidates[0].part = ORDER_MINIMISERS;
        break;
    case SORT_SHUFFLE:
        (void)snprintf(add(claim, SORT_SHUFFLE, "")->words, sizeof claim->candidates->words,
                       "in this random order");
        break;
    }
    /* Keeps only the stricter candidate. */
    claim->n_candidates = 1;
    claim->candidates[0].rules = *rules;
}
