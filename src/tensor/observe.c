/* tensor/observe.c: the list of a device's observers.
 *
 * A hook may remove any of them while the list is gone through: those stay in it without hooks
 * until no list is being gone through any more. */
#include "tensor/device.h"

#include <assert.h>

struct wk_observer {
    wick_device *device;
    wk_observer_hooks hooks;
    bool is_removed;
    wk_observer *next; /* that was added later */
};

wk_observer *wk_observer_add(wick_device *device, const wk_observer_hooks *hooks) {
    wk_observer *const observer = wk_alloc(&device->heap, sizeof *observer);
    if (!observer) return NULL;
    *observer = (wk_observer){.device = device, .hooks = *hooks};
    wk_observer **at = &device->observers.first;
    while (*at) at = &(*at)->next;
    *at = observer;
    device->observers.n_on++;
    return observer;
}

static void free_removed(wick_device *device) {
    wk_observer **at = &device->observers.first;
    while (*at) {
        wk_observer *const observer = *at;
        if (observer->is_removed) {
            *at = observer->next;
            wk_free(&device->heap, observer, sizeof *observer);
        } else {
            at = &observer->next;
        }
    }
}

void wk_observer_remove(wk_observer *observer) {
    if (!observer) return;
    wick_device *const device = observer->device;
    assert(!observer->is_removed && device->observers.n_on > 0);
    wk_queue_forget_looks(device, observer);
    observer->hooks = (wk_observer_hooks){0};
    observer->is_removed = true;
    device->observers.n_on--;
    if (device->observers.depth == 0) free_removed(device);
}

void wk_observers_free(wick_device *device) {
    assert(device->observers.depth == 0); /* else a hook has freed its device */
    for (wk_observer *o = device->observers.first; o; o = o->next) o->is_removed = true;
    free_removed(device);
}

void wk_observers_show(wick_device *device, const wk_call *call, const wk_view_made *made,
                       const wick_tensor *written) {
    assert((call != NULL) + (made != NULL) + (written != NULL) == 1);
    if (device->observers.n_on == 0) return;
    wk_observer *last = device->observers.first;
    while (last->next) last = last->next;
    device->observers.depth++;
    for (wk_observer *o = device->observers.first;; o = o->next) {
        if (call && o->hooks.op) o->hooks.op(o->hooks.user, call);
        if (made && o->hooks.view) o->hooks.view(o->hooks.user, made);
        if (written && o->hooks.write) o->hooks.write(o->hooks.user, written);
        if (o == last) break;
    }
    if (--device->observers.depth == 0) free_removed(device);
}

wick_status wk_observer_look(wk_observer *observer, const wk_op *op, wk_look_fn fn) {
    return wk_queue_look(observer->device, op, observer, fn, observer->hooks.user);
}
