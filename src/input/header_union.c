/*
 * header_union.c -- see header_union.h.
 *
 * Headers are read as text, line by line: htslib would parse the @SQ lines of each, which costs
 * hundreds of bytes a line, and thousands of inputs of 100,000 references would fill the memory.
 * Strings are pieces of these texts and are looked up by hash, so that the work is linear in the
 * size of all headers.
 *
 * First all IDs of all inputs are collected, since a new ID must not be one that a later input has.
 * Then each input is united with those before it. The content of a line, to be looked up among the
 * lines so far, is its ID and its sorted tags, with the program that it refers to (PP of @PG, PG of
 * @RG) replaced by that program's ID in the united header. With that done from the oldest program
 * of a chain to the youngest, contents are the same only where whole chains are.
 *
 * An ID that is referred to but has no line takes part as a line without content: otherwise it
 * could come to mean a line of another input.
 */
#include "input/header_union.h"

#include "bam/header_text.h"
#include "input/id_renames.h"
#include "util/diag.h"
#include "util/grow.h"

#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdlib.h>

enum kind { GROUP = ID_GROUP, PROGRAM = ID_PROGRAM, OTHER = N_ID_KINDS, N_KINDS };

enum { TYPE_BYTES = 3, TAG_BYTES = 3 };     /* "@RG", "ID:" */

static const char *const line_types[N_ID_KINDS] = {"@RG", "@PG"};
static const char *const ref_tags[N_ID_KINDS] = {"PG:", "PP:"};

struct header_union {
    sam_hdr_t *header;
    size_t n_inputs;
    struct id_renames (*renames)[N_ID_KINDS];   /* of each input */
};

struct line {                           /* an ID of an input */
    struct text text;                   /* the whole line; none if the ID is only referred to */
    struct text id;
    struct text ref;                    /* the program that it refers to, or none */
    size_t parent;                      /* ... as an index, if there is one */
    struct text new_id;                 /* in the united header; none as long as it is unknown */
    bool is_added;                      /* the united header gets this line */
    bool is_visited;                    /* by unite_chain, as the next one */
    size_t child;
};

struct lines {
    struct line *at;
    size_t n, room;
    struct text_map places;             /* index by ID */
};

/* What is known of one kind of lines of the inputs that are united so far. */
struct kind_state {
    struct text last_of_first;          /* the first input's last line of this kind */
    kstring_t added;                    /* lines of later inputs, to stand behind it */
    /* By ID, every one that an input has or that was made: 0 if it is not in use yet, else the
       number with which to begin to look for another one. Of OTHER, by line: its first input. */
    struct text_map numbers;
    struct text_map contents;           /* by content: place in `kept` of the ID that it has now */
};

struct builder {
    sam_hdr_t *const *headers;
    const char *const *file_names;
    size_t n_inputs;
    struct lines (*lines)[N_ID_KINDS];  /* of each input */
    struct kind_state kinds[N_KINDS];
    int64_t n_reference_lines;          /* of the first input */
    kstring_t content;                  /* scratch of unite_line */
    struct text *fields;                /* scratch of make_content */
    size_t fields_room;
    struct text *kept;                  /* strings that were made, each its own allocation */
    size_t n_kept, kept_room;
};

static int no_memory(void)
{
    diag_no_memory();
    return -1;
}

/* Makes room for one more element behind n in an array of *room. */
static int grow(void **array, size_t n, size_t *room, size_t element_bytes)
{
    return grow_array(array, room, n + 1, n < 4 ? 7 - n : n - 1, element_bytes) < 0 ? no_memory()
                                                                                    : 0;
}

static int put(kstring_t *out, struct text t)
{
    return t.n > 0 && kputsn(t.at, t.n, out) < 0 ? no_memory() : 0;
}

static int put_char(kstring_t *out, char c)
{
    return kputc(c, out) < 0 ? no_memory() : 0;
}

/* Replaces *t by a copy that stays until the builder goes, the last of b->kept. */
static int keep(struct builder *b, struct text *t)
{
    void *array = b->kept;
    if (grow(&array, b->n_kept, &b->kept_room, sizeof *b->kept) < 0) return -1;
    b->kept = array;
    char *copy = malloc(t->n + 1);
    if (!copy) return no_memory();
    if (t->n > 0) memcpy(copy, t->at, t->n);
    t->at = copy;
    b->kept[b->n_kept++] = *t;
    return 0;
}

