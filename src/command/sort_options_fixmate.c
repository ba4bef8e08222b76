/* sort_options_fixmate.c -- see sort_options_fixmate.h. */
#include "command/sort_options_fixmate.h"

#include "util/diag.h"
#include "util/words.h"
#include "util/xalloc.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_NO_PG = 256 };

static const struct option long_options[] = {
    {"sanitize", required_argument, NULL, 'z'},
    {"output-fmt", required_argument, NULL, 'O'},
    {"threads", required_argument, NULL, '@'},
    {"no-PG", no_argument, NULL, OPTION_NO_PG},
    {NULL, 0, NULL, 0},
};

/* Options of fixmate that are options of the sort. */
static int refuse(const char *option, const char *instead)
{
    diag_error("--fixmate does not take %s: give %s to rocksort itself", option, instead);
    return -1;
}

static int take_sanitize(const char *text, struct fixmate_rules *rules)
{
    int flags = sanitize_parse(text);
    if (flags < 0) {
        diag_error("--fixmate: -z takes all, on, off or a list of pos, mqual, unmap, cigar, "
                   "cigdup, cigarx and aux, not '%s'", text);
        return -1;
    }
    rules->sanitize = (unsigned)flags;
    return 0;
}

static int take_option(int c, const char *text, const char *word, struct fixmate_rules *rules)
{
    switch (c) {
    case 'r': rules->removes = true; return 0;
    case 'p': rules->any_orientation = true; return 0;
    case 'c': rules->template_cigar = true; return 0;
    case 'M': rules->base_mods = true; return 0;
    case 'm': return 0;         /* always */
    case 'z': return take_sanitize(text, rules);
    case 'u': return refuse("-u", "-u");
    case 'O': return refuse("-O", "-O");
    case '@': return refuse("-@", "-@");
    case OPTION_NO_PG: return refuse("--no-PG", "--no-PG");
    case ':': diag_error("--fixmate: option %s needs a value", word); return -1;
    default: diag_error("--fixmate: samtools fixmate has no option %s", word); return -1;
    }
}

int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules)
{
    static char name[] = "fixmate";
    size_t n;
    char **words = words_split(text, &n);
    *rules = (struct fixmate_rules){.sanitize = SANITIZE_ALL};
    if (!words) {
        diag_error("--fixmate: a quote in '%s' has no end", text);
        return -1;
    }
    char **argv = xcalloc(n + 2, sizeof *argv);
    argv[0] = name;
    memcpy(argv + 1, words, n * sizeof *argv);
    int argc = (int)n + 1, c, r = 0;
    optind = 0;                 /* begins anew */
    while (r == 0 && (c = getopt_long(argc, argv, "+:rpcmMuO:@:z:", long_options, NULL)) != -1) {
        /* A wrong letter may stand in the middle of a word; optind says nothing of it. */
        char letter[] = {'-', (char)optopt, '\0'};
        bool is_letter = (c == '?' || c == ':') && optopt != 0 && optopt < OPTION_NO_PG;
        r = take_option(c, optarg, is_letter ? letter : argv[optind - 1], rules);
    }
    if (r == 0 && optind < argc) {
        diag_error("--fixmate takes options of samtools fixmate, not '%s'", argv[optind]);
        r = -1;
    }
    free(argv);
    words_free(words);
    return r;
}
