/* grammar/program.c: compiles rules from their ends to their beginnings, so that every
 * instruction knows what follows it.
 *
 * What is repeated a counted number of times becomes a rule of its own, unless it is tiny: nested
 * counts then add up instead of multiplying. */
#include "grammar/program.h"

#include "text/unicode/unicode.h"

#include <assert.h>
#include <string.h>

enum { MAX_INSTRUCTIONS = 1 << 20, TINY = 4, MAX_NESTING = 2000 };

typedef struct compiler {
    wk_program *program;
    const wk_rules *rules;
    uint32_t *starts; /* [capacity] of the rules, then of repeated parts */
    uint32_t n_starts, capacity;
    int depth;
    wick_error *err;
} compiler;

static wick_status fail_size(const compiler *c) {
    return wk_fail(c->err, WICK_ERR_VALUE,
                   "the grammar is too large: it takes more than %d instructions",
                   MAX_INSTRUCTIONS);
}

static wick_status emit(compiler *c, wk_instruction instruction, uint32_t *at) {
    wk_program *const p = c->program;
    if (p->n == p->capacity) {
        const uint32_t capacity = p->capacity ? 2 * p->capacity : 256;
        if (capacity > MAX_INSTRUCTIONS) return fail_size(c);
        wk_instruction *const code =
            wk_realloc(p->heap, p->code, p->capacity * sizeof *code, capacity * sizeof *code);
        if (!code) return wk_fail_memory(c->err, capacity * sizeof *code, "a grammar");
        p->code = code;
        p->capacity = capacity;
    }
    p->code[p->n] = instruction;
    *at = p->n++;
    return WICK_OK;
}

/* *choice: what was chosen from so far, or UINT32_MAX. */
static wick_status emit_choice(compiler *c, uint32_t one, uint32_t *choice) {
    if (*choice == UINT32_MAX) {
        *choice = one;
        return WICK_OK;
    }
    return emit(c, (wk_instruction){.op = WK_GRAMMAR_SPLIT, .next = one, .other = *choice}, choice);
}

static wick_status emit_byte(compiler *c, int first, int last, uint32_t next, uint32_t *at) {
    assert(first >= 0 && first <= last && last <= 255);
    return emit(
        c,
        (wk_instruction){
            .op = WK_GRAMMAR_BYTE, .first = (uint8_t)first, .last = (uint8_t)last, .next = next},
        at);
}

/* --- Characters --- */

/* What a class is compiled into: the choice, and the ends that its characters share. */
typedef struct class_work {
    uint32_t choice;
    uint32_t tails[4]; /* n bytes of 0x80 to 0xBF, then next; UINT32_MAX: not there yet */
} class_work;

static wick_status emit_tail(compiler *c, class_work *work, int n) {
    for (int i = 1; i <= n; i++)
        if (work->tails[i] == UINT32_MAX)
            WK_TRY(emit_byte(c, 0x80, 0xBF, work->tails[i - 1], &work->tails[i]));
    return WICK_OK;
}

/* Characters whose encodings are all ways to choose each byte between those of first and last. */
static wick_status emit_product(compiler *c, class_work *work, wk_code_range range) {
    char first[4], last[4];
    const int size = (int)wk_utf8_encode(range.first, first);
    (void)wk_utf8_encode(range.last, last);
    int n_tail = 0;
    while (n_tail + 1 < size && (uint8_t)first[size - 1 - n_tail] == 0x80 &&
           (uint8_t)last[size - 1 - n_tail] == 0xBF)
        n_tail++;
    WK_TRY(emit_tail(c, work, n_tail));
    uint32_t at = work->tails[n_tail];
    for (int i = size - 1 - n_tail; i >= 0; i--)
        WK_TRY(emit_byte(c, (uint8_t)first[i], (uint8_t)last[i], at, &at));
    return emit_choice(c, at, &work->choice);
}

/* Cuts range where encodings get longer, and then so that it falls into such products (the method
 * of RE2; Cox, "Regular Expression Matching in the Wild", 2010). */
