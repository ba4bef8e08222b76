/* sample_series.c -- see sample_series.h. */
#include "pipeline/sample_series.h"

#include <stdlib.h>

int sample_series_init(struct sample_series *series)
{
    *series = (struct sample_series){
        .samples = malloc(SAMPLE_MOST * sizeof *series->samples),
        .interval_seconds = SAMPLE_SECONDS,
    };
    return series->samples ? 0 : -1;
}

double sample_series_due(const struct sample_series *series)
{
    return series->n > 0 ? series->samples[series->n - 1].seconds + series->interval_seconds : 0;
}

void sample_series_add(struct sample_series *series, const struct sample *sample)
{
    if (!series->samples) return;
    if (series->n == SAMPLE_MOST) {
        /* The first stays the first. */
        for (size_t i = 1; i < SAMPLE_MOST / 2; i++) series->samples[i] = series->samples[2 * i];
        series->n = SAMPLE_MOST / 2;
        series->interval_seconds *= 2;
    }
    series->samples[series->n++] = *sample;
}

void sample_series_release(struct sample_series *series)
{
    free(series->samples);
    *series = (struct sample_series){0};
}
