/*
 * disk_rotation.h -- whether the disks behind a file system rotate, from what they say themselves.
 *
 * SCSI disks, and ATA disks through the kernel's SCSI layer, state their rotation rate in the vital
 * product data page B1h (SBC-4, Block Device Characteristics; ATA IDENTIFY word 217), which Linux
 * shows as vpd_pgb1 since 5.18. Virtual disks and RAID controllers state none, while the kernel's
 * flag calls many of them rotating.
 *
 * Any thread.
 */
#ifndef ROCKSORT_MACHINE_DISK_ROTATION_H
#define ROCKSORT_MACHINE_DISK_ROTATION_H

#include <sys/types.h>

struct disk_rotation {
    int flag;                   /* the kernel's: 0, 1 or -1, unknown */
    unsigned rpm;               /* of the slowest drive; 0: not all state that they rotate */
    unsigned n_drives;          /* below it, for example of a RAID; 0 if rpm is */
};

/*
 * Finds out what is below a block device or partition, through RAID, LVM and encryption. `sys` is
 * where sysfs is mounted, "/sys". Never fails: what is unknown stays -1 or 0.
 */
void disk_rotation_look(const char *sys, dev_t device, struct disk_rotation *rotation);

enum { DISK_ROTATION_TEXT_BYTES = 64 };

/* The same in words that follow others, as ", 4 drives of 7200 rpm", or nothing. Returns text. */
const char *disk_rotation_text(const struct disk_rotation *rotation,
                               char text[DISK_ROTATION_TEXT_BYTES]);

#endif
