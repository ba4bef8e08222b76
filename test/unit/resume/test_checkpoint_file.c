/*
 * test_checkpoint_file.c -- a checkpoint file is read as it was written, whatever is in it; a
 * text that is damaged or cut off, or never was a checkpoint file, is refused.
 */
#include "unit_test.h"

#include "resume/checkpoint_file.h"
#include "util/long_hash.h"

static const char *const directories[] = {"/tmp/rocksort.1.abcdef", "/mnt/a b%/x\n\ty\x01\xff"};
static const char *const options[] = {"reference=/data/a b.fa", "level=3"};

static struct checkpoint_input inputs[] = {
    {"/data/in 1.bam", 651000000, 1700000000123456789}, {"/data/100%\n.bam", 0, 0}, {"-", 0, 0}};

/* One that has everything. */
static struct checkpoint_file full_file(void)
{
    return (struct checkpoint_file){
        .program = "0.1.0",
        .state = CHECKPOINT_LOADED,
        .directory = 1,
        .n_directories = 2,
        .directories = (const char **)(uintptr_t)directories,
        .n_lanes = 4,
        .resources = {.n_threads = 16, .thread_bytes = 640 << 20, .total_bytes = SIZE_MAX,
                      .codec = TEMP_CODEC_ZSTD},
        .rules = {.order = SORT_TAG, .below = SORT_NAME_LEXICAL, .tag = {'C', 'B'},
                  .minhash = {.k = 31, .forward_only = true, .squeeze = true},
                  .seed = UINT64_MAX},
        .fasta = {"/ref/hg 38.fa", 3000000000, 17},
        .minhash_window = 100,
        .fixmate = "-r -z 'off'",
        .can_read_again = true,
        .n_inputs = 3,
        .inputs = inputs,
        .output = {.path = "/out/a.bam##idx##/out/a.bai", .format = "cram,no_ref=1", .level = 9,
                   .engine = BGZF_ENGINE_ZLIB,
                   .write_index = true, .durable = true,
                   .counts = {"/out/a b.txt", NULL, "/out/none"},
                   .statistics = "/out/dups", .metrics = "/out/a b.metrics", .n_options = 2,
                   .options = (const char **)(uintptr_t)options,
                   .temporaries = {"/out/a.bam.rocksort.7.tmp", "/out/i%.tmp"}},
        .n_runs = 4636,
        .sum = {UINT64_C(6000000), UINT64_C(2080000000), UINT64_C(0xfedcba9876543210)},
        .header = "@HD\tVN:1.6\n@CO\t100%\nend 0000000000000000\n",
        .header_bytes = strlen("@HD\tVN:1.6\n@CO\t100%\nend 0000000000000000\n"),
    };
}

