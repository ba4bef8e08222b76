/* bed_file.c -- see bed_file.h. */
#include "split/bed_file.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bed_reader {
    const char *path;
    sam_hdr_t *header;
    const struct bed_rules *rules;
    struct bed_intervals *bed;
    size_t line;
    size_t n_unknown;           /* lines of other references */
};

static bool begins_with_word(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && (line[n] == '\0' || isspace((unsigned char)line[n]));
}

/* "track" must be a word: "track1" may be a reference. */
static bool is_comment(const char *line)
{
    while (isspace((unsigned char)*line)) line++;
    return *line == '\0' || *line == '#' || begins_with_word(line, "track") ||
           begins_with_word(line, "browser");
}

/* Splits the line, in place, into at most 4 fields. Returns their number. */
static size_t divide(char *line, char *fields[4])
{
    bool has_tabs = strchr(line, '\t') != NULL;
    size_t n = 0;
    while (line && n < 4) {
        fields[n] = strsep(&line, has_tabs ? "\t" : " ");
        /* With tabs a field may be empty. */
        if (has_tabs || *fields[n]) n++;
    }
    return n;
}

static bool parse_position(const char *text, int64_t *position)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *position = value;
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0;
}

/* Parses one line. Returns the problem, or NULL. */
static const char *take_line(struct bed_reader *reader, char *line)
{
    char *fields[4];
    struct bed_intervals *bed = reader->bed;
    struct bed_interval interval = {.line = reader->line};
    size_t n = divide(line, fields);
    if (n < 3) return "it needs a reference, a start and an end";
    bool is_lenient = reader->rules->is_lenient;
    interval.tid = sam_hdr_name2tid(reader->header, fields[0]);
    if (interval.tid < 0 && !is_lenient) return "its reference is not in the header";
    if (!parse_position(fields[1], &interval.begin) || !parse_position(fields[2], &interval.end))
        return "its start and end must be whole numbers";
    if (interval.begin >= interval.end + is_lenient)
        return is_lenient ? "its end must not be less than its start"
                          : "its end must be greater than its start";
    if (interval.tid < 0) {
        reader->n_unknown++;
        return NULL;
    }
    if (n == 4 && *fields[3] && (is_lenient || strcmp(fields[3], ".") != 0))
        interval.name = xstrdup(fields[3]);
    xgrow(&bed->intervals, &bed->room, bed->n + 1, bed->n / 4 + 64, sizeof *bed->intervals);
    bed->intervals[bed->n++] = interval;
    return NULL;
}

static int compare_places(const void *a, const void *b)
{
    const struct bed_interval *x = a, *y = b;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int read_lines(struct bed_reader *reader, htsFile *file)
{
    kstring_t line = {0, 0, NULL};
    const char *problem = NULL;
    int r = 0;
    while (!problem && (r = hts_getline(file, '\n', &line)) >= 0) {
        reader->line++;
        while (line.l > 0 && isspace((unsigned char)line.s[line.l - 1])) line.s[--line.l] = '\0';
        if (!is_comment(line.s)) problem = take_line(reader, line.s);
    }
    free(line.s);
    if (problem)
        diag_error("'%s', line %zu: %s", reader->path, reader->line, problem);
    else if (r < -1)
        diag_error("cannot read '%s' after line %zu", reader->path, reader->line);
    return problem || r < -1 ? -1 : 0;
}

/* htslib aborts if it reads lines from other formats. */
static bool has_lines(htsFile *file)
{
    const htsFormat *format = hts_get_format(file);
    bool can_inflate = format->compression == no_compression || format->compression == gzip ||
                       format->compression == bgzf;
    return can_inflate && format->format != bam && format->format != bcf &&
           format->format != cram;
}

static htsFile *open_lines(const char *path, const char *takes)
{
    errno = 0;
    htsFile *file = hts_open(path, "r");
    if (file && has_lines(file)) return file;
    const char *problem = file ? "it is not text" : errno ? strerror(errno) : "it cannot be opened";
    diag_error("%s, not '%s': %s", takes, path, problem);
    if (file) (void)hts_close(file);
    return NULL;
}

int bed_file_read(const char *path, sam_hdr_t *header, const struct bed_rules *rules,
                  struct bed_intervals *bed)
{
    *bed = (struct bed_intervals){0};
    struct bed_reader reader = {.path = path, .header = header, .rules = rules, .bed = bed};
    htsFile *file = open_lines(path, rules->takes);
    if (!file) return -1;
    int r = read_lines(&reader, file);
    if (hts_close(file) < 0 && r == 0) {
        diag_error("cannot read '%s': %s", path, strerror(errno));
        r = -1;
    }
    if (r == 0 && reader.n_unknown > 0)
        diag_warning("'%s' has %zu lines of references that the header lacks", path,
                     reader.n_unknown);
    if (r == 0 && bed->n == 0 && !rules->is_lenient) {
        diag_error("'%s' has no intervals", path);
        r = -1;
    }
    if (r == 0)
        qsort(bed->intervals, bed->n, sizeof *bed->intervals, compare_places);
    else
        bed_intervals_release(bed);
    return r;
}

void bed_intervals_release(struct bed_intervals *bed)
{
    for (size_t i = 0; i < bed->n; i++) free(bed->intervals[i].name);
    free(bed->intervals);
    *bed = (struct bed_intervals){0};
}
