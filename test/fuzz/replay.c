/*
 * replay.c -- runs a fuzz target on files, without a fuzzer. `make check` runs each target so on
 * its seeds and on the inputs that once failed, with any compiler and sanitizers.
 *
 *     replay_NAME FILE-OR-DIRECTORY...
 *
 * Exit status 0 if all files were read. A target that fails ends the program.
 */
#include "fuzz_input.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static int cannot(const char *what, const char *path)
{
    (void)fprintf(stderr, "replay: cannot %s '%s': %s\n", what, path, strerror(errno));
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

int main(int argc, char **argv)
{
    unsigned n_run = 0;
    (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        if (run_path(argv[i], &n_run) < 0) return EXIT_FAILURE;
    (void)printf("%s: %u inputs\n", argv[0], n_run);
    return EXIT_SUCCESS;
}
