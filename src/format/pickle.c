/* format/pickle.c: see pickle.h.
 *
 * Reference: pickletools.py of Python, which describes every opcode. The machine has a stack of
 * values, marks in it, and a memo of values by number. A name is only ever compared with a list,
 * a call only ever noted down. */
#include "format/pickle.h"

#include "core/compiler.h"

#include <string.h>

enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_FLOAT = 'G',
    OP_INT4 = 'J',
    OP_INT1 = 'K',
    OP_INT2 = 'M',
    OP_NONE = 'N',
    OP_PERSISTENT_ID = 'Q',
    OP_REDUCE = 'R',
    OP_TEXT4 = 'X',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_APPENDS = 'e',
    OP_GET1 = 'h',
    OP_GET4 = 'j',
    OP_PUT1 = 'q',
    OP_PUT4 = 'r',
    OP_SET_ITEM = 's',
    OP_TUPLE = 't',
    OP_SET_ITEMS = 'u',
    OP_DICT = '}',
    OP_LIST = ']',
    OP_EMPTY_TUPLE = ')',
    OP_PROTOCOL = 0x80,
    OP_TUPLE1 = 0x85,
    OP_TUPLE3 = 0x87,
    OP_TRUE = 0x88,
    OP_FALSE = 0x89,
    OP_LONG1 = 0x8A,
    OP_TEXT1 = 0x8C,
    OP_TEXT8 = 0x8D,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

/* Values by number, growing; an entry without a value is a mark. */
typedef struct value_list {
    wk_pickled **values;
    size_t n, capacity;
} value_list;

typedef struct machine {
    wk_heap *heap;
    wk_arena *arena;
    const uint8_t *bytes;
    size_t size, at, opcode_at;
    value_list stack, memo;
    size_t n_marks;
    wick_error *err;
} machine;

static wick_status refuse(const machine *m, const char *reason) {
    return wk_fail(m->err, WICK_ERR_FORMAT, "byte %zu of the pickle: %s", m->opcode_at, reason);
}

static wick_status no_memory(const machine *m) {
    return wk_fail_memory(m->err, m->size, "the values of a pickle");
}

/* ---- Reading ---- */

static wick_status take_number(machine *m, size_t n_bytes, uint64_t *number) {
    *number = 0;
    if (n_bytes > m->size - m->at) return refuse(m, "it ends inside an argument");
    for (size_t i = 0; i < n_bytes; i++) *number |= (uint64_t)m->bytes[m->at++] << (8 * i);
    return WICK_OK;
}

static wick_status take_text(machine *m, size_t n_bytes, wk_str *text) {
    uint64_t size;
    WK_TRY(take_number(m, n_bytes, &size));
    if (size > m->size - m->at) return refuse(m, "a text that is longer than the pickle");
    *text = (wk_str){(const char *)m->bytes + m->at, (size_t)size};
    m->at += (size_t)size;
    size_t bad;
    return wk_str_is_utf8(*text, &bad) ? WICK_OK : refuse(m, "a text that is not UTF-8");
}

static wick_status take_line(machine *m, wk_str *line) {
    const uint8_t *const begin = m->bytes + m->at;
    const uint8_t *const end = memchr(begin, '\n', m->size - m->at);
    *line = (wk_str){.size = 0};
    if (end == NULL) return refuse(m, "it ends inside a name");
    *line = (wk_str){(const char *)begin, (size_t)(end - begin)};
    m->at += line->size + 1;
    return WICK_OK;
}

/* ---- The stack ---- */

static wick_status add(machine *m, value_list *list, wk_pickled *value) {
    if (list->n == list->capacity) {
        const size_t more = list->capacity > 0 ? 2 * list->capacity : 64;
        wk_pickled **const grown =
            wk_realloc(m->heap, list->values, list->capacity * sizeof value, more * sizeof value);
        if (grown == NULL) return no_memory(m);
        list->values = grown;
        list->capacity = more;
    }
    list->values[list->n++] = value;
    return WICK_OK;
}

static wick_status push(machine *m, wk_pickled value) {
    wk_pickled *const made = wk_arena_alloc(m->arena, sizeof *made);
    if (made == NULL) return no_memory(m);
    *made = value;
    return add(m, &m->stack, made);
}

/* n values above the last mark, on top of the stack. */
static bool has_values(const machine *m, size_t n) {
    if (m->stack.n < n) return false;
    for (size_t i = 0; i < n; i++)
        if (m->stack.values[m->stack.n - 1 - i] == NULL) return false;
    return true;
}

