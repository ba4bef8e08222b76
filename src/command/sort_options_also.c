/* sort_options_also.c -- see sort_options_also.h. */
#include "command/sort_options_also.h"

#include "command/sort_options_format.h"
#include "input/bam_reader.h"
#include "util/diag.h"
#include "util/path.h"

#include <string.h>

int sort_options_choose_also(struct sort_options *o)
{
    struct sort_settings *s = &o->settings;
    if (!s->also) return 0;
    if (path_is_standard_output(s->also)) {
        diag_error("--also writes a file: leave -o out to write to standard output, and name the "
                   "file with --also");
        return -1;
    }
    if (strstr(s->also, HTS_IDX_DELIM)) {
        diag_error("--also writes no index: name the file only, not '%s'", s->also);
        return -1;
    }
    if (output_format_choose_also(s->also, &s->also_format) < 0) return -1;
    if (s->also_format.kind != OUTPUT_CRAM) return 0;
    for (size_t i = 0; i < o->n_output_texts; i++)
        if (sort_options_add_format("--output-fmt-option", o->output_texts[i],
                                    (hts_opt **)&s->also_format.hts.specific) < 0)
            return -1;
    return bam_reader_check_reference(&s->also_format.hts);
}
