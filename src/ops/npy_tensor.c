/* ops/npy_tensor.c: tensors from .npy files and into them. */
#include <wick/tools.h>

#include "format/npy.h"
#include "sys/file.h"
#include "tensor/tensor.h"

/* A copy, in the order and with the byte order of a tensor. */
static wick_tensor *make_unpacked(wick_device *device, const wk_npy *npy) {
    wk_heap *const heap = wk_device_heap(device);
    void *const plain = wk_alloc(heap, (size_t)npy->size);
    if (plain == NULL && npy->size > 0) {
        (void)wk_fail_memory(wk_device_err(device), npy->size, "the array of an npy file");
        return NULL;
    }
    wk_npy_unpack(npy, plain);
    wick_tensor *const tensor =
        wick_tensor_from_data(device, npy->dtype, npy->shape, plain, (size_t)npy->size);
    wk_free(heap, plain, (size_t)npy->size);
    return tensor;
}

/* path: of the file that the bytes are from, else "". */
static wick_tensor *parse(wick_device *device, const char *path, const void *bytes, size_t size) {
    wk_npy npy;
    wick_error reason = {.status = WICK_OK};
    if (wk_npy_parse(bytes, size, &npy, &reason) != WICK_OK) {
        (void)wk_fail_in_file(wk_device_err(device), path, &reason);
        return NULL;
    }
    if (!wk_npy_is_plain(&npy)) return make_unpacked(device, &npy);
    return wick_tensor_from_data(device, npy.dtype, npy.shape, npy.data, (size_t)npy.size);
}

wick_tensor *wick_npy_parse(wick_device *device, const void *bytes, size_t size) {
    if (device == NULL) return NULL;
    if (bytes != NULL) return parse(device, "", bytes, size);
    (void)wk_device_fail(device, WICK_ERR_ARGUMENT, "wick_npy_parse: bytes is NULL");
    return NULL;
}

/* Mapped where the system can: the bytes are copied once, into the tensor. */
static wick_tensor *load(wick_device *device, const char *path, wk_file *file) {
    wick_error *const error = wk_device_err(device);
    const void *mapped = NULL;
    if (wk_file_map(file, &mapped, NULL) == WICK_OK)
        return parse(device, path, mapped != NULL ? mapped : "", (size_t)wk_file_size(file));
    wk_heap *const heap = wk_device_heap(device);
    const uint64_t size = wk_file_size(file);
    void *const bytes = size <= SIZE_MAX ? wk_alloc(heap, (size_t)size) : NULL;
    wick_tensor *tensor = NULL;
    if (bytes == NULL)
        (void)wk_fail_memory(error, size, "an npy file");
    else if (wk_file_read_at(file, 0, bytes, (size_t)size, error) == WICK_OK)
        tensor = parse(device, path, bytes, (size_t)size);
    wk_free(heap, bytes, (size_t)size);
    return tensor;
}

wick_tensor *wick_npy_load(wick_device *device, const char *path) {
    if (device == NULL) return NULL;
    wick_error *const error = wk_device_err(device);
    wk_heap *const heap = wk_device_heap(device);
    if (path == NULL) {
        (void)wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_load: path is NULL");
        return NULL;
    }
    wk_file *file;
    if (wk_file_open(heap, path, &file, error) != WICK_OK) return NULL;
    wick_tensor *const tensor = load(device, path, file);
    wk_file_close(heap, file);
    return tensor;
}

static wick_status write_all(const wick_tensor *tensor, const void *data, size_t size,
                             const char *path, wick_error *error) {
    wick_npy_writer *writer;
    WK_TRY(
        wick_npy_start(path, wick_tensor_dtype(tensor), wick_tensor_shape(tensor), &writer, error));
    const wick_status status = wick_npy_write(writer, data, size, error);
    const wick_status finished = wick_npy_finish(writer, status == WICK_OK, error);
    return status != WICK_OK ? status : finished;
}

wick_status wick_npy_save(wick_tensor *tensor, const char *path, wick_error *error) {
    if (tensor == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_npy_save: an argument is NULL");
    const size_t size = wick_tensor_bytes(tensor);
    void *data;
    WK_TRY(wk_tensor_copy_out(tensor, &data, error));
    const wick_status status = write_all(tensor, data, size, path, error);
    wk_free(wk_device_heap(wick_tensor_device(tensor)), data, size);
    return status;
}
