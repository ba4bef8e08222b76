/*
 * fuzz_store.c -- temporary databases with changed files. The input says how many runs there are,
 * and then which bytes of which files change, or which files are cut short, lost or exchanged. Then
 * either the process that wrote the database goes on with it, or it is opened as --resume does
 * (resume.c): it is tidied and opened, read-only or not, its labels are followed, and its runs are
 * scanned.
 *
 * RocksDB must not crash, every error must have a message, and labels and scans must show only what
 * was put: every byte has a checksum. The database cannot know that blocks are missing, because a
 * manifest that is cut short looks as if a run had never ended. The sums over all records find that
 * at the end of a sort.
 */
#include "fuzz_input.h"

#include "os/temp_dir.h"
#include "spill/run_db.h"
#include "spill/run_label.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_RUNS = 3, MAX_BLOCKS = 12, VALUE_BYTES = 700, MAX_FILES = 64 };

static char place[64], db_place[96];

static void remove_all(const char *path)
{
    struct stat st;
    DIR *dir = lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!dir) {
        (void)unlink(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            remove_all(inner);
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

static void remove_place(void)
{
    remove_all(place);
}

void fuzz_begin(void)
{
    /* Opening again reads past the page cache, which a file system in memory may not know. */
    const char *top = getenv("TMPDIR");
    (void)snprintf(place, sizeof place, "%s/rocksort-fuzz-XXXXXX",
                   top && strlen(top) < 32 ? top : "/tmp");
    FUZZ_CHECK(mkdtemp(place) && atexit(remove_place) == 0);
    (void)snprintf(db_place, sizeof db_place, "%s/db", place);
}

/* Block `number` of a run: keys of different runs alternate. */
static void make_block(unsigned run, unsigned number, uint8_t key[4], uint8_t value[VALUE_BYTES])
{
    key[0] = 'k';
    key[1] = (uint8_t)number;
    key[2] = (uint8_t)run;
    key[3] = 0;
    for (unsigned i = 0; i < VALUE_BYTES; i++)
        value[i] = (uint8_t)(i * 2654435761u >> 13 ^ run * 31 ^ number * 7);
}

/* Makes the label of a run. All runs are a chain. */
static void make_label(unsigned run, uint8_t label[RUN_LABEL_BYTES])
{
    struct run_label made = {
        .run = run,
        .before = run > 0 ? run - 1 : RUN_LABEL_NONE,
        .sum = {.n_records = 10 + run, .n_bytes = 1000, .hash = 0x9e3779b97f4a7c15u * (run + 1)},
        .open_bytes = VALUE_BYTES,
        .end = {.offset = 70 * run, .n_records = 10 * run},
    };
    run_label_encode(&made, label);
}

static void put_run(struct run_db *db, unsigned run, unsigned n_blocks)
{
    uint8_t key[4], value[VALUE_BYTES], label[RUN_LABEL_BYTES];
    struct begun_run *writer;
    FUZZ_CHECK(run_db_begin_run(db, 1, &writer) == 0);
    for (unsigned i = 0; i < n_blocks; i++) {
        make_block(run, i, key, value);
        FUZZ_CHECK(run_db_put(writer, 0, key, sizeof key, value, sizeof value) == 0);
    }
    make_label(run, label);
    FUZZ_CHECK(run_db_label_run(writer, run, label, sizeof label) == 0);
    FUZZ_CHECK(run_db_end_run(writer) == 0);
}

/* Lists the regular files in a directory by name. Returns how many there are. */
static unsigned list_files(const char *path, char files[MAX_FILES][256])
{
    struct dirent **entries;
    unsigned n = 0;
    int n_entries = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n_entries; i++) {
        char inner[256];
        struct stat st;
        bool fits = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) <
                    (int)sizeof inner;
        if (fits && n < MAX_FILES && stat(inner, &st) == 0 && S_ISREG(st.st_mode) &&
            strcmp(entries[i]->d_name, "LOCK") != 0)
            memcpy(files[n++], inner, sizeof inner);
        free(entries[i]);
    }
    if (n_entries >= 0) free(entries);
    return n;
}

static void change_file(struct fuzz_input *in, const char *path, const char *other)
{
    struct stat st;
    uint8_t byte;
    unsigned kind = fuzz_below(in, 16);
    size_t at = fuzz_u16(in);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;                 /* it was removed before */
    FUZZ_CHECK(fstat(fd, &st) == 0);
    size_t size = (size_t)st.st_size;
    if (size > 0 && (kind & 8)) at = size - 1 - at % (size < 80 ? size : 80);
    if (size > 0) at %= size;
    switch (kind & 7) {
    case 0: FUZZ_CHECK(ftruncate(fd, (off_t)at) == 0); break;
    case 1: FUZZ_CHECK(unlink(path) == 0); break;
    case 2: FUZZ_CHECK(pwrite(fd, "garbage", 7, (off_t)size) == 7); break;
    case 3: (void)rename(other, path); break;
    default:
        if (pread(fd, &byte, 1, (off_t)at) != 1) break;
        byte ^= (uint8_t)(fuzz_u8(in) | 1);
        FUZZ_CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
    }
    (void)close(fd);
}

