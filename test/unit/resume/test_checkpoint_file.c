/*
 * test_checkpoint_file.c -- a checkpoint file is read as it was written, whatever is in it; a
 * text that is damaged or cut off, or never was a checkpoint file, is refused.
 */
#include "unit_test.h"

#include "resume/checkpoint_file.h"
#include "util/long_hash.h"

static const char *const directories[] = {"/tmp/rocksort.1.abcdef", "/mnt/a b%/x\n\ty\x01\xff"};
static const char *const options[] = {"-tCB", "--reference=/data/a b.fa",
                                      "--markdup=-S -d 2500 -f 'my stats.txt'"};

static struct checkpoint_input inputs[] = {
    {"/data/in 1.bam", 651000000, 1700000000123456789}, {"/data/100%\n.bam", 0, 0}, {"-", 0, 0}};

/* One that has everything. */
static struct checkpoint_file full_file(void)
{
    return (struct checkpoint_file){
        .state = CHECKPOINT_LOADED,
        .directory = 1,
        .n_directories = 2,
        .directories = (const char **)(uintptr_t)directories,
        .n_lanes = 4,
        .n_options = 3,
        .options = (const char **)(uintptr_t)options,
        .fasta = {"/ref/hg 38.fa", 3000000000, 17},
        .can_read_again = true,
        .n_inputs = 3,
        .inputs = inputs,
        .output = {.path = "/out/a.bam", .index = "/out/a.bai", .also = "/out/%.cram",
                   .counts = {"/out/a b.txt", NULL, "/out/none"},
                   .count_options = {"", NULL, "-q 20 -t '/data/a b.bed'"},
                   .n_count_temporaries = 2, .count_temporaries = (const char **)(uintptr_t)options,
                   .statistics = "/out/dups", .metrics = "/out/a b.metrics",
                   .temporaries = {"/out/a.bam.rocksort.7.tmp", "/out/i%.tmp"}},
        .n_runs = 4636,
        .sum = {UINT64_C(6000000), UINT64_C(2080000000), UINT64_C(0xfedcba9876543210)},
        .header = "@HD\tVN:1.6\n@CO\t100%\nend 0000000000000000\n",
    };
}

/* One that has nothing. */
static struct checkpoint_file bare_file(void)
{
    return (struct checkpoint_file){
        .n_directories = 1,
        .directories = (const char **)(uintptr_t)directories,
        .n_lanes = 1,
        .fasta = {.path = ""},
        .header = "",
    };
}

static void assert_same_text(const char *a, const char *b)
{
    if (!a || !b)
        assert_ptr_equal(a, b);
    else
        assert_string_equal(a, b);
}

static void assert_same(const struct checkpoint_file *a, const struct checkpoint_file *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->directory, b->directory);
    assert_int_equal(a->n_directories, b->n_directories);
    for (size_t i = 0; i < a->n_directories; i++)
        assert_string_equal(a->directories[i], b->directories[i]);
    assert_int_equal(a->n_lanes, b->n_lanes);
    assert_same_text(a->fasta.path, b->fasta.path);
    assert_true(a->fasta.n_bytes == b->fasta.n_bytes && a->fasta.mtime_ns == b->fasta.mtime_ns);
    assert_int_equal(a->can_read_again, b->can_read_again);
    assert_int_equal(a->n_inputs, b->n_inputs);
    for (size_t i = 0; i < a->n_inputs; i++) {
        assert_string_equal(a->inputs[i].path, b->inputs[i].path);
        assert_true(a->inputs[i].n_bytes == b->inputs[i].n_bytes);
        assert_true(a->inputs[i].mtime_ns == b->inputs[i].mtime_ns);
    }
    assert_same_text(a->output.path, b->output.path);
    assert_same_text(a->output.index, b->output.index);
    assert_same_text(a->output.also, b->output.also);
    for (int i = 0; i < COUNT_N_KINDS; i++)
        assert_same_text(a->output.counts[i], b->output.counts[i]);
    for (int i = 0; i < COUNT_N_KINDS; i++)
        assert_same_text(a->output.count_options[i], b->output.count_options[i]);
    assert_same_text(a->output.statistics, b->output.statistics);
    assert_same_text(a->output.metrics, b->output.metrics);
    assert_int_equal(a->n_options, b->n_options);
    for (size_t i = 0; i < a->n_options; i++) assert_string_equal(a->options[i], b->options[i]);
    size_t n = checkpoint_n_temporaries(&a->output);
    assert_int_equal(n, checkpoint_n_temporaries(&b->output));
    for (size_t i = 0; i < n; i++)
        assert_same_text(checkpoint_temporary(&a->output, i), checkpoint_temporary(&b->output, i));
    assert_true(a->n_runs == b->n_runs && content_sum_equal(&a->sum, &b->sum));
    assert_string_equal(a->header, b->header);
}

