/* order_claim.c -- see order_claim.h. */
#include "order/order_claim.h"

#include <stdio.h>
#include <string.h>

static struct order_candidate *add(struct order_claim *claim, enum sort_order order,
                                   const char *words)
{
    struct order_candidate *candidate = &claim->candidates[claim->n_candidates++];
    *candidate = (struct order_candidate){.rules = {.order = order}};
    (void)snprintf(candidate->words, sizeof candidate->words, "%s", words);
    return candidate;
}

/* The same order again, of which less is compared. */
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
    (void)add(claim, SORT_COORDINATE, "sorted by coordinate");
    (void)add_looser(claim, ORDER_PLACES, "reads at one place are not in the order of samtools");
}

static void add_natural(struct order_claim *claim)
{
    (void)add(claim, SORT_NAME_NATURAL, "sorted by read name, numbers by value");
    (void)add_looser(claim, ORDER_NAMES, "reads of one name are not in the order of samtools 1.20");
    add_looser(claim, ORDER_NAMES, "leading zeros count, as in samtools 1.16")->rules.zeros_count =
        true;
}

static void add_lexical(struct order_claim *claim)
{
    (void)add(claim, SORT_NAME_LEXICAL, "sorted by read name, character by character");
    (void)add_looser(claim, ORDER_NAMES, "reads of one name are not in the order of samtools");
}

static void add_tag(struct order_claim *claim, const char *tag, enum sort_order below)
{
    const char *rest = below == SORT_COORDINATE     ? "coordinate"
                       : below == SORT_NAME_NATURAL ? "read name, numbers by value"
                                                    : "read name, character by character";
    char words[96];
    (void)snprintf(words, sizeof words, "sorted by tag %.2s, then by %s", tag, rest);
    struct sort_rules *rules = &add(claim, SORT_TAG, words)->rules;
    rules->below = below;
    memcpy(rules->tag, tag, 2);
}

static void add_template(struct order_claim *claim)
{
    (void)add(claim, SORT_TEMPLATE, "sorted by template coordinate");
}

/* "TAG:coordinate" and the like behind "unsorted:". */
static void add_sub_sort(struct order_claim *claim, const char *sub)
{
    if (strcmp(sub, "template-coordinate") == 0) {
        add_template(claim);
        return;
    }
    if (strlen(sub) < 4 || sub[2] != ':') return;
    const char *below = sub + 3;
    if (strcmp(below, "coordinate") == 0)
        add_tag(claim, sub, SORT_COORDINATE);
    else if (strcmp(below, "queryname:natural") == 0)
        add_tag(claim, sub, SORT_NAME_NATURAL);
    else if (strcmp(below, "queryname:lexicographical") == 0)
        add_tag(claim, sub, SORT_NAME_LEXICAL);
}

/* What follows "order:" in the value of SS; "" if it is missing or belongs to another order, as the
   specification says that it is to be ignored then. */
static const char *sub_sort_of(const char *order, const char *sub_sort)
{
    size_t n = strlen(order);
    bool fits = strncmp(sub_sort, order, n) == 0 && sub_sort[n] == ':';
    return fits ? sub_sort + n + 1 : "";
}

static void find_candidates(const char *order, const char *sub_sort, struct order_claim *claim)
{
    const char *sub = sub_sort_of(order, sub_sort);
    if (strcmp(order, "coordinate") == 0) {
        add_coordinate(claim);
        if (!*sub) return;
        /* Reads of one place are in another order, such as by minimiser; SS does not tell -K. */
        claim->candidates[0] = claim->candidates[1];
        claim->candidates[0].note = NULL;
        claim->n_candidates = 1;
    } else if (strcmp(order, "queryname") == 0) {
        bool natural = strcmp(sub, "natural") == 0;
        bool lexical = strcmp(sub, "lexicographical") == 0;
        if (natural || !lexical) add_natural(claim);
        if (lexical || !natural) add_lexical(claim);
    } else {
        /* Some programs leave SO away, or say unknown, with an SS of unsorted. */
        add_sub_sort(claim, sub_sort_of("unsorted", sub_sort));
    }
}

/* Reads a tag of the @HD line into value; "" if there is none. */
static void read_tag(sam_hdr_t *header, const char *tag, kstring_t *value)
{
    if (sam_hdr_find_tag_hd(header, tag, value) != 0) {
        value->l = 0;
        (void)kputs("", value);
    }
}

static const char *text_of(const kstring_t *value)
{
    return value->s ? value->s : "";
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
        const char *value = text_of(&values[i]);
        if (!*value || n >= room) continue;
        int added = snprintf(says + n, room - n, "%s%s:%s", n ? " " : "@HD ", tags[i], value);
        n += added > 0 ? (size_t)added : 0;
    }
    if (n == 0) (void)snprintf(says, room, "no SO in @HD");
    find_candidates(text_of(&values[0]), text_of(&values[1]), claim);
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
        (void)add(claim, SORT_MINHASH, "sorted by coordinate and minimiser");
        /* Reads were turned: where in the read its minimiser was found first is not known. */
        if (!rules->minhash.forward_only) claim->candidates[0].part = ORDER_MINIMISERS;
        break;
    case SORT_SHUFFLE: (void)add(claim, SORT_SHUFFLE, "in this random order"); break;
    }
    /* Whoever names an order means all of it. */
    claim->n_candidates = 1;
    claim->candidates[0].rules = *rules;
}
