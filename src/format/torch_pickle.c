/* format/torch_pickle.c: the tensors that a pickle of PyTorch describes.
 *
 * Reference: torch/serialization.py and torch/_utils.py: a tensor is the call
 * _rebuild_tensor_v2(storage, first element, size, stride, ..); a storage the persistent id
 * ("storage", class, key, location, elements), its bytes the entry NAME/data/KEY. Types that have
 * no class of storage use _rebuild_tensor_v3, with a storage of bytes, then the type. */
#include "core/dtype.h"
#include "core/shape.h"
#include "format/archive.h"
#include "format/pickle.h"
#include "format/tensor_names.h"
#include "format/torch_types.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAX_DEPTH = 32,        /* of dicts and lists in each other */
    MAX_PICKLE = 16 << 20, /* bytes: about 100,000 tensors */
    NAMES_OF_A_BYTE = 64,  /* most bytes of names that a byte of the pickle may have written */
};

typedef struct found {
    wick_file_tensor tensor;
    wk_archive_part part;
} found;

typedef struct finder {
    wk_heap *heap;
    wk_arena *arena;
    wk_archive *out;
    wk_str folder; /* "NAME/" */
    bool is_swapped;
    /* Left: values may be shared, so that few of them make very many. */
    uint64_t n_steps, n_name_bytes;
    wk_strbuf name;
    found *tensors; /* [capacity] on the heap */
    size_t n, capacity;
    wick_error *err;
} finder;

const char *wk_torch_storage_name(wick_dtype dtype) {
    static const char *const names[WICK_DTYPE_COUNT_] = {
        [WICK_F32] = "torch.FloatStorage",  [WICK_F16] = "torch.HalfStorage",
        [WICK_F64] = "torch.DoubleStorage", [WICK_BF16] = "torch.BFloat16Storage",
        [WICK_I64] = "torch.LongStorage",   [WICK_I32] = "torch.IntStorage",
        [WICK_I16] = "torch.ShortStorage",  [WICK_I8] = "torch.CharStorage",
        [WICK_U8] = "torch.ByteStorage",    [WICK_BOOL] = "torch.BoolStorage",
    };
    return (unsigned)dtype < WK_COUNT(names) ? names[dtype] : NULL;
}

const char *wk_torch_type_name(wick_dtype dtype) {
    static const char *const names[WICK_DTYPE_COUNT_] = {
        [WICK_F32] = "torch.float32",         [WICK_F16] = "torch.float16",
        [WICK_F64] = "torch.float64",         [WICK_BF16] = "torch.bfloat16",
        [WICK_I64] = "torch.int64",           [WICK_I32] = "torch.int32",
        [WICK_I16] = "torch.int16",           [WICK_I8] = "torch.int8",
        [WICK_U32] = "torch.uint32",          [WICK_U8] = "torch.uint8",
        [WICK_BOOL] = "torch.bool",           [WICK_F8_E4M3] = "torch.float8_e4m3fn",
        [WICK_F8_E5M2] = "torch.float8_e5m2",
    };
    return (unsigned)dtype < WK_COUNT(names) ? names[dtype] : NULL;
}

static wick_status refuse(finder *f, const char *reason) {
    return wk_fail(f->err, WICK_ERR_FORMAT, "the tensor '%s' of the pickle %s",
                   wk_str_show((wk_str){f->name.data, f->name.size}).text, reason);
}

/* ---- One tensor ---- */

static const wk_pickled *item(const wk_pickled *value, size_t index) {
    const wk_pickled_item *at = value->items;
    for (size_t i = 0; i < index; i++) at = at->next;
    return at->value;
}

static bool is_tuple(const wk_pickled *value, size_t n_items) {
    return value->kind == WK_PICKLED_TUPLE && value->n_items >= n_items;
}

static wick_status find_type(finder *f, const wk_pickled *global,
                             const char *(*name_of)(wick_dtype), wick_dtype *dtype) {
    if (global->kind != WK_PICKLED_GLOBAL) return refuse(f, "has no type");
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const char *const name = name_of((wick_dtype)i);
        if (name == NULL || !wk_str_is(global->text, name)) continue;
        *dtype = (wick_dtype)i;
        return WICK_OK;
    }
    return wk_fail(f->err, WICK_ERR_UNSUPPORTED,
                   "the tensor '%s' of the pickle is of the type '%s', which Wick does not have",
                   wk_str_show((wk_str){f->name.data, f->name.size}).text,
                   wk_str_show(global->text).text);
}

