/* format/archive.c: see archive.h. */
#include "format/archive.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "format/npy.h"

#include <assert.h>
#include <string.h>

/* Plain arrays have no longer headers. */
enum { MAX_NPY_HEADER = 1 << 16 };

static bool ends_with(wk_str text, const char *end) {
    const size_t size = strlen(end);
    return text.size >= size && memcmp(text.text + text.size - size, end, size) == 0;
}

static wick_status fail_in_entry(wick_error *err, const wk_zip_entry *entry,
                                 const wick_error *reason) {
    return wk_fail_in_file(err, wk_str_show(entry->name).text, reason);
}

/* ---- .npz ---- */

static wick_status read_array(wk_heap *heap, const wk_archive *archive, const wk_zip_entry *entry,
                              wick_file_tensor *tensor, wk_archive_part *part, wick_error *err) {
    const size_t held = entry->size < MAX_NPY_HEADER ? (size_t)entry->size : MAX_NPY_HEADER;
    unsigned char *const unpacked = entry->is_deflated ? wk_alloc(heap, held) : NULL;
    if (entry->is_deflated && unpacked == NULL && held > 0)
        return wk_fail_memory(err, held, "the header of an npy file");
    const unsigned char *const bytes =
        entry->is_deflated ? unpacked : archive->zip.bytes + entry->offset;
    wk_npy npy;
    wick_status status = WICK_OK;
    if (entry->is_deflated)
        status = wk_zip_unpack(heap, &archive->zip, entry, unpacked, held, true, err);
    if (status == WICK_OK) status = wk_npy_parse_header(bytes, held, entry->size, &npy, err);
    if (status == WICK_OK) {
        *part = (wk_archive_part){.entry = entry,
                                  .is_npy = true,
                                  .is_plain = !entry->is_deflated && wk_npy_is_plain(&npy)};
        const uint64_t header = entry->is_deflated ? 0 : (uint64_t)(npy.data - bytes);
        *tensor = (wick_file_tensor){.dtype = npy.dtype,
                                     .shape = npy.shape,
                                     .offset = entry->offset + header,
                                     .size = npy.size};
    }
    wk_free(heap, unpacked, held);
    return status;
}

static wick_status name_array(wk_arena *arena, wk_str name, wick_file_tensor *tensor,
                              wick_error *err) {
    const size_t size = name.size - strlen(".npy");
    char *const text = wk_arena_alloc(arena, size + 1);
    if (text == NULL) return wk_fail_memory(err, size + 1, "the names of an npz file");
    memcpy(text, name.text, size);
    text[size] = '\0';
    tensor->name = (wick_string){text, size};
    return WICK_OK;
}

static wick_status parse_npz(wk_heap *heap, wk_arena *arena, wk_archive *out, wick_error *err) {
    const size_t n = out->zip.n_entries;
    wick_file_tensor *const tensors = wk_arena_array(arena, n, sizeof *tensors);
    out->parts = wk_arena_array(arena, n, sizeof *out->parts);
    out->tensors = tensors;
    if (tensors == NULL || out->parts == NULL)
        return wk_fail_memory(err, n * sizeof *tensors, "the tensors of an npz file");
    for (size_t i = 0; i < n; i++) {
        const wk_zip_entry *const entry = &out->zip.entries[i];
        if (!ends_with(entry->name, ".npy")) continue;
        wick_error reason = {0};
        if (read_array(heap, out, entry, &tensors[out->n_tensors], &out->parts[out->n_tensors],
                       &reason) != WICK_OK)
            return fail_in_entry(err, entry, &reason);
        WK_TRY(name_array(arena, entry->name, &tensors[out->n_tensors], err));
        out->n_tensors++;
    }
    if (out->n_tensors > 0 || n == 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "the zip archive holds neither .npy arrays nor PyTorch's data.pkl");
}

/* ---- Both ---- */

/* Of a .pt file: in the one folder that it consists of. */
static const wk_zip_entry *find_pickle(const wk_zip *zip) {
    for (size_t i = 0; i < zip->n_entries; i++) {
        const wk_str name = zip->entries[i].name;
        if (ends_with(name, "/data.pkl") &&
            memchr(name.text, '/', name.size) == name.text + name.size - strlen("/data.pkl"))
            return &zip->entries[i];
    }
    return NULL;
}

static wick_status index_names(wk_archive *out, wick_error *err) {
    for (size_t i = 0; i < out->n_tensors; i++) {
        const wk_str name = {out->tensors[i].name.text, out->tensors[i].name.size};
        uint32_t other;
        if (wk_map_get(&out->index, name, &other))
            return wk_fail(err, WICK_ERR_FORMAT, "two tensors have the name '%s'",
                           wk_str_show(name).text);
        if (wk_map_put(&out->index, name, (uint32_t)i) != WICK_OK)
            return wk_fail_memory(err, (i + 1) * sizeof name, "the index of an archive");
    }
    return WICK_OK;
}

