/*
 * fuzz_sort.c -- whole sorts in one process: any file, in memory and in so little memory that it is
 * spilled to many runs, with one thread and with several. All of them succeed with the same bytes,
 * or all fail, each with a message, and nothing is left behind. The slowest of the targets: some
 * thousand threads a second, and a database for each input that spills.
 */
#include "fuzz_file.h"
#include "fuzz_record.h"

#include "sort/bam_sort.h"

#include <dirent.h>
#include <htslib/bgzf.h>
#include <unistd.h>

/* Each small batch is a run; what the batches of the inputs need beyond them they get. */
enum { SPILL_BATCH_BYTES = 16 << 10, SPILL_BUDGET = 400000, BUDGET = 32 << 20,
       MOST_OUTPUT = 64 << 20 };

static struct fuzz_file input;
static char place[64];                  /* a directory for outputs and temporary data */

/* htslib 1.16's threads leak 32 bytes for each damaged block of compressed SAM, in a function that
   has no name in the library. What we leak of htslib's objects other targets and CLI tests show. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhts.so";
}

static void remove_place(void)
{
    (void)rmdir(place);
}

void fuzz_begin(void)
{
    fuzz_file_create(&input);
    (void)snprintf(place, sizeof place, "%s/rocksort-fuzz-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(place) && atexit(remove_place) == 0);
}

/* A run leaves its output, if it succeeded, and nothing else. */
static void check_place(bool have_output)
{
    DIR *dir = opendir(place);
    unsigned n = 0;
    FUZZ_CHECK(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) n++;
    if (n != have_output) {
        rewinddir(dir);
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
            (void)fprintf(stderr, "there is %s\n", entry->d_name);
    }
    (void)closedir(dir);
    FUZZ_CHECK(n == have_output);
}

/* The content of the output, without compression: blocks end at other records in other output
 * chunks. */
static uint8_t *read_output(const char *path, size_t *n_bytes)
{
    BGZF *output = bgzf_open(path, "r");
    uint8_t *content = fuzz_alloc(MOST_OUTPUT);
    FUZZ_CHECK(output);
    ssize_t n = bgzf_read(output, content, MOST_OUTPUT);
    FUZZ_CHECK(n > 0 && n < MOST_OUTPUT && bgzf_close(output) == 0);
    *n_bytes = (size_t)n;
    return content;
}

/* Sorts the input; returns the output's bytes, or NULL after a failure. */
static uint8_t *sort(struct sort_settings *settings, size_t *n_bytes)
{
    char output[128];
    const char *inputs[] = {input.path}, *prefixes[] = {place};
    struct sort_report report;
    uint8_t *bytes = NULL;
    (void)snprintf(output, sizeof output, "%s/out", place);
    settings->inputs = inputs;
    settings->temp_prefixes = prefixes;
    settings->output = output;
    diag_renew();
    int r = sort_run(settings, &report);
    FUZZ_CHECK((r == 0) == (!diag_failed()));
    check_place(r == 0);
    if (r == 0) {
        bytes = read_output(output, n_bytes);
        FUZZ_CHECK(unlink(output) == 0);
    }
    sort_report_release(&report);
    return bytes;
}

static struct sort_settings choose_settings(struct fuzz_input *in)
{
    static const enum sort_order orders[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_LEXICAL,
                                             SORT_TAG, SORT_TEMPLATE, SORT_MINHASH, SORT_SHUFFLE};
    struct sort_settings s = {
        .n_inputs = 1,
        .n_temp_prefixes = 1,
        .level = 1,
        .codec = (enum temp_codec)fuzz_below(in, TEMP_CODEC_COUNT),
        .n_threads = 1,
        .memory_bytes = BUDGET,
        .rules = {.order = orders[fuzz_below(in, 7)], .minhash = {.k = MINHASH_K}},
        .compaction = COMPACTION_OFF,
        .no_resume = true,      /* or a store stays for what cannot be written as SAM */
    };
    s.output_format.kind = fuzz_one_in(in, 4) ? OUTPUT_SAM : OUTPUT_BAM;
    s.rules.below = fuzz_below(in, 3);
    memcpy(s.rules.tag, &"RGMICGCB"[2 * fuzz_below(in, 4)], 2);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct sort_settings settings = choose_settings(&in);
    enum fuzz_form form = (enum fuzz_form)fuzz_below(&in, FUZZ_N_FORMS);
    size_t file_bytes, n_whole = 0, n_spilled = 0;
    OWNED uint8_t *bytes = fuzz_make_file(&in, form, &file_bytes);
    if (!fuzz_is_for_htslib(bytes, file_bytes)) {
        fuzz_file_write(&input, bytes, file_bytes);
        OWNED uint8_t *whole = sort(&settings, &n_whole);
        settings.n_threads = 3;
        settings.memory_bytes = SPILL_BUDGET;
        settings.test_buffer_bytes = SPILL_BATCH_BYTES;
        OWNED uint8_t *spilled = sort(&settings, &n_spilled);
        FUZZ_CHECK(!whole == !spilled);
        if (whole) FUZZ_CHECK(n_whole == n_spilled && memcmp(whole, spilled, n_whole) == 0);
    }
    return 0;
}