/* Reading the headers. */

/* Adds a line unless there is one with its ID; *place is then that one's. */
static int add_line(struct lines *lines, const struct line *line, size_t *place)
{
    int r = text_map_put(&lines->places, line->id, lines->n, place);
    if (r <= 0) return r;
    void *array = lines->at;
    if (grow(&array, lines->n, &lines->room, sizeof *lines->at) < 0) return -1;
    lines->at = array;
    lines->at[lines->n++] = *line;
    return 0;
}

static int read_id_line(struct builder *b, size_t i, enum kind kind, struct text text)
{
    struct line line = {.text = text};
    struct text rest = header_line_rest(text), field;
    while (header_next_field(&rest, &field)) {
        if (!line.id.at) line.id = header_field_value(field, "ID:");
        if (!line.ref.at) line.ref = header_field_value(field, ref_tags[kind]);
    }
    if (!line.id.at) {
        diag_error("the header of '%s' has an %s line without ID; mend it with 'samtools reheader'",
                   b->file_names[i], line_types[kind]);
        return -1;
    }
    size_t place;
    return add_line(&b->lines[i][kind], &line, &place);
}

/* Adds a line of the other types unless an earlier input has it. */
static int read_other_line(struct builder *b, size_t i, struct text text)
{
    size_t first_input;
    struct kind_state *state = &b->kinds[OTHER];
    if (text_map_put(&state->numbers, text, i, &first_input) < 0) return -1;
    if (i == 0 || first_input < i) return 0;
    return put(&state->added, text) < 0 ? -1 : put_char(&state->added, '\n');
}

static int read_line(struct builder *b, size_t i, struct text text)
{
    if (header_line_is(text, "@HD")) return 0;
    if (header_line_is(text, "@SQ")) {
        if (i == 0) b->n_reference_lines++;
        return 0;
    }
    enum kind kind = GROUP;
    while (kind < OTHER && !header_line_is(text, line_types[kind])) kind++;
    if (i == 0) b->kinds[kind].last_of_first = text;
    return kind == OTHER ? read_other_line(b, i, text) : read_id_line(b, i, kind, text);
}

/* Sets the parents of all lines, and gives a place to the programs that are only referred to. */
static int link_lines(struct lines lines[N_ID_KINDS])
{
    struct lines *programs = &lines[PROGRAM];
    for (enum kind kind = GROUP; kind < OTHER; kind++) {
        for (size_t k = 0; k < lines[kind].n; k++) {
            struct line missing = {.id = lines[kind].at[k].ref};
            size_t parent;
            if (!missing.id.at) continue;
            if (add_line(programs, &missing, &parent) < 0) return -1;
            lines[kind].at[k].parent = parent;
        }
    }
    return 0;
}

static int read_header(struct builder *b, size_t i)
{
    struct lines *lines = b->lines[i];
    const char *at = header_whole_text(b->headers[i]);
    if (!at) return no_memory();
    struct text text;
    while (header_next_line(&at, &text))
        if (read_line(b, i, text) < 0) return -1;
    if (link_lines(lines) < 0) return -1;
    for (enum kind kind = GROUP; kind < OTHER; kind++) {
        for (size_t k = 0; k < lines[kind].n; k++) {
            size_t number;
            if (text_map_put(&b->kinds[kind].numbers, lines[kind].at[k].id, 0, &number) < 0)
                return -1;
        }
        text_map_release(&lines[kind].places);
    }
    return 0;
}

/* Uniting. */

static int compare_fields(const void *a, const void *b)
{
    return text_compare(*(const struct text *)a, *(const struct text *)b);
}

/* True if this value is the field's, and not only one that reads the same. */
static bool has_value(struct text field, struct text value)
{
    return value.at && value.at + value.n == field.at + field.n;
}