static kstring_t format(const struct checkpoint_file *file)
{
    kstring_t text = {0, 0, NULL};
    checkpoint_file_format(file, &text);
    return text;
}

/* Parses from memory of exactly this size. Returns true if the text was accepted. */
static bool parses(const char *text, size_t n_bytes)
{
    struct checkpoint_file file;
    const char *problem = NULL;
    OWNED char *exact = test_alloc(n_bytes);
    memcpy(exact, text, n_bytes);
    int r = checkpoint_file_parse(exact, n_bytes, &file, &problem);
    if (r < 0) assert_non_null(problem);
    if (r == 0) checkpoint_file_release(&file);
    return r == 0;
}

TEST(test_file_is_read_as_it_was_written)
{
    for (int i = 0; i < 2; i++) {
        struct checkpoint_file file = i ? full_file() : bare_file(), parsed;
        const char *problem = NULL;
        OWNED_TEXT kstring_t text = format(&file);
        if (checkpoint_file_parse(text.s, text.l, &parsed, &problem) < 0) fail_msg("%s", problem);
        assert_same(&parsed, &file);
        OWNED_TEXT kstring_t again = format(&parsed);
        assert_int_equal(text.l, again.l);
        assert_memory_equal(text.s, again.s, text.l);
        checkpoint_file_release(&parsed);
    }
}

TEST(test_file_that_is_cut_off_is_refused)
{
    struct checkpoint_file file = full_file();
    OWNED_TEXT kstring_t text = format(&file);
    for (size_t n = 0; n < text.l; n++) assert_false(parses(text.s, n));
    assert_true(parses(text.s, text.l));
    assert_int_equal(kputc('\n', &text), '\n');
    assert_false(parses(text.s, text.l));
}

TEST(test_flipped_bits_are_detected)
{
    struct checkpoint_file file = full_file();
    OWNED_TEXT kstring_t text = format(&file);
    for (size_t i = 0; i < 8 * text.l; i++) {
        text.s[i / 8] = (char)(text.s[i / 8] ^ 1 << i % 8);
        assert_false(parses(text.s, text.l));
        text.s[i / 8] = (char)(text.s[i / 8] ^ 1 << i % 8);
    }
}

/* Replaces the first value that begins with `begin`, by a text in which newlines stand for NUL, and
   makes the checksum fit. Returns true if the file was accepted. */
static bool parses_with(const char *begin, const char *value)
{
    struct checkpoint_file file = full_file();
    OWNED_TEXT kstring_t text = format(&file), changed = {0, 0, NULL};
    const char *first = strchr(text.s, '\n') + 1, *at = text.s, *end = first;
    bool is_first = strncmp(text.s, begin, strlen(begin)) == 0;
    for (const char *last = text.s + text.l - 21; !is_first;) {
        at = end;
        assert_true(at < last);
        end = at + strlen(at) + 1;
        if (strncmp(at, begin, strlen(begin)) == 0) break;
    }
    const char *last = text.s + text.l - 21;
    assert_true(kputsn(text.s, (size_t)(at - text.s), &changed) >= 0);
    for (; *value; value++)
        assert_true(kputc(*value == '\n' && !is_first ? 0 : *value, &changed) >= 0);
    assert_true(kputsn(end, (size_t)(last - end), &changed) >= 0);
    uint64_t sum = long_hash(changed.s, changed.l);
    assert_true(ksprintf(&changed, "end %016" PRIx64 "\n", sum) > 0);
    return parses(changed.s, changed.l);
}

