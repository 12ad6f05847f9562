/* source/tensor_file.c: see tensor_file.h. */
#include "source/tensor_file.h"

#include "core/map.h"
#include "format/archive.h"
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
    const char *path;    /* for sentences; "" of a source */
    wick_file *gguf;     /* NULL: another format; then */
    wick_source source;  /* close NULL: there is none, or it is gguf's */
    const uint8_t *data; /* of source; offsets are from here */
    wk_safetensors safetensors;
    wick_file_tensor array; /* of an npy file */
    bool is_npy, is_archive;
    wk_archive archive;
    /* What does not lie as tensors do: the array of an npy file, or the tensor of an archive that
     * was read last. */
    void *unpacked;
    size_t unpacked_size;
    const wick_file_tensor *unpacked_of;
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
        return wk_fail_memory(err, npy.size, "the array of an npy file");
    f->unpacked_size = (size_t)npy.size;
    wk_npy_unpack(&npy, f->unpacked);
    return WICK_OK;
}

static wick_status open_archive(wick_tensor_file *f, uint64_t size, wick_error *err) {
    WK_TRY(wk_archive_parse(&f->heap, &f->arena, f->data, size, &f->archive, err));
    f->is_archive = true;
    f->tensors = f->archive.tensors;
    f->n_tensors = f->archive.n_tensors;
    return WICK_OK;
}

static wick_status open_safetensors(wick_tensor_file *f, uint64_t size, wick_error *err) {
    WK_TRY(wk_safetensors_parse(&f->heap, &f->arena, f->data, size, &f->safetensors, err));
    f->tensors = f->safetensors.tensors;
    f->n_tensors = f->safetensors.n_tensors;
    return WICK_OK;
}

/* The bytes of a source that cannot be mapped are not copied: too many, and never many at once. */
static wick_status open_bytes(wick_tensor_file *f, wick_error *err) {
    const uint64_t size = f->source.size;
    if (size > 0 && f->source.map != NULL) f->data = f->source.map(&f->source, 0, size);
    if (size > 0 && f->data == NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "it cannot be mapped into memory");
    if (size >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0) return open_npy(f, size, err);
    if (wk_zip_begins(f->data, size)) return open_archive(f, size, err);
    if (wk_safetensors_begins(f->data, size)) return open_safetensors(f, size, err);
    return wk_fail(err, WICK_ERR_FORMAT,
                   "not a GGUF, safetensors, .npy, .npz or PyTorch (.pt) file");
}

static wick_status open_gguf(wick_tensor_file *f, wick_error *err) {
    wick_source source = f->source;
    f->source.close = NULL;
    WK_TRY(wk_file_open_source(&source, &f->gguf, err));
    f->tensors = wick_file_get_tensor(f->gguf, 0);
    f->n_tensors = wick_file_tensor_count(f->gguf);
    return WICK_OK;
}

static wick_status open_source(wick_tensor_file *f, wick_error *err) {
    char magic[4] = "";
    size_t got = 0;
    wick_error reason = {0};
    wick_status status = f->source.read_at(&f->source, 0, sizeof magic, magic, &reason);
    if (status == WICK_OK) status = f->source.poll(&f->source, &got, &reason);
    if (status == WICK_PENDING)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "wick_tensor_file_open_source: the source does not answer at once");
    const bool is_gguf = got == sizeof magic && memcmp(magic, "GGUF", sizeof magic) == 0;
    if (status == WICK_OK) status = is_gguf ? open_gguf(f, &reason) : open_bytes(f, &reason);
    return status == WICK_OK ? WICK_OK : wk_fail_in_file(err, f->path, &reason);
}

static wick_tensor_file *make_file(const char *path, wick_error *error) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_tensor_file *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) {
        wk_fail_memory(error, sizeof *made, path);
        return NULL;
    }
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    wk_map_init(&made->safetensors.index, &made->heap);
    const size_t path_size = strlen(path) + 1;
    char *const copy = wk_arena_alloc(&made->arena, path_size);
    if (copy == NULL) {
        wk_fail_memory(error, path_size, path);
        wick_tensor_file_close(made);
        return NULL;
    }
    memcpy(copy, path, path_size);
    made->path = copy;
    return made;
}

/* source is the file's from now on. */
static wick_status open_as(const char *path, wick_source source, wick_tensor_file **file,
                           wick_error *error) {
    wick_tensor_file *const made = make_file(path, error);
    if (made == NULL) {
        if (source.close != NULL) source.close(&source);
        return WICK_ERR_OUT_OF_MEMORY;
    }
    made->source = source;
    const wick_status status = open_source(made, error);
    if (status == WICK_OK)
        *file = made;
    else
        wick_tensor_file_close(made);
    return status;
}

