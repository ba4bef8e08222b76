/* disk_rotation.c -- see disk_rotation.h. */
#include "machine/disk_rotation.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/sysmacros.h>

enum {
    PAGE_CODE = 0xb1,
    LEAST_RPM = 0x401,          /* 0: not stated; 1: does not rotate; up to 0x400 reserved */
    MOST_RPM = 0xfffe,
    MOST_LEVELS = 8,            /* partition, encryption, LVM, RAID, ... */
};

/* Where the files of a disk are, relative to the directory of a device: in the directory itself, or
   in the one above it if the device is a partition. */
static const char *const of_disk[] = {"", "../"};

/* Opens a file of a disk. `device` is the directory of the disk or of a partition of it. Returns
   NULL if there is no such file. */
static FILE *open_of_disk(const char *device, const char *name)
{
    FILE *file = NULL;
    for (size_t i = 0; !file && i < sizeof of_disk / sizeof *of_disk; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s%s", device, of_disk[i], name);
        if (n > 0 && (size_t)n < sizeof path) file = fopen(path, "re");
    }
    return file;
}

static int rotating_flag(const char *device)
{
    FILE *file = open_of_disk(device, "queue/rotational");
    if (!file) return -1;
    int flag = fgetc(file);
    (void)fclose(file);
    return flag == '0' || flag == '1' ? flag - '0' : -1;
}

/* The rotation rate that a drive states; 0 if it states none. */
static unsigned stated_rpm(const char *device)
{
    uint8_t page[6];
    FILE *file = open_of_disk(device, "device/vpd_pgb1");
    if (!file) return 0;
    size_t n = fread(page, 1, sizeof page, file);
    (void)fclose(file);
    if (n < sizeof page || page[1] != PAGE_CODE) return 0;
    unsigned rpm = (unsigned)page[4] << 8 | page[5];
    return rpm >= LEAST_RPM && rpm <= MOST_RPM ? rpm : 0;
}

/* Adds to *rotation all drives that a device consists of; a device without parts is one drive.
   Returns false if one of the drives does not state that it rotates. */
static bool look_below(const char *device, unsigned level, struct disk_rotation *rotation)
{
    char path[PATH_MAX];
    bool all_rotate = true, is_leaf = true;
    size_t n = 0;
    DIR *dir = NULL;
    for (size_t i = 0; !dir && i < sizeof of_disk / sizeof *of_disk; i++) {
        n = (size_t)snprintf(path, sizeof path, "%s/%sslaves", device, of_disk[i]);
        if (n >= sizeof path || level > MOST_LEVELS) return false;
        dir = opendir(path);
    }
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        is_leaf = false;
        size_t n_name = (size_t)snprintf(path + n, sizeof path - n, "/%s", entry->d_name);
        if (n_name >= sizeof path - n || !look_below(path, level + 1, rotation)) all_rotate = false;
    }
    if (dir) (void)closedir(dir);
    if (!is_leaf) return all_rotate;
    unsigned rpm = stated_rpm(device);
    if (rpm == 0) return false;
    rotation->n_drives++;
    if (rotation->rpm == 0 || rpm < rotation->rpm) rotation->rpm = rpm;
    return true;
}

void disk_rotation_look(const char *sys, dev_t device, struct disk_rotation *rotation)
{
    char path[PATH_MAX];
    *rotation = (struct disk_rotation){.flag = -1};
    int n = snprintf(path, sizeof path, "%s/dev/block/%u:%u", sys, major(device), minor(device));
    if (n < 0 || (size_t)n >= sizeof path) return;
    rotation->flag = rotating_flag(path);
    if (!look_below(path, 0, rotation)) rotation->rpm = rotation->n_drives = 0;
}

const char *disk_rotation_text(const struct disk_rotation *rotation,
                               char text[DISK_ROTATION_TEXT_BYTES])
{
    static const char *const by_flag[] = {"", ", not rotating according to the kernel",
                                          ", rotating according to the kernel"};
    char drives[32] = "";
    if (rotation->rpm == 0) {
        (void)snprintf(text, DISK_ROTATION_TEXT_BYTES, "%s", by_flag[rotation->flag + 1]);
        return text;
    }
    if (rotation->n_drives > 1)
        (void)snprintf(drives, sizeof drives, "%u drives of ", rotation->n_drives);
    (void)snprintf(text, DISK_ROTATION_TEXT_BYTES, ", %s%u rpm", drives, rotation->rpm);
    return text;
}