TEST(test_wrong_values_are_refused)
{
    static const struct {
        const char *begin, *line;
        bool good;
    } cases[] = {
        {"lanes", "lanes 4\n", true},
        {"lanes", "lanes 0\n", false},
        {"lanes", "lanes 65\n", false},
        {"lanes", "lanes 04x\n", false},
        {"lanes", "lanes \n", false},
        {"lanes", "lanes -1\n", false},
        {"lanes", "lane 4\n", false},
        {"lanes", "", false},
        {"lanes", "lanes 4\nlanes 4\n", false},
        {"lanes", "lanes 18446744073709551617\n", false},
        {"rocksort-store", "rocksort-store 1\n", false},
        {"rocksort-store", "rocksort-store 2\n", false},
        {"rocksort-store", "rocksort-store 4\n", false},
        {"rocksort-store", "rocksort-store 5\n", false},
        {"rocksort-store", "rocksort-store 6\n", false},
        {"rocksort-store", "rocksort-store 9\n", false},
        {"rocksort-store", "rocksort-store 10\n", false},
        {"rocksort-store", "ROCKSORT-store 2\n", false},
        {"state", "state partial\n", true},
        {"state", "state done\n", false},
        {"directory", "directory 2\n", false},
        {"directory ", "directory 1\ndirectory 1\n", false},
        {"directories", "directories 1\n", false},
        {"directories", "directories 3\n", false},
        {"directories", "directories 65\n", false},
        {"path", "path \n", false},
        {"path", "path /a\n", true},
        {"fasta", "fasta \n", true},
        {"fasta", "fasta\n", false},
        {"options", "options 1001\n", false},
        {"options", "options 1\n", false},
        {"options", "options 4\n", false},
        {"option ", "option\n", false},
        {"index ", "index \n", true},
        {"index ", "index x\n", false},
        {"also", "also \n", true},
        {"also", "also /x\n", false},
        {"inputs", "inputs 4\n", false},
        {"inputs", "inputs 99999999999999\n", false},
        {"read", "read once\n", true},
        {"read", "read often\n", false},
        {"input ", "input \n", false},
        {"mtime", "mtime 9223372036854775808\n", false},
        {"output ", "output \n", true},
        {"output ", "output /x\n", false},
        {"flagstat", "flagstat =/x\n", true},
        {"flagstat", "flagstat \n", false},     /* its options have no file */
        {"count-options", "count-options =-q 1\n", true},
        {"count-options", "count-options x\n", false},
        {"count-temporaries", "count-temporaries 3\n", false},
        {"idxstats", "idxstats /x\n", false},
        {"coverage", "", false},
        {"statistics", "statistics =/x\n", true},
        {"metrics", "metrics /x\n", false},
        {"header", "header \n", true},
        {"header", "header x\n\n", false},
        {"header", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (parses_with(cases[i].begin, cases[i].line) != cases[i].good)
            fail_msg("'%s' was %s", cases[i].line, cases[i].good ? "refused" : "accepted");
}

TEST(test_garbage_does_no_harm)
{
    struct rng rng = rng_start(501);
    struct checkpoint_file file = full_file();
    OWNED_TEXT kstring_t text = format(&file);
    for (int i = 0; i < 2000; i++) {
        uint8_t bytes[600];
        size_t n = rng_below(&rng, sizeof bytes);
        rng_fill(&rng, bytes, n);
        CHECK(&rng, !parses((const char *)bytes, n));
        /* With the right beginning and end, so that lines are parsed. */
        OWNED char *mixed = test_alloc(text.l);
        memcpy(mixed, text.s, text.l);
        for (int k = 0; k < 3; k++)
            mixed[17 + rng_below(&rng, text.l - 38)] = (char)rng_below(&rng, 256);
        (void)snprintf(mixed + text.l - 21, 21, "end %016" PRIx64,
                       long_hash(mixed, text.l - 21));
        mixed[text.l - 1] = '\n';
        (void)parses(mixed, text.l);            /* accepted or not: it does no harm */
    }
}
