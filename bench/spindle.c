/*
 * spindle.c -- a disk model for benchmarks: a FUSE file system that serves a directory to any
 * program at the speed of a device that the machine does not have, and counts what the device had
 * to do.
 *
 * This file reads the command line. The others, from the bottom up (each uses only earlier ones):
 *   spindle_device.c    the presets and the sources of their figures
 *   spindle_space.c     where on the device files lie
 *   spindle_queue.c     requests that wait for a drive
 *   spindle_model.c     how long requests take, and why
 *   spindle_report.c    the counters as JSON
 *   spindle_client.c    commands for a mounted spindle
 *   spindle_run.c       `spindle run`: limits a program's memory and page cache
 *   spindle_node.c      the files that the kernel knows
 *   spindle_control.c   the control files below .spindle
 *   spindle_fs_names.c  requests about names, attributes and directories
 *   spindle_fs_data.c   requests about contents
 *   spindle_fs.c        mounting, and the loop that takes requests
 *   spindle_selftest.c  measures whether the model reaches its figures
 *
 * Exit status: 0; 1 after a message; 77 without FUSE and 78 without cgroups, so that scripts can go
 * on without them.
 */
#define _GNU_SOURCE
#include "spindle_client.h"
#include "spindle_fs.h"
#include "spindle_selftest.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/size.h"

#define EXIT_NO_FUSE 77
/* A machine of 1 GB with a program of 512 MB: 20 % (vm.dirty_ratio) of what is left. */
#define DEFAULT_WRITE_BUFFER (UINT64_C(64) << 20)
#define DEFAULT_READAHEAD (UINT64_C(128) << 10)

enum option_code {
    OPT_DEVICE = 256,
    OPT_READ_RATE,
    OPT_WRITE_RATE,
    OPT_READ_IOPS,
    OPT_WRITE_IOPS,
    OPT_DEVICES,
    OPT_STRIPE,
    OPT_IO_CAP,
    OPT_SIZE,
    OPT_WRITE_BUFFER,
    OPT_READAHEAD,
    OPT_REPORT,
    OPT_JSON,
    OPT_RESET,
    OPT_UNMOUNT,
    OPT_LIST,
    OPT_SELF_TEST,
};

