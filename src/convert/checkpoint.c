/* convert/checkpoint.c: see checkpoint.h. */
#include "convert/checkpoint.h"

#include "format/safetensors.h"
#include "llm/llm.h"
#include "source/file.h"
#include "sys/file.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SHARDS = 4096, MOST_NAME = 64 };

typedef struct shard {
    wk_str name;
    wk_file *file;
    const uint8_t *data;
    wk_safetensors header;
} shard;

struct wk_checkpoint {
    wk_heap *heap;
    wk_arena arena;
    const char *folder, *stem, *target;
    shard *shards; /* [n_shards] */
    size_t n_shards;
    wk_checkpoint_tensor *tensors; /* [n_tensors] */
    size_t n_tensors;
};

static wick_status fail_memory(wick_error *err) { return wk_fail_memory(err, 0, "a checkpoint"); }

/* FOLDER/NAME in the arena; NULL: memory is short. */
static const char *path_of(wk_arena *arena, const char *folder, wk_str name) {
    const size_t n = strlen(folder);
    char *const path = wk_arena_alloc(arena, n + name.size + 2);
    if (path == NULL) return NULL;
    memcpy(path, folder, n);
    path[n] = '/';
    memcpy(path + n + 1, name.text, name.size);
    path[n + 1 + name.size] = '\0';
    return path;
}

static wick_status open_file(const wk_checkpoint *c, const char *path, wk_file **file,
                             wick_error *err) {
    if (c->target != NULL) WK_TRY(wk_file_check_unread(c->heap, c->target, &path, 1, err));
    return wk_file_open(c->heap, path, file, err);
}

static wick_status read_file(const wk_checkpoint *c, wk_arena *arena, const char *path, wk_str *out,
                             wick_error *err) {
    wk_file *file = NULL;
    WK_TRY(open_file(c, path, &file, err));
    const size_t size = (size_t)wk_file_size(file);
    char *const text = wk_arena_alloc(arena, size);
    wick_status status = text != NULL ? WICK_OK : fail_memory(err);
    if (status == WICK_OK) status = wk_file_read_at(file, 0, text, size, err);
    wk_file_close(c->heap, file);
    if (status == WICK_OK) *out = (wk_str){text, size};
    return status;
}

wick_status wk_checkpoint_read(const wk_checkpoint *checkpoint, wk_arena *arena, const char *name,
                               bool is_required, wk_str *out, wick_error *err) {
    *out = (wk_str){0};
    const char *const path = path_of(arena, checkpoint->folder, wk_str_of(name));
    if (path == NULL) return fail_memory(err);
    wick_error failure = {0};
    const wick_status status = read_file(checkpoint, arena, path, out, &failure);
    if (status == WICK_OK || (status == WICK_ERR_NOT_FOUND && !is_required)) return WICK_OK;
    return wk_fail(err, status, "%s", failure.message);
}

wick_status wk_checkpoint_json(const wk_checkpoint *checkpoint, wk_arena *arena, const char *name,
                               bool is_required, wk_json **out, wick_error *err) {
    *out = NULL;
    wk_str text;
    WK_TRY(wk_checkpoint_read(checkpoint, arena, name, is_required, &text, err));
    if (text.text == NULL) return WICK_OK;
    wick_error reason = {0};
    wk_json *json = NULL;
    const wick_status status = wk_json_parse(arena, text.text, text.size, &json, &reason);
    if (status != WICK_OK) return wk_fail(err, status, "%s: %s", name, reason.message);
    *out = json;
    return WICK_OK;
}

/* ---- Shards ---- */

static wick_status open_shard(wk_checkpoint *c, wk_str name, wick_error *err) {
    const char *const path = path_of(&c->arena, c->folder, name);
    if (path == NULL) return fail_memory(err);
    /* A name from a file stays in its folder. */
    if (memchr(name.text, '/', name.size) != NULL)
        return wk_fail(err, WICK_ERR_FORMAT, "'%s' is in another folder", wk_str_show(name).text);
    shard *const s = &c->shards[c->n_shards++];
    s->name = name;
    wk_map_init(&s->header.index, c->heap);
    WK_TRY(open_file(c, path, &s->file, err));
    const void *data = NULL;
    WK_TRY(wk_file_map(s->file, &data, err));
    s->data = data;
    wick_error reason = {0};
    const wick_status status =
        wk_safetensors_parse(c->heap, &c->arena, data, wk_file_size(s->file), &s->header, &reason);
    return status == WICK_OK ? WICK_OK : wk_fail_in_file(err, path, &reason);
}

/* NULL: it is not open yet. */
static const shard *find_shard(const wk_checkpoint *c, wk_str name) {
    size_t i = c->n_shards; /* the newest first: names of one file follow each other */
    while (i > 0 && !wk_str_equal(c->shards[i - 1].name, name)) i--;
    return i > 0 ? &c->shards[i - 1] : NULL;
}

