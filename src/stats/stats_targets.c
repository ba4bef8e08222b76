/* stats_targets.c -- see stats_targets.h. */
#include "stats/stats_targets.h"

#include "util/diag.h"
#include "util/xalloc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses a line, in place. Returns the problem, or NULL. A target of an unknown reference gets the
   number -1. */
static const char *parse_line(char *line, sam_hdr_t *header, struct stats_target *target)
{
    int n_bytes = -1;
    size_t name_bytes = strcspn(line, " \t\r\n\v\f");
    const char *rest = line + name_bytes + (line[name_bytes] ? 1 : 0);
    line[name_bytes] = '\0';
    if (sscanf(rest, "%" SCNd64 " %" SCNd64 "%n", &target->first, &target->last, &n_bytes) < 2 ||
        n_bytes < 0)
        return "it needs a reference, a first and a last position";
    if (target->first < 1 || target->last < target->first)
        return "positions begin at 1, and the last one is not before the first one";
    target->tid = sam_hdr_name2tid(header, line);
    if (target->tid < -1) return "htslib cannot look up its reference";
    return NULL;
}

static int compare_targets(const void *a, const void *b)
{
    const struct stats_target *x = a, *y = b;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return (x->last > y->last) - (x->last < y->last);
}

/* Joins targets that overlap. */
static void join_targets(struct stats_targets *targets)
{
    size_t n = 0;
    if (targets->n > 1) qsort(targets->at, targets->n, sizeof *targets->at, compare_targets);
    for (size_t i = 0; i < targets->n; i++) {
        struct stats_target *last = n > 0 ? &targets->at[n - 1] : NULL, next = targets->at[i];
        if (!last || last->tid != next.tid || last->last < next.first)
            targets->at[n++] = next;
        else if (last->last < next.last)
            last->last = next.last;
    }
    targets->n = n;
    for (size_t i = 0; i < n; i++)
        targets->n_positions += (uint64_t)(targets->at[i].last - targets->at[i].first) + 1;
}

static int read_lines(struct stats_targets *targets, FILE *file, const char *path,
                      sam_hdr_t *header)
{
    char *line = NULL;
    size_t room = 0, number = 0;
    bool has_warned = false;
    const char *problem = NULL;
    while (!problem && getline(&line, &room, file) >= 0) {
        struct stats_target target = {.tid = -1};
        number++;
        if (line[0] == '#' || !line[strspn(line, " \t\r\n")]) continue;
        problem = parse_line(line, header, &target);
        if (problem) continue;
        if (target.tid >= 0) {
            xgrow(&targets->at, &targets->room, targets->n + 1, targets->n / 2 + 64,
                  sizeof *targets->at);
            targets->at[targets->n++] = target;
        } else if (!has_warned) {
            diag_warning("--stats: '%s', line %zu: skipping targets on '%s', which the header "
                         "does not have", path, number, line);
            has_warned = true;
        }
    }
    free(line);
    if (problem) diag_error("--stats: '%s', line %zu: %s", path, number, problem);
    if (!problem && ferror(file)) {
        problem = strerror(errno);
        diag_error("--stats: cannot read '%s': %s", path, problem);
    }
    return problem ? -1 : 0;
}

int stats_targets_read(struct stats_targets *targets, const char *path, sam_hdr_t *header)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        diag_error("--stats: cannot open '%s': %s", path, strerror(errno));
        return -1;
    }
    int r = read_lines(targets, file, path, header);
    (void)fclose(file);
    if (r == 0 && targets->n == 0) {
        diag_error("--stats: '%s' has no targets on references of the header", path);
        r = -1;
    }
    if (r == 0) join_targets(targets);
    return r;
}

const struct stats_target *stats_targets_find(const struct stats_targets *targets, int32_t tid,
                                              int64_t pos, int64_t end)
{
    size_t low = 0, high = targets->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct stats_target *at = &targets->at[middle];
        if (at->tid < tid || (at->tid == tid && at->last <= pos))
            low = middle + 1;
        else
            high = middle;
    }
    const struct stats_target *found = targets->at + low;
    return low < targets->n && found->tid == tid && found->first <= end ? found : NULL;
}

void stats_targets_release(struct stats_targets *targets)
{
    free(targets->at);
}
