/* bam_verify.c -- see bam_verify.h. */
#include "command/bam_verify.h"

#include "util/diag.h"

#include <stdio.h>

int bam_verify_run(const struct sort_settings *settings)
{
    int r = 0;
    for (size_t i = 0; i < settings->n_inputs; i++) {
        struct sort_settings one = *settings;
        struct sort_report report;
        one.inputs = settings->inputs + i;
        one.n_inputs = 1;
        if (i > 0) diag_renew();
        int ended = sort_run(&one, &report);
        if (ended == 0 && report.verified) {
            (void)printf("%s: %s, ", one.inputs[0], report.order_words);
            sort_report_print_checksum(&report, stdout);
        }
        if (ended < 0 || !report.verified) r = -1;
        sort_report_release(&report);
    }
    return r;
}
