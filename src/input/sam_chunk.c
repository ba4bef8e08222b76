/*
 * sam_chunk.c -- see sam_chunk.h.
 *
 * Each line is first checked for values that htslib would change, then parsed by htslib.
 *
 * If htslib refuses a line, this module finds the reason: the first fault of the line, in the order
 * of its fields. htslib reports only some reasons, without the read, to a log that may be off.
 */
#include "input/sam_chunk.h"

#include "bam/bam_convert.h"
#include "bam/bam_fields.h"
#include "bam/header_text.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
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

/* Replaces U by T, since BAM has no code for U. */
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
enum {
    MOST_NAME_BYTES = 254,
    MOST_OPERATION = (1 << 28) - 1,     /* the length of an operation has 28 bits */
    QUOTED_BYTES = 24                   /* of a bad value */
};

#define MOST_POSITION ((UINT64_C(1) << 62) - 1)

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

/* ---- the eleven fields ---- */

/* Reads digits, if there are any; UINT64_MAX: the number is larger. Returns their end. */
static const char *read_number(const char *at, int base, uint64_t *value)
{
    char *end;
    *value = 0;
    if (!isdigit((uint8_t)*at)) return at;
    *value = strtoull(at, &end, base);
    return end;
}

/* Like htslib, takes an empty field for 0, except FLAG, which may be hexadecimal. */
static bool find_bad_number(const struct sam_line *l, char problem[SAM_PROBLEM_BYTES])
{
    static const struct {
        int field;
        const char *name;
        uint64_t most;
    } rules[] = {{FLAG, "FLAG", UINT16_MAX}, {POS, "POS", MOST_POSITION}, {MAPQ, "MAPQ", UINT8_MAX},
                 {PNEXT, "PNEXT", MOST_POSITION}, {TLEN, "TLEN", INT64_MAX}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        uint64_t value;
        struct text field = l->fields[rules[i].field];
        bool is_flag = rules[i].field == FLAG, is_signed = rules[i].field == TLEN;
        bool has_sign = field.n > 0 && !is_flag &&
                        (*field.at == '+' || (*field.at == '-' && is_signed));
        const char *end = read_number(field.at + has_sign, is_flag ? 0 : 10, &value);
        bool is_number = end == field.at + field.n && !(is_flag && field.n == 0);
        if (!is_number || value > rules[i].most)
            return say(problem, "its %s is %s: '%.*s'", rules[i].name,
                       is_number ? "out of range" : "not a number", quoted(field), field.at);
    }
    return false;
}

/* Checks a CIGAR and sums the read bases that it consumes. */
static bool find_bad_cigar(struct text cigar, uint64_t *n_bases, char problem[SAM_PROBLEM_BYTES])
{
    const char *at = cigar.at, *end = cigar.at + cigar.n;
    if (cigar.n == 0) return say(problem, "its CIGAR is empty");
    *n_bases = 0;
    while (at < end) {
        struct text rest = {at, (size_t)(end - at)};
        uint64_t length;
        const char *op = read_number(at, 10, &length);
        const char *wrong =
            op == at                  ? "has an operation without a length"
            : length > MOST_OPERATION ? "has an operation that is longer than 268435455"
            : op == end               ? "ends with a length without an operation"
            : !memchr("MIDNSHP=XB", *op, 10) ? "has an operation that is none of MIDNSHP=X" : NULL;
        if (wrong) return say(problem, "its CIGAR %s: '%.*s'", wrong, quoted(rest), at);
        if (memchr("MIS=X", *op, 5)) *n_bases += length;
        at = op + 1;
    }
    return false;
}

static bool is_star(struct text field)
{
    return field.n == 1 && *field.at == '*';
}

static bool find_bad_sequence(const struct sam_line *l, char problem[SAM_PROBLEM_BYTES])
{
    struct text cigar = l->fields[CIGAR], seq = l->fields[SEQ], qual = l->fields[QUAL];
    uint64_t n_bases = 0;
    bool has_cigar = !is_star(cigar);
    if (has_cigar && find_bad_cigar(cigar, &n_bases, problem)) return true;
    if (has_cigar && !is_star(seq) && n_bases != seq.n)
        return say(problem, "its SEQ has %zu bases, but its CIGAR takes %" PRIu64, seq.n, n_bases);
    size_t n_seq = is_star(seq) ? 0 : seq.n;
    if (!is_star(qual) && qual.n != n_seq)
        return say(problem, "its QUAL has %zu values for %zu bases of SEQ", qual.n, n_seq);
    return false;
}

/* ---- tags ---- */

/* Reads an integer that may have a sign. Stores its end, or `at` if there is none. Returns false if
   it is below -lowest or above `most`. */
static bool integer_fits(const char *at, uint64_t lowest, uint64_t most, const char **end)
{
    uint64_t value;
    bool is_negative = *at == '-', has_sign = is_negative || *at == '+';
    *end = read_number(at + has_sign, 10, &value);
    if (*end == at + has_sign) *end = at;
    return value <= (is_negative ? lowest : most);
}

/* True if a number of an array is out of the range of its type. `at` is the first comma. */
static bool exceeds_array(char type, const char *at)
{
    unsigned bits = toupper((uint8_t)type) == 'C' ? 8 : toupper((uint8_t)type) == 'S' ? 16 : 32;
    uint64_t half = UINT64_C(1) << (bits - 1), lowest = islower((uint8_t)type) ? half : 0;
    while (type != 'f' && *at == ',')
        if (!integer_fits(at + 1, lowest, 2 * half - 1 - lowest, &at)) return true;
    return false;
}

