/*
 * fuzz_header.c -- headers with any text: the lines and fields of header_text.h, the union of
 * several headers, the @HD line of each order, read groups of --template-coordinate.
 *
 * The input is up to three SAM headers with a byte 0x1e between them. Each gets the same @SQ lines,
 * so that most can be united. What the union promises is checked: references and lines of the first
 * stay, each ID of a later input has a line, records are renamed within their bound, and the result
 * can be parsed again.
 */
#include "fuzz_record.h"

#include "bam/bam_aux.h"
#include "bam/bam_check.h"
#include "bam/header_text.h"
#include "bam_sort_key.h"
#include "input/header_union.h"

#include <htslib/kstring.h>

enum { MAX_HEADERS = 3, SEPARATOR = 0x1e };

static const char references[] = "@SQ\tSN:a\tLN:1000\n@SQ\tSN:b\tLN:70\n@SQ\tSN:c\tLN:5\n";

/* Lines and fields lie in the text one after the other. Lines are not empty. */
static void check_lines(const char *text)
{
    const char *at = text, *before = text, *end = text + strlen(text);
    struct text line, field;
    RELEASED(text_map_release) struct text_map map = {NULL};
    size_t n = 0;
    while (header_next_line(&at, &line)) {
        FUZZ_CHECK(line.at >= before && line.at + line.n == at && at <= end && line.n > 0);
        FUZZ_CHECK(!memchr(line.at, '\n', line.n));
        before = at;
        bool is_new = !text_map_find(&map, line);
        size_t shown = text_map_put(&map, line, n);
        FUZZ_CHECK(is_new ? shown == n : shown < n);
        FUZZ_CHECK(text_map_find(&map, line) && *text_map_find(&map, line) == shown);
        n++;
        if (line.n < 3) continue;
        struct text rest = header_line_rest(line);
        while (header_next_field(&rest, &field)) {
            FUZZ_CHECK(field.at > line.at && field.at + field.n <= line.at + line.n);
            struct text id = header_field_value(field, "ID:");
            FUZZ_CHECK(!id.at || id.at + id.n == field.at + field.n);
        }
    }
    FUZZ_CHECK(at == end);
}

/* True if the header has a line of this type with this ID. */
static bool header_has(sam_hdr_t *header, const char *type, const char *id)
{
    OWNED_TEXT kstring_t line = KS_INITIALIZE;
    int r = sam_hdr_find_line_id(header, type, "ID", id, &line);
    return r == 0;
}

/* Renames a record with RG:Z and PG:Z. Its new IDs must be in the united header. */
static void check_rename(struct header_union *u, size_t input, sam_hdr_t *header, int number)
{
    const char *rg = sam_hdr_line_name(header, "RG", number % 4);
    const char *pg = sam_hdr_line_name(header, "PG", number % 4);
    size_t rg_bytes = rg ? strlen(rg) + 4 : 0, pg_bytes = pg ? strlen(pg) + 4 : 0;
    size_t n = 38 + rg_bytes + pg_bytes;
    uint8_t *rec = fuzz_alloc(n), *at = rec + 38;
    memset(rec, 0, n);
    rec[12] = 2;
    rec[36] = 'r';
    for (int k = 0; k < 4; k++) rec[k] = (uint8_t)((n - 4) >> 8 * k);
    if (rg) {
        memcpy(at, "RGZ", 3);
        memcpy(at + 3, rg, rg_bytes - 3);
        at += rg_bytes;
    }
    if (pg) {
        memcpy(at, "PGZ", 3);
        memcpy(at + 3, pg, pg_bytes - 3);
    }
    FUZZ_CHECK(bam_record_check(rec, 3) == NULL);
    static const struct id_renames none;
    const struct id_renames *renames = header_union_renames(u, input);
    if (!renames) renames = &none;
    size_t bound = id_renames_rewrite_bound(renames, rec);
    OWNED uint8_t *out = fuzz_alloc(bound);
    size_t size = id_renames_rewrite(renames, rec, out);
    FUZZ_CHECK(size <= bound && size == bam_record_bytes(out));
    FUZZ_CHECK(bam_record_check(out, 3) == NULL);
    struct bam_aux aux;
    sam_hdr_t *united = u->header;
    if (rg) FUZZ_CHECK(bam_aux_find(out, "RG", &aux) == 1);
    if (rg) FUZZ_CHECK(header_has(united, "RG", (const char *)aux.value));
    if (pg) FUZZ_CHECK(bam_aux_find(out, "PG", &aux) == 1);
    if (pg) FUZZ_CHECK(header_has(united, "PG", (const char *)aux.value));
    free(rec);
}

static void check_union(sam_hdr_t **headers, size_t n)
{
    static const char *const names[MAX_HEADERS] = {"x", "y", "z"};
    struct header_union *u = header_union_create(headers, names, n);
    FUZZ_CHECK(u || diag_failed());
    if (!u) return;
    sam_hdr_t *united = u->header;
    FUZZ_CHECK(header_union_check_references(headers[0], "x", united, "united") == 0);
    FUZZ_CHECK(!header_union_renames(u, 0));
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++) check_rename(u, i, headers[i], k);
    const char *text = sam_hdr_str(united);
    FUZZ_CHECK(text);
    OWNED_HEADER sam_hdr_t *again = sam_hdr_parse(strlen(text), text);
    FUZZ_CHECK(again);
    check_lines(text);
    header_union_destroy(u);
}

static void check_rules(sam_hdr_t *header)
{
    static const enum sort_order orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL,
                                             SORT_TAG, SORT_TEMPLATE, SORT_MINHASH, SORT_SHUFFLE};
    struct bam_key_template *ends = bam_key_template_create(header);
    FUZZ_CHECK(ends);
    bam_key_template_destroy(ends);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct sort_rules rules = {.order = orders[i], .tag = {'C', 'B'}};
        OWNED_HEADER sam_hdr_t *copy = sam_hdr_dup(header);
        FUZZ_CHECK(copy);
        /* This may fail: htslib finds some damage only when it adds to the header. */
        if (sort_rules_update_header(&rules, i % 2, copy) == 0) {
            OWNED_TEXT kstring_t value = KS_INITIALIZE;
            FUZZ_CHECK(sam_hdr_find_tag_hd(copy, "SO", &value) == 0);
            FUZZ_CHECK(sam_hdr_str(copy));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    sam_hdr_t *headers[MAX_HEADERS];
    size_t n = 0;
    const uint8_t *end = data + n_bytes;
    diag_renew();
    for (const uint8_t *at = data; n < MAX_HEADERS;) {
        const uint8_t *stop = at < end ? memchr(at, SEPARATOR, (size_t)(end - at)) : NULL;
        size_t part = (size_t)((stop ? stop : end) - at);
        OWNED char *text = fuzz_alloc(sizeof references + part);
        memcpy(text, references, sizeof references - 1);
        if (part > 0) memcpy(text + sizeof references - 1, at, part);
        text[sizeof references - 1 + part] = '\0';
        check_lines(text);
        sam_hdr_t *header = sam_hdr_parse(sizeof references - 1 + part, text);
        /* As when a file is opened: a header that htslib cannot parse is refused. */
        if (header && sam_hdr_count_lines(header, "SQ") != 3) {
            sam_hdr_destroy(header);
            header = NULL;
        }
        if (header) headers[n++] = header;
        if (!stop) break;
        at = stop + 1;
    }
    for (size_t i = 0; i < n; i++) check_rules(headers[i]);
    if (n > 0) check_union(headers, n);
    for (size_t i = 0; i < n; i++) sam_hdr_destroy(headers[i]);
    return 0;
}