/* Writes a field, behind a tab, as the united header has it. */
static int put_field(const struct builder *b, size_t i, const struct line *line, struct text field,
                     kstring_t *out)
{
    struct text value = {NULL, 0};
    if (has_value(field, line->id)) value = line->new_id;
    if (has_value(field, line->ref)) value = b->lines[i][PROGRAM].at[line->parent].new_id;
    if (value.at) field.n = TAG_BYTES;
    return put_char(out, '\t') < 0 || put(out, field) < 0 || put(out, value) < 0 ? -1 : 0;
}

/*
 * Writes to b->content what makes the line what it is. A newline marks the special cases, since no
 * line holds one: a missing line; and where a chain of programs runs into itself a mark of the
 * input, since there is no oldest program to compare: such chains are not united.
 */
static int make_content(struct builder *b, size_t i, const struct line *line)
{
    b->content.l = 0;
    if (put(&b->content, line->id) < 0) return -1;
    if (!line->text.at) return put_char(&b->content, '\n');
    size_t n = 0;
    struct text rest = header_line_rest(line->text), field;
    while (header_next_field(&rest, &field)) {
        if (has_value(field, line->id)) continue;
        void *array = b->fields;
        if (grow(&array, n, &b->fields_room, sizeof *b->fields) < 0) return -1;
        b->fields = array;
        b->fields[n++] = field;
    }
    if (n > 0) qsort(b->fields, n, sizeof *b->fields, compare_fields);
    for (size_t k = 0; k < n; k++)
        if (put_field(b, i, line, b->fields[k], &b->content) < 0) return -1;
    if (line->ref.at && !b->lines[i][PROGRAM].at[line->parent].new_id.at &&
        ksprintf(&b->content, "\n%zu", i) < 0)
        return no_memory();
    return 0;
}

/* Makes an ID that no line has: the line's own, "-" and a number from `from` on. */
static int make_id(struct builder *b, struct kind_state *state, struct line *line, size_t from)
{
    kstring_t name = KS_INITIALIZE;
    size_t number = from, in_use;
    int r = 0;
    do {
        name.l = 0;
        if (put(&name, line->id) < 0 || ksprintf(&name, "-%zu", number++) < 0) r = no_memory();
    } while (r == 0 && text_map_find(&state->numbers, (struct text){name.s, name.l}));
    line->new_id = (struct text){name.s, name.l};
    if (r == 0) r = keep(b, &line->new_id);
    if (r == 0) r = text_map_put(&state->numbers, line->new_id, 1, &in_use);
    free(name.s);
    if (r < 0) return -1;
    *text_map_find(&state->numbers, line->id) = number;
    return 0;
}

/* Gives the line its own ID unless that is in use. */
static int choose_id(struct builder *b, size_t i, struct kind_state *state, struct line *line)
{
    size_t *number = text_map_find(&state->numbers, line->id);
    if (*number > 0) return make_id(b, state, line, *number < i + 1 ? i + 1 : *number);
    *number = 1;
    line->new_id = line->id;
    return 0;
}

/* Gives the line its ID in the united header: that of the same line of an earlier input, or one
   that no line has so far. The line's parent, if it has one, has its own already. */
static int unite_line(struct builder *b, size_t i, enum kind kind, struct line *line)
{
    struct kind_state *state = &b->kinds[kind];
    if (make_content(b, i, line) < 0) return -1;
    struct text content = {b->content.s, b->content.l};
    size_t *place = text_map_find(&state->contents, content), unused;
    if (place) {
        line->new_id = b->kept[*place];
        return 0;
    }
    if (choose_id(b, i, state, line) < 0 || keep(b, &content) < 0 || keep(b, &line->new_id) < 0 ||
        text_map_put(&state->contents, content, b->n_kept - 1, &unused) < 0)
        return -1;
    line->is_added = i > 0 && line->text.at;
    return 0;
}

/* Unites a program and all that it goes back to, the oldest first. */
static int unite_chain(struct builder *b, size_t i, size_t program)
{
    const size_t none = SIZE_MAX;
    struct line *at = b->lines[i][PROGRAM].at;
    size_t next = program, last = none;
    while (next != none && !at[next].is_visited) {
        at[next].is_visited = true;
        at[next].child = last;
        last = next;
        next = at[next].ref.at ? at[next].parent : none;
    }
    for (; last != none; last = at[last].child)
        if (unite_line(b, i, PROGRAM, &at[last]) < 0) return -1;
    return 0;
}

