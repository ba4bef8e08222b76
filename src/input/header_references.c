/* header_references.c -- see header_references.h. */
#include "input/header_references.h"

#include "bam/header_text.h"
#include "util/diag.h"
#include "util/xalloc.h"

#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct reference {              /* from an @SQ line or the list */
    struct text name;           /* no text: no such reference */
    uint64_t n_bases;
};

static struct reference of_list(const sam_hdr_t *header, size_t i)
{
    if (i >= (size_t)header->n_targets) return (struct reference){{NULL, 0}, 0};
    return (struct reference){text_of(header->target_name[i]), header->target_len[i]};
}

static struct reference of_line(struct text line)
{
    struct text rest = header_line_rest(line), field;
    struct reference ref = {{NULL, 0}, 0};
    while (header_next_field(&rest, &field)) {
        struct text name = header_field_value(field, "SN:");
        struct text length = header_field_value(field, "LN:");
        if (name.at && !ref.name.at) ref.name = name;
        /* strtoull stops at the end of the field, or before it. */
        if (length.at) ref.n_bases = strtoull(length.at, NULL, 10);
    }
    return ref;
}

/* True if both are the same. The list cannot hold more than 2^32 - 1 bases. */
static bool agree(struct reference line, struct reference list)
{
    bool same_length = line.n_bases == list.n_bases ||
                       (list.n_bases == UINT32_MAX && line.n_bases > UINT32_MAX);
    return line.name.at && list.name.at && text_equal(line.name, list.name) && same_length;
}

/* Finds the first @SQ line that differs from the list, or the first reference after the lines.
   Returns false if there is none, or if there are no @SQ lines. */
static bool find_difference(const sam_hdr_t *header, struct reference *in_line, size_t *number)
{
    const char *at = header->text;
    struct text line;
    *number = 0;
    while (header_next_line(&at, &line)) {
        if (!header_line_is(line, "@SQ")) continue;
        *in_line = of_line(line);
        if (!agree(*in_line, of_list(header, *number))) return true;
        ++*number;
    }
    in_line->name.at = NULL;
    return *number > 0 && *number < (size_t)header->n_targets;
}

/* Maps the name of each @SQ line to its offset in the text. Returns the number of lines, 0 if one
   has no name, which htslib will refuse, or -1 after a message. */
static int read_lines(const char *text, const char *file, struct text_map *places)
{
    const char *at = text;
    struct text line;
    int n = 0;
    while (header_next_line(&at, &line)) {
        if (!header_line_is(line, "@SQ")) continue;
        struct text name = of_line(line).name;
        size_t place = (size_t)(line.at - text);
        if (!name.at) return 0;
        if (text_map_put(places, name, place) < place) {
            diag_error("the header of '%s' is damaged: it has two @SQ lines of the name '%.*s'",
                       file, (int)name.n, name.at);
            return -1;
        }
        n++;
    }
    return n;
}

static void put_line(kstring_t *out, struct text line)
{
    xalloc_require(kputsn(line.at, line.n, out) >= 0 && kputc('\n', out) >= 0);
}

/* Writes the line of reference i of the list. A line with another length describes another
   sequence. */
static void put_reference(const sam_hdr_t *header, const struct text_map *places, size_t i,
                          kstring_t *out)
{
    struct reference ref = of_list(header, i);
    struct text line;
    const size_t *place = text_map_find(places, ref.name);
    const char *at = place ? header->text + *place : "";
    if (header_next_line(&at, &line) && agree(of_line(line), ref))
        put_line(out, line);
    else
        xalloc_require(ksprintf(out, "@SQ\tSN:%s\tLN:%" PRIu64 "\n", ref.name.at, ref.n_bases) >=
                       0);
}

/* Rewrites all lines of the header, with an @SQ line for each reference of the list. */
static void rewrite(sam_hdr_t *header, const struct text_map *places, int n_lines)
{
    const char *at = header->text;
    kstring_t out = KS_INITIALIZE;
    struct text line;
    size_t n_refs = (size_t)header->n_targets, i = 0;
    while (header_next_line(&at, &line)) {
        if (!header_line_is(line, "@SQ")) {
            put_line(&out, line);
            continue;
        }
        /* All remaining references are written in place of the last line. */
        size_t end = --n_lines == 0 ? n_refs : i + 1;
        for (; i < end && i < n_refs; i++) put_reference(header, places, i, &out);
    }
    for (; i < n_refs; i++) put_reference(header, places, i, &out);     /* no @SQ lines */
    xalloc_require(kputs("", &out) >= 0);
    free(header->text);
    header->l_text = ks_len(&out);
    header->text = ks_release(&out);
}

static char *describe(struct reference ref)
{
    if (!ref.name.at) return xstrdup("missing");
    return xasprintf("'%.*s' of %" PRIu64 " bases", (int)ref.name.n, ref.name.at, ref.n_bases);
}

static void warn(const sam_hdr_t *header, const char *file, struct reference in_line, size_t number)
{
    char *of_lines = describe(in_line), *listed = describe(of_list(header, number));
    diag_warning("@SQ lines of '%s' are rewritten from its list of references: reference %d is %s "
                 "in the lines, %s in the list", file, (int)number + 1, of_lines, listed);
    free(of_lines);
    free(listed);
}

/* Refuses a list that cannot be written as @SQ lines. -1 after a message. */
static int check_list(const sam_hdr_t *header, const char *file)
{
    for (int i = 0; i < header->n_targets; i++) {
        const char *name = header->target_name[i], *problem = NULL;
        if (!*name)
            problem = "has no name";
        else if (name[strcspn(name, "\t\n")])
            problem = "has a name with a tab or a newline in it";
        else if (header->target_len[i] == 0)
            problem = "has no length above 0";
        if (!problem) continue;
        diag_error("the header of '%s' is damaged: reference %d of its list, '%s', %s", file, i + 1,
                   name, problem);
        return -1;
    }
    return 0;
}

int header_references_settle(sam_hdr_t *header, const char *file, bool is_quiet)
{
    struct reference in_line;
    struct text_map places = {NULL};
    size_t number;
    if (check_list(header, file) < 0) return -1;
    if (!header->text || header->hrecs) return 0;
    if (!find_difference(header, &in_line, &number)) {
        if (number == 0 && header->n_targets > 0) rewrite(header, &places, 0);
        return 0;
    }
    int n_lines = read_lines(header->text, file, &places);
    if (n_lines > 0 && !is_quiet) warn(header, file, in_line, number);
    if (n_lines > 0) rewrite(header, &places, n_lines);
    text_map_release(&places);
    return n_lines < 0 ? -1 : 0;
}
