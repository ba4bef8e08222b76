/*
 * sam_chunk.c -- parses lines of SAM; see reader_source.h.
 *
 * Each line is first checked for values that htslib would change, then parsed by htslib.
 *
 * If htslib refuses a line, this module finds the reason: it gives htslib each field and each tag
 * of the line alone. htslib reports only some reasons, without the read, to a log that may be off.
 */
#include "input/reader_source.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/header_text.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <htslib/hts_log.h>
#include <htslib/kstring.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONG_LINE_BYTES = 1 << 30 };

/* ---- what htslib would change ---- */

/* True unless the field is a number above `most`. */
static bool number_fits(const char *field, unsigned long most)
{
    return *field < '0' || *field > '9' || strtoul(field, NULL, 0) <= most;
}

/* True if all elements of an array are numbers of its type; `at` is the first comma. */
static bool array_fits(char type, const char *at)
{
    while (*at == ',') {
        const char *element = ++at;
        if (type == 'f') {
            char *end;
            (void)strtof(element, &end);
            at = end;
        } else {
            if (*at == '+' || (*at == '-' && type != 'C' && type != 'S' && type != 'I')) at++;
            at += strspn(at, "0123456789");
        }
    }
    return *at == '\t' || *at == '\0';
}

/* Replaces U with T, since BAM has no code for U. */
static void replace_uracil(char *bases)
{
    size_t n = strcspn(bases, "\t");
    for (char *at = bases; (at = memchr(at, 'U', n - (size_t)(at - bases))) != NULL;) *at = 'T';
    for (char *at = bases; (at = memchr(at, 'u', n - (size_t)(at - bases))) != NULL;) *at = 'T';
}

const char *sam_line_correct(char *line)
{
    enum { FLAG = 1, MAPQ = 4, SEQ = 9, FIRST_TAG = 11 };
    char *field = line;
    for (int i = 1; (field = strchr(field, '\t')) != NULL; i++) {
        field++;
        if (i == FLAG && !number_fits(field, UINT16_MAX)) return "its FLAG is above 65535";
        if (i == MAPQ && !number_fits(field, UINT8_MAX)) return "its MAPQ is above 255";
        if (i == SEQ) replace_uracil(field);
        if (i < FIRST_TAG || strnlen(field, 6) < 6 || strncmp(field + 2, ":B:", 3) != 0) continue;
        if (!array_fits(field[5], field + 6))
            return "it has an array with a value that its type cannot hold";
    }
    return NULL;
}

/* ---- why htslib refuses a line ---- */

enum { QNAME, FLAG, RNAME, POS, MAPQ, CIGAR, RNEXT, PNEXT, TLEN, SEQ, QUAL, N_FIELDS };
enum { QUOTED_BYTES = 24 };     /* of a bad value */

struct sam_line {
    struct text fields[N_FIELDS];
    size_t n_fields;            /* all fields, with the tags */
    struct text tags;           /* with the tab before each; n 0: none */
};

/* Writes the problem and returns true. */
static __attribute__((format(printf, 2, 3)))
bool say(char problem[SAM_PROBLEM_BYTES], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem, SAM_PROBLEM_BYTES, format, args);
    va_end(args);
    return true;
}

/* The number of bytes of a value to quote. */
static int quoted(struct text value)
{
    return value.n < QUOTED_BYTES ? (int)value.n : QUOTED_BYTES;
}

static struct sam_line split(const char *line)
{
    struct sam_line l = {.n_fields = 0};
    for (const char *at = line;; at++) {
        struct text field = {at, strcspn(at, "\t")};
        if (l.n_fields < N_FIELDS) l.fields[l.n_fields] = field;
        l.n_fields++;
        at += field.n;
        if (l.n_fields == N_FIELDS) l.tags = text_of(at);
        if (*at == '\0') return l;
    }
}

/* ---- lines that are not records ---- */

static bool has_flag(const struct sam_line *l)
{
    return l->n_fields > FLAG && l->fields[FLAG].n > 0 && isdigit((uint8_t)*l->fields[FLAG].at);
}

/* True if the line contains a message of bwa, minimap2 or htslib, such as "[M::worker] ...", which
   may have interrupted a record. */
static bool has_message(const char *line)
{
    for (const char *at = line; (at = strchr(at, '[')) != NULL; at++)
        if (isupper((uint8_t)at[1]) && at[2] == ':' && at[3] == ':') return true;
    return false;
}

