/* sort_options_fixmate.c -- see sort_options_fixmate.h. */
#include "command/sort_options_fixmate.h"

#include "command/option_text.h"
#include "util/diag.h"
#include "util/words.h"

static const struct option long_options[] = {
    {"sanitize", required_argument, NULL, 'z'},
    OPTION_TEXT_OURS,
};

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

static int take_option(int c, const char *value, void *arg)
{
    struct fixmate_rules *rules = arg;
    switch (c) {
    case 'r': rules->removes = true; return 0;
    case 'p': rules->any_orientation = true; return 0;
    case 'c': rules->template_cigar = true; return 0;
    case 'M': rules->base_mods = true; return 0;
    case 'z': return take_sanitize(value, rules);
    default: return 0;          /* -m: always */
    }
}

int sort_options_parse_fixmate(const char *text, struct fixmate_rules *rules)
{
    static const struct option_text options = {
        .option = "--fixmate", .program = "samtools fixmate", .letters = "rpcmMuO:@:z:",
        .long_options = long_options, .refused = "uO@", .take = take_option,
    };
    char **words;
    *rules = (struct fixmate_rules){.sanitize = SANITIZE_ALL};
    int r = option_text_parse(&options, text, rules, &words);
    words_free(words);
    return r;
}