static wick_status find_storage(finder *f, const wk_pickled *id, const wk_pickled **class,
                                const wk_zip_entry **entry) {
    const wk_pickled *const parts = id->kind == WK_PICKLED_ID ? item(id, 0) : NULL;
    if (parts == NULL || !is_tuple(parts, 5) || item(parts, 0)->kind != WK_PICKLED_TEXT ||
        !wk_str_is(item(parts, 0)->text, "storage") || item(parts, 2)->kind != WK_PICKLED_TEXT)
        return refuse(f, "has no storage");
    *class = item(parts, 1);
    const wk_str key = item(parts, 2)->text;
    wk_strbuf path;
    wk_strbuf_init(&path, f->heap);
    wk_strbuf_append(&path, f->folder.text, f->folder.size);
    wk_strbuf_text(&path, "data/");
    wk_strbuf_append(&path, key.text, key.size);
    *entry = path.failed ? NULL : wk_zip_find(&f->out->zip, (wk_str){path.data, path.size});
    const bool failed = path.failed;
    wk_strbuf_release(&path);
    if (failed) return wk_fail_memory(f->err, key.size, "the name of a storage");
    return *entry != NULL ? WICK_OK : refuse(f, "has a storage that the archive lacks");
}

static wick_status read_tuple(finder *f, const wk_pickled *tuple, int64_t *numbers, int *n) {
    if (tuple->kind != WK_PICKLED_TUPLE) return refuse(f, "has a size that is not a tuple");
    if (tuple->n_items > WICK_MAX_RANK)
        return wk_fail(f->err, WICK_ERR_UNSUPPORTED,
                       "the tensor '%s' of the pickle has %zu dimensions, at most %d work",
                       wk_str_show((wk_str){f->name.data, f->name.size}).text, tuple->n_items,
                       WICK_MAX_RANK);
    *n = 0;
    for (const wk_pickled_item *at = tuple->items; at != NULL; at = at->next) {
        if (at->value->kind != WK_PICKLED_INTEGER || at->value->integer < 0)
            return refuse(f, "has an extent or a stride that is not an integer >= 0");
        numbers[(*n)++] = at->value->integer;
    }
    return WICK_OK;
}

/* All elements lie in the storage. */
static wick_status check_range(finder *f, const wick_file_tensor *tensor,
                               const wk_archive_part *part) {
    const uint64_t size = (uint64_t)wk_dtype_get(tensor->dtype)->block_bytes;
    const uint64_t room = part->entry->size / size;
    if (tensor->size == 0) return WICK_OK;
    uint64_t last = (uint64_t)part->first;
    bool fits = last < room;
    for (int d = 0; d < tensor->shape.rank && fits; d++) {
        const uint64_t steps = (uint64_t)tensor->shape.extent[d] - 1;
        const uint64_t stride = (uint64_t)part->stride[d];
        fits = stride == 0 || steps <= (room - 1 - last) / stride;
        if (fits) last += steps * stride;
    }
    return fits ? WICK_OK : refuse(f, "reaches beyond the end of its storage");
}

static bool is_dense(const wick_file_tensor *tensor, const wk_archive_part *part) {
    int64_t dense[WICK_MAX_RANK];
    wk_shape_dense(&tensor->shape, dense);
    for (int d = 0; d < tensor->shape.rank; d++)
        if (tensor->shape.extent[d] > 1 && dense[d] != part->stride[d]) return false;
    return true;
}

static wick_status place_tensor(finder *f, const wk_pickled *arguments, wick_file_tensor *tensor,
                                wk_archive_part *part) {
    const wk_pickled *const first = item(arguments, 1);
    int n_strides;
    int64_t count;
    if (first->kind != WK_PICKLED_INTEGER || first->integer < 0)
        return refuse(f, "has an offset that is not an integer >= 0");
    part->first = first->integer;
    WK_TRY(read_tuple(f, item(arguments, 2), tensor->shape.extent, &tensor->shape.rank));
    WK_TRY(read_tuple(f, item(arguments, 3), part->stride, &n_strides));
    if (n_strides != tensor->shape.rank)
        return refuse(f, "does not have a stride for each dimension");
    if (!wk_shape_count(&tensor->shape, &count) ||
        !wk_dtype_bytes(tensor->dtype, count, &tensor->size))
        return refuse(f, "has too many elements for 64 bits");
    WK_TRY(check_range(f, tensor, part));
    const int size = wk_dtype_get(tensor->dtype)->block_bytes;
    part->is_swapped = f->is_swapped && size > 1;
    part->is_plain = !part->entry->is_deflated && !part->is_swapped && is_dense(tensor, part);
    tensor->offset = part->entry->offset;
    if (part->is_plain && tensor->size > 0) tensor->offset += (uint64_t)(part->first * size);
    return WICK_OK;
}

