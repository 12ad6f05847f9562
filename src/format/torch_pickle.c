/* format/torch_pickle.c: the tensors of PyTorch's files. */
#include "format/archive.h"
wick_status wk_torch_parse(wk_heap *heap, wk_arena *arena, const wk_zip_entry *pickle,
                           wk_archive *out, wick_error *err) {
    (void)heap, (void)arena, (void)pickle, (void)out;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "PyTorch's files are not read yet");
}