/* Finds lines that other programs wrote. */
static bool find_foreign(const struct sam_line *l, const char *line, bool is_cut,
                         char problem[SAM_PROBLEM_BYTES])
{
    bool begins_header = !has_flag(l) && header_line_is_known(text_of(line));
    /* A header is within the line if the first file lacks its last newline. */
    if (begins_header || strstr(line, "@HD\tVN:") || strstr(line, "@SQ\tSN:"))
        return say(problem, "the header of a second file follows; give both files as inputs "
                   "instead of joining them with cat");
    if (has_message(line))
        return say(problem, "its line has a message of another program; keep standard error out "
                   "of the SAM (no 2>&1)");
    if (is_cut || has_flag(l) || l->n_fields >= N_FIELDS) return false;
    return say(problem, "its line is not a SAM record, perhaps a message of another program "
               "(2>&1)");
}

/* ---- fields and tags ---- */

/* True if htslib accepts an otherwise empty record with this value of a field, or with this tag
   (N_FIELDS). */
static bool is_taken(size_t field, struct text value, sam_hdr_t *header, bam1_t *record)
{
    static const char *const nothing[N_FIELDS] = {"*", "4", "*", "0", "0", "*", "*", "0", "0", "*",
                                                  "*"};
    kstring_t line = KS_INITIALIZE;
    for (size_t i = 0; i < N_FIELDS + (field == N_FIELDS); i++) {
        if (i > 0) xalloc_require(kputc('\t', &line) >= 0);
        struct text text = i == field ? value : text_of(nothing[i]);
        xalloc_require(kputsn(text.at, text.n, &line) >= 0);
    }
    bool is_valid = sam_parse1(&line, header, record) >= 0;
    ks_free(&line);
    return is_valid;
}

static bool is_star(struct text field)
{
    return field.n == 1 && *field.at == '*';
}

/* Compares the lengths of SEQ, QUAL and the CIGAR, which the record has. */
static bool find_bad_length(const struct sam_line *l, const bam1_t *record,
                            char problem[SAM_PROBLEM_BYTES])
{
    struct text seq = l->fields[SEQ], qual = l->fields[QUAL];
    size_t n_seq = is_star(seq) ? 0 : seq.n;
    hts_pos_t n_bases = bam_cigar2qlen((int)record->core.n_cigar, bam_get_cigar(record));
    if (record->core.n_cigar > 0 && !is_star(seq) && n_bases != (hts_pos_t)seq.n)
        return say(problem, "its SEQ has %zu bases, but its CIGAR takes %" PRId64, seq.n, n_bases);
    if (!is_star(qual) && qual.n != n_seq)
        return say(problem, "its QUAL has %zu values for %zu bases of SEQ", qual.n, n_seq);
    return false;
}

static bool find_bad_field(const struct sam_line *l, sam_hdr_t *header, bam1_t *record,
                           char problem[SAM_PROBLEM_BYTES])
{
    static const struct {
        size_t field;
        const char *name;
    } each[] = {{QNAME, "name"}, {FLAG, "FLAG"}, {POS, "POS"}, {MAPQ, "MAPQ"}, {PNEXT, "PNEXT"},
                {TLEN, "TLEN"}, {CIGAR, "CIGAR"}};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        struct text value = l->fields[each[i].field];
        if (!is_taken(each[i].field, value, header, record))
            return say(problem, "its %s is not valid: '%.*s'", each[i].name, quoted(value),
                       value.at);
    }
    return find_bad_length(l, record, problem);
}

static bool find_bad_tag(const struct sam_line *l, sam_hdr_t *header, bam1_t *record,
                         char problem[SAM_PROBLEM_BYTES])
{
    struct text rest = l->tags, tag;
    while (header_next_field(&rest, &tag)) {
        if (tag.n < 5 || tag.at[2] != ':' || tag.at[4] != ':')
            return say(problem, "'%.*s' is not a tag of the form NM:i:0", quoted(tag), tag.at);
        if (!is_taken(N_FIELDS, tag, header, record))
            return say(problem, "its tag '%.*s' is not valid", quoted(tag), tag.at);
    }
    return false;
}

/* Writes what is wrong with a line, to follow "is damaged: ". is_cut: the file ends within the
   line. `record` is scratch space. */
static void find_problem(const char *line, sam_hdr_t *header, bool is_cut, bam1_t *record,
                         char problem[SAM_PROBLEM_BYTES])
{
    static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;        /* the level is global */
    const struct sam_line l = split(line);
    struct text reference = l.fields[RNAME];
    if (find_foreign(&l, line, is_cut, problem)) return;
    (void)pthread_mutex_lock(&log_lock);
    enum htsLogLevel level = hts_get_log_level();
    hts_set_log_level(HTS_LOG_OFF);     /* htslib has already printed its message */
    if (l.n_fields < N_FIELDS)
        say(problem, "its line has %zu of the 11 fields of a SAM record", l.n_fields);
    else if (sam_hdr_nref(header) == 0 && !is_star(reference))
        say(problem, "it is on '%.*s', but the header has no @SQ lines", quoted(reference),
            reference.at);
    else if (!find_bad_field(&l, header, record, problem) &&
             !find_bad_tag(&l, header, record, problem))
        say(problem, "htslib refuses its line, without a reason");
    hts_set_log_level(level);
    (void)pthread_mutex_unlock(&log_lock);
}

