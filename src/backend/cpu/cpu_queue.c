/* backend/cpu/cpu_queue.c: the list of commands that have been given and not run. It grows when one
 * is given and is kept: a step that repeats allocates nothing. */
#include "backend/cpu/cpu_state.h"

#include <assert.h>
#include <string.h>

enum { FIRST_COMMANDS = 64 };

wk_cpu_command *wk_cpu_next_command(wk_backend_device *dev, wick_error *err) {
    if (dev->head == dev->tail) dev->head = dev->tail = 0;
    if (dev->tail < dev->capacity) return &dev->commands[dev->tail];
    const size_t n = dev->tail - dev->head;
    if (dev->head >= dev->capacity / 2 && dev->head > 0) {
        memmove(dev->commands, dev->commands + dev->head, n * sizeof *dev->commands);
    } else {
        const size_t capacity = dev->capacity == 0 ? FIRST_COMMANDS : 2 * dev->capacity;
        wk_cpu_command *grown = wk_realloc(dev->heap, dev->commands, dev->capacity * sizeof *grown,
                                           capacity * sizeof *grown);
        if (!grown) {
            wk_cpu_no_memory(err, capacity * sizeof *grown, "queued commands");
            return NULL;
        }
        dev->commands = grown;
        dev->capacity = capacity;
        memmove(grown, grown + dev->head, n * sizeof *grown);
    }
    dev->head = 0;
    dev->tail = n;
    return &dev->commands[n];
}

void wk_cpu_push(wk_backend_device *dev) {
    assert(dev->tail < dev->capacity);
    dev->tail++;
    dev->n_given++;
}

void wk_cpu_discard_commands(wk_backend_device *dev) {
    for (size_t i = dev->head; i < dev->tail; i++) {
        wk_cpu_command *command = &dev->commands[i];
        if (command->kind != WK_CPU_COMMAND_UPLOAD) continue;
        wk_free(dev->heap, command->upload.copy, (size_t)command->upload.size);
    }
    wk_free(dev->heap, dev->commands, dev->capacity * sizeof *dev->commands);
    dev->commands = NULL;
    dev->head = dev->tail = dev->capacity = 0;
    dev->at = (wk_cpu_progress){.phase = 0};
    atomic_store_explicit(&dev->fault, false, memory_order_relaxed);
    dev->n_done = dev->n_given;
}
