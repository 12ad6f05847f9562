/* Fuzzes the text of a device's choice of kernels: lines that cannot be used are counted and
 * reported; what was taken is written, read again and written as the same text. */
#include "backend/webgpu/table.h"
#include "backend/webgpu/webgpu_state.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_true) {
    if (!is_true) abort();
}

static void count_line(void *user, wick_log_level level, const char *message) {
    require(level == WICK_LOG_WARNING && strlen(message) > 0);
    ++*(size_t *)user;
}

/* The choices after text, as text. Returns the number of lines that were ignored. */
static size_t read_and_write(wk_heap *heap, wk_str text, wk_strbuf *out) {
    static wk_backend_device device;
    size_t n_ignored, n_logged = 0;
    device = (wk_backend_device){.heap = heap};
    wick_adapter_info *const adapter = &device.adapter;
    snprintf(adapter->name, sizeof adapter->name, "a device");
    snprintf(adapter->implementation, sizeof adapter->implementation, "none");
    require(wk_choices_open(&device, NULL) == WICK_OK);
    wk_tuning_read(&device, text, count_line, &n_logged, &n_ignored);
    require(n_logged == n_ignored);
    wk_strbuf_init(out, heap);
    wk_tuning_write(&device, out);
    require(!out->failed);
    wk_choices_release(&device);
    return n_ignored;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wk_heap heap;
    wk_strbuf first, second;
    wk_heap_init(&heap, NULL);
    (void)read_and_write(&heap, (wk_str){(const char *)data, size}, &first);
    require(read_and_write(&heap, (wk_str){first.data, first.size}, &second) == 0);
    require(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    wk_strbuf_release(&first);
    wk_strbuf_release(&second);
    require(heap.live_bytes == 0);
    return 0;
}