static wick_status add_tensor(finder *f, const found *tensor) {
    if (f->n == f->capacity) {
        const size_t more = f->capacity > 0 ? 2 * f->capacity : 64;
        found *const grown = wk_realloc(f->heap, f->tensors, f->capacity * sizeof *f->tensors,
                                        more * sizeof *f->tensors);
        if (grown == NULL)
            return wk_fail_memory(f->err, more * sizeof *grown, "the tensors of a pickle");
        f->tensors = grown;
        f->capacity = more;
    }
    f->tensors[f->n++] = *tensor;
    return WICK_OK;
}

static wick_status spend_on_names(finder *f, size_t size) {
    if (size > f->n_name_bytes)
        return wk_fail(f->err, WICK_ERR_FORMAT,
                       "the pickle's dicts share so much that their tensors have too many names");
    f->n_name_bytes -= size;
    return WICK_OK;
}

static wick_status copy_name(finder *f, wick_string *name) {
    const size_t size = f->name.size;
    WK_TRY(spend_on_names(f, size + 1));
    char *const text = wk_arena_alloc(f->arena, size + 1);
    if (text == NULL) return wk_fail_memory(f->err, size, "the names of a pickle's tensors");
    if (size > 0) memcpy(text, f->name.data, size);
    text[size] = '\0';
    *name = (wick_string){text, size};
    return WICK_OK;
}

/* call: of a function that makes a tensor, with at least its first four arguments. */
static wick_status take_tensor(finder *f, const wk_pickled *arguments, bool has_type) {
    const wk_pickled *class = NULL;
    found made = {.part = {.first = 0}};
    if (!is_tuple(arguments, has_type ? 7 : 4)) return refuse(f, "lacks arguments");
    WK_TRY(find_storage(f, item(arguments, 0), &class, &made.part.entry));
    WK_TRY(has_type ? find_type(f, item(arguments, 6), wk_torch_type_name, &made.tensor.dtype)
                    : find_type(f, class, wk_torch_storage_name, &made.tensor.dtype));
    WK_TRY(place_tensor(f, arguments, &made.tensor, &made.part));
    WK_TRY(copy_name(f, &made.tensor.name));
    return add_tensor(f, &made);
}

/* ---- All tensors ---- */

static wick_status find_tensors(finder *f, const wk_pickled *value, int depth);

static wick_status take_call(finder *f, const wk_pickled *call, int depth) {
    const wk_str callee = item(call, 0)->text;
    const wk_pickled *const arguments = item(call, 1);
    if (wk_str_is(callee, "torch._utils._rebuild_tensor_v2"))
        return take_tensor(f, arguments, false);
    if (wk_str_is(callee, "torch._utils._rebuild_tensor_v3"))
        return take_tensor(f, arguments, true);
    if (!wk_str_is(callee, "torch._utils._rebuild_parameter")) return WICK_OK;
    if (!is_tuple(arguments, 1)) return refuse(f, "lacks arguments");
    return find_tensors(f, item(arguments, 0), depth + 1);
}

static wick_status too_long(const finder *f) {
    return wk_fail(f->err, WICK_ERR_FORMAT,
                   "a tensor of the pickle has a name of more than %d bytes", WK_MAX_TENSOR_NAME);
}

/* The name gets a part: a key, or the number of an item. */
static wick_status extend_name(finder *f, const wk_pickled *key, size_t index) {
    const size_t before = f->name.size;
    const bool is_text = key != NULL && key->kind == WK_PICKLED_TEXT;
    if (is_text && key->text.size > WK_MAX_TENSOR_NAME - before) return too_long(f);
    WK_TRY(spend_on_names(f, is_text ? key->text.size : 0));
    if (before > 0) wk_strbuf_text(&f->name, ".");
    if (key == NULL)
        wk_strbuf_format(&f->name, "%zu", index);
    else if (key->kind == WK_PICKLED_INTEGER)
        wk_strbuf_format(&f->name, "%" PRId64, key->integer);
    else if (is_text)
        wk_strbuf_append(&f->name, key->text.text, key->text.size);
    else
        return refuse(f, "has a dict with a key that is neither a text nor an integer");
    if (f->name.failed) return wk_fail_memory(f->err, before, "the name of a tensor");
    return f->name.size <= WK_MAX_TENSOR_NAME ? WICK_OK : too_long(f);
}

