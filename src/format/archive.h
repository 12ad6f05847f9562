/* format/archive.h: the tensors of a ZIP archive: NumPy's .npz files and PyTorch's .pt files. */
#ifndef WK_FORMAT_ARCHIVE_H
#define WK_FORMAT_ARCHIVE_H

#include "format/zip.h"

#include <wick/file.h>

/* How a tensor lies in the bytes of its entry. */
typedef struct wk_archive_part {
    const wk_zip_entry *entry;
    bool is_npy; /* a whole .npy file; else a storage: */
    bool is_swapped;
    int64_t first; /* element */
    int64_t stride[WICK_MAX_RANK];
    bool is_plain; /* stored in the order and with the byte order of tensors, at its offset */
    bool is_sound; /* its bytes have been looked at */
} wk_archive_part;

typedef struct wk_archive {
    wk_zip zip;
    bool is_torch; /* a .pt file, else .npz */
    size_t n_tensors;
    /* In the order of the file. offset: of the data, or of what it has to be unpacked from. */
    const wick_file_tensor *tensors;
    wk_archive_part *parts; /* of each tensor */
    wk_map index;           /* by name */
} wk_archive;

/* Finds the tensors of the archive data[0, size): those of a .npz file have the names of its
 * arrays, those of a .pt file their keys, with dots between them where dicts and lists nest. What
 * else a pickle holds (numbers, texts) is passed over. Names live in the arena, indices on heap.
 * WICK_ERR_FORMAT, WICK_ERR_UNSUPPORTED (a pickle with code, types that Wick does not have),
 * WICK_ERR_OUT_OF_MEMORY; nothing is left to release. */
wick_status wk_archive_parse(wk_heap *heap, wk_arena *arena, const void *data, uint64_t size,
                             wk_archive *out, wick_error *err);
void wk_archive_release(wk_archive *archive);
const wick_file_tensor *wk_archive_find(const wk_archive *archive, wk_str name);
/* Where tensor i lies in the file, checked; NULL: it has to be unpacked. */
wick_status wk_archive_data(wk_archive *archive, size_t i, const uint8_t **data, wick_error *err);
/* Writes the bytes of tensor i, of its size, to dst. */
wick_status wk_archive_unpack(wk_heap *heap, const wk_archive *archive, size_t i, void *dst,
                              wick_error *err);

/* ---- Between archive.c and torch_pickle.c ---- */

/* The tensors of the pickle entry NAME/data.pkl: sets tensors and parts. */
wick_status wk_torch_parse(wk_heap *heap, wk_arena *arena, const wk_zip_entry *pickle,
                           wk_archive *out, wick_error *err);

#endif
