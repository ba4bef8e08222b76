/* order_claim.c -- see order_claim.h. */
#include "order/order_claim.h"

#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <stdio.h>
#include <string.h>

/* Adds an order by its name in messages. */
static struct order_candidate *add(struct order_claim *claim, enum sort_order order,
                                   const char *text)
{
    struct order_candidate *candidate = &claim->candidates[claim->n_candidates++];
    *candidate = (struct order_candidate){.rules = {.order = order}};
    (void)snprintf(candidate->words, sizeof candidate->words, "sorted by %s", text);
    return candidate;
}

/* Adds the order that was added last once more, with only a part of its keys compared. */
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

static void add_template(struct order_claim *claim)
{
    (void)add(claim, SORT_TEMPLATE, sort_order_text(SORT_TEMPLATE));
}

/* Adds the order that follows "unsorted:" in SS: "template-coordinate", or "TAG:ORDER". */
static void add_sub_sort(struct order_claim *claim, const char *sub)
{
    static const enum sort_order below[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL};
    if (strcmp(sub, sort_order_name(SORT_TEMPLATE)) == 0) {
        add_template(claim);
        return;
    }
    if (strlen(sub) < 4 || sub[2] != ':') return;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (strcmp(sub + 3, sort_order_name(below[i])) == 0) add_tag(claim, sub, below[i]);
}

/* What follows "ORDER:" in the value of SS. "" if it is missing or belongs to another order: the
   specification says to ignore it then. */
static const char *sub_sort_of(const char *order, const char *sub_sort)
{
    size_t n = strlen(order);
    bool fits = strncmp(sub_sort, order, n) == 0 && sub_sort[n] == ':';
    return fits ? sub_sort + n + 1 : "";
}

/* Adds what SO:order and SS:sub_sort, "" where one is missing, may mean. */
static void find_candidates(const char *order, const char *sub_sort, struct order_claim *claim)
{
    const char *sub = sub_sort_of(order, sub_sort);
    if (strcmp(order, "coordinate") == 0) {
        add_coordinate(claim);
        if (!*sub) return;
        /* Reads at one place are in some other order, for example by minimiser. It cannot be
           checked, because SS does not give the value of -K. */
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
    case SORT_TEMPLATE: add_template(claim); break;
    case SORT_MINHASH:
        (void)add(claim, SORT_MINHASH, sort_order_text(SORT_MINHASH));
        /* The sorter may have turned the read. Then it is unknown where in the read it found the
           minimiser first. */
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
