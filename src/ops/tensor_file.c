/* ops/tensor_file.c: tensors from files by name, and into files. */
#include "source/tensor_file.h"

#include "format/safetensors.h"
#include "ops/archive_save.h"
#include "sys/file.h"
#include "tensor/tensor.h"

#include <string.h>

/* ---- Reading ---- */

static wick_tensor *load(wick_tensor_file *file, wick_device *device,
                         const wick_file_tensor *tensor) {
    const size_t size = (size_t)tensor->size;
    wick_error *const error = wk_device_err(device);
    wk_heap *const heap = wk_device_heap(device);
    const uint8_t *data;
    wick_error reason = {0};
    if (wk_tensor_file_data(file, tensor, &data, &reason) != WICK_OK) {
        (void)wk_fail_in_file(error, wk_tensor_file_path(file), &reason);
        return NULL;
    }
    if (data != NULL || size == 0)
        return wick_tensor_from_data(device, tensor->dtype, tensor->shape, data, size);
    void *const bytes = tensor->size <= SIZE_MAX ? wk_alloc(heap, size) : NULL;
    wick_tensor *made = NULL;
    if (bytes == NULL)
        (void)wk_fail_memory(error, tensor->size, tensor->name.text);
    else if (wk_tensor_file_read(file, tensor, 0, bytes, size, &reason) != WICK_OK)
        (void)wk_fail_in_file(error, wk_tensor_file_path(file), &reason);
    else
        made = wick_tensor_from_data(device, tensor->dtype, tensor->shape, bytes, size);
    wk_free(heap, bytes, size);
    return made;
}

/* The only tensor of the file; NULL: it has others, or none. */
static const wick_file_tensor *only_one(wick_tensor_file *file, wick_device *device) {
    const size_t n = wick_tensor_file_count(file);
    if (n == 1) return wick_tensor_file_get(file, 0);
    (void)wk_device_fail(device, WICK_ERR_ARGUMENT,
                         "'%s' has %zu tensors: the name of one is needed",
                         wk_tensor_file_path(file), n);
    return NULL;
}

wick_tensor *wick_tensor_file_load(wick_tensor_file *file, wick_device *device, const char *name) {
    if (device == NULL) return NULL;
    if (file == NULL) {
        (void)wk_device_fail(device, WICK_ERR_ARGUMENT, "wick_tensor_file_load: file is NULL");
        return NULL;
    }
    const wick_file_tensor *const tensor =
        name != NULL ? wk_tensor_file_find(file, name) : only_one(file, device);
    if (tensor == NULL && name == NULL) return NULL;
    if (tensor != NULL) return load(file, device, tensor);
    (void)wk_device_fail(device, WICK_ERR_NOT_FOUND, "'%s' has no tensor '%s'",
                         wk_tensor_file_path(file), wk_str_show(wk_str_of(name)).text);
    return NULL;
}

wick_tensor *wick_tensor_load(wick_device *device, const char *path, const char *name) {
    if (device == NULL) return NULL;
    if (path == NULL) {
        (void)wk_device_fail(device, WICK_ERR_ARGUMENT, "wick_tensor_load: path is NULL");
        return NULL;
    }
    wick_tensor_file *file;
    if (wick_tensor_file_open(path, &file, wk_device_err(device)) != WICK_OK) return NULL;
    wick_tensor *const tensor = wick_tensor_file_load(file, device, name);
    wick_tensor_file_close(file);
    return tensor;
}

/* ---- Writing ---- */

/* What the header says of the tensors, in the order of their data. */
static wick_status describe(const char *op, const char *const *names, wick_tensor *const *tensors,
                            size_t n, wick_file_tensor *out, wick_error *err) {
    for (size_t i = 0; i < n; i++) {
        if (names[i] == NULL || tensors[i] == NULL)
            return wk_fail(err, WICK_ERR_ARGUMENT, "%s: tensor %zu or its name is NULL", op, i);
        out[i] = (wick_file_tensor){.name = {names[i], strlen(names[i])},
                                    .dtype = wick_tensor_dtype(tensors[i]),
                                    .shape = wick_tensor_shape(tensors[i])};
    }
    return WICK_OK;
}