static wk_pickled *top(const machine *m, size_t down) {
    return m->stack.values[m->stack.n - 1 - down];
}

static wick_status append(machine *m, wk_pickled *to, wk_pickled *key, wk_pickled *value) {
    wk_pickled_item *const item = wk_arena_alloc(m->arena, sizeof *item);
    if (item == NULL) return no_memory(m);
    *item = (wk_pickled_item){.key = key, .value = value};
    if (to->last != NULL)
        to->last->next = item;
    else
        to->items = item;
    to->last = item;
    to->n_items++;
    return WICK_OK;
}

/* Takes the last mark away; what was above it is values[*first ..). */
static wick_status take_mark(machine *m, size_t *first) {
    size_t at = m->stack.n;
    *first = 0;
    if (m->n_marks == 0) return refuse(m, "there is no mark");
    while (m->stack.values[at - 1] != NULL) at--;
    m->n_marks--;
    *first = at;
    return WICK_OK;
}

/* A tuple of the values from first on takes their place. */
static wick_status make_tuple(machine *m, size_t first, size_t base) {
    wk_pickled tuple = {.kind = WK_PICKLED_TUPLE};
    for (size_t i = first; i < m->stack.n; i++) WK_TRY(append(m, &tuple, NULL, m->stack.values[i]));
    m->stack.n = base;
    return push(m, tuple);
}

/* Values from first on are the items of the container below the mark. */
static wick_status fill_container(machine *m, size_t first, size_t below) {
    wk_pickled *const to = below > 0 ? m->stack.values[below - 1] : NULL;
    const bool is_dict = to != NULL && to->kind == WK_PICKLED_DICT;
    const size_t n = m->stack.n - first;
    if (!is_dict && (to == NULL || to->kind != WK_PICKLED_LIST))
        return refuse(m, "items for what is neither a list nor a dict");
    if (is_dict && n % 2 != 0) return refuse(m, "a key without a value");
    for (size_t i = first; i < m->stack.n; i += is_dict ? 2 : 1)
        WK_TRY(is_dict ? append(m, to, m->stack.values[i], m->stack.values[i + 1])
                       : append(m, to, NULL, m->stack.values[i]));
    m->stack.n = below;
    return WICK_OK;
}

static wick_status fill_marked(machine *m, wk_pickled_kind kind) {
    size_t first;
    WK_TRY(take_mark(m, &first));
    const size_t below = first - 1;
    if (below > 0 && m->stack.values[below - 1] != NULL && m->stack.values[below - 1]->kind != kind)
        return refuse(m, "items for what is neither a list nor a dict");
    return fill_container(m, first, below);
}

/* ---- Names and calls ---- */

/* PyTorch's names for the parts of tensors, and what else checkpoints have of them. */
static bool is_known(wk_str name) {
    static const char *const names[] = {
        "collections.OrderedDict",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_tensor_v3",
        "torch.storage.UntypedStorage",
        "torch.Size",
        "torch.device",
    };
    for (size_t i = 0; i < WK_COUNT(names); i++)
        if (wk_str_is(name, names[i])) return true;
    return wk_str_matches(wk_str_of("torch.*Storage"), name) ||
           wk_str_matches(wk_str_of("torch.float*"), name) ||
           wk_str_matches(wk_str_of("torch.bfloat16"), name) ||
           wk_str_matches(wk_str_of("torch.int*"), name) ||
           wk_str_matches(wk_str_of("torch.uint*"), name) || wk_str_is(name, "torch.bool");
}

static wick_status push_global(machine *m, wk_str module, wk_str name) {
    const size_t size = module.size + 1 + name.size;
    char *const text = wk_arena_alloc(m->arena, size + 1);
    if (text == NULL) return no_memory(m);
    if (module.size > 0) memcpy(text, module.text, module.size);
    text[module.size] = '.';
    if (name.size > 0) memcpy(text + module.size + 1, name.text, name.size);
    text[size] = '\0';
    const wk_pickled global = {.kind = WK_PICKLED_GLOBAL, .text = {text, size}};
    if (is_known(global.text)) return push(m, global);
    return wk_fail(m->err, WICK_ERR_UNSUPPORTED,
                   "byte %zu of the pickle: it wants the Python object '%s', and only tensors, "
                   "numbers, texts, lists and dicts are read",
                   m->opcode_at, wk_str_show(global.text).text);
}

