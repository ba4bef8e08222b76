/* split_request.c -- see split_request.h. */
#include "split/split_request.h"

#include "util/diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int parse_ranges(const char *text, struct split_request *request)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == '\0' && n >= 1 && n <= SPLIT_MOST_PIECES) {
        request->n_ranges = (unsigned)n;
        return 0;
    }
    diag_error("option --split-by ranges takes a number from 1 to %d, not '%s'",
               SPLIT_MOST_PIECES, text);
    return -1;
}

static int parse_tag(const char *text, struct split_request *request)
{
    if (strlen(text) == 2 && isalpha((unsigned char)text[0]) && isalnum((unsigned char)text[1])) {
        memcpy(request->tag, text, 2);
        return 0;
    }
    diag_error("option --split-by tag takes a tag of two characters such as tag:CB, not '%s'",
               text);
    return -1;
}

int split_request_parse(const char *text, struct split_request *request)
{
    static const char ranges[] = "ranges:", tag[] = "tag:";
    *request = (struct split_request){.kind = SPLIT_BED, .bed = text};
    if (strcmp(text, "contig") == 0) {
        request->kind = SPLIT_CONTIG;
    } else if (strcmp(text, "rg") == 0) {
        request->kind = SPLIT_READ_GROUP;
        memcpy(request->tag, "RG", 2);
    } else if (strncmp(text, ranges, sizeof ranges - 1) == 0) {
        request->kind = SPLIT_RANGES;
        return parse_ranges(text + sizeof ranges - 1, request);
    } else if (strncmp(text, tag, sizeof tag - 1) == 0) {
        request->kind = SPLIT_TAG;
        return parse_tag(text + sizeof tag - 1, request);
    } else if (!*text) {
        diag_error("option --split-by takes contig, ranges:N, rg, tag:XX or a BED file, not ''");
        return -1;
    }
    return 0;
}
