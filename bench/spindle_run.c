/*
 * spindle_run.c -- client_run of spindle_client.h. A memory cgroup limits the command and its page
 * cache. With version 1 it is made below the cgroup of this process. With version 2 it is made
 * there too if possible, or else beside it, as a cgroup with processes cannot have such children.
 * It is removed at the end, and the page cache with it.
 */
#define _GNU_SOURCE
#include "spindle_client.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct cgroup {
    char path[PATH_MAX]; /* empty: none */
    bool is_v2;
};

static int write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    int failed = fputs(text, file) < 0;
    return fclose(file) || failed ? -1 : 0;
}

/* Whether a list with commas has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n] || at[n] == '\n')) return true;
    return false;
}

/* Finds where the memory controller is mounted. */
static int find_mount(struct cgroup *cgroup)
{
    char line[8192], mount[PATH_MAX], type[64], options[4096];
    FILE *file = fopen("/proc/self/mountinfo", "r");
    bool found = false;

    if (!file) return -1;
    while (!found && fgets(line, sizeof line, file)) {
        const char *dash = strstr(line, " - ");
        if (sscanf(line, "%*s %*s %*s %*s %4095s", mount) != 1 || !dash) continue;
        if (sscanf(dash, " - %63s %*s %4095s", type, options) != 2) continue;
        cgroup->is_v2 = !strcmp(type, "cgroup2");
        found = !strcmp(type, "cgroup") && has_word(options, "memory");
        if (cgroup->is_v2) {
            char path[PATH_MAX + 64], list[1024] = "";
            (void)snprintf(path, sizeof path, "%s/cgroup.controllers", mount);
            FILE *controllers = fopen(path, "r");
            if (!controllers) continue;
            found = fgets(list, sizeof list, controllers) && strstr(list, "memory");
            (void)fclose(controllers);
        }
    }
    (void)fclose(file);
    if (found) (void)snprintf(cgroup->path, sizeof cgroup->path, "%s", mount);
    return found ? 0 : -1;
}

/* Appends the path of this process's cgroup. */
static int find_own(struct cgroup *cgroup)
{
    char line[8192];
    FILE *file = fopen("/proc/self/cgroup", "r");
    bool found = false;

    if (!file) return -1;
    while (!found && fgets(line, sizeof line, file)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = cgroup->is_v2 ? !list[1] : has_word(list + 1, "memory");
        if (!found || !strcmp(path, "/")) continue;
        size_t n = strlen(cgroup->path);
        (void)snprintf(cgroup->path + n, sizeof cgroup->path - n, "%s", path);
        /* In a container the mount may already begin there. */
        if (access(cgroup->path, F_OK)) cgroup->path[n] = '\0';
    }
    (void)fclose(file);
    return found ? 0 : -1;
}

/* Makes a cgroup in the folder cgroup->path and sets its limit. */
static int make_in(struct cgroup *cgroup, uint64_t memory_bytes)
{
    char limit[32];
    size_t n = strlen(cgroup->path);

    (void)snprintf(limit, sizeof limit, "%" PRIu64, memory_bytes);
    if (cgroup->is_v2) (void)write_text(cgroup->path, "cgroup.subtree_control", "+memory");
    (void)snprintf(cgroup->path + n, sizeof cgroup->path - n, "/spindle-%ld", (long)getpid());
    if (mkdir(cgroup->path, 0755) == 0) {
        const char *name = cgroup->is_v2 ? "memory.max" : "memory.limit_in_bytes";
        if (!write_text(cgroup->path, name, limit)) return 0;
        (void)rmdir(cgroup->path);
    }
    cgroup->path[n] = '\0';
    return -1;
}

static int make_cgroup(struct cgroup *cgroup, uint64_t memory_bytes)
{
    if (find_mount(cgroup) || find_own(cgroup)) return -1;
    if (!make_in(cgroup, memory_bytes)) return 0;
    char *slash = strrchr(cgroup->path, '/');
    if (!cgroup->is_v2 || !slash || slash == cgroup->path) return -1;
    *slash = '\0';
    return make_in(cgroup, memory_bytes);
}

/* Says so if the kernel killed processes of the command for lack of memory. */
static void report_kills(const struct cgroup *cgroup)
{
    char path[PATH_MAX + 64], name[64];
    unsigned long n;
    (void)snprintf(path, sizeof path, "%s/%s", cgroup->path,
                   cgroup->is_v2 ? "memory.events" : "memory.oom_control");
    FILE *file = fopen(path, "r");
    if (!file) return;
    while (fscanf(file, "%63s %lu", name, &n) == 2)
        if (!strcmp(name, "oom_kill") && n)
            fprintf(stderr, "spindle: the kernel killed %lu process(es): out of --memory\n", n);
    (void)fclose(file);
}

static void remove_cgroup(const struct cgroup *cgroup)
{
    /* Version 1 would keep the page cache. */
    if (!cgroup->is_v2) (void)write_text(cgroup->path, "memory.force_empty", "0");
    for (int i = 0; i < 100 && rmdir(cgroup->path) && errno == EBUSY; i++)
        usleep(10000);
}

/* Waits for the child. Passes it the signals that are to end this process. */
static int wait_for(pid_t child, const sigset_t *signals)
{
    int status;
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGTERM || number == SIGHUP) (void)kill(child, number);
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended < 0) return 1;
        if (ended == child)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

int client_run(uint64_t memory_bytes, char *const *command)
{
    struct cgroup cgroup = {0};
    sigset_t signals, old;

    if (make_cgroup(&cgroup, memory_bytes)) {
        fprintf(stderr, "spindle: no memory cgroup can be made here (are you root?)\n");
        return CLIENT_NO_CGROUP;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT); /* not passed on: the terminal sends it to the child, too */
    sigprocmask(SIG_BLOCK, &signals, &old);
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &old, NULL);
        if (!write_text(cgroup.path, "cgroup.procs", "0")) execvp(command[0], command);
        fprintf(stderr, "spindle: %s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    if (child < 0)
        fprintf(stderr, "spindle: fork: %s\n", strerror(errno));
    else
        status = wait_for(child, &signals);
    report_kills(&cgroup);
    remove_cgroup(&cgroup);
    return status;
}