static int put_added_line(struct builder *b, size_t i, enum kind kind, const struct line *line)
{
    kstring_t *out = &b->kinds[kind].added;
    struct text rest = header_line_rest(line->text), field;
    if (put(out, (struct text){line->text.at, TYPE_BYTES}) < 0) return -1;
    while (header_next_field(&rest, &field))
        if (put_field(b, i, line, field, out) < 0) return -1;
    return put_char(out, '\n');
}

static int unite_input(struct builder *b, size_t i)
{
    struct lines *lines = b->lines[i];
    for (size_t k = 0; k < lines[PROGRAM].n; k++)
        if (unite_chain(b, i, k) < 0) return -1;
    for (size_t k = 0; k < lines[GROUP].n; k++)
        if (unite_line(b, i, GROUP, &lines[GROUP].at[k]) < 0) return -1;
    for (enum kind kind = GROUP; kind < OTHER; kind++)
        for (size_t k = 0; k < lines[kind].n; k++)
            if (lines[kind].at[k].is_added && put_added_line(b, i, kind, &lines[kind].at[k]) < 0)
                return -1;
    return 0;
}

/* The result. */

static int make_renames(struct id_renames *renames, const struct lines *lines)
{
    size_t n = 0;
    for (size_t k = 0; k < lines->n; k++) n += !text_equal(lines->at[k].id, lines->at[k].new_id);
    if (id_renames_init(renames, n) < 0) return -1;
    for (size_t k = 0; k < lines->n; k++)
        if (!text_equal(lines->at[k].id, lines->at[k].new_id) &&
            id_renames_add(renames, lines->at[k].id, lines->at[k].new_id) < 0)
            return -1;
    id_renames_sort(renames);
    return 0;
}

static int put_added(const struct builder *b, enum kind kind, kstring_t *out)
{
    const kstring_t *added = &b->kinds[kind].added;
    return put(out, (struct text){added->s, added->l});
}

/* Writes the first input's header with the added lines behind its own of their kind. */
static int put_united_text(const struct builder *b, kstring_t *out)
{
    const char *at = header_whole_text(b->headers[0]);
    struct text line;
    if (!at) return no_memory();
    while (header_next_line(&at, &line)) {
        if (put(out, line) < 0 || put_char(out, '\n') < 0) return -1;
        for (enum kind kind = GROUP; kind < N_KINDS; kind++)
            if (line.at == b->kinds[kind].last_of_first.at && put_added(b, kind, out) < 0)
                return -1;
    }
    return 0;
}

/*
 * A BAM file may lack @SQ lines in its text; its references are then only in htslib's list, which a
 * text does not show, and all added lines go to the end.
 */
static sam_hdr_t *make_header(struct builder *b)
{
    kstring_t text = KS_INITIALIZE;
    sam_hdr_t *header = NULL;
    size_t n_added_bytes = 0;
    for (enum kind kind = GROUP; kind < N_KINDS; kind++) n_added_bytes += b->kinds[kind].added.l;
    bool to_end = n_added_bytes > 0 && b->n_reference_lines != sam_hdr_nref(b->headers[0]);
    bool in_place = n_added_bytes > 0 && !to_end;
    if (in_place && put_united_text(b, &text) < 0) goto out;
    for (enum kind kind = GROUP; kind < N_KINDS; kind++)
        if (!(in_place && b->kinds[kind].last_of_first.at) && put_added(b, kind, &text) < 0)
            goto out;
    header = in_place ? sam_hdr_parse(text.l, text.s) : sam_hdr_dup(b->headers[0]);
    if (header && to_end && sam_hdr_add_lines(header, text.s, text.l) < 0) {
        sam_hdr_destroy(header);
        header = NULL;
    }
    if (!header)
        diag_error("cannot unite the header of '%s' with those of the other inputs: one of them is "
                   "damaged, or memory is short",
                   b->file_names[0]);
out:
    free(text.s);
    return header;
}

