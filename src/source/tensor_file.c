/* source/tensor_file.c: see tensor_file.h. */
#include "source/tensor_file.h"

#include "core/map.h"
#include "format/npy.h"
#include "format/safetensors.h"
#include "source/file.h"
#include "sys/file.h"

#include <assert.h>
#include <string.h>

/* Read through gguf, or where it lies in memory. */
struct wick_tensor_file {
    wk_heap heap;
    wk_arena arena;
    char *path;          /* for sentences */
    wick_file *gguf;     /* NULL: another format; then */
    wick_source source;  /* close NULL: there is none, or it is gguf's */
    const uint8_t *data; /* of source; offsets are from here */
    wk_safetensors safetensors;
    wick_file_tensor array; /* of an npy file */
    bool is_npy;
    void *unpacked; /* an npy file's array that does not lie as tensors do; NULL: it does */
    const wick_file_tensor *tensors;
    size_t n_tensors;
};

/* ---- Opening ---- */

static wick_status open_npy(wick_tensor_file *f, uint64_t size, wick_error *err) {
    wk_npy npy;
    WK_TRY(wk_npy_parse(f->data, (size_t)size, &npy, err));
    f->is_npy = true;
    f->array = (wick_file_tensor){.name = {"", 0},
                                  .dtype = npy.dtype,
                                  .shape = npy.shape,
                                  .offset = (uint64_t)(npy.data - f->data),
                                  .size = npy.size};
    f->tensors = &f->array;
    f->n_tensors = 1;
    if (wk_npy_is_plain(&npy)) return WICK_OK;
    f->unpacked = wk_alloc(&f->heap, (size_t)npy.size);
    if (f->unpacked == NULL && npy.size > 0)
        return wk_fail_memory(err, npy.size, 0, "the array of an npy file");
    wk_npy_unpack(&npy, f->unpacked);
    return WICK_OK;
}

static wick_status open_mapped(wick_tensor_file *f, wick_error *err) {
    static const uint8_t npy_magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const uint64_t size = f->source.size;
    if (size > 0 && f->source.map == NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "'%s' cannot be mapped into memory", f->path);
    f->data = size > 0 ? f->source.map(&f->source, 0, size) : NULL;
    const bool is_npy =
        size >= sizeof npy_magic && memcmp(f->data, npy_magic, sizeof npy_magic) == 0;
    if (!is_npy && !wk_safetensors_begins(f->data, size))
        return wk_fail(err, WICK_ERR_FORMAT, "'%s' is not a GGUF, safetensors or .npy file",
                       f->path);
    wick_error reason = {0};
    const wick_status status =
        is_npy ? open_npy(f, size, &reason)
               : wk_safetensors_parse(&f->heap, &f->arena, f->data, size, &f->safetensors, &reason);
    if (status != WICK_OK) return wk_fail_in_file(err, f->path, &reason);
    if (is_npy) return WICK_OK;
    f->tensors = f->safetensors.tensors;
    f->n_tensors = f->safetensors.n_tensors;
    return WICK_OK;
}

static wick_status open_gguf(wick_tensor_file *f, wick_error *err) {
    wick_error reason = {0};
    wick_source source = f->source;
    f->source.close = NULL;
    const wick_status status = wk_file_open_source(&source, &f->gguf, &reason);
    if (status != WICK_OK) return wk_fail_in_file(err, f->path, &reason);
    f->tensors = wick_file_get_tensor(f->gguf, 0);
    f->n_tensors = wick_file_tensor_count(f->gguf);
    return WICK_OK;
}

static wick_status open_file(wick_tensor_file *f, wick_error *err) {
    const char *const path = f->path;
    char magic[4] = "";
    size_t got = 0;
    WK_TRY(wick_source_files(&path, 1, &f->source, err));
    WK_TRY(f->source.read_at(&f->source, 0, sizeof magic, magic, err));
    WK_TRY(f->source.poll(&f->source, &got, err));
    const bool is_gguf = got == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
    return is_gguf ? open_gguf(f, err) : open_mapped(f, err);
}

wick_status wick_tensor_file_open(const char *path, wick_tensor_file **file, wick_error *error) {
    if (file != NULL) *file = NULL;
    if (path == NULL || file == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_tensor_file_open: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_tensor_file *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, 0, path);
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    wk_map_init(&made->safetensors.index, &made->heap);
    const size_t path_size = strlen(path) + 1;
    made->path = wk_arena_alloc(&made->arena, path_size);
    if (made->path != NULL) memcpy(made->path, path, path_size);
    const wick_status status =
        made->path != NULL ? open_file(made, error) : wk_fail_memory(error, path_size, 0, path);
    if (status == WICK_OK)
        *file = made;
    else
        wick_tensor_file_close(made);
    return status;
}

void wick_tensor_file_close(wick_tensor_file *file) {
    if (file == NULL) return;
    wick_file_close(file->gguf);
    wk_map_release(&file->safetensors.index);
    wk_free(&file->heap, file->unpacked, file->unpacked != NULL ? (size_t)file->array.size : 0);
    if (file->source.close != NULL) file->source.close(&file->source);
    wk_arena_release(&file->arena);
    wk_heap heap = file->heap; /* the file lies in it */
    wk_free(&heap, file, sizeof *file);
}

/* ---- Reading ---- */

size_t wick_tensor_file_count(const wick_tensor_file *file) {
    return file != NULL ? file->n_tensors : 0;
}

const wick_file_tensor *wick_tensor_file_get(const wick_tensor_file *file, size_t index) {
    return index < wick_tensor_file_count(file) ? &file->tensors[index] : NULL;
}

const char *wk_tensor_file_path(const wick_tensor_file *file) { return file->path; }

bool wk_tensor_file_is_npy(const wick_tensor_file *file) { return file->is_npy; }

const uint8_t *wk_tensor_file_data(const wick_tensor_file *file, const wick_file_tensor *tensor) {
    if (file->gguf != NULL) return NULL;
    return file->unpacked != NULL ? file->unpacked : file->data + tensor->offset;
}

wick_status wk_tensor_file_read(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err) {
    assert(at <= tensor->size && size <= tensor->size - at);
    const uint8_t *const data = wk_tensor_file_data(file, tensor);
    if (data == NULL) return wick_file_read(file->gguf, tensor->offset + at, dst, size, err);
    memcpy(dst, data + at, size);
    return WICK_OK;
}

const wick_file_tensor *wk_tensor_file_find(const wick_tensor_file *file, const char *name) {
    if (file->gguf != NULL) return wk_gguf_find_tensor(wk_file_gguf(file->gguf), name);
    if (file->is_npy) return name[0] == '\0' ? &file->array : NULL;
    return wk_safetensors_find(&file->safetensors, wk_str_of(name));
}
