/* ops/archive_save.c: see archive_save.h. Tensors are read one after the other. */
#include "ops/archive_save.h"

#include "core/arena.h"
#include "format/npy.h"
#include "format/npy_types.h"
#include "format/tensor_names.h"
#include "format/torch_types.h"
#include "format/zip.h"
#include "sys/file.h"
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

/* data.pkl, byteorder, version */
enum { MORE_ENTRIES = 3 };

typedef struct archive_writer {
    wk_heap *heap;
    wk_file_writer *file;
    wk_arena names;
    wk_strbuf buf;         /* of one header at a time */
    wk_zip_entry *entries; /* [capacity], and where their headers begin */
    uint64_t *headers;
    size_t n, capacity;
    uint64_t at; /* bytes written */
    wick_error *err;
} archive_writer;

static wick_status write_bytes(archive_writer *w, const void *bytes, size_t size) {
    w->at += size;
    return size > 0 ? wk_file_write(w->file, bytes, size, w->err) : WICK_OK;
}

static wick_status write_buf(archive_writer *w) {
    if (w->buf.failed) return wk_fail_memory(w->err, w->buf.size, "the header of an archive");
    return write_bytes(w, w->buf.data, w->buf.size);
}

/* An entry FOLDER NAME ENDING of `before` and then data. */
static wick_status add_entry(archive_writer *w, const char *folder, wick_string name,
                             const char *ending, wk_str before, const void *data, size_t size) {
    wk_zip_entry *const entry = &w->entries[w->n];
    const size_t n_folder = strlen(folder), n_ending = strlen(ending);
    char *const text = wk_arena_alloc(&w->names, n_folder + name.size + n_ending);
    if (text == NULL) return wk_fail_memory(w->err, name.size, "the names of an archive");
    memcpy(text, folder, n_folder);
    if (name.size > 0) memcpy(text + n_folder, name.text, name.size);
    memcpy(text + n_folder + name.size, ending, n_ending);
    *entry =
        (wk_zip_entry){.name = {text, n_folder + name.size + n_ending},
                       .size = before.size + size,
                       .checksum = wk_crc32(wk_crc32(0, before.text, before.size), data, size)};
    w->headers[w->n++] = w->at;
    wk_strbuf_clear(&w->buf);
    wk_zip_local_header(&w->buf, w->at, entry);
    WK_TRY(write_buf(w));
    WK_TRY(write_bytes(w, before.text, before.size));
    return write_bytes(w, data, size);
}

static wick_status add_text(archive_writer *w, const char *name, wk_str text) {
    return add_entry(w, "archive/", (wick_string){name, strlen(name)}, "", (wk_str){NULL, 0},
                     text.text, text.size);
}

static wick_status add_array(archive_writer *w, const wick_file_tensor *tensor, const void *data,
                             size_t size) {
    wk_strbuf header;
    wk_strbuf_init(&header, w->heap);
    wick_status status = wk_npy_header(&header, tensor->dtype, &tensor->shape);
    if (status == WICK_OK)
        status =
            add_entry(w, "", tensor->name, ".npy", (wk_str){header.data, header.size}, data, size);
    else
        (void)wk_fail_memory(w->err, header.size, "the header of an npy file");
    wk_strbuf_release(&header);
    return status;
}

static wick_status add_tensor(archive_writer *w, bool is_torch, const wick_file_tensor *described,
                              size_t index, wick_tensor *tensor) {
    const size_t size = wick_tensor_bytes(tensor);
    char key[24];
    void *data;
    WK_TRY(wk_tensor_copy_out(tensor, &data, w->err));
    const int n = snprintf(key, sizeof key, "%zu", index);
    const wick_status status = is_torch
                                   ? add_entry(w, "archive/data/", (wick_string){key, (size_t)n},
                                               "", (wk_str){NULL, 0}, data, size)
                                   : add_array(w, described, data, size);
    wk_free(wk_device_heap(wick_tensor_device(tensor)), data, size);
    return status;
}

static wick_status add_pickle(archive_writer *w, const wick_file_tensor *described, size_t n) {
    wk_strbuf pickle;
    wk_strbuf_init(&pickle, w->heap);
    wk_torch_pickle(&pickle, described, n);
    wick_status status = pickle.failed
                             ? wk_fail_memory(w->err, pickle.size, "the pickle of a PyTorch file")
                             : add_text(w, "data.pkl", (wk_str){pickle.data, pickle.size});
    if (status == WICK_OK) status = add_text(w, "byteorder", wk_str_of("little"));
    wk_strbuf_release(&pickle);
    return status;
}

static wick_status write_all(archive_writer *w, bool is_torch, const wick_file_tensor *described,
                             wick_tensor *const *tensors, size_t n) {
    w->entries = wk_alloc_array(w->heap, w->capacity, sizeof *w->entries);
    w->headers = wk_alloc_array(w->heap, w->capacity, sizeof *w->headers);
    if (w->entries == NULL || w->headers == NULL)
        return wk_fail_memory(w->err, w->capacity * sizeof *w->entries, "the entries of a file");
    if (is_torch) WK_TRY(add_pickle(w, described, n));
    for (size_t i = 0; i < n; i++) WK_TRY(add_tensor(w, is_torch, &described[i], i, tensors[i]));
    if (is_torch) WK_TRY(add_text(w, "version", wk_str_of("3\n")));
    wk_strbuf_clear(&w->buf);
    wk_zip_directory(&w->buf, w->at, w->entries, w->headers, w->n);
    return write_buf(w);
}

wick_status wk_archive_save(wk_heap *heap, const char *path, bool is_torch,
                            const wick_file_tensor *described, wick_tensor *const *tensors,
                            size_t n, wick_error *err) {
    WK_TRY(wk_tensor_names_check(heap, described, n, is_torch ? "PyTorch" : "npz", NULL,
                                 is_torch ? wk_torch_type_name : wk_npy_type_name, err));
    archive_writer w = {.heap = heap, .capacity = n + MORE_ENTRIES, .err = err};
    WK_TRY(wk_file_write_start(heap, path, &w.file, err));
    wk_arena_init(&w.names, heap, 0);
    wk_strbuf_init(&w.buf, heap);
    wick_status status = write_all(&w, is_torch, described, tensors, n);
    const wick_status finished = wk_file_write_finish(heap, w.file, status == WICK_OK, err);
    if (status == WICK_OK) status = finished;
    wk_free(heap, w.entries, w.capacity * sizeof *w.entries);
    wk_free(heap, w.headers, w.capacity * sizeof *w.headers);
    wk_arena_release(&w.names);
    wk_strbuf_release(&w.buf);
    return status;
}