static wick_status find_in_items(finder *f, const wk_pickled *value, int depth) {
    size_t index = 0;
    for (const wk_pickled_item *at = value->items; at != NULL; at = at->next, index++) {
        const wk_pickled_kind kind = at->value->kind;
        if (f->n_steps-- == 0)
            return wk_fail(f->err, WICK_ERR_FORMAT,
                           "the pickle's lists and dicts share so much that they have more items "
                           "than the pickle has bytes");
        if (kind < WK_PICKLED_TUPLE || kind == WK_PICKLED_GLOBAL) continue;
        const size_t before = f->name.size;
        WK_TRY(extend_name(f, at->key, index));
        WK_TRY(find_tensors(f, at->value, depth + 1));
        f->name.size = before;
    }
    return WICK_OK;
}

static wick_status find_tensors(finder *f, const wk_pickled *value, int depth) {
    if (depth > MAX_DEPTH)
        return wk_fail(f->err, WICK_ERR_FORMAT,
                       "the pickle has lists or dicts in each other that go deeper than %d",
                       MAX_DEPTH);
    switch (value->kind) {
    case WK_PICKLED_CALL: return take_call(f, value, depth);
    case WK_PICKLED_TUPLE:
    case WK_PICKLED_LIST:
    case WK_PICKLED_DICT: return find_in_items(f, value, depth);
    default: return WICK_OK;
    }
}

/* ---- The archive ---- */

static wick_status read_byte_order(finder *f) {
    char order[8] = "";
    wk_strbuf path;
    wk_strbuf_init(&path, f->heap);
    wk_strbuf_append(&path, f->folder.text, f->folder.size);
    wk_strbuf_text(&path, "byteorder");
    const bool failed = path.failed;
    const wk_zip_entry *const entry =
        failed ? NULL : wk_zip_find(&f->out->zip, (wk_str){path.data, path.size});
    wk_strbuf_release(&path);
    if (failed) return wk_fail_memory(f->err, f->folder.size, "the byte order of a file");
    if (entry == NULL) return WICK_OK; /* as it was written before there was such an entry */
    if (entry->size < sizeof order)
        WK_TRY(
            wk_zip_unpack(f->heap, &f->out->zip, entry, order, (size_t)entry->size, false, f->err));
    f->is_swapped = strcmp(order, "big") == 0;
    if (f->is_swapped || strcmp(order, "little") == 0) return WICK_OK;
    return wk_fail(f->err, WICK_ERR_FORMAT, "the byte order is neither 'little' nor 'big'");
}

static wick_status keep(finder *f) {
    wick_file_tensor *const tensors = wk_arena_array(f->arena, f->n, sizeof *tensors);
    f->out->parts = wk_arena_array(f->arena, f->n, sizeof *f->out->parts);
    if (tensors == NULL || f->out->parts == NULL)
        return wk_fail_memory(f->err, f->n * sizeof *tensors, "the tensors of a pickle");
    for (size_t i = 0; i < f->n; i++) {
        tensors[i] = f->tensors[i].tensor;
        f->out->parts[i] = f->tensors[i].part;
    }
    f->out->tensors = tensors;
    f->out->n_tensors = f->n;
    return WICK_OK;
}

/* Values only live until the tensors are found; their texts are copied. */
static wick_status read_pickle(finder *f, const void *bytes, size_t size) {
    const wk_pickled *root;
    wk_arena values;
    wk_arena_init(&values, f->heap, 0);
    wick_status status = wk_pickle_parse(f->heap, &values, bytes, size, &root, f->err);
    if (status == WICK_OK) status = find_tensors(f, root, 0);
    wk_arena_release(&values);
    return status == WICK_OK ? keep(f) : status;
}

wick_status wk_torch_parse(wk_heap *heap, wk_arena *arena, const wk_zip_entry *pickle,
                           wk_archive *out, wick_error *err) {
    finder f = {.heap = heap,
                .arena = arena,
                .out = out,
                .folder = {pickle->name.text, pickle->name.size - strlen("data.pkl")},
                .n_steps = pickle->size,
                .n_name_bytes = NAMES_OF_A_BYTE * pickle->size,
                .err = err};
    if (pickle->size > MAX_PICKLE)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the pickle has %" PRIu64 " bytes, at most %d are read", pickle->size,
                       MAX_PICKLE);
    const size_t size = (size_t)pickle->size;
    void *const bytes = wk_alloc(heap, size);
    if (bytes == NULL && size > 0) return wk_fail_memory(err, size, "the pickle of a file");
    wk_strbuf_init(&f.name, heap);
    wick_status status = read_byte_order(&f);
    if (status == WICK_OK) status = wk_zip_unpack(heap, &out->zip, pickle, bytes, size, false, err);
    if (status == WICK_OK) status = read_pickle(&f, bytes, size);
    wk_strbuf_release(&f.name);
    wk_free(heap, f.tensors, f.capacity * sizeof *f.tensors);
    wk_free(heap, bytes, size);
    return status;
}
