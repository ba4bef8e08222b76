/*
 * spindle_device.h -- what a modelled device can do, and the presets with the sources of their
 * figures.
 *
 * Calls: device_find by name, or device_at for each preset. The caller copies the struct, changes
 * it as the options say, and calls device_check. Nothing is allocated. Errors: NULL if there is no
 * such preset, -1 after a message.
 */
#ifndef SPINDLE_DEVICE_H
#define SPINDLE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_DRIVES 16

struct device {
    const char *name;
    const char *title;
    double read_rate, write_rate; /* bytes a second of one drive; 0: no limit */
    double read_iops, write_iops; /* random 4 KiB accesses a second of one drive; 0: no limit */
    unsigned n_drives;            /* RAID 0 when more than one */
    uint64_t stripe_bytes;
    /* Cloud volumes meter I/O: an operation has at most so many bytes, and rate and IOPS are two
     * separate limits. 0: a drive, where an access takes positioning and then the transfer. */
    uint64_t io_cap_bytes;
    bool rotates;
};

const struct device *device_find(const char *name);

/* The presets in order; NULL after the last. */
const struct device *device_at(size_t i);

int device_check(const struct device *device);

#endif