static void builder_release(struct builder *b)
{
    for (size_t i = 0; b->lines && i < b->n_inputs; i++) {
        for (enum kind kind = GROUP; kind < OTHER; kind++) {
            free(b->lines[i][kind].at);
            text_map_release(&b->lines[i][kind].places);
        }
    }
    free(b->lines);
    for (enum kind kind = GROUP; kind < N_KINDS; kind++) {
        free(b->kinds[kind].added.s);
        text_map_release(&b->kinds[kind].numbers);
        text_map_release(&b->kinds[kind].contents);
    }
    free(b->content.s);
    free(b->fields);
    for (size_t k = 0; k < b->n_kept; k++) free((char *)(uintptr_t)b->kept[k].at);
    free(b->kept);
}

int header_union_check_references(const sam_hdr_t *x, const char *x_file, const sam_hdr_t *y,
                                  const char *y_file)
{
    static const char advice[] = "inputs need the same @SQ lines, in one order";
    int n_x = sam_hdr_nref(x), n_y = sam_hdr_nref(y), n = n_x < n_y ? n_x : n_y;
    for (int k = 0; k < n; k++) {
        const char *x_name = sam_hdr_tid2name(x, k), *y_name = sam_hdr_tid2name(y, k);
        int64_t x_length = sam_hdr_tid2len(x, k), y_length = sam_hdr_tid2len(y, k);
        if (x_length == y_length && strcmp(x_name, y_name) == 0) continue;
        diag_error("reference %d is '%s' of %" PRId64 " bases in '%s' and '%s' of %" PRId64
                   " in '%s'; %s",
                   k + 1, x_name, x_length, x_file, y_name, y_length, y_file, advice);
        return -1;
    }
    if (n_x == n_y) return 0;
    const sam_hdr_t *longer = n_x > n_y ? x : y;
    diag_error("'%s' has %d references, '%s' only %d: it lacks reference %d, '%s' of %" PRId64
               " bases; %s",
               longer == x ? x_file : y_file, n_x > n_y ? n_x : n_y, longer == x ? y_file : x_file,
               n, n + 1, sam_hdr_tid2name(longer, n), (int64_t)sam_hdr_tid2len(longer, n), advice);
    return -1;
}

static int unite(struct header_union *u, struct builder *b)
{
    /* A single header has nothing to be compared with, and may be large. */
    size_t n = b->n_inputs > 1 ? b->n_inputs : 0;
    for (size_t i = 0; i < n; i++)
        if (read_header(b, i) < 0) return -1;
    for (size_t i = 0; i < n; i++) {
        if (unite_input(b, i) < 0) return -1;
        for (enum kind kind = GROUP; kind < OTHER; kind++)
            if (make_renames(&u->renames[i][kind], &b->lines[i][kind]) < 0) return -1;
    }
    u->header = make_header(b);
    return u->header ? 0 : -1;
}

struct header_union *header_union_create(sam_hdr_t *const *headers, const char *const *names,
                                         size_t n)
{
    struct builder b = {.headers = headers, .file_names = names, .n_inputs = n};
    struct header_union *u = calloc(1, sizeof *u);
    if (!u) {
        (void)no_memory();
        return NULL;
    }
    u->n_inputs = n;
    u->renames = calloc(n, sizeof *u->renames);
    b.lines = calloc(n, sizeof *b.lines);
    int r = u->renames && b.lines ? unite(u, &b) : no_memory();
    builder_release(&b);
    if (r == 0) return u;
    header_union_destroy(u);
    return NULL;
}

void header_union_destroy(struct header_union *u)
{
    if (!u) return;
    for (size_t i = 0; u->renames && i < u->n_inputs; i++)
        for (enum kind kind = GROUP; kind < OTHER; kind++) id_renames_release(&u->renames[i][kind]);
    free(u->renames);
    sam_hdr_destroy(u->header);
    free(u);
}

sam_hdr_t *header_union_header(struct header_union *u)
{
    return u->header;
}

/* Records. */

bool header_union_renames(const struct header_union *u, size_t i)
{
    return u->renames[i][GROUP].n + u->renames[i][PROGRAM].n > 0;
}

size_t header_union_rewrite_bound(const struct header_union *u, size_t i, const uint8_t *rec)
{
    return id_renames_rewrite_bound(u->renames[i], rec);
}

size_t header_union_rewrite(const struct header_union *u, size_t i, const uint8_t *rec,
                            uint8_t *out)
{
    return id_renames_rewrite(u->renames[i], rec, out);
}