static bool find_bad_value(struct text tag, char problem[SAM_PROBLEM_BYTES])
{
    enum { VALUE = 5 };
    const char *value = tag.at + VALUE;
    size_t n = tag.n - VALUE;
    char type = tag.at[3];
    if (!memchr("AiIfdZHBcCsS", type, 12))
        return say(problem, "its tag '%.2s' has the unknown type '%c'", tag.at, type);
    if (n == 0 && type != 'Z' && type != 'H')
        return say(problem, "its tag '%.4s' has no value", tag.at);
    if (type == 'H' && n % 2 == 1)
        return say(problem, "its tag '%.2s' has an odd number of hexadecimal digits", tag.at);
    if (type == 'B' && !memchr("cCsSiIf", *value, 7))
        return say(problem, "its tag '%.2s' is an array of the unknown type '%c'", tag.at, *value);
    if (type == 'B' && exceeds_array(*value, value + 1))
        return say(problem, "its array '%.2s' has a value that its type cannot hold", tag.at);
    const char *end;
    bool fits = integer_fits(value, UINT64_C(1) << 31, UINT32_MAX, &end);
    if (memchr("iIcCsS", type, 6) && (!fits || end != value + n))
        return say(problem, "its tag '%.2s' is not an integer of 32 bits: '%.*s'", tag.at,
                   quoted((struct text){value, n}), value);
    return false;
}

static bool find_bad_tag(const struct sam_line *l, char problem[SAM_PROBLEM_BYTES])
{
    struct text rest = l->tags, tag;
    while (header_next_field(&rest, &tag)) {
        if (tag.n < 5 || tag.at[2] != ':' || tag.at[4] != ':')
            return say(problem, "'%.*s' is not a tag of the form NM:i:0", quoted(tag), tag.at);
        if (find_bad_value(tag, problem)) return true;
    }
    return false;
}

/* Writes what is wrong with a line, to follow "is damaged: ". n_refs: number of @SQ lines of the
   header. is_cut: the file ends within the line. */
static void find_problem(const char *line, int n_refs, bool is_cut,
                         char problem[SAM_PROBLEM_BYTES])
{
    const struct sam_line l = split(line);
    struct text name = l.fields[QNAME], reference = l.fields[RNAME];
    if (find_foreign(&l, line, is_cut, problem)) return;
    if (l.n_fields < N_FIELDS)
        say(problem, "its line has %zu of the 11 fields of a SAM record", l.n_fields);
    else if (name.n > MOST_NAME_BYTES)
        say(problem, "its name has %zu bytes; SAM allows %d", name.n, MOST_NAME_BYTES);
    else if (n_refs == 0 && !is_star(reference))
        say(problem, "it is on '%.*s', but the header has no @SQ lines", quoted(reference),
            reference.at);
    else if (!find_bad_number(&l, problem) && !find_bad_sequence(&l, problem) &&
             !find_bad_tag(&l, problem))
        say(problem, "htslib does not take its line for a SAM record");
}

/* ---- records of a chunk ---- */

/* Copies n bytes, or as many as fit and dots. */
static void note_text(char *to, size_t room, const char *from, size_t n)
{
    bool fits = n < room;
    (void)snprintf(to, room, "%.*s%s", (int)(fits ? n : room - sizeof "..."), from,
                   fits ? "" : "...");
}

/* Restores the tabs that htslib has replaced by NULs. */
static void restore_tabs(char *line, size_t length)
{
    for (char *at = line; (at = memchr(at, '\0', length - (size_t)(at - line)));) *at = '\t';
}

/* Stores the read name and the beginning of a line, which ends with a NUL. */
static void note_line(struct sam_lines *lines, const char *line)
{
    const struct sam_line l = split(line);
    size_t n = has_flag(&l) ? strcspn(line, "\t") : 0;
    note_text(lines->read_name, sizeof lines->read_name, line, n);
    note_text(lines->line_start, sizeof lines->line_start, line, strlen(line));
}

/* Returns why htslib has refused a line of n bytes, whose tabs were restored. */
static const char *explain(struct sam_lines *lines, const char *line, size_t n, int n_refs)
{
    if (errno != ENOMEM) {
        find_problem(line, n_refs, lines->is_cut, lines->problem_text);
        return lines->problem_text;
    }
    /* htslib also returns ENOMEM for a record of more than 2 GiB. A line of less than 1 GiB cannot
       become such a record, since an array takes at most twice the bytes of its text. */
    xalloc_require(n >= LONG_LINE_BYTES);
    return "it takes more than 2 GiB";
}

/* As sam_passes_filter: 1, 0, or -1 if the filter cannot be applied. */
static int passes_filter(struct bam_reader *reader, const bam1_t *record)
{
    if (!reader->hts->filter) return 1;
    (void)pthread_mutex_lock(&reader->filter_lock);
    int passes = sam_passes_filter(reader->header, record, reader->hts->filter);
    (void)pthread_mutex_unlock(&reader->filter_lock);
    return passes;
}

/* Parses one line of `length` bytes, which ends with a NUL. Returns NULL, or what is wrong; then
   the line is as it was. */
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
    if (r < 0) return explain(&span->lines, line, length, sam_hdr_nref(reader->header));
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