static wick_status take_global(machine *m, bool is_on_stack) {
    wk_str module, name;
    if (!is_on_stack) {
        WK_TRY(take_line(m, &module));
        WK_TRY(take_line(m, &name));
        return push_global(m, module, name);
    }
    if (!has_values(m, 2) || top(m, 0)->kind != WK_PICKLED_TEXT ||
        top(m, 1)->kind != WK_PICKLED_TEXT)
        return refuse(m, "a name that is not of two texts");
    name = top(m, 0)->text, module = top(m, 1)->text;
    m->stack.n -= 2;
    return push_global(m, module, name);
}

static wick_status reduce(machine *m) {
    if (!has_values(m, 2) || top(m, 0)->kind != WK_PICKLED_TUPLE ||
        top(m, 1)->kind != WK_PICKLED_GLOBAL)
        return refuse(m, "a call needs a name and a tuple of arguments");
    wk_pickled *const arguments = top(m, 0), *const callee = top(m, 1);
    m->stack.n -= 2;
    if (wk_str_is(callee->text, "collections.OrderedDict")) {
        if (arguments->n_items > 0) return refuse(m, "an OrderedDict with arguments");
        return push(m, (wk_pickled){.kind = WK_PICKLED_DICT});
    }
    wk_pickled call = {.kind = WK_PICKLED_CALL};
    WK_TRY(append(m, &call, NULL, callee));
    WK_TRY(append(m, &call, NULL, arguments));
    return push(m, call);
}

static wick_status push_id(machine *m) {
    if (!has_values(m, 1)) return refuse(m, "the stack is too short");
    wk_pickled id = {.kind = WK_PICKLED_ID};
    WK_TRY(append(m, &id, NULL, top(m, 0)));
    m->stack.n--;
    return push(m, id);
}

/* ---- The memo ---- */

/* Numbers are given out in turn, by every writer. */
static wick_status put(machine *m, uint64_t number) {
    if (!has_values(m, 1)) return refuse(m, "the stack is too short");
    if (number > m->memo.n) return refuse(m, "a place in the memo that is not the next one");
    if (number == m->memo.n) return add(m, &m->memo, top(m, 0));
    m->memo.values[number] = top(m, 0);
    return WICK_OK;
}

static wick_status get(machine *m, uint64_t number) {
    if (number >= m->memo.n) return refuse(m, "a place in the memo that has no value");
    return add(m, &m->stack, m->memo.values[number]);
}

/* ---- Opcodes ---- */

static wick_status push_integer(machine *m, size_t n_bytes, bool is_signed) {
    uint64_t number;
    if (n_bytes > 8) return refuse(m, "an integer of more than 64 bits");
    WK_TRY(take_number(m, n_bytes, &number));
    const unsigned spare = 64 - 8 * (unsigned)n_bytes;
    if (is_signed && n_bytes > 0 && (number >> (8 * n_bytes - 1)) != 0 && spare > 0)
        number |= UINT64_MAX << (64 - spare);
    return push(m, (wk_pickled){.kind = WK_PICKLED_INTEGER, .integer = (int64_t)number});
}

static wick_status push_real(machine *m) {
    uint64_t bits = 0;
    wk_pickled real = {.kind = WK_PICKLED_REAL};
    if (m->size - m->at < 8) return refuse(m, "it ends inside an argument");
    for (int i = 0; i < 8; i++) bits = bits << 8 | m->bytes[m->at++];
    memcpy(&real.real, &bits, sizeof bits);
    return push(m, real);
}

static wick_status push_text(machine *m, size_t n_bytes) {
    wk_pickled text = {.kind = WK_PICKLED_TEXT};
    WK_TRY(take_text(m, n_bytes, &text.text));
    return push(m, text);
}