static wick_status emit_range(compiler *c, class_work *work, wk_code_range range) {
    assert(range.first <= range.last);
    static const uint32_t longest[] = {0x7F, 0x7FF, 0xFFFF};
    uint32_t cut = range.last;
    for (int i = 0; i < 3 && cut == range.last; i++)
        if (range.first <= longest[i] && longest[i] < range.last) cut = longest[i];
    for (int i = 1; i < 4 && cut == range.last && range.first > 0x7F; i++) {
        const uint32_t low = (1U << (6 * i)) - 1;
        if ((range.first & ~low) == (range.last & ~low)) continue;
        if ((range.first & low) != 0)
            cut = range.first | low;
        else if ((range.last & low) != low)
            cut = (range.last & ~low) - 1;
    }
    if (cut == range.last) return emit_product(c, work, range);
    WK_TRY(emit_range(c, work, (wk_code_range){range.first, cut}));
    return emit_range(c, work, (wk_code_range){cut + 1, range.last});
}

static wick_status compile_class(compiler *c, const wk_expr *expr, uint32_t next, uint32_t *at) {
    class_work work = {UINT32_MAX, {next, UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < expr->n_ranges; i++) WK_TRY(emit_range(c, &work, expr->ranges[i]));
    *at = work.choice;
    if (*at != UINT32_MAX) return WICK_OK;
    return emit(c, (wk_instruction){.op = WK_GRAMMAR_FAIL}, at);
}

static wick_status compile_text(compiler *c, wk_str text, uint32_t next, uint32_t *at) {
    *at = next;
    for (size_t i = text.size; i-- > 0;) {
        const uint8_t byte = (uint8_t)text.text[i];
        WK_TRY(emit_byte(c, byte, byte, *at, at));
    }
    return WICK_OK;
}

/* --- Repetition --- */

static wick_status compile(compiler *c, const wk_expr *expr, uint32_t next, uint32_t *at);

static bool is_tiny(const wk_expr *part) {
    switch (part->kind) {
    case WK_EXPR_TEXT: return part->text.size <= TINY;
    case WK_EXPR_CLASS:
        return part->n_ranges <= TINY &&
               (part->n_ranges == 0 || part->ranges[part->n_ranges - 1].last < 0x80);
    case WK_EXPR_RULE:
    case WK_EXPR_TOKEN: return true;
    default: return false;
    }
}

static wick_status add_start(compiler *c, uint32_t start) {
    if (c->n_starts == c->capacity) {
        const uint32_t capacity = 2 * c->capacity;
        uint32_t *const starts = wk_realloc(
            c->program->heap, c->starts, c->capacity * sizeof *starts, capacity * sizeof *starts);
        if (!starts) return wk_fail_memory(c->err, capacity * sizeof *starts, "a grammar");
        c->starts = starts;
        c->capacity = capacity;
    }
    c->starts[c->n_starts++] = start;
    return WICK_OK;
}

/* One of several copies of a part; start: its rule, or UINT32_MAX. */
static wick_status compile_copy(compiler *c, const wk_expr *part, uint32_t start, uint32_t next,
                                uint32_t *at) {
    if (start == UINT32_MAX) return compile(c, part, next, at);
    return emit(c, (wk_instruction){.op = WK_GRAMMAR_CALL, .next = next, .other = start}, at);
}

/* part* (or part+: then *at is its beginning). */
static wick_status compile_loop(compiler *c, const wk_expr *part, bool is_plus, uint32_t next,
                                uint32_t *at) {
    uint32_t split, body;
    WK_TRY(emit(c, (wk_instruction){.op = WK_GRAMMAR_SPLIT, .other = next}, &split));
    WK_TRY(compile(c, part, split, &body));
    c->program->code[split].next = body;
    *at = is_plus ? body : split;
    return WICK_OK;
}

static wick_status compile_repeat(compiler *c, const wk_expr *expr, uint32_t next, uint32_t *at) {
    const wk_expr *const part = expr->first;
    const bool has_end = expr->most != WK_REPEAT_FOREVER;
    uint32_t n_needed = expr->least, start = UINT32_MAX;
    *at = next;
    if (!has_end) {
        WK_TRY(compile_loop(c, part, n_needed > 0, next, at));
        n_needed -= n_needed > 0;
    }
    const uint32_t n_copies = n_needed + (has_end ? expr->most - expr->least : 0);
    if (n_copies > 1 && !is_tiny(part)) {
        WK_TRY(compile(c, part, 0, &start));
        WK_TRY(add_start(c, start));
    }
    for (uint32_t i = 0; i < n_copies; i++) {
        const bool is_optional = i + n_needed < n_copies;
        uint32_t copy;
        WK_TRY(compile_copy(c, part, start, *at, &copy));
        if (!is_optional)
            *at = copy;
        else
            WK_TRY(
                emit(c, (wk_instruction){.op = WK_GRAMMAR_SPLIT, .next = copy, .other = next}, at));
    }
    return WICK_OK;
}

/* --- Everything --- */

static wick_status compile_list(compiler *c, const wk_expr *list, uint32_t next, uint32_t *at) {
    if (list->kind == WK_EXPR_SEQUENCE) {
        *at = next;
        for (const wk_expr *part = list->last; part; part = part->previous)
            WK_TRY(compile(c, part, *at, at));
        return WICK_OK;
    }
    *at = UINT32_MAX;
    for (const wk_expr *part = list->last; part; part = part->previous) {
        uint32_t one;
        WK_TRY(compile(c, part, next, &one));
        WK_TRY(emit_choice(c, one, at));
    }
    if (*at != UINT32_MAX) return WICK_OK;
    return emit(c, (wk_instruction){.op = WK_GRAMMAR_FAIL}, at);
}

/* *at: where expr begins when next follows it. Calls name rules by their ids for now. */
static wick_status compile(compiler *c, const wk_expr *expr, uint32_t next, uint32_t *at) {
    if (c->depth == MAX_NESTING)
        return wk_fail(c->err, WICK_ERR_VALUE, "the grammar nests too deeply");
    c->depth++;
    wick_status status = WICK_OK;
    switch (expr->kind) {
    case WK_EXPR_TEXT: status = compile_text(c, expr->text, next, at); break;
    case WK_EXPR_CLASS: status = compile_class(c, expr, next, at); break;
    case WK_EXPR_SEQUENCE:
    case WK_EXPR_CHOICE: status = compile_list(c, expr, next, at); break;
    case WK_EXPR_REPEAT: status = compile_repeat(c, expr, next, at); break;
    case WK_EXPR_RULE:
        status = emit(c,
                      (wk_instruction){.op = WK_GRAMMAR_CALL,
                                       .is_negated = true, /* other is a rule, see link_calls */
                                       .next = next,
                                       .other = expr->id},
                      at);
        break;
    case WK_EXPR_TOKEN:
        status = emit(c,
                      (wk_instruction){.op = WK_GRAMMAR_TOKEN,
                                       .is_negated = expr->is_negated,
                                       .next = next,
                                       .other = expr->id},
                      at);
        break;
    }
    c->depth--;
    return status;
}

/* Rules are called before it is known where they begin. */
static void link_calls(compiler *c) {
    wk_program *const p = c->program;
    for (uint32_t i = 0; i < p->n; i++) {
        wk_instruction *const call = &p->code[i];
        if (call->op != WK_GRAMMAR_CALL || !call->is_negated) continue;
        call->is_negated = false;
        call->other = c->starts[call->other];
    }
    p->start = c->starts[0];
}

static void find_classes(wk_program *p) {
    bool begins[257] = {false};
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->code[i].op != WK_GRAMMAR_BYTE) continue;
        begins[p->code[i].first] = begins[p->code[i].last + 1] = true;
    }
    for (int byte = 0; byte < 256; byte++) {
        if (byte == 0 || begins[byte]) p->byte_of[p->n_classes++] = (uint8_t)byte;
        p->class_of[byte] = (uint8_t)(p->n_classes - 1);
    }
}

