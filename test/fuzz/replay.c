/*
 * replay.c -- runs a fuzz target on files, without a fuzzer. `make check` runs each target so on
 * its seeds and on the inputs that once failed, with any compiler and sanitizers.
 *
 *     replay_NAME [-N] FILE-OR-DIRECTORY...
 *
 * With -N it first makes N random inputs, the same ones each time: to most targets, which make
 * records of any bytes, they are as good as seeds. Exit status 0 if all files were read. A target
 * that fails ends the program.
 */
#include "fuzz_input.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int cannot(const char *what, const char *path)
{
    (void)dprintf(STDERR_FILENO, "replay: cannot %s '%s': %s\n", what, path, strerror(errno));
    return -1;
}

static int run_file(const char *path, size_t n_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) return cannot("open", path);
    OWNED uint8_t *data = fuzz_alloc(n_bytes);
    size_t n = fread(data, 1, n_bytes, file);
    (void)fclose(file);
    if (n == n_bytes) (void)LLVMFuzzerTestOneInput(data, n_bytes);
    return n == n_bytes ? 0 : cannot("read", path);
}

static int run_path(const char *path, unsigned *n_run);

static int run_directory(const char *path, unsigned *n_run)
{
    int r = 0;
    DIR *dir = opendir(path);
    if (!dir) return cannot("open", path);
    for (struct dirent *entry; r == 0 && (entry = readdir(dir)) != NULL;) {
        char inner[4096];
        if (entry->d_name[0] == '.') continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) >= (int)sizeof inner) {
            errno = ENAMETOOLONG;
            r = cannot("open", entry->d_name);
        } else {
            r = run_path(inner, n_run);
        }
    }
    (void)closedir(dir);
    return r;
}

static int run_path(const char *path, unsigned *n_run)
{
    struct stat st;
    if (stat(path, &st) != 0) return cannot("find", path);
    if (S_ISDIR(st.st_mode)) return run_directory(path, n_run);
    ++*n_run;
    return run_file(path, (size_t)st.st_size);
}

/* Sizes grow from a few bytes to 6,000, again and again. */
static void run_random(unsigned n)
{
    static uint8_t bytes[6000];
    uint64_t state = 17;
    for (unsigned i = 0; i < n; i++) {
        size_t n_bytes = 8 + (i % 16 + 1) * (i % 16 + 1) * 23;
        for (size_t k = 0; k < n_bytes; k++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[k] = (uint8_t)(state >> 56);
        }
        OWNED uint8_t *exact = fuzz_copy(bytes, n_bytes);
        (void)LLVMFuzzerTestOneInput(exact, n_bytes);
    }
}

int main(int argc, char **argv)
{
    unsigned n_run = 0;
    int first = argc > 1 && argv[1][0] == '-' ? 2 : 1;
    (void)LLVMFuzzerInitialize(&argc, &argv);
    if (first == 2) run_random(n_run = (unsigned)strtoul(argv[1] + 1, NULL, 10));
    for (int i = first; i < argc; i++)
        if (run_path(argv[i], &n_run) < 0) return EXIT_FAILURE;
    (void)printf("%s: %u inputs\n", argv[0], n_run);
    return EXIT_SUCCESS;
}