wick_status wk_archive_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                             wk_archive *out, wick_error *err) {
    *out = (wk_archive){.n_tensors = 0};
    wk_map_init(&out->index, heap);
    WK_TRY(wk_zip_parse(heap, arena, data, size, &out->zip, err));
    const wk_zip_entry *const pickle = find_pickle(&out->zip);
    out->is_torch = pickle != NULL;
    wick_status status = pickle != NULL ? wk_torch_parse(heap, arena, pickle, out, err)
                                        : parse_npz(heap, arena, out, err);
    if (status == WICK_OK) status = index_names(out, err);
    if (status != WICK_OK) wk_archive_release(out);
    return status;
}

void wk_archive_release(wk_archive *archive) {
    wk_map_release(&archive->index);
    wk_map_release(&archive->zip.index);
    archive->n_tensors = 0;
}

const wick_file_tensor *wk_archive_find(const wk_archive *archive, wk_str name) {
    uint32_t index;
    return wk_map_get(&archive->index, name, &index) ? &archive->tensors[index] : NULL;
}

static wick_status check_bools(const wick_file_tensor *tensor, const uint8_t *data,
                               wick_error *err) {
    for (uint64_t i = 0; tensor->dtype == WICK_BOOL && i < tensor->size; i++) {
        if (data[i] > 1)
            return wk_fail(err, WICK_ERR_FORMAT, "tensor '%s' has a bool of value %d",
                           wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
                           data[i]);
    }
    return WICK_OK;
}

/* Of an entry that is not compressed. PyTorch can leave the checksums of storages out, and does
 * not look at them. */
static wick_status check_sum(const wk_archive *archive, const wk_archive_part *part,
                             wick_error *err) {
    const wk_zip_entry *const entry = part->entry;
    const uint8_t *const bytes = archive->zip.bytes + entry->offset;
    if (!part->is_npy || wk_crc32(0, bytes, (size_t)entry->size) == entry->checksum) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the archive's entry '%s' does not have its checksum",
                   wk_str_show(entry->name).text);
}

wick_status wk_archive_data(wk_archive *archive, size_t i, const uint8_t **data, wick_error *err) {
    wk_archive_part *const part = &archive->parts[i];
    *data = NULL;
    if (!part->is_plain) return WICK_OK;
    const uint8_t *const found = archive->zip.bytes + archive->tensors[i].offset;
    if (!part->is_sound) {
        WK_TRY(check_sum(archive, part, err));
        WK_TRY(check_bools(&archive->tensors[i], found, err));
    }
    part->is_sound = true;
    *data = found;
    return WICK_OK;
}

/* Elements of a storage by their strides. */
static void gather(const wick_file_tensor *tensor, const wk_archive_part *part,
                   const uint8_t *storage, uint8_t *to) {
    const wick_shape *const shape = &tensor->shape;
    const size_t size = (size_t)wk_dtype_get(tensor->dtype)->block_bytes;
    int64_t index[WICK_MAX_RANK] = {0}, at = part->first;
    for (uint64_t n = tensor->size / size; n > 0; n--, to += size) {
        const uint8_t *const from = storage + (size_t)at * size;
        for (size_t b = 0; b < size; b++) to[b] = from[part->is_swapped ? size - 1 - b : b];
        for (int d = shape->rank; d-- > 0;) {
            at += part->stride[d];
            if (++index[d] < shape->extent[d]) break;
            at -= index[d] * part->stride[d];
            index[d] = 0;
        }
    }
}

static wick_status place(const wick_file_tensor *tensor, const wk_archive_part *part,
                         const uint8_t *bytes, void *dst, wick_error *err) {
    if (!part->is_npy) {
        gather(tensor, part, bytes, dst);
        return check_bools(tensor, dst, err);
    }
    wk_npy npy;
    wick_error reason = {0};
    if (wk_npy_parse(bytes, (size_t)part->entry->size, &npy, &reason) != WICK_OK)
        return fail_in_entry(err, part->entry, &reason);
    assert(npy.size == tensor->size); /* as its header said before */
    wk_npy_unpack(&npy, dst);
    return WICK_OK;
}

wick_status wk_archive_unpack(wk_heap *heap, const wk_archive *archive, size_t i, void *dst,
                              wick_error *err) {
    const wick_file_tensor *const tensor = &archive->tensors[i];
    const wk_archive_part *const part = &archive->parts[i];
    const wk_zip_entry *const entry = part->entry;
    if (!entry->is_deflated) {
        WK_TRY(check_sum(archive, part, err));
        return place(tensor, part, archive->zip.bytes + entry->offset, dst, err);
    }
    uint8_t *const bytes = entry->size <= SIZE_MAX ? wk_alloc(heap, (size_t)entry->size) : NULL;
    if (bytes == NULL && entry->size > 0)
        return wk_fail_memory(err, entry->size, "an entry of an archive");
    wick_status status =
        wk_zip_unpack(heap, &archive->zip, entry, bytes, (size_t)entry->size, part->is_npy, err);
    if (status == WICK_OK) status = place(tensor, part, bytes, dst, err);
    wk_free(heap, bytes, (size_t)entry->size);
    return status;
}