wick_status wick_tensor_file_open(const char *path, wick_tensor_file **file, wick_error *error) {
    wick_source source;
    if (file != NULL) *file = NULL;
    if (path == NULL || file == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_tensor_file_open: an argument is NULL");
    WK_TRY(wick_source_files(&path, 1, &source, error));
    return open_as(path, source, file, error);
}

wick_status wick_tensor_file_open_source(wick_source source, wick_tensor_file **file,
                                         wick_error *error) {
    if (file != NULL) *file = NULL;
    if (file != NULL && source.read_at != NULL && source.poll != NULL)
        return open_as("", source, file, error);
    if (source.close != NULL) source.close(&source);
    return wk_fail(error, WICK_ERR_ARGUMENT,
                   "wick_tensor_file_open_source: file or a function of the source is NULL");
}

void wick_tensor_file_close(wick_tensor_file *file) {
    if (file == NULL) return;
    wick_file_close(file->gguf);
    wk_map_release(&file->safetensors.index);
    if (file->is_archive) wk_archive_release(&file->archive);
    wk_free(&file->heap, file->unpacked, file->unpacked_size);
    if (file->source.close != NULL) file->source.close(&file->source);
    wk_arena_release(&file->arena);
    wk_heap heap = file->heap; /* the file lies in it */
    wk_free(&heap, file, sizeof *file);
}

/* ---- Reading ---- */

const char *wick_tensor_file_format(const wick_tensor_file *file) {
    if (file == NULL) return "";
    if (file->gguf != NULL) return "GGUF";
    if (file->is_archive) return file->archive.is_torch ? "PyTorch" : "npz";
    return file->is_npy ? "npy" : "safetensors";
}

size_t wick_tensor_file_count(const wick_tensor_file *file) {
    return file != NULL ? file->n_tensors : 0;
}

const wick_file_tensor *wick_tensor_file_get(const wick_tensor_file *file, size_t index) {
    return index < wick_tensor_file_count(file) ? &file->tensors[index] : NULL;
}

const char *wk_tensor_file_path(const wick_tensor_file *file) { return file->path; }

bool wk_tensor_file_is_npy(const wick_tensor_file *file) { return file->is_npy; }

wick_status wk_tensor_file_data(wick_tensor_file *file, const wick_file_tensor *tensor,
                                const uint8_t **data, wick_error *err) {
    *data = NULL;
    if (file->gguf != NULL) return WICK_OK;
    if (file->is_archive)
        return wk_archive_data(&file->archive, (size_t)(tensor - file->tensors), data, err);
    *data = file->unpacked != NULL ? file->unpacked : file->data + tensor->offset;
    return WICK_OK;
}

/* All of a tensor is written where it is wanted; of one that is read in pieces a copy is kept. */
static wick_status read_archive(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err) {
    const size_t i = (size_t)(tensor - file->tensors);
    if (at == 0 && size == tensor->size)
        return wk_archive_unpack(&file->heap, &file->archive, i, dst, err);
    if (file->unpacked_of != tensor) {
        wk_free(&file->heap, file->unpacked, file->unpacked_size);
        file->unpacked_of = NULL;
        file->unpacked_size = tensor->size <= SIZE_MAX ? (size_t)tensor->size : 0;
        file->unpacked = wk_alloc(&file->heap, file->unpacked_size);
        if (file->unpacked == NULL) {
            file->unpacked_size = 0;
            return wk_fail_memory(err, tensor->size, tensor->name.text);
        }
        WK_TRY(wk_archive_unpack(&file->heap, &file->archive, i, file->unpacked, err));
        file->unpacked_of = tensor;
    }
    memcpy(dst, (const uint8_t *)file->unpacked + at, size);
    return WICK_OK;
}

wick_status wk_tensor_file_read(wick_tensor_file *file, const wick_file_tensor *tensor, uint64_t at,
                                void *dst, size_t size, wick_error *err) {
    assert(at <= tensor->size && size <= tensor->size - at);
    const uint8_t *data;
    if (size == 0) return WICK_OK;
    if (file->gguf != NULL) return wick_file_read(file->gguf, tensor->offset + at, dst, size, err);
    WK_TRY(wk_tensor_file_data(file, tensor, &data, err));
    if (data == NULL) return read_archive(file, tensor, at, dst, size, err);
    memcpy(dst, data + at, size);
    return WICK_OK;
}

const wick_file_tensor *wk_tensor_file_find(const wick_tensor_file *file, const char *name) {
    if (file->gguf != NULL) return wk_gguf_find_tensor(wk_file_gguf(file->gguf), name);
    if (file->is_npy) return name[0] == '\0' ? &file->array : NULL;
    if (file->is_archive) return wk_archive_find(&file->archive, wk_str_of(name));
    return wk_safetensors_find(&file->safetensors, wk_str_of(name));
}