/* Opcodes that push a value without parts, or one made from the stack. */
static wick_status make_value(machine *m, int opcode) {
    uint64_t number;
    size_t first;
    switch (opcode) {
    case OP_NONE: return push(m, (wk_pickled){.kind = WK_PICKLED_NONE});
    case OP_TRUE:
    case OP_FALSE:
        return push(m, (wk_pickled){.kind = WK_PICKLED_BOOL, .integer = opcode == OP_TRUE});
    case OP_INT1: return push_integer(m, 1, false);
    case OP_INT2: return push_integer(m, 2, false);
    case OP_INT4: return push_integer(m, 4, true);
    case OP_LONG1: WK_TRY(take_number(m, 1, &number)); return push_integer(m, (size_t)number, true);
    case OP_FLOAT: return push_real(m);
    case OP_TEXT1: return push_text(m, 1);
    case OP_TEXT4: return push_text(m, 4);
    case OP_TEXT8: return push_text(m, 8);
    case OP_DICT: return push(m, (wk_pickled){.kind = WK_PICKLED_DICT});
    case OP_LIST: return push(m, (wk_pickled){.kind = WK_PICKLED_LIST});
    case OP_EMPTY_TUPLE: return push(m, (wk_pickled){.kind = WK_PICKLED_TUPLE});
    case OP_TUPLE: WK_TRY(take_mark(m, &first)); return make_tuple(m, first, first - 1);
    default: break;
    }
    return wk_fail(m->err, WICK_ERR_UNSUPPORTED,
                   "byte %zu of the pickle: the opcode 0x%02X, which no file of tensors needs",
                   m->opcode_at, (unsigned)opcode);
}

static wick_status change_stack(machine *m, int opcode) {
    uint64_t number;
    switch (opcode) {
    case OP_PROTOCOL: return take_number(m, 1, &number);
    case OP_FRAME: return take_number(m, 8, &number);
    case OP_MARK: m->n_marks++; return add(m, &m->stack, NULL);
    case OP_GLOBAL: return take_global(m, false);
    case OP_STACK_GLOBAL: return take_global(m, true);
    case OP_REDUCE: return reduce(m);
    case OP_PERSISTENT_ID: return push_id(m);
    case OP_BUILD: /* attributes of an OrderedDict */
        if (!has_values(m, 2) || top(m, 1)->kind != WK_PICKLED_DICT)
            return refuse(m, "attributes for what is not a dict");
        m->stack.n--;
        return WICK_OK;
    case OP_APPEND:
        if (!has_values(m, 2) || top(m, 1)->kind != WK_PICKLED_LIST)
            return refuse(m, "an item for what is not a list");
        return fill_container(m, m->stack.n - 1, m->stack.n - 1);
    case OP_SET_ITEM:
        if (!has_values(m, 3) || top(m, 2)->kind != WK_PICKLED_DICT)
            return refuse(m, "an item for what is not a dict");
        return fill_container(m, m->stack.n - 2, m->stack.n - 2);
    case OP_APPENDS: return fill_marked(m, WK_PICKLED_LIST);
    case OP_SET_ITEMS: return fill_marked(m, WK_PICKLED_DICT);
    case OP_GET1:
    case OP_GET4: WK_TRY(take_number(m, opcode == OP_GET1 ? 1 : 4, &number)); return get(m, number);
    case OP_PUT1:
    case OP_PUT4: WK_TRY(take_number(m, opcode == OP_PUT1 ? 1 : 4, &number)); return put(m, number);
    case OP_MEMOIZE: return put(m, m->memo.n);
    default: break;
    }
    const size_t n = (size_t)opcode - OP_TUPLE1 + 1;
    if (opcode < OP_TUPLE1 || opcode > OP_TUPLE3) return make_value(m, opcode);
    if (!has_values(m, n)) return refuse(m, "the stack is too short");
    return make_tuple(m, m->stack.n - n, m->stack.n - n);
}

static wick_status run(machine *m, const wk_pickled **out) {
    for (;;) {
        m->opcode_at = m->at;
        if (m->at == m->size) return refuse(m, "it ends without its last opcode");
        const int opcode = m->bytes[m->at++];
        if (opcode == OP_STOP) break;
        WK_TRY(change_stack(m, opcode));
    }
    if (m->stack.n != 1 || !has_values(m, 1)) return refuse(m, "it does not leave one value");
    *out = top(m, 0);
    return WICK_OK;
}

wick_status wk_pickle_parse(wk_heap *heap, wk_arena *arena, const void *bytes, size_t size,
                            const wk_pickled **out, wick_error *err) {
    machine m = {.heap = heap, .arena = arena, .bytes = bytes, .size = size, .err = err};
    *out = NULL;
    const wick_status status = run(&m, out);
    wk_free(heap, m.stack.values, m.stack.capacity * sizeof *m.stack.values);
    wk_free(heap, m.memo.values, m.memo.capacity * sizeof *m.memo.values);
    return status;
}