static wick_status write_tensor(wk_file_writer *writer, wick_tensor *tensor, wick_error *err) {
    const size_t size = wick_tensor_bytes(tensor);
    void *bytes;
    WK_TRY(wk_tensor_copy_out(tensor, &bytes, err));
    const wick_status status = wk_file_write(writer, bytes, size, err);
    wk_free(wk_device_heap(wick_tensor_device(tensor)), bytes, size);
    return status;
}

static wick_status write_safetensors(wk_heap *heap, const char *path,
                                     const wick_file_tensor *described, wick_tensor *const *tensors,
                                     size_t n, wick_error *err) {
    wk_strbuf header;
    wk_strbuf_init(&header, heap);
    uint32_t *const order = wk_alloc_array(heap, n, sizeof *order);
    wk_file_writer *writer = NULL;
    wick_status status = WICK_OK;
    if (order == NULL && n > 0) status = wk_fail_memory(err, n * sizeof *order, path);
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

typedef enum file_kind { KIND_SAFETENSORS, KIND_NPZ, KIND_TORCH, KIND_NPY } file_kind;

static wick_status write_npy(const char *path, const char *name, wick_tensor *const *tensors,
                             size_t n, wick_error *err) {
    if (n == 1 && name[0] == '\0') return wick_npy_save(tensors[0], path, err);
    return wk_fail(err, WICK_ERR_VALUE,
                   "wick_tensor_file_save: a .npy file holds one tensor, with the name \"\"");
}

static wick_status save(const char *op, file_kind kind, const char *path, const char *const *names,
                        wick_tensor *const *tensors, size_t n, wick_error *err) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file_tensor *const described = wk_alloc_array(&heap, n, sizeof *described);
    if (described == NULL && n > 0) return wk_fail_memory(err, n * sizeof *described, path);
    wick_status status = describe(op, names, tensors, n, described, err);
    if (status == WICK_OK && kind == KIND_NPY)
        status = write_npy(path, n > 0 ? names[0] : "", tensors, n, err);
    else if (status == WICK_OK && kind == KIND_SAFETENSORS)
        status = write_safetensors(&heap, path, described, tensors, n, err);
    else if (status == WICK_OK)
        status = wk_archive_save(&heap, path, kind == KIND_TORCH, described, tensors, n, err);
    wk_free(&heap, described, n * sizeof *described);
    return status;
}

wick_status wick_safetensors_save(const char *path, const char *const *names,
                                  wick_tensor *const *tensors, size_t n, wick_error *error) {
    if (path == NULL || ((names == NULL || tensors == NULL) && n > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_safetensors_save: an argument is NULL");
    return save("wick_safetensors_save", KIND_SAFETENSORS, path, names, tensors, n, error);
}

wick_status wick_tensor_file_save(const char *path, const char *const *names,
                                  wick_tensor *const *tensors, size_t n, wick_error *error) {
    static const struct {
        const char *glob;
        file_kind kind;
    } endings[] = {{"*.safetensors", KIND_SAFETENSORS},
                   {"*.npz", KIND_NPZ},
                   {"*.npy", KIND_NPY},
                   {"*.pt", KIND_TORCH},
                   {"*.pth", KIND_TORCH}};
    if (path == NULL || ((names == NULL || tensors == NULL) && n > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_tensor_file_save: an argument is NULL");
    for (size_t i = 0; i < WK_COUNT(endings); i++) {
        if (wk_str_matches(wk_str_of(endings[i].glob), wk_str_of(path)))
            return save("wick_tensor_file_save", endings[i].kind, path, names, tensors, n, error);
    }
    return wk_fail(error, WICK_ERR_VALUE,
                   "wick_tensor_file_save: '%s' ends neither with .safetensors, .npz, .npy, .pt "
                   "nor .pth",
                   path);
}