/* One that has nothing. */
static struct checkpoint_file bare_file(void)
{
    return (struct checkpoint_file){
        .program = "",
        .n_directories = 1,
        .directories = (const char **)(uintptr_t)directories,
        .n_lanes = 1,
        .resources = {.n_threads = 1, .thread_bytes = 1, .codec_auto = true},
        .rules = {.minhash = {.k = 20}},
        .minhash_window = 1,
        .output = {.level = -1},
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
    assert_string_equal(a->program, b->program);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->directory, b->directory);
    assert_int_equal(a->n_directories, b->n_directories);
    for (size_t i = 0; i < a->n_directories; i++)
        assert_string_equal(a->directories[i], b->directories[i]);
    assert_int_equal(a->n_lanes, b->n_lanes);
    assert_int_equal(a->resources.n_threads, b->resources.n_threads);
    assert_true(a->resources.thread_bytes == b->resources.thread_bytes);
    assert_true(a->resources.total_bytes == b->resources.total_bytes);
    assert_int_equal(a->resources.codec_auto, b->resources.codec_auto);
    assert_int_equal(a->resources.codec, b->resources.codec);
    assert_int_equal(a->rules.order, b->rules.order);
    assert_int_equal(a->rules.below, b->rules.below);
    assert_memory_equal(a->rules.tag, b->rules.tag, 2);
    assert_int_equal(a->rules.minhash.k, b->rules.minhash.k);
    assert_int_equal(a->rules.minhash.forward_only, b->rules.minhash.forward_only);
    assert_int_equal(a->rules.minhash.squeeze, b->rules.minhash.squeeze);
    assert_true(a->rules.seed == b->rules.seed);
    assert_same_text(a->fasta.path, b->fasta.path);
    assert_true(a->fasta.n_bytes == b->fasta.n_bytes && a->fasta.mtime_ns == b->fasta.mtime_ns);
    assert_int_equal(a->minhash_window, b->minhash_window);
    assert_same_text(a->fixmate, b->fixmate);
    assert_same_text(a->markdup, b->markdup);
    assert_int_equal(a->can_read_again, b->can_read_again);
    assert_int_equal(a->n_inputs, b->n_inputs);
    for (size_t i = 0; i < a->n_inputs; i++) {
        assert_string_equal(a->inputs[i].path, b->inputs[i].path);
        assert_true(a->inputs[i].n_bytes == b->inputs[i].n_bytes);
        assert_true(a->inputs[i].mtime_ns == b->inputs[i].mtime_ns);
    }
    assert_same_text(a->output.path, b->output.path);
    assert_same_text(a->output.format, b->output.format);
    assert_int_equal(a->output.level, b->output.level);
    assert_int_equal(a->output.engine, b->output.engine);
    assert_int_equal(a->output.write_index, b->output.write_index);
    assert_int_equal(a->output.durable, b->output.durable);
    for (int i = 0; i < COUNT_N_KINDS; i++)
        assert_same_text(a->output.counts[i], b->output.counts[i]);
    assert_same_text(a->output.statistics, b->output.statistics);
    assert_same_text(a->output.metrics, b->output.metrics);
    assert_int_equal(a->output.n_options, b->output.n_options);
    for (size_t i = 0; i < a->output.n_options; i++)
        assert_string_equal(a->output.options[i], b->output.options[i]);
    for (int i = 0; i < CHECKPOINT_N_TEMPORARIES; i++)
        assert_same_text(a->output.temporaries[i], b->output.temporaries[i]);
    assert_true(a->n_runs == b->n_runs && content_sum_equal(&a->sum, &b->sum));
    assert_int_equal(a->header_bytes, b->header_bytes);
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

TEST(test_each_order_that_options_ask_for_is_read)
{
    for (int order = SORT_COORDINATE; order <= SORT_SHUFFLE; order++) {
        struct checkpoint_file file = full_file(), parsed;
        const char *problem;
        file.rules.order = (enum sort_order)order;
        if (order != SORT_TAG) file.rules.tag[0] = file.rules.tag[1] = '\0';
        OWNED_TEXT kstring_t text = format(&file);
        int r = checkpoint_file_parse(text.s, text.l, &parsed, &problem);
        /* No option asks for SORT_COORDINATE_LONG. */
        assert_int_equal(r, order == SORT_COORDINATE_LONG ? -1 : 0);
        if (r == 0) assert_int_equal(parsed.rules.order, order);
        if (r == 0) checkpoint_file_release(&parsed);
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

/* Replaces the first line that begins with `begin`, and makes the checksum fit. Returns true if the
   text was accepted. */
static bool parses_with(const char *begin, const char *line)
{
    struct checkpoint_file file = full_file();
    OWNED_TEXT kstring_t text = format(&file), changed = {0, 0, NULL};
    const char *at = text.s;
    while (strncmp(at, begin, strlen(begin)) != 0) {
        at = strchr(at, '\n') + 1;
        assert_true(*at != '\0');
    }
    const char *end = strchr(at, '\n') + 1, *last = text.s + text.l - 21;
    assert_true(kputsn(text.s, (size_t)(at - text.s), &changed) >= 0);
    assert_true(kputs(line, &changed) >= 0);
    assert_true(kputsn(end, (size_t)(last - end), &changed) >= 0);
    uint64_t sum = long_hash(changed.s, changed.l);
    assert_true(ksprintf(&changed, "end %016" PRIx64 "\n", sum) > 0);
    bool r = parses(changed.s, changed.l);
    return r;
}

TEST(test_markdup_needs_the_order_by_coordinate)
{
    static const struct {
        enum sort_order order, below;
        bool is_good;
    } cases[] = {
        {SORT_COORDINATE, SORT_COORDINATE, true}, {SORT_TAG, SORT_COORDINATE, true},
        {SORT_TAG, SORT_NAME_NATURAL, false}, {SORT_NAME_NATURAL, SORT_COORDINATE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct checkpoint_file file = bare_file(), parsed;
        const char *problem;
        file.markdup = "-S -d 2500 -f 'my stats.txt'";
        file.rules.order = cases[i].order;
        file.rules.below = cases[i].below;
        if (cases[i].order == SORT_TAG) memcpy(file.rules.tag, "RG", 2);
        OWNED_TEXT kstring_t text = format(&file);
        int r = checkpoint_file_parse(text.s, text.l, &parsed, &problem);
        assert_int_equal(r, cases[i].is_good ? 0 : -1);
        if (r == 0) assert_same(&parsed, &file);
        if (r == 0) checkpoint_file_release(&parsed);
    }
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
        {"rocksort-store", "rocksort-store 8\n", false},
        {"rocksort-store", "rocksort-store 10\n", false},
        {"rocksort-store", "ROCKSORT-store 2\n", false},
        {"state", "state partial\n", true},
        {"state", "state done\n", false},
        {"directory", "directory 2 2\n", false},
        {"directory", "directory 1 65\n", false},
        {"directory", "directory 1 1\n", false},
        {"directory", "directory 0 0\n", false},
        {"path", "path \n", false},
        {"path", "path /a%0\n", false},
        {"path", "path /a%00\n", false},
        {"path", "path /a%zz\n", false},
        {"path", "path /a%\n", false},
        {"threads", "threads 1024\n", true},
        {"threads", "threads 0\n", false},
        {"threads", "threads 1025\n", false},
        {"memory", "memory 0 1\n", true},
        {"memory", "memory 0 0\n", false},
        {"memory", "memory 1\n", false},
        {"memory", "memory 1 18446744073709551616\n", false},
        {"codec", "codec none\n", true},
        {"codec", "codec =none\n", true},
        {"codec", "codec =gzip\n", false},
        {"codec", "codec lz4\n", false},
        {"codec", "", false},
        {"fixmate", "fixmate =\n", true},
        {"fixmate", "fixmate -r\n", false},
        {"fixmate", "", false},
        {"markdup", "markdup =\n", false},             /* in the order of a tag, then names */
        {"markdup", "markdup -r\n", false},
        {"markdup", "", false},
        {"order", "order random\n", false},
        {"order", "order coordinate\n", false},         /* there is a tag */
        {"below", "below tag\n", false},
        {"tag", "tag =CBX\n", false},
        {"tag", "tag =C\n", false},
        {"tag", "tag CB\n", false},
        {"minhash", "minhash 32 1 1 100\n", false},
        {"minhash", "minhash 0 1 1 100\n", false},
        {"minhash", "minhash 31 2 1 100\n", false},
        {"minhash", "minhash 31 1 1 0\n", false},
        {"minhash", "minhash 31 1 1\n", false},
        {"fasta", "fasta none\n", true},
        {"fasta", "fasta 1 2\n", false},
        {"fasta", "fasta 1 2 \n", false},
        {"seed", "seed 18446744073709551616\n", false},
        {"inputs", "inputs 4 again\n", false},
        {"inputs", "inputs 99999999999999 again\n", false},
        {"inputs", "inputs 3 once\n", true},
        {"inputs", "inputs 3 often\n", false},
        {"input ", "input 1 9223372036854775808 /x\n", false},
        {"output ", "output none\n", true},
        {"output ", "output /x\n", false},
        {"output-level", "output-level -1\n", false},
        {"output-level", "output-level 10 auto\n", false},
        {"output-level", "output-level -2 auto\n", false},
        {"output-level", "output-level 1 igzip\n", true},
        {"output-level", "output-level -1 libdeflate\n", true},
        {"output-level", "output-level 1 \n", false},
        {"output-level", "output-level 1 igzips\n", false},
        {"output-level", "output-level 1igzip\n", false},
        {"output-index", "output-index 2\n", false},
        {"output-fsync", "output-fsync 2\n", false},
        {"output-fsync", "", false},
        {"flagstat", "flagstat none\n", true},
        {"idxstats", "idxstats /x\n", false},
        {"coverage", "", false},
        {"statistics", "statistics =/x\n", true},
        {"metrics", "metrics /x\n", false},
        {"output-options", "output-options 1001\n", false},
        {"output-options", "output-options 1\n", false},
        {"header", "header 0\n", false},
        {"header", "header 43\n", false},
        {"header", "header 18446744073709551615\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (parses_with(cases[i].begin, cases[i].line) != cases[i].good)
            fail_msg("'%s' was %s", cases[i].line, cases[i].good ? "refused" : "accepted");
}

TEST(test_lines_above_a_megabyte_are_refused)
{
    enum { MOST = 1 << 20 };
    OWNED char *line = test_alloc(MOST + 64);
    for (int extra = 0; extra < 2; extra++) {
        size_t n = MOST + (size_t)extra;
        memset(line, 'x', n);
        memcpy(line, "program ", 8);
        line[n] = '\n';
        line[n + 1] = '\0';
        assert_int_equal(parses_with("program", line), extra == 0);
    }
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
