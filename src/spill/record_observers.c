/* record_observers.c -- see record_observers.h. */
#include "spill/record_observers.h"

#include <assert.h>

void record_observers_add(struct record_observers *observers, struct record_observer *observer)
{
    if (!observer) return;
    assert(observers->n < MOST_OBSERVERS);
    observers->all[observers->n++] = observer;
}

void record_observers_begin_run(const struct record_observers *observers)
{
    for (unsigned i = 0; i < observers->n; i++)
        if (observers->all[i]->kind->begin_run)
            observers->all[i]->kind->begin_run(observers->all[i]);
}

void record_observers_undo_run(const struct record_observers *observers, uint32_t run)
{
    for (unsigned i = 0; i < observers->n; i++)
        if (observers->all[i]->kind->undo_run)
            observers->all[i]->kind->undo_run(observers->all[i], run);
}

void record_observers_destroy(struct record_observers *observers)
{
    while (observers->n > 0) {
        struct record_observer *observer = observers->all[--observers->n];
        observer->kind->destroy(observer);
    }
}

void observed_parts_begin(struct observed_parts *parts, const struct record_observers *observers)
{
    static const struct record_observers none;
    *parts = (struct observed_parts){.observers = observers ? observers : &none};
    for (unsigned i = 0; i < parts->observers->n; i++) {
        const struct record_observer *observer = observers->all[i];
        if (observer->kind->begin) parts->all[i] = observer->kind->begin(observer);
    }
}

int observed_parts_end(struct observed_parts *parts)
{
    for (unsigned i = 0; i < parts->observers->n; i++) {
        struct record_observer *observer = parts->observers->all[i];
        if (observer->kind->end) observer->kind->end(observer, parts->all[i]);
    }
    return parts->failed ? -1 : 0;
}

int observed_parts_combine(struct observed_parts *parts)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && parts->observers && i < parts->observers->n; i++) {
        struct record_observer *observer = parts->observers->all[i];
        if (observer->kind->combine) r = observer->kind->combine(observer, parts->all[i]);
        parts->all[i] = NULL;
    }
    return r;
}

void observed_parts_discard(struct observed_parts *parts)
{
    for (unsigned i = 0; parts->observers && i < parts->observers->n; i++)
        if (parts->all[i]) parts->observers->all[i]->kind->discard(parts->all[i]);
}

int observed_parts_show(struct observed_parts *parts, const struct observed_records *records)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < parts->observers->n; i++) {
        struct record_observer *observer = parts->observers->all[i];
        r = observer->kind->add_records(observer, parts->all[i], records);
    }
    return r;
}

int observed_parts_close(struct observed_parts *parts, int r)
{
    if (r == 0) r = observed_parts_end(parts);
    if (r == 0) r = observed_parts_combine(parts);
    observed_parts_discard(parts);
    return r;
}

int record_observers_look(const struct record_observers *observers,
                          const struct observed_records *records)
{
    struct observed_parts parts;
    if (!observers || observers->n == 0) return 0;
    observed_parts_begin(&parts, observers);
    return observed_parts_close(&parts, observed_parts_show(&parts, records));
}