static const struct option long_options[] = {
    {"device", required_argument, NULL, OPT_DEVICE},
    {"read-rate", required_argument, NULL, OPT_READ_RATE},
    {"write-rate", required_argument, NULL, OPT_WRITE_RATE},
    {"read-iops", required_argument, NULL, OPT_READ_IOPS},
    {"write-iops", required_argument, NULL, OPT_WRITE_IOPS},
    {"devices", required_argument, NULL, OPT_DEVICES},
    {"stripe", required_argument, NULL, OPT_STRIPE},
    {"io-cap", required_argument, NULL, OPT_IO_CAP},
    {"size", required_argument, NULL, OPT_SIZE},
    {"write-buffer", required_argument, NULL, OPT_WRITE_BUFFER},
    {"readahead", required_argument, NULL, OPT_READAHEAD},
    {"report", no_argument, NULL, OPT_REPORT},
    {"json", no_argument, NULL, OPT_JSON},
    {"reset", no_argument, NULL, OPT_RESET},
    {"unmount", no_argument, NULL, OPT_UNMOUNT},
    {"list", no_argument, NULL, OPT_LIST},
    {"self-test", no_argument, NULL, OPT_SELF_TEST},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: spindle [options] BACKING_DIR MOUNT_POINT     serve a directory at a device's speed\n"
    "       spindle --report MOUNT_POINT [--json]         what each program did\n"
    "       spindle --reset MOUNT_POINT [LABEL]           write all, drop caches, count from 0\n"
    "       spindle --unmount MOUNT_POINT\n"
    "       spindle run --memory SIZE -- COMMAND...       run with SIZE of memory and page cache\n"
    "       spindle --list                                the presets\n"
    "       spindle --self-test [PRESET...]               measure if each reaches its figures\n"
    "\n"
    "  --device NAME        a preset [barracuda]; these options change it:\n"
    "  --read-rate MB       10^6 bytes a second, of one drive; 0: no limit\n"
    "  --write-rate MB\n"
    "  --read-iops N        random 4 KiB accesses a second, of one drive; 0: no limit\n"
    "  --write-iops N\n"
    "  --devices N          drives, as RAID 0 [1]\n"
    "  --stripe SIZE        of the RAID\n"
    "  --io-cap SIZE        a cloud volume that counts operations of up to SIZE; 0: a drive\n"
    "  --size SIZE          the disk is full at SIZE\n"
    "  --write-buffer SIZE  of dirty data that wait for the device [64M]\n"
    "  --readahead SIZE     of the kernel [128K; arrays: two rows of stripes]\n"
    "  -f                   stay in the foreground\n"
    "\n"
    "Exit status: 0; 1 after an error; 77 without FUSE; 78 if `run` cannot make a cgroup.\n";

struct command {
    int what; /* an option code, or 0: serve */
    bool json, has_readahead;
    struct fs_options fs;
};

static int complain(const char *what, const char *value)
{
    fprintf(stderr, "spindle: %s: %s\n", what, value);
    return -1;
}

static int parse_number(const char *name, const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    /* strtod also takes "inf", "nan", hexadecimal and blanks. */
    if (!*text || strspn(text, "0123456789.") != strlen(text) || *end || errno)
        return complain(name, "a number like 156 or 0.5 is needed");
    return 0;
}

static int parse_size(const char *name, const char *text, uint64_t *value)
{
    if (size_parse(text, value))
        return complain(name, "a size like 4096, 512K or 2G is needed");
    return 0;
}

static int parse_device(const char *name, struct device *device)
{
    const struct device *preset = device_find(name);
    if (!preset) return complain(name, "no such device; see --list");
    *device = *preset;
    return 0;
}

/* Parses an option that changes the device. */
static int parse_own(int option, const char *text, struct device *device)
{
    double number = 0;
    int error = 0;

    switch (option) {
    case OPT_STRIPE: error = parse_size("--stripe", text, &device->stripe_bytes); break;
    case OPT_IO_CAP: error = parse_size("--io-cap", text, &device->io_cap_bytes); break;
    default: error = parse_number(text, text, &number); break;
    }
    if (error) return -1;
    switch (option) {
    case OPT_READ_RATE: device->read_rate = number * 1e6; break;
    case OPT_WRITE_RATE: device->write_rate = number * 1e6; break;
    case OPT_READ_IOPS: device->read_iops = number; break;
    case OPT_WRITE_IOPS: device->write_iops = number; break;
    case OPT_DEVICES: device->n_drives = number <= MAX_DRIVES ? (unsigned)number : 0; break;
    default: break;
    }
    device->name = "custom";
    device->title = "a custom device";
    return 0;
}

static int parse_option(int option, const char *text, struct command *command)
{
    switch (option) {
    case OPT_DEVICE: return parse_device(text, &command->fs.device);
    case OPT_READ_RATE:
    case OPT_WRITE_RATE:
    case OPT_READ_IOPS:
    case OPT_WRITE_IOPS:
    case OPT_DEVICES:
    case OPT_STRIPE:
    case OPT_IO_CAP: return parse_own(option, text, &command->fs.device);
    case OPT_SIZE: return parse_size("--size", text, &command->fs.size_bytes);
    case OPT_WRITE_BUFFER:
        return parse_size("--write-buffer", text, &command->fs.write_buffer_bytes);
    case OPT_READAHEAD:
        command->has_readahead = true;
        return parse_size("--readahead", text, &command->fs.readahead_bytes);
    case OPT_JSON: command->json = true; return 0;
    case 'f': command->fs.foreground = true; return 0;
    case '?': fprintf(stderr, "spindle: see spindle --help\n"); return -1;
    default: command->what = option; return 0;
    }
}

static int serve(struct command *command, char **words)
{
    char backing[PATH_MAX], mount_point[PATH_MAX];
    struct fs_options *fs = &command->fs;

    if (device_check(&fs->device)) return 1;
    /* With 0 every write would wait for ever. */
    if (!fs->write_buffer_bytes) return -complain("--write-buffer", "more than 0 is needed");
    if (!realpath(words[0], backing)) return -complain(words[0], strerror(errno));
    if (!realpath(words[1], mount_point)) return -complain(words[1], strerror(errno));
    fs->backing = backing;
    fs->mount_point = mount_point;
    /* md reads ahead two chunks of each disk. */
    if (!command->has_readahead && fs->device.n_drives > 1)
        fs->readahead_bytes = 2 * fs->device.n_drives * fs->device.stripe_bytes;
    int status = fs_serve(fs);
    return status == FS_NO_FUSE ? EXIT_NO_FUSE : status ? 1 : 0;
}

static int list(void)
{
    printf("%-16s %-30s %7s %7s %7s %7s %6s %7s %7s %s\n", "name", "device", "read",
           "write", "read", "write", "drives", "stripe", "I/O cap", "rotates");
    printf("%-16s %-30s %7s %7s %7s %7s %6s %7s %7s\n", "", "", "MB/s", "MB/s", "IOPS", "IOPS", "",
           "KiB", "KiB");
    for (size_t i = 0; device_at(i); i++) {
        const struct device *d = device_at(i);
        printf("%-16s %-30s %7.1f %7.1f %7.0f %7.0f %6u %7.0f %7.0f %s\n", d->name, d->title,
               d->read_rate / 1e6, d->write_rate / 1e6, d->read_iops, d->write_iops, d->n_drives,
               (double)d->stripe_bytes / 1024, (double)d->io_cap_bytes / 1024,
               d->rotates ? "yes" : "no");
    }
    return 0;
}

/* spindle run --memory SIZE -- COMMAND... */
static int run(int argc, char **argv)
{
    uint64_t memory;
    int first = argc > 4 && !strcmp(argv[4], "--") ? 5 : 4;

    if (argc <= first || strcmp(argv[2], "--memory")) {
        fputs(usage, stderr);
        return 1;
    }
    if (parse_size("--memory", argv[3], &memory)) return 1;
    return client_run(memory, argv + first);
}

int main(int argc, char **argv)
{
    struct command command = {.fs.device = *device_at(0),
                              .fs.write_buffer_bytes = DEFAULT_WRITE_BUFFER,
                              .fs.readahead_bytes = DEFAULT_READAHEAD};
    int option;

    if (argc > 1 && !strcmp(argv[1], "run")) return run(argc, argv);
    while ((option = getopt_long(argc, argv, "fh", long_options, NULL)) != -1)
        if (parse_option(option, optarg, &command)) return 1;
    char **words = argv + optind;
    int n = argc - optind;

    if (command.what == 'h') return fputs(usage, stdout) < 0;
    if (command.what == OPT_LIST && n == 0) return list();
    if (command.what == OPT_SELF_TEST) return selftest(words, n);
    if (command.what == OPT_REPORT && n == 1) return client_report(words[0], command.json);
    if (command.what == OPT_RESET && (n == 1 || n == 2))
        return client_reset(words[0], n == 2 ? words[1] : "");
    if (command.what == OPT_UNMOUNT && n == 1) return client_unmount(words[0]);
    if (!command.what && n == 2) return serve(&command, words);
    fputs(usage, stderr);
    return 1;
}
