/* source/file_target.c: whether a file may be written: never one that is being read. */
#include "core/alloc.h"
#include "source/file.h"
#include "source/split.h"
#include "sys/file.h"

#include <wick/file.h>

#include <string.h>

/* The same of an adapter of PEFT, which is a folder of two files; any of the three names it. */
static wick_status is_of_folder(wk_heap *heap, const char *path, const char *read, bool *result,
                                wick_error *err) {
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
    const char *const slash = strrchr(read, '/'), *const last = slash != NULL ? slash + 1 : read;
    const bool is_file = strcmp(last, names[0]) == 0 || strcmp(last, names[1]) == 0;
    wk_strbuf file;
    wk_strbuf_init(&file, heap);
    for (int i = 0; i < 2 && !*result && !file.failed; i++) {
        wk_strbuf_clear(&file);
        wk_strbuf_append(&file, read, is_file ? (size_t)(last - read) : strlen(read));
        if (!is_file) wk_strbuf_text(&file, "/");
        wk_strbuf_text(&file, names[i]);
        *result = !file.failed && wk_file_is_same(path, file.data);
    }
    const bool has_failed = file.failed;
    wk_strbuf_release(&file);
    return has_failed ? wk_fail_memory(err, 0, "the name of a file") : WICK_OK;
}

/* Whether path is the file at read or a part of the model that this file belongs to. Compares
 * devices and inodes, so links are seen, too. */
static wick_status is_part_of(wk_heap *heap, const char *path, const char *read, bool *result,
                              wick_error *err) {
    size_t stem = 0;
    uint32_t part = 0, n_parts = 0;
    *result = wk_file_is_same(path, read);
    if (*result) return WICK_OK;
    if (!wk_split_parse_name(read, &stem, &part, &n_parts))
        return is_of_folder(heap, path, read, result, err);
    wk_strbuf name;
    wk_strbuf_init(&name, heap);
    for (uint32_t i = 0; i < n_parts && !*result && !name.failed; i++) {
        wk_strbuf_clear(&name);
        wk_split_name(&name, (wk_str){read, stem}, i + 1, n_parts);
        *result = !name.failed && wk_file_is_same(path, name.data);
    }
    const bool has_failed = name.failed;
    wk_strbuf_release(&name);
    return has_failed ? wk_fail_memory(err, 0, "the name of a part") : WICK_OK;
}

wick_status wk_file_check_unread(wk_heap *heap, const char *path, const char *const *reads,
                                 size_t n_reads, wick_error *err) {
    if (!wk_file_exists(path)) return WICK_OK;
    for (size_t i = 0; i < n_reads; i++) {
        bool is_read = false;
        if (reads[i] != NULL) WK_TRY(is_part_of(heap, path, reads[i], &is_read, err));
        if (is_read)
            return wk_fail(err, WICK_ERR_ARGUMENT, "cannot write '%s': it is a file that is read",
                           path);
    }
    return WICK_OK;
}

wick_status wick_file_check_target(const char *path, const char *const *reads, size_t n_reads,
                                   wick_error *error) {
    if (path == NULL || (reads == NULL && n_reads > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_check_target: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    WK_TRY(wk_file_check_unread(&heap, path, reads, n_reads, error));
    return wk_file_try_write(&heap, path, error);
}
