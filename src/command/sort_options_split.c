/* sort_options_split.c -- see sort_options_split.h. */
#include "command/sort_options_split.h"

#include "util/diag.h"
#include "util/path.h"
#include "util/xalloc.h"

#include <stdlib.h>
#include <string.h>

/* Makes the order by tag, then by the order that was asked for. */
static int divide_by_tag(struct sort_options *o)
{
    struct sort_rules *rules = &o->settings.rules;
    if (o->settings.merge) {
        diag_error("--merge cannot divide by a tag: leave it out, and the inputs are sorted by the "
                   "tag");
        return -1;
    }
    if (rules->order != SORT_COORDINATE && rules->order != SORT_NAME_NATURAL &&
        rules->order != SORT_NAME_LEXICAL) {
        diag_error("--split-by %s divides output by coordinate or by name: leave out other orders",
                   o->settings.split_by);
        return -1;
    }
    rules->below = rules->order;
    rules->order = SORT_TAG;
    memcpy(rules->tag, o->settings.split.tag, sizeof rules->tag);
    return 0;
}

int sort_options_choose_split(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (split_request_parse(s->split_by, &s->split) < 0) return -1;
    if (split_is_by_tag(s->split.kind)) return divide_by_tag(o);
    if (s->rules.order == SORT_COORDINATE || s->rules.order == SORT_MINHASH) return 0;
    diag_error("--split-by %s divides output by coordinate: leave out other orders", s->split_by);
    return -1;
}

int sort_options_adopt_split(struct sort_options *o, const char *split_by)
{
    struct sort_settings *s = &o->settings;
    if (s->split_by && split_request_parse(s->split_by, &s->split) < 0) return -1;
    /* The checkpoint has the absolute name of a BED file. */
    bool is_bed = s->split_by && s->split.kind == SPLIT_BED;
    char *real = is_bed ? realpath(s->split_by, NULL) : NULL;
    const char *given = real ? real : s->split_by;
    bool differs = given && (!split_by || strcmp(given, split_by) != 0);
    free(real);
    if (differs) {
        diag_error("cannot resume '%s' with another --split-by: leave the option out", o->resume);
        return -1;
    }
    s->split_by = split_by;
    return split_by ? split_request_parse(split_by, &s->split) : 0;
}

/* True if a pattern has a % in a directory above that of the file. */
static bool is_too_high(const char *pattern)
{
    char *fixed = path_fixed_parent(pattern);
    bool has_percent = strchr(fixed, '%') != NULL;
    free(fixed);
    return has_percent;
}

int sort_options_check_pattern(const struct sort_options *o)
{
    const struct sort_settings *s = &o->settings;
    if (!s->split_by) return 0;
    const char *name = s->output, *problem = NULL;
    if (!name)
        problem = "--split-by writes files: give -o DIR/%.bam, where % stands for the name of a "
                  "piece";
    else if (path_is_url(name))
        problem = "--split-by writes files in a local directory, not to a URL";
    else if (!strchr(name, '%'))
        problem = "--split-by needs a % in the name of -o, as in DIR/%.bam or DIR/%/reads.bam: it "
                  "stands for the name of a piece";
    else if (is_too_high(name) || (o->index_name && is_too_high(o->index_name)))
        problem = "--split-by takes a % in the name of the file and in that of its directory, not "
                  "further up";
    else if (o->index_name && path_is_url(o->index_name))
        problem = "--split-by writes indexes in a local directory, not to a URL";
    else if (o->index_name && !strchr(o->index_name, '%'))
        problem = "--split-by needs a % in the name of the index, too";
    if (problem) diag_error("%s", problem);
    return problem ? -1 : 0;
}

enum sort_order sort_options_file_order(const struct sort_options *o)
{
    const struct sort_rules *rules = &o->settings.rules;
    return split_is_by_tag(o->settings.split.kind) ? rules->below : rules->order;
}