static wick_status compile_rules(compiler *c) {
    uint32_t at;
    WK_TRY(emit(c, (wk_instruction){.op = WK_GRAMMAR_RETURN}, &at));
    for (uint32_t i = 0; i < c->rules->n; i++) {
        WK_TRY(compile(c, c->rules->items[i].body, 0, &at)); /* may move starts */
        c->starts[i] = at;
    }
    link_calls(c);
    find_classes(c->program);
    return wk_program_check(c->program, c->rules, c->starts, c->n_starts, c->err);
}

wick_status wk_program_make(wk_heap *heap, const wk_rules *rules, wk_program *out,
                            wick_error *err) {
    *out = (wk_program){.heap = heap};
    compiler c = {
        .program = out, .rules = rules, .n_starts = rules->n, .capacity = rules->n, .err = err};
    c.starts = wk_alloc_array(heap, c.capacity, sizeof *c.starts);
    if (!c.starts) return wk_fail_memory(err, c.capacity * sizeof *c.starts, "a grammar");
    const wick_status status = compile_rules(&c);
    wk_free(heap, c.starts, c.capacity * sizeof *c.starts);
    if (status != WICK_OK) wk_program_free(out);
    return status;
}

void wk_program_free(wk_program *program) {
    wk_free(program->heap, program->code, program->capacity * sizeof *program->code);
    *program = (wk_program){.heap = program->heap};
}