static void change_files(struct fuzz_input *in)
{
    static char files[MAX_FILES][256];
    char inner[128];
    (void)snprintf(inner, sizeof inner, "%s/db-0", db_place);
    for (int i = 0; i < 4 && fuzz_left(in) > 0; i++) {
        unsigned n = list_files(inner, files);
        if (n > 0) change_file(in, files[fuzz_below(in, n)], files[fuzz_below(in, n)]);
    }
}

/* Compares each block that the scan shows with what was put. Returns how many there are, or -1
   after a message. */
static int scan_all(struct run_db *db)
{
    uint8_t wanted_key[4], wanted[VALUE_BYTES];
    const uint8_t *key, *value;
    size_t key_bytes, value_bytes;
    int n = 0, r;
    struct run_scan *scan = run_scan_open(db, 0);
    FUZZ_CHECK(scan);
    for (; (r = run_scan_key(scan, &key, &key_bytes)) > 0; n++) {
        run_scan_value(scan, &value, &value_bytes);
        FUZZ_CHECK(key_bytes == sizeof wanted_key && value_bytes == VALUE_BYTES);
        make_block(key[2], key[1], wanted_key, wanted);
        FUZZ_CHECK(memcmp(key, wanted_key, sizeof wanted_key) == 0);
        FUZZ_CHECK(memcmp(value, wanted, sizeof wanted) == 0);
        run_scan_next(scan);
    }
    run_scan_close(scan);
    return r < 0 ? -1 : n;
}

struct labels {
    struct run_label at[MAX_RUNS];
    unsigned n;
    bool damaged;
};

static int take_label(void *arg, const uint8_t *bytes, size_t n_bytes)
{
    struct labels *labels = arg;
    uint8_t put[RUN_LABEL_BYTES];
    FUZZ_CHECK(labels->n < MAX_RUNS);
    struct run_label *label = &labels->at[labels->n];
    labels->damaged = run_label_decode(bytes, n_bytes, label) < 0;
    if (labels->damaged) return -1;     /* resume() expects no message */
    FUZZ_CHECK(label->run < MAX_RUNS);
    make_label(label->run, put);
    FUZZ_CHECK(memcmp(bytes, put, sizeof put) == 0);
    labels->n++;
    return 0;
}

/* Opens the database as another process does. Returns NULL after a message, or if there is none. */
static struct run_db *open_again(const struct run_db_settings *settings, bool *is_there)
{
    temp_dir_tidy(db_place);
    *is_there = run_db_exists(db_place, 0);
    struct run_db *db = *is_there ? run_db_create(db_place, settings, NULL) : NULL;
    FUZZ_CHECK(!*is_there || !db == (diag_failed()));
    return db;
}

/* Goes on as another process. Returns the number of blocks, or -1 if that is not possible. */
static int resume(struct fuzz_input *in, unsigned how)
{
    struct run_db_settings settings = {.direct = how & 1, .existing = true, .read_only = how & 2,
                                       .n_admitted = 1, .n_compactions = 1};
    struct labels labels = {.n = 0};
    bool is_there;
    change_files(in);
    struct run_db *db = open_again(&settings, &is_there);
    if (!db) return is_there ? -1 : 0;
    int n = -1, r = run_db_labels(db, take_label, &labels);
    FUZZ_CHECK((r < 0) == (labels.damaged || diag_failed()));
    if (r == 0 && run_labels_chain(labels.at, labels.n) >= 0) {
        n = scan_all(db);
        FUZZ_CHECK((n < 0) == (diag_failed()));
    }
    run_db_destroy(db);
    return n;
}

/* Goes on in the same process. Returns the same. */
static int go_on(struct fuzz_input *in, struct run_db *db)
{
    change_files(in);
    int n = scan_all(db);
    FUZZ_CHECK((n < 0) == (diag_failed()));
    run_db_destroy(db);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct fuzz_input in = {data, data + n_bytes};
    struct run_db_settings settings = {.direct = true, .n_admitted = 1, .n_compactions = 1};
    unsigned n_runs = fuzz_u8(&in), how = n_runs / MAX_RUNS;
    unsigned n_blocks = 1 + fuzz_below(&in, MAX_BLOCKS);
    n_runs = 1 + n_runs % MAX_RUNS;
    diag_renew();
    FUZZ_CHECK(mkdir(db_place, 0700) == 0);
    struct run_db *db = run_db_create(db_place, &settings, NULL);
    FUZZ_CHECK(db);
    for (unsigned i = 0; i < n_runs; i++) put_run(db, i, n_blocks);
    bool unchanged = fuzz_left(&in) == 0, same_process = how % 2 == 0;
    if (!same_process) run_db_destroy(db);
    int n = same_process ? go_on(&in, db) : resume(&in, how / 2);
    FUZZ_CHECK(n <= (int)(n_runs * n_blocks));
    FUZZ_CHECK(!unchanged || n == (int)(n_runs * n_blocks));
    remove_all(db_place);
    return 0;
}
