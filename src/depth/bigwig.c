/* bigwig.c -- --bigwig (depth_track.h): depth as a bigWig file (bigwig_writer.h). */
#include "depth/bigwig_writer.h"
#include "depth/depth_track.h"

static void *open_writer(const struct count_setup *setup, const struct track_settings *settings)
{
    return bigwig_writer_create(setup->sinks[0], setup->header, settings->windows);
}

static int finish(void *writer, const struct track_item *all)
{
    return bigwig_writer_finish(writer, all);
}

static void close_writer(void *writer)
{
    bigwig_writer_destroy(writer);
}

static struct record_observer *observe(const struct count_setup *setup)
{
    static const struct depth_track_format format = {
        .has_zooms = true, .encode = bigwig_encode, .open = open_writer,
        .write = bigwig_writer_write, .finish = finish, .close = close_writer};
    return depth_track_observe(setup, &format);
}

const struct count_kind bigwig_kind = {
    .in_coordinate_order = true, .parse = depth_track_parse, .free_options = free,
    .is_streamed = depth_track_is_streamed, .observe = observe};
