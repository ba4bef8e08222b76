/*
 * disk_rotation.h -- whether the disks of a file system rotate, as the disks themselves state.
 *
 * SCSI disks, and ATA disks through the kernel's SCSI layer, state their rotation rate in the vital
 * product data page B1h (SBC-4, Block Device Characteristics; ATA IDENTIFY word 217). Linux shows
 * that page as vpd_pgb1 since 5.18. Virtual disks and RAID controllers state no rate, although the
 * kernel's flag calls many of them rotating.
 *
 * Any thread; never fails.
 */
#ifndef ROCKSORT_MACHINE_DISK_ROTATION_H
#define ROCKSORT_MACHINE_DISK_ROTATION_H

#include <sys/types.h>

struct disk_rotation {
    int flag;                   /* the kernel's flag: 0 or 1; -1: unknown */
    unsigned rpm;               /* rate of the slowest drive; 0: some drive does not state one */
    unsigned n_drives;          /* of a RAID, for example; 0 if rpm is 0 */
};

/*
 * Looks at the drives of a block device or partition, through RAID, LVM and encryption. `sys` is
 * the directory where sysfs is mounted: "/sys", except in tests.
 */
void disk_rotation_look(const char *sys, dev_t device, struct disk_rotation *rotation);

enum { DISK_ROTATION_TEXT_BYTES = 64 };

/* Writes the rotation as the end of a message, such as ", 4 drives of 7200 rpm"; writes "" if
   nothing is known. Returns text. */
const char *disk_rotation_text(const struct disk_rotation *rotation,
                               char text[DISK_ROTATION_TEXT_BYTES]);

#endif
