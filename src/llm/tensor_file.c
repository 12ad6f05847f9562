/* llm/tensor_file.c: tensors from GGUF, safetensors and .npy files, and into safetensors files. */
#include "llm/tensor_file.h"

#include "core/map.h"
#include "format/npy.h"
#include "format/safetensors.h"
#include "llm/llm.h"
#include "sys/file.h"

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

bool wk_tensor_file_is_npy(const wick_tensor_file *file) { return file->is_npy; }

/* Where a tensor lies in memory; NULL: it has to be read. */
static const uint8_t *data_of(const wick_tensor_file *file, const wick_file_tensor *tensor) {
    if (file->gguf != NULL) return NULL;
    return file->unpacked != NULL ? file->unpacked : file->data + tensor->offset;
}

wick_status wk_tensor_file_read(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err) {
    const uint8_t *const data = data_of(file, tensor);
    if (data == NULL) return wick_file_read(file->gguf, tensor->offset + at, dst, size, err);
    memcpy(dst, data + at, size);
    return WICK_OK;
}

static const wick_file_tensor *find(const wick_tensor_file *file, const char *name) {
    if (file->gguf != NULL) return wk_gguf_find_tensor(wk_file_gguf(file->gguf), name);
    if (file->is_npy) return name[0] == '\0' ? &file->array : NULL;
    return wk_safetensors_find(&file->safetensors, wk_str_of(name));
}

static wick_tensor *load(wick_tensor_file *file, wick_device *device,
                         const wick_file_tensor *tensor) {
    const size_t size = (size_t)tensor->size;
    const uint8_t *const data = data_of(file, tensor);
    if (data != NULL || size == 0)
        return wick_tensor_from_data(device, tensor->dtype, tensor->shape, data, size);
    wick_error *const error = wk_device_err(device);
    wk_heap *const heap = wk_device_heap(device);
    void *const bytes = tensor->size <= SIZE_MAX ? wk_alloc(heap, size) : NULL;
    wick_tensor *made = NULL;
    if (bytes == NULL)
        (void)wk_fail_memory(error, tensor->size, 0, tensor->name.text);
    else if (wick_file_read(file->gguf, tensor->offset, bytes, size, error) == WICK_OK)
        made = wick_tensor_from_data(device, tensor->dtype, tensor->shape, bytes, size);
    wk_free(heap, bytes, size);
    return made;
}

wick_tensor *wick_tensor_file_load(wick_tensor_file *file, wick_device *device, const char *name) {
    if (device == NULL) return NULL;
    if (file == NULL || name == NULL) {
        (void)wk_device_fail(device, WICK_ERR_ARGUMENT,
                             "wick_tensor_file_load: file or name is NULL");
        return NULL;
    }
    const wick_file_tensor *const tensor = find(file, name);
    if (tensor != NULL) return load(file, device, tensor);
    (void)wk_device_fail(device, WICK_ERR_NOT_FOUND, "'%s' has no tensor '%s'", file->path,
                         wk_str_show(wk_str_of(name)).text);
    return NULL;
}

wick_tensor *wick_tensor_load(wick_device *device, const char *path, const char *name) {
    if (device == NULL) return NULL;
    wick_tensor_file *file;
    if (wick_tensor_file_open(path, &file, wk_device_err(device)) != WICK_OK) return NULL;
    wick_tensor *const tensor = wick_tensor_file_load(file, device, name);
    wick_tensor_file_close(file);
    return tensor;
}

/* ---- Writing ---- */

/* What the header says of the tensors, in the order of their data. */
static wick_status describe(const char *const *names, wick_tensor *const *tensors, size_t n,
                            wick_file_tensor *out, wick_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (names[i] == NULL || tensors[i] == NULL)
            return wk_fail(err, WICK_ERR_ARGUMENT,
                           "wick_safetensors_save: tensor %zu or its name is NULL", i);
        out[i] = (wick_file_tensor){.name = {names[i], strlen(names[i])},
                                    .dtype = wick_tensor_dtype(tensors[i]),
                                    .shape = wick_tensor_shape(tensors[i])};
    }
    return WICK_OK;
}

static wick_status write_tensor(wk_file_writer *writer, wick_tensor *tensor, wick_error *err) {
    wick_device *const device = wick_tensor_device(tensor);
    wk_heap *const heap = wk_device_heap(device);
    const size_t size = wick_tensor_bytes(tensor);
    void *const bytes = wk_alloc(heap, size);
    if (bytes == NULL && size > 0) return wk_fail_memory(err, size, 0, "a tensor to save");
    wick_error failure = {.status = WICK_OK};
    wick_error *const before = wk_device_borrow(device, &failure);
    wick_status status = wk_pass_on(err, wick_read(tensor, bytes, size), &failure);
    wk_device_give_back(device, before);
    if (status == WICK_OK) status = wk_file_write(writer, bytes, size, err);
    wk_free(heap, bytes, size);
    return status;
}

static wick_status write_all(wk_heap *heap, const char *path, const wick_file_tensor *described,
                             wick_tensor *const *tensors, size_t n, wick_error *err) {
    wk_strbuf header;
    wk_strbuf_init(&header, heap);
    uint32_t *const order = wk_alloc_array(heap, n, sizeof *order);
    wk_file_writer *writer = NULL;
    wick_status status = WICK_OK;
    if (order == NULL && n > 0) status = wk_fail_memory(err, n * sizeof *order, 0, path);
    if (status == WICK_OK) status = wk_safetensors_header(&header, described, n, order, err);
    if (status == WICK_OK) status = wk_file_write_start(heap, path, &writer, err);
    if (status == WICK_OK) {
        status = wk_file_write(writer, header.data, header.size, err);
        for (size_t i = 0; i < n && status == WICK_OK; i++)
            status = write_tensor(writer, tensors[order[i]], err);
        const wick_status finished = wk_file_write_finish(heap, writer, status == WICK_OK, err);
        if (status == WICK_OK) status = finished;
    }
    wk_free(heap, order, n * sizeof *order);
    wk_strbuf_release(&header);
    return status;
}

wick_status wick_safetensors_save(const char *path, const char *const *names,
                                  wick_tensor *const *tensors, size_t n, wick_error *error) {
    if (path == NULL || ((names == NULL || tensors == NULL) && n > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_safetensors_save: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file_tensor *const described = wk_alloc_array(&heap, n, sizeof *described);
    if (described == NULL && n > 0) return wk_fail_memory(error, n * sizeof *described, 0, path);
    wick_status status = describe(names, tensors, n, described, error);
    if (status == WICK_OK) status = write_all(&heap, path, described, tensors, n, error);
    wk_free(&heap, described, n * sizeof *described);
    return status;
}
