/*
 * fuzz_messages.c -- begins a fuzz target. Messages of the program under test are not shown, but
 * must not have control characters. htslib prints nothing.
 */
#include "fuzz_input.h"

#include <htslib/hts_log.h>

static ssize_t check_message(void *arg, const char *text, size_t n_bytes)
{
    static const char own[] = "samtools rocksort: ";
    (void)arg;
    bool is_own = n_bytes >= strlen(own) && memcmp(text, own, strlen(own)) == 0;
    for (size_t i = 0; is_own && i < n_bytes; i++)
        FUZZ_CHECK(((unsigned char)text[i] >= 0x20 && text[i] != 0x7f) || text[i] == '\n');
    return (ssize_t)n_bytes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    hts_set_log_level(HTS_LOG_OFF);
    FILE *shown = fopencookie(NULL, "w", (cookie_io_functions_t){.write = check_message});
    FUZZ_CHECK(shown && setvbuf(shown, NULL, _IOLBF, 0) == 0);
    stderr = shown;
    if (fuzz_begin) fuzz_begin();
    return 0;
}
