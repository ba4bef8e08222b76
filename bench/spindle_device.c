/*
 * spindle_device.c -- see spindle_device.h. The figures of the drives come from the table of the
 * project's task (rates in 10^6 bytes a second, IOPS of 4 KiB at queue depth 1 for disks and 32 for
 * SSDs). Where a maker's data sheet says the same, it is named. Figures in MiB are the documents'.
 */
#include "spindle_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MB 1e6
#define MIB 1048576.0
#define KIB UINT64_C(1024)

static const struct device presets[] = {
    /* Seagate Barracuda 7200.14 data sheet (DS1737, ST1000DM003): average data rate, read/write,
     * 156 MB/s. IOPS from that table; 79 IOPS are 12.7 ms, 8.5 ms seek + 4.16 ms rotation.
     */
    {"barracuda", "Seagate Barracuda 7200", 156 * MB, 156 * MB, 79, 73, 1, 0, 0, true},
    /* WD Caviar Blue specification sheet (2879-771436, WD10EZEX): host to/from drive, sustained,
     * 150 MB/s. IOPS from that table. */
    {"caviar-blue", "WD Caviar Blue", 150 * MB, 150 * MB, 77, 66, 1, 0, 0, true},
    /* WD VelociRaptor specification sheet (2879-701284, WD1000DHTZ, 10,000 rpm): 200 MB/s. IOPS
     * from the table. */
    {"velociraptor", "WD VelociRaptor", 200 * MB, 200 * MB, 152, 139, 1, 0, 0, true},
    /* Samsung SSD 840 Pro data sheet, the 128 GB model: 530 / 390 MB/s, 97,000 / 90,000 IOPS (QD
     * 32). */
    {"samsung-840-pro", "Samsung 840 Pro", 530 * MB, 390 * MB, 97e3, 90e3, 1, 0, 0, false},
    /* Intel SSD 520 product specification (325968): up to 550 MB/s and 50,000 / 80,000 IOPS (QD
     * 32); 475 MB/s of writes is that of the smaller models. */
    {"intel-520", "Intel 520", 550 * MB, 475 * MB, 50e3, 80e3, 1, 0, 0, false},
    /* Amazon EC2, previous generation instances: c1.xlarge has 4 x 420 GB of disk. A stripe is what
     * mdadm(8) takes without --chunk. */
    {"c1.xlarge", "EC2 c1.xlarge, 4 disks", 156 * MB, 156 * MB, 79, 73, 4, 512 * KIB, 0, true},
    /* Amazon EBS User Guide, "Amazon EBS volume types" and "I/O characteristics": gp2 has 3 IOPS a
     * GiB (100 GB: 300), bursts of 3,000 from a credit of 5.4 M that lasts 30 minutes, 128 MiB/s up
     * to 170 GiB; an SSD volume's I/O is up to 256 KiB, sequential ones are merged up to that. The
     * preset has no burst: a short benchmark stands for a sort of hours, which uses the credit up.
     */
    {"ebs-gp2", "EBS gp2, 100 GB, credit used up", 128 * MIB, 128 * MIB, 300, 300, 1, 0, 256 * KIB,
     false},
    {"ebs-gp2-burst", "EBS gp2, 100 GB, on credit", 128 * MIB, 128 * MIB, 3000, 3000, 1, 0,
     256 * KIB, false},
    /* The same document: provisioned IOPS of up to 256 KiB each; 128 MiB/s was the limit of a
     * volume in 2014 and does not matter below 512 IOPS. */
    {"ebs-piops-100", "EBS, 100 provisioned IOPS", 128 * MIB, 128 * MIB, 100, 100, 1, 0, 256 * KIB,
     false},
    {"ebs-piops-500", "EBS, 500 provisioned IOPS", 128 * MIB, 128 * MIB, 500, 500, 1, 0, 256 * KIB,
     false},
    /* The same document, previous generation volumes: magnetic has about 100 IOPS on average and 40
     * to 90 MiB/s; this is the middle. I/O of up to 1 MiB. */
    {"ebs-magnetic", "EBS magnetic", 65 * MIB, 65 * MIB, 100, 100, 1, 0, 1024 * KIB, true},
    /* The same document: st1 has 40 MiB/s a TiB without its burst (left out as for gp2); I/O is
     * metered in MiB, a small random one counts as 1 MiB, so 40 of them a second. */
    {"ebs-st1", "EBS st1, 1 TB, credit used up", 40 * MIB, 40 * MIB, 40, 40, 1, 0, 1024 * KIB,
     true},
    {"nvme", "NVMe: no delay, counts only", 0, 0, 0, 0, 1, 0, 0, false},
};

const struct device *device_find(const char *name)
{
    for (size_t i = 0; device_at(i); i++)
        if (!strcmp(presets[i].name, name)) return &presets[i];
    return NULL;
}

const struct device *device_at(size_t i)
{
    return i < sizeof presets / sizeof presets[0] ? &presets[i] : NULL;
}

static int complain(const char *what)
{
    fprintf(stderr, "spindle: %s\n", what);
    return -1;
}

int device_check(const struct device *device)
{
    const double all[] = {device->read_rate, device->write_rate, device->read_iops,
                          device->write_iops};
    for (size_t i = 0; i < 4; i++)
        if (!isfinite(all[i]) || all[i] < 0) return complain("a rate is 0 or more");
    if (device->n_drives < 1 || device->n_drives > MAX_DRIVES)
        return complain("--devices is 1 to 16");
    if (device->n_drives > 1 && (!device->stripe_bytes || device->stripe_bytes % 4096))
        return complain("several devices need a --stripe of a multiple of 4K");
    if (device->io_cap_bytes % 4096) return complain("--io-cap is a multiple of 4K");
    return 0;
}