/* ---- records of a chunk ---- */

/* Restores the tabs that htslib has replaced with NULs. */
static void restore_tabs(char *line, size_t length)
{
    for (char *at = line; (at = memchr(at, '\0', length - (size_t)(at - line)));) *at = '\t';
}

/* Stores the read name and the beginning of a line, which ends with a NUL. */
static void note_line(struct sam_lines *lines, const char *line)
{
    enum { MOST_NAME = sizeof lines->read_name - 1, MOST_START = sizeof lines->line_start - 4 };
    const struct sam_line l = split(line);
    size_t n = has_flag(&l) ? strcspn(line, "\t") : 0;
    (void)snprintf(lines->read_name, sizeof lines->read_name, "%.*s",
                   n < MOST_NAME ? (int)n : MOST_NAME, line);
    (void)snprintf(lines->line_start, sizeof lines->line_start, "%.*s%s", MOST_START, line,
                   strlen(line) > MOST_START ? "..." : "");
}

/* Returns why htslib has refused a line of n bytes, whose tabs were restored. */
static const char *explain(struct sam_lines *lines, const char *line, size_t n, sam_hdr_t *header,
                           bam1_t *record)
{
    if (errno != ENOMEM) {
        find_problem(line, header, lines->is_cut, record, lines->problem_text);
        return lines->problem_text;
    }
    /* htslib also returns ENOMEM for a record of more than 2 GiB. A line of less than 1 GiB cannot
       become such a record, since an array takes at most twice the bytes of its text. */
    xalloc_require(n >= LONG_LINE_BYTES);
    return "it takes more than 2 GiB";
}

/* Like sam_passes_filter: 1, 0, or -1 if the filter cannot be applied. */
static int passes_filter(struct bam_reader *reader, const bam1_t *record)
{
    if (!reader->hts->filter) return 1;
    (void)pthread_mutex_lock(&reader->filter_lock);
    int passes = sam_passes_filter(reader->header, record, reader->hts->filter);
    (void)pthread_mutex_unlock(&reader->filter_lock);
    return passes;
}

/* Parses one line of `length` bytes, which ends with a NUL. Returns NULL, or what is wrong, with
   the line unchanged. */
static const char *parse_line(struct bam_reader *reader, struct record_span *span, char *line,
                              size_t length, bam1_t *record)
{
    if (length == 0) return "its line is empty";
    /* htslib would take a NUL as the end of the line. */
    if (memchr(line, '\0', length)) return "its line contains a NUL byte";
    const char *problem = sam_line_correct(line);
    if (problem) return problem;
    kstring_t s = {length, length + 1, line};
    size_t at = GAP_BYTES + span->raw_bytes;
    errno = 0;
    int r = sam_parse1(&s, reader->header, record), passes = 1;
    if (r >= 0) passes = passes_filter(reader, record);
    if (passes == 0) span->lines.n_dropped++;
    if (passes < 0) problem = "the filter in --input-fmt-option cannot be applied to it";
    if (r >= 0 && passes > 0)
        problem = bam_record_put(record, reader->long_positions, &span->memory,
                                 &span->memory_bytes, at);
    if (r < 0 || problem || span->lines.is_cut) restore_tabs(line, length);
    if (r < 0) return explain(&span->lines, line, length, reader->header, record);
    if (problem || passes == 0) return problem;
    span->raw_bytes += bam_record_bytes(span->memory + at);
    span->n_records++;
    return NULL;
}

void sam_chunk_parse(struct bam_reader *reader, struct record_span *span, bam1_t *record)
{
    struct sam_lines *lines = &span->lines;
    char *line = (char *)span->packed, *next = line, *end = line + span->packed_bytes;
    bool is_cut = lines->is_cut;
    while (next < end && !lines->problem) {
        line = next;
        next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        size_t length = (size_t)(next - line) - 1;
        if (length > 0 && line[length - 1] == '\r') length--;
        line[length] = '\0';
        lines->is_cut = is_cut && next == end;
        lines->problem = parse_line(reader, span, line, length, record);
    }
    if (lines->problem || lines->is_cut) note_line(lines, line);
    if (span->n_records == 0) return;
    span->from = span->memory + GAP_BYTES;
    span->to = span->from + span->raw_bytes;
}