/* Every file that the index names, once, and in it the tensors that should be there. */
static wick_status open_shards(wk_checkpoint *c, const wk_json *index, wick_error *err) {
    const wk_json *const map = wk_json_get(index, "weight_map");
    if (map == NULL || map->kind != WK_JSON_OBJECT || map->count == 0)
        return wk_fail(err, WICK_ERR_FORMAT, "%s.safetensors.index.json has no weight_map",
                       c->stem);
    for (const wk_json *item = map->child; item != NULL; item = item->next) {
        if (item->kind != WK_JSON_STRING)
            return wk_fail(err, WICK_ERR_FORMAT, "'%s' in the weight_map is not a file name",
                           wk_str_show(item->key).text);
        if (find_shard(c, item->string) == NULL) {
            if (c->n_shards == MAX_SHARDS)
                return wk_fail(err, WICK_ERR_FORMAT, "more than %d files of tensors",
                               (int)MAX_SHARDS);
            WK_TRY(open_shard(c, item->string, err));
        }
        if (wk_safetensors_find(&find_shard(c, item->string)->header, item->key) == NULL)
            return wk_fail(err, WICK_ERR_FORMAT,
                           "%s.safetensors.index.json: '%s' has no tensor '%s'", c->stem,
                           wk_str_show(item->string).text, wk_str_show(item->key).text);
    }
    return WICK_OK;
}

static wick_status list_tensors(wk_checkpoint *c, wick_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_shards; i++) n += c->shards[i].header.n_tensors;
    c->tensors = wk_arena_array(&c->arena, n, sizeof *c->tensors);
    if (c->tensors == NULL) return fail_memory(err);
    for (size_t i = 0; i < c->n_shards; i++) {
        const shard *const s = &c->shards[i];
        for (size_t j = 0; j < s->header.n_tensors; j++) {
            const wick_file_tensor *const tensor = &s->header.tensors[j];
            c->tensors[c->n_tensors++] = (wk_checkpoint_tensor){.name = tensor->name,
                                                                .dtype = tensor->dtype,
                                                                .shape = tensor->shape,
                                                                .data = s->data + tensor->offset,
                                                                .size = tensor->size};
        }
    }
    return WICK_OK;
}

/* A missing file is reported as the folder's error: model.safetensors is only one of the accepted
 * names. */
static wick_status open_single(wk_checkpoint *c, wick_error *err) {
    wick_error reason = {0};
    char *const name = wk_arena_alloc(&c->arena, MOST_NAME);
    if (name == NULL) return fail_memory(err);
    snprintf(name, MOST_NAME, "%s.safetensors", c->stem);
    const wick_status status = open_shard(c, wk_str_of(name), &reason);
    if (!wk_file_is_same(c->folder, c->folder))
        return wk_fail(err, WICK_ERR_NOT_FOUND, "there is no folder '%s'", c->folder);
    if (status != WICK_ERR_NOT_FOUND)
        return status == WICK_OK ? WICK_OK : wk_fail(err, status, "%s", reason.message);
    return wk_fail(err, status,
                   "'%s' has neither %s.safetensors nor %s.safetensors.index.json; other forms of "
                   "weights are not supported",
                   c->folder, c->stem, c->stem);
}

static wick_status open_all(wk_checkpoint *c, wick_error *err) {
    c->shards = wk_arena_array(&c->arena, MAX_SHARDS, sizeof *c->shards);
    if (c->shards == NULL) return fail_memory(err);
    wk_json *index = NULL;
    char name[MOST_NAME];
    snprintf(name, sizeof name, "%s.safetensors.index.json", c->stem);
    WK_TRY(wk_checkpoint_json(c, &c->arena, name, false, &index, err));
    if (index != NULL)
        WK_TRY(open_shards(c, index, err));
    else
        WK_TRY(open_single(c, err));
    return list_tensors(c, err);
}

wick_status wk_checkpoint_open(wk_heap *heap, const char *folder, const char *stem,
                               const char *target, wk_checkpoint **out, wick_error *err) {
    *out = NULL;
    wk_checkpoint *const c = wk_alloc_zeroed(heap, sizeof *c);
    if (c == NULL) return fail_memory(err);
    c->heap = heap;
    c->stem = stem;
    c->target = target;
    wk_arena_init(&c->arena, heap, 0);
    char *const copy = wk_arena_alloc(&c->arena, strlen(folder) + 1);
    if (copy != NULL) memcpy(copy, folder, strlen(folder) + 1);
    c->folder = copy;
    const wick_status status = copy != NULL ? open_all(c, err) : fail_memory(err);
    if (status == WICK_OK)
        *out = c;
    else
        wk_checkpoint_close(c);
    return status;
}

void wk_checkpoint_close(wk_checkpoint *checkpoint) {
    if (checkpoint == NULL) return;
    for (size_t i = 0; i < checkpoint->n_shards; i++) {
        wk_map_release(&checkpoint->shards[i].header.index);
        wk_file_close(checkpoint->heap, checkpoint->shards[i].file);
    }
    wk_arena_release(&checkpoint->arena);
    wk_free(checkpoint->heap, checkpoint, sizeof *checkpoint);
}

size_t wk_checkpoint_count(const wk_checkpoint *checkpoint) { return checkpoint->n_tensors; }

const wk_checkpoint_tensor *wk_checkpoint_get(const wk_checkpoint *checkpoint, size_t index) {
    assert(index < checkpoint->n_tensors);
    return &checkpoint->tensors[index];
}
