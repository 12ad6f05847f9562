/* Chat templates: the language, limits, where text came from, and prompts as tokens. */
#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/hash.h"
#include "small_vocab.h"
#include "text/tokenize/marked.h"

#include <wick/chat.h>

#include <stdio.h>
#include <string.h>

typedef struct fixture {
    checked_heap checked;
    wk_arena arena;
    wick_error error;
    wk_jinja_result result;
} fixture;

static int set_up(void **state) {
    static fixture f;
    f = (fixture){.error = {.status = WICK_OK}};
    checked_heap_init(&f.checked, UINT64_MAX);
    wk_arena_init(&f.arena, &f.checked.heap, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *const f = *state;
    wk_arena_release(&f->arena);
    return checked_heap_is_clean(&f->checked) ? 0 : 1;
}

static wick_status render_with(fixture *f, const char *text, const char *data, wk_jinja_desc desc) {
    wk_jinja_template *compiled;
    wk_json *json;
    f->error = (wick_error){.status = WICK_OK};
    WK_TRY(wk_jinja_parse(&f->arena, wk_str_of(text), &compiled, &f->error));
    WK_TRY(wk_json_parse(&f->arena, data, strlen(data), &json, &f->error));
    const wk_jinja_variable variables[] = {{wk_str_of("x"), json, false},
                                           {wk_str_of("bos_token"), json, true}};
    desc.variables = variables;
    desc.n_variables = WK_COUNT(variables);
    desc.now = (wk_jinja_time){2024, 2, 29, 23, 5, 9};
    return wk_jinja_render(&f->arena, compiled, &desc, &f->result, &f->error);
}

static void renders(fixture *f, const char *text, const char *data, const char *expected) {
    const wick_status status = render_with(f, text, data, (wk_jinja_desc){.max_depth = 0});
    if (status != WICK_OK) print_message("%s: %s\n", text, f->error.message);
    assert_int_equal(status, WICK_OK);
    assert_int_equal(f->result.text.size, strlen(expected));
    assert_string_equal(f->result.text.text, expected);
}

static void fails(fixture *f, const char *text, const char *data, const char *words) {
    const wick_status status = render_with(f, text, data, (wk_jinja_desc){.max_depth = 0});
    assert_int_not_equal(status, WICK_OK);
    if (strstr(f->error.message, words) == NULL) print_message("%s\n", f->error.message);
    assert_non_null(strstr(f->error.message, words));
}

static void test_white_space(void **state) {
    fixture *const f = *state;
    renders(f, "a\n  {% if true %}\n  b\n  {%- endif +%}\n c\r\n", "0", "a\n  b\n c");
    renders(f, "  {%+ if true %}x{% endif %}\n\n", "0", "  x");
    renders(f, "a {{- 1 -}} \n b {#- no -#} c", "0", "a1bc");
    renders(f, "{% raw %}{{ x }}{% endraw %}", "0", "{{ x }}");
}

static void test_values(void **state) {
    fixture *const f = *state;
    renders(f, "{{ x|map(attribute='')|join }} {{ x|map(attribute='0')|join }}",
            "[{\"\": 7}, {\"\": 8}]", "78 ");
    renders(f, "{{ x }}", "{\"a\": [1, 1.0, null, true, \"it's\"]}",
            "{'a': [1, 1.0, None, True, \"it's\"]}");
    renders(f, "{{ x|tojson }} {{ x|tojson(indent=1) }}", "[1e16, \"\\u007f\\n\"]",
            "[1e+16, \"\x7f\\n\"] [\n 1e+16,\n \"\x7f\\n\"\n]");
    renders(f, "{{ 7 // -2 }} {{ -7 % 3 }} {{ 2 ** 3 ** 2 }} {{ 0.1 + 0.2 }}", "0",
            "-4 2 64 0.30000000000000004");
    renders(f, "{{ x[1:4] }} {{ x[::-1] }} {{ x|length }}", "\"n\\u00e9\\u6f22x\"",
            "\xC3\xA9\xE6\xBC\xA2x x\xE6\xBC\xA2\xC3\xA9n 4");
    renders(f, "{{ '%05.1f|%-3d|%s' % (2.25, 7, none) }} {{ '{:>4}{:,}'.format('a', 12345) }}", "0",
            "002.2|7  |None    a12,345");
    renders(f, "{{ strftime_now('%d %b %Y %H:%M %j') }}", "0", "29 Feb 2024 23:05 060");
}

static void test_statements(void **state) {
    fixture *const f = *state;
    renders(f,
            "{% for i in x if i is odd %}{{ loop.index }}{{ i }}{{ ',' if not loop.last }}"
            "{% endfor %}",
            "[1, 2, 3]", "11,23");
    renders(f,
            "{% macro m(a, b=a) %}{{ a }}{{ b }}{{ caller() }}{% endmacro %}"
            "{% call m(1) %}c{% endcall %}",
            "0", "11c");
    renders(f,
            "{% set n = namespace(a=0) %}{% for i in x %}{% set n.a = n.a + i %}{% endfor %}"
            "{{ n.a }}",
            "[1, 2]", "3");
    renders(f, "{% for n in x recursive %}{{ n if n is number else loop(n) }}{% endfor %}",
            "[1, [2, [3]]]", "123");
    renders(f, "{% set l = [] %}{{ l.append(1) }}{{ l.pop() }}{{ l }}", "0", "None1[]");
    /* What Python shows with an address. */
    renders(f, "{{ 'a'.upper }}{{ range }}{{ x.items }}", "{}",
            "<built-in method upper><function range><built-in method items>");
    renders(f, "{{ [joiner(), cycler(1)] }}{{ cycler(1).next }}", "0",
            "[<Joiner>, <Cycler>]<built-in method next>");
}

static void test_failures(void **state) {
    fixture *const f = *state;
    fails(f, "\n{{ y.z }}", "0", "line 2: 'y' is undefined");
    fails(f, "{{ x.a.b }}", "{}", "'dict object' has no attribute 'a'");
    fails(f, "{{ 'a' + x }}", "1", "can only concatenate str (not \"int\") to str");
    fails(f, "{{ raise_exception('no: ' + x) }}", "\"\\u00e9\"", "no: \xC3\xA9");
    assert_string_equal(f->error.message, "no: \xC3\xA9");
    fails(f, "{% if %}", "0", "unexpected 'end of statement block'");
    fails(f, "{% if x %}", "0", "Unexpected end of template");
    fails(f, "{{ x|nosuch }}", "0", "No filter named 'nosuch'");
    fails(f, "{% include 'a' %}", "0", "no loader");
    fails(f, "{{ 9223372036854775807 + 1 }}", "0", "64 bits");
    fails(f, "{{ x.__class__.a }}", "\"\"", "unsafe");
    fails(f, "{{ x._ }}{{ x._.a }}", "\"\"", "unsafe");
    fails(f, "{{ x[0:1, 2] }}", "[1, 2, 3]", "expected token ']', got ','");
    static const char *const separators[] = {"','", "',', ':', ':'", "1, ':'", "',', 1"};
    for (size_t i = 0; i < sizeof separators / sizeof *separators; i++) {
        char text[80];
        snprintf(text, sizeof text, "{{ x|tojson(separators=[%s]) }}", separators[i]);
        fails(f, text, "0", "separators must be two texts");
    }
    fails(f, "\xFF", "0", "UTF-8");
}

/* A hostile template is an error, soon. */
static void test_limits(void **state) {
    fixture *const f = *state;
    fails(f, "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "0",
          "more than");
    fails(f, "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "0", "recursion");
    fails(f, "{{ 'a' * 999999999999 }}", "0", "line 1");
    fails(f,
          "{% set n = namespace(a='x') %}{% for i in range(99) %}{% set n.a = n.a + n.a %}"
          "{% endfor %}",
          "0", "256 MiB");
    fails(f, "{% set l = [] %}{{ l.append(l) }}{{ l }}", "0", "recursion");
    fails(f, "{{ 'abc' * 6148914691236517206 }}", "0", "256 MiB"); /* 2^64 + 2 bytes */
    fails(f, "{{ 'ab'.ljust(6148914691236517209, '\xE6\xBC\xA2') }}", "0", "256 MiB");
    fails(f, "{{ range(100001) }}", "0", "Range too big");
    fails(
        f,
        "{{ ('a' * 100000) in ('a' * 99999 + 'b') * 10 }}{{ ('a' * 900000).count('a' * 9999 + 'b')"
        " }}{{ ('a' * 900000).count('a' * 99999 + 'b') }}",
        "0", "steps");
    char deep[4000];
    memset(deep, '(', sizeof deep - 1);
    memcpy(deep, "{{ ", 3);
    deep[sizeof deep - 1] = '\0';
    fails(f, deep, "0", "deep");
    const wk_jinja_desc few = {.max_steps = 4};
    assert_int_equal(render_with(f, "{{ x }}{{ x }}{{ x }}", "1", few), WICK_ERR_VALUE);
}

/* Each limit: what is needed is enough, one less is not, one more changes nothing. */
static void test_exact_limits(void **state) {
    fixture *const f = *state;
    static const char text[] = "{% for i in x %}{{ i|upper }}{% endfor %}";
    const char *const data = "[\"a\", \"b\"]";
    assert_int_equal(render_with(f, text, data, (wk_jinja_desc){.max_steps = 0}), WICK_OK);
    const uint64_t n = f->result.n_steps;
    for (uint64_t steps = n - 1; steps <= n + 1; steps++) {
        const wk_jinja_desc desc = {.max_steps = steps};
        assert_int_equal(render_with(f, text, data, desc), steps < n ? WICK_ERR_VALUE : WICK_OK);
        assert_true(steps >= n || strstr(f->error.message, "steps") != NULL);
    }
    /* The template, a sum and its operand are three levels. */
    for (uint32_t depth = 2; depth <= 4; depth++) {
        const wk_jinja_desc desc = {.max_depth = depth};
        assert_int_equal(render_with(f, "{{ 1 + 1 }}", "0", desc),
                         depth < 3 ? WICK_ERR_VALUE : WICK_OK);
    }
}

/* Reads its limit to the byte: room for a text of n bytes is not room for one of n + 1. */
static void test_memory_limit(void **state) {
    fixture *const f = *state;
    char text[64];
    enum { MOST = 1 << 20 };
    size_t low = 0, high = 2 * MOST; /* low fits, high does not */
    while (high - low > 1) {
        const size_t size = (low + high) / 2;
        snprintf(text, sizeof text, "{%% set y = 'a' * %zu %%}", size);
        const wick_status status = render_with(f, text, "0", (wk_jinja_desc){.max_bytes = MOST});
        assert_true(status == WICK_OK || strstr(f->error.message, "1 MiB") != NULL);
        *(status == WICK_OK ? &low : &high) = size;
    }
    assert_true(low > MOST - 2000 && high <= MOST);
    static const char twice[] = "{% set y = 'a' * 600000 %}{% set z = 'b' * 600000 %}";
    const uint64_t before = f->arena.bytes;
    assert_int_equal(render_with(f, twice, "0", (wk_jinja_desc){.max_bytes = MOST}),
                     WICK_ERR_VALUE);
    assert_in_range(f->arena.bytes - before, 600000, MOST + 4000); /* the template beside */
    static const char many[] = "{% set y = 'a' * 1040000 %}{% set z = range(9999)|list %}";
    assert_int_equal(render_with(f, many, "0", (wk_jinja_desc){.max_bytes = MOST}), WICK_ERR_VALUE);
}

typedef struct asking {
    size_t n_asked, last;
} asking;

static bool stops_at_last(void *context) {
    asking *const a = context;
    return ++a->n_asked >= a->last;
}

static void test_cancelled(void **state) {
    fixture *const f = *state;
    static const char endless[] = "{% for a in range(99) %}{% for b in range(99) %}"
                                  "{% endfor %}{% endfor %}";
    for (size_t last = 1; last < 5; last++) { /* for the data, at the beginning, on the way */
        const size_t least = last > 2 ? 4096 * (last - 2) : 0;
        asking a = {.last = last};
        const wk_jinja_desc desc = {.stops = stops_at_last, .stop_context = &a};
        assert_int_equal(render_with(f, endless, "0", desc), WICK_ERR_CANCELLED);
        assert_int_equal(f->error.status, WICK_ERR_CANCELLED);
        assert_non_null(strstr(f->error.message, "cancelled"));
        assert_int_equal(a.n_asked, last);
        assert_in_range(f->result.n_steps, least, least + 100);
    }
    asking never = {.last = SIZE_MAX};
    const wk_jinja_desc desc = {.stops = stops_at_last, .stop_context = &never};
    assert_int_equal(render_with(f, "{% for a in range(9999) %}{{ a }}{% endfor %}", "0", desc),
                     WICK_OK);
    assert_true(never.n_asked > 1);
}

/* A text that grows piece by piece takes memory for what it is in the end, and looking up one of
 * many names does not look at all of them. */
static void test_growth(void **state) {
    fixture *const f = *state;
    static const char grows[] = "{% set n = namespace(s='', t='') %}{% for i in range(20000) %}"
                                "{% set n.s = n.s SIGN 'some words of a message' %}"
                                "{% set n.t = n.t ~ 'and of another' %}{% endfor %}"
                                "{{ n.s|length }}";
    for (size_t i = 0; i < 2; i++) {
        char text[sizeof grows];
        memcpy(text, grows, sizeof grows);
        memcpy(strstr(text, "SIGN"), i == 0 ? "  + " : "  ~ ", 4);
        const wk_jinja_desc desc = {.max_bytes = 8 << 20};
        assert_int_equal(render_with(f, text, "0", desc), WICK_OK);
        assert_string_equal(f->result.text.text, "460000");
    }
    static char many[300000];
    size_t size = 0;
    for (int i = 0; i < 10000; i++)
        size += (size_t)snprintf(many + size, sizeof many - size, "{%% set v%d = 1 %%}", i);
    snprintf(many + size, sizeof many - size, "%s",
             "{% for i in range(10000) %}{% if v0 and v9999 and nothing %}{% endif %}{% endfor %}");
    const wk_jinja_desc desc = {.max_steps = 600000};
    assert_int_equal(render_with(f, many, "0", desc), WICK_OK);
}

/* Dicts of more keys than are searched one by one, and back to few. */
static void test_large_dicts(void **state) {
    fixture *const f = *state;
    static const char keys[] = "{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,"
                               "\"h\":7,\"i\":8,\"j\":9,\"k\":10}";
    renders(f, "{{ x.pop('c') }}{{ x.c is defined }}{{ x.d }}{{ x.k }}{{ x|length }}", keys,
            "2False31010");
    renders(
        f,
        "{% for k in 'acegi' %}{{ x.pop(k) }}{% endfor %}{{ x.b }}{{ x.k }}{{ x.get('a', '-') }}"
        "{% for k in 'acegil' %}{% set _ = x.update({k: k}) %}{% endfor %}"
        "{{ x.b }}{{ x.a }}{{ x.l }}{{ x|length }}",
        keys, "02468110-1al12");
    renders(f,
            "{{ x.clear() }}{{ x.get('a', '-') }}{% set _ = x.update({'b': 5}) %}{{ x.b }}{{ x }}"
            "{% set _ = x.update({'z': 6}) %}{{ x.z }}{{ x.get('c', '-') }}",
            keys, "None-5{'b': 5}6-");
    renders(f, "{{ x.pop('zz', 4) }}{{ x.a }}", keys, "40");
    const wk_jinja_desc few = {.max_steps = 1000000};
    assert_int_equal(render_with(f,
                                 "{% set k = 'a' * 1000000 %}{% for i in range(99) %}"
                                 "{% if k in x %}{% endif %}{% endfor %}",
                                 keys, few),
                     WICK_ERR_VALUE);
    static const char long_tuple[] = "{% macro m() %}{% for i in range(99) %}"
                                     "{% if varargs in x %}{% endif %}{% endfor %}{% endmacro %}"
                                     "{{ m(*range(90000)) }}";
    assert_int_equal(render_with(f, long_tuple, keys, few), WICK_ERR_VALUE);
    assert_non_null(strstr(f->error.message, "steps"));
    static const char tuples[] = "{% set d = namespace(d={}) %}{% for i in range(5000) %}"
                                 "{% set _ = d.d.update({(i, 1): i}) %}{% endfor %}";
    assert_int_equal(render_with(f, tuples, "0", few), WICK_OK);
    static const char emptied[] = "{% set d = {} %}{% for i in range(2000) %}"
                                  "{% set _ = d.update({i: i}) %}{% endfor %}"
                                  "{% for i in range(2000) %}{% set _ = d.pop(i) %}{% endfor %}"
                                  "{{ d }}{{ d.update({1: 2}) }}{{ d }}";
    const wk_jinja_desc small = {.max_bytes = 4 << 20};
    assert_int_equal(render_with(f, emptied, "0", small), WICK_OK);
    assert_string_equal(f->result.text.text, "{}None{1: 2}");
}

/* Steps of a dict of n keys, of which the hashes end alike or do not. */
static uint64_t steps_of_keys(fixture *f, size_t n, bool alike) {
    static char list[65536];
    size_t size = 1, n_found = 0;
    list[0] = '[';
    for (unsigned i = 0; n_found < n; i++) {
        char key[16];
        const int length = snprintf(key, sizeof key, "%x", i);
        if (alike && (wk_hash(key, (size_t)length) >> 32 & 0xFFF) != 0) continue;
        size += (size_t)snprintf(list + size, sizeof list - size, "%s\"%s\"",
                                 n_found++ > 0 ? "," : "", key);
    }
    snprintf(list + size, sizeof list - size, "]");
    assert_int_equal(render_with(f,
                                 "{% set n = namespace(d={}) %}{% for k in x %}"
                                 "{% set _ = n.d.update({k: 1}) %}{% endfor %}",
                                 list, (wk_jinja_desc){.max_steps = 0}),
                     WICK_OK);
    return f->result.n_steps;
}

/* Keys that were chosen to collide cost what is looked at: half of n * n slots for finding that
 * each is new, and as many for putting it in. */
static void test_colliding_keys(void **state) {
    enum { N = 1000 };
    const uint64_t plain = steps_of_keys(*state, N, false), alike = steps_of_keys(*state, N, true);
    assert_true(plain < 40 * N);
    assert_true(alike - plain > (uint64_t)N * N / 2 * 2 / 4 * 8 / 10);
}

/* What a macro was defined in stays there for it; a loop that ended may be called again. */
static void test_kept_scopes(void **state) {
    fixture *const f = *state;
    renders(f,
            "{% set n = namespace(f=none) %}{% for i in x %}{% macro m() %}{{ i }}{% endmacro %}"
            "{% if i == 2 %}{% set n.f = m %}{% endif %}{% endfor %}"
            "{% for i in x %}{% set z = 7 %}{% endfor %}{{ n.f() }}",
            "[1, 2, 3]", "2");
    renders(f,
            "{% set n = namespace(f=none) %}{% for i in x %}{% with w = i %}"
            "{% macro m() %}{{ i }}{{ w }}{% endmacro %}{% if i == 2 %}{% set n.f = m %}{% endif %}"
            "{% endwith %}{% endfor %}{% for i in x %}{% with q = 1 %}{% set z = 7 %}"
            "{% set y = 7 %}{% endwith %}{% endfor %}{{ n.f() }}",
            "[1, 2, 3]", "22");
    renders(f,
            "{% set n = namespace(l=none) %}{% for k in [2] %}{% set t = k %}"
            "{% for i in x if i < t %}{% set n.l = loop %}{% break %}{% endfor %}{% endfor %}"
            "{% for k in [6, 7] %}{% set w = 'w' %}{% endfor %}{{ n.l.length }}",
            "[0, 1, 2, 3]", "2");
    renders(f,
            "{% set n = namespace(l=none) %}{% for k in [5] %}{% set u = 'u' %}"
            "{% for i in x recursive %}{{ i }}{{ u }}{% set n.l = loop %}{% endfor %}{% endfor %}"
            "{% for k in [6, 7] %}{% set w = 'w' %}{% endfor %}{{ n.l(['a', 'b']) }}",
            "[1]", "1uaubu");
}

static void test_out_of_memory(void **state) {
    fixture *const f = *state;
    static const char text[] = "{% for a in x %}{{ a|upper|tojson }}{% endfor %}";
    for (uint64_t n = 0; n < 6; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wk_arena arena;
        wk_arena_init(&arena, &checked.heap, 1024);
        wk_jinja_template *compiled;
        wick_error error = {.status = WICK_OK};
        wk_json list = {.kind = WK_JSON_ARRAY};
        const wk_jinja_variable variable = {wk_str_of("x"), &list, false};
        const wk_jinja_desc desc = {.variables = &variable, .n_variables = 1};
        wick_status status = wk_jinja_parse(&arena, wk_str_of(text), &compiled, &error);
        if (status == WICK_OK)
            status = wk_jinja_render(&arena, compiled, &desc, &f->result, &error);
        assert_true(status == WICK_OK || status == WICK_ERR_OUT_OF_MEMORY);
        wk_arena_release(&arena);
        assert_true(checked_heap_is_clean(&checked));
    }
}

/* T and D for bytes of the template and of the data. */
static void comes_from(fixture *f, const char *text, const char *data, const char *expected) {
    char marks[128] = "";
    assert_int_equal(render_with(f, text, data, (wk_jinja_desc){.max_depth = 0}), WICK_OK);
    assert_true(f->result.text.size < sizeof marks);
    for (size_t i = 0; i < f->result.text.size; i++)
        marks[i] = f->result.origin != NULL && f->result.origin[i] ? 'D' : 'T';
    assert_string_equal(marks, expected);
}

static void test_origin(void **state) {
    fixture *const f = *state;
    comes_from(f, "<s>{{ x }}", "\"ab\"", "TTTDD");
    comes_from(f, "{{ bos_token + x }}", "\"ab\"", "TTDD");
    comes_from(f, "{{ '<' ~ x|upper|trim ~ '>' }}", "\" ab \"", "TDDT");
    comes_from(f, "{{ x|replace('b', 'cc') }}", "\"abd\"", "DTTD");
    comes_from(f, "{{ x|tojson }}", "[\"a\\n\"]", "TTDDDTT");
    comes_from(f, "{{ '%s|' % x }}{{ '{}'.format(x) }}", "\"a\"", "DTD");
    comes_from(f, "{{ x.split(',')|join('--') }}{{ x[1:] }}", "\"a,b\"", "DTTDDD");
    comes_from(f, "{% set y %}{{ x }}!{% endset %}{{ y }}", "\"a\"", "DT");
    comes_from(f, "{{ ('<' ~ x ~ '>')[1:] }}{{ ('<' ~ x)[:2] }}", "\"ab\"", "DDTTD");
}

static const char chatml[] = "{% for m in messages %}{{ '<tool>' + m.content }}{% endfor %}"
                             "{% if add_generation_prompt %}<tool>{% endif %}";

static wick_prompt *render_chat(const char *messages) {
    wick_template *compiled = NULL;
    wick_json_document *json = NULL;
    wick_prompt *prompt = NULL;
    assert_int_equal(wick_template_parse(chatml, strlen(chatml), &compiled, NULL), WICK_OK);
    assert_int_equal(wick_json_parse(messages, strlen(messages), &json, NULL), WICK_OK);
    const wick_conversation conversation = {.messages = wick_json_root(json),
                                            .generation_prompt = WICK_GENERATION_PROMPT_ON};
    assert_int_equal(wick_template_render(compiled, &conversation, &prompt, NULL), WICK_OK);
    wick_json_free(json);
    wick_template_free(compiled);
    return prompt;
}

static void test_public(void **state) {
    (void)state;
    size_t size;
    wick_prompt *const prompt = render_chat("[{\"content\": \"a<tool>\", \"b\": null}]");
    assert_string_equal(wick_prompt_text(prompt, &size), "<tool>a<tool><tool>");
    assert_int_equal(size, 19);
    wick_prompt_free(prompt);

    wick_error error = {.status = WICK_OK};
    wick_template *compiled = NULL;
    assert_int_equal(wick_template_parse("{{", 2, &compiled, &error), WICK_ERR_FORMAT);
    assert_null(compiled);
    assert_int_equal(wick_template_parse("{{", 2, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_template_render(NULL, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_null(wick_prompt_text(NULL, &size));
    wick_prompt_free(NULL);
    wick_template_free(NULL);
}

static void test_json(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [true, \"x\"], \"b\": null}";
    wick_json_document *json = NULL;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_json_parse(text, strlen(text), &json, &error), WICK_OK);
    const wick_json *const list = wick_json_get(wick_json_root(json), "a");
    assert_int_equal(wick_json_kind_of(list), WICK_JSON_ARRAY);
    const wick_json *const first = wick_json_first(list);
    assert_true(wick_json_is_true(first));
    size_t size;
    assert_string_equal(wick_json_text(wick_json_next(first), &size), "x");
    assert_string_equal(wick_json_key(list, &size), "a");
    assert_null(wick_json_text(first, &size));
    assert_null(wick_json_next(wick_json_next(first)));
    wick_json_free(json);
    assert_int_equal(wick_json_parse("{", 1, &json, &error), WICK_ERR_FORMAT);
    assert_null(json);
    assert_int_equal(wick_json_parse(NULL, 1, &json, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_json_kind_of(NULL), WICK_JSON_NULL);
    assert_null(wick_json_get(NULL, "a"));
}

/* A user's text never becomes a special token. */
static void test_special_tokens(void **state) {
    fixture *const f = *state;
    small_vocab vocab;
    wick_tokenizer *tokenizer = NULL;
    small_vocab_bpe(&vocab, "gpt-2");
    const uint32_t special = small_vocab_add(&vocab, "<|x|>", WK_TOKEN_CONTROL, 0);
    assert_int_equal(wk_tokenizer_make(&f->checked.heap, &vocab.desc, &tokenizer, &f->error),
                     WICK_OK);
    uint32_t ids[32];
    size_t n = 0, n_special = 0;
    const uint8_t origin[10] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    const wk_str text = wk_str_of("<|x|><|x|>");
    assert_int_equal(wk_tokenize_marked(tokenizer, text, origin, ids, WK_COUNT(ids), &n), WICK_OK);
    assert_true(n > 1 && n < WK_COUNT(ids));
    for (size_t i = 0; i < n; i++) n_special += ids[i] == special;
    assert_int_equal(n_special, 1);
    size_t again = 0;
    assert_int_equal(wk_tokenize_marked(tokenizer, text, origin, NULL, 0, &again), WICK_OK);
    assert_int_equal(again, n);
    assert_int_equal(wk_tokenize_marked(tokenizer, text, NULL, ids, WK_COUNT(ids), &n), WICK_OK);
    assert_int_equal(n, 2);
    wk_tokenizer_free(&f->checked.heap, tokenizer);
}

/* Templates of 1, 4, ... 127 tokens: 64 fill the list of tokens to its last place. */
static void test_every_length(void **state) {
    fixture *const f = *state;
    char text[256] = "", expected[64] = "";
    for (size_t n = 0; n < 43; n++) { /* 3 tokens each */
        renders(f, text, "0", expected);
        strcat(text, "{{0}}");
        strcat(expected, "0");
    }
}

/* Corners, as Python and Jinja have them. */
static void test_corners(void **state) {
    fixture *const f = *state;
    renders(f, "{{ '\\uD83D\\uDE00' }}", "0", "\U0001F600");
    fails(f, "{{ '\\uD83D\\nDE00' }}", "0", "bad escape");
    renders(f, "{{ '%.3d|%#06x|%a' % (7, 255, 'é') }}", "0", "007|0x00ff|'\\xe9'");
    renders(f, "{{ '{:<05}|{:=+5}|{:#06x}'.format('ab', 7, 10) }}", "0", "ab000|+   7|0x000a");
    renders(f, "{{ range(3, 3, -2)|list }} {{ range(3, 2, -1)|list }} {{ range(2, 3, -1)|list }}",
            "0", "[] [3] []");
    renders(f, "{{ 1 // 0.1 }} {{ 0.0 % -3 }} {{ -7.5 // 2 }}", "0", "9.0 -0.0 -4.0");
    renders(f, "{{ [none, none]|sort }} {{ [3, 1, 2]|slice(3, 'x')|list }}", "0",
            "[None, None] [[3, 'x'], [1, 'x'], [2, 'x']]");
    renders(f, "{{ {'a': '<', 'b': none, 'c': 1}|xmlattr }}", "0", " a=\"&lt;\" c=\"1\"");
    renders(f, "{{ 'ab cdefgh  i\n  long'|wordwrap(4) }}", "0", "ab c\ndefg\nh  i\nlong");
    renders(f, "{{ 'a<b>b</b>  <!-- > --> c<'|striptags }}", "0", "ab c<");
    renders(f, "{{ 'a\n\nb\n'|indent(2, blank=true) }}|", "0", "a\n  \n  b\n  |");
    renders(f, "{{ 'ßa b'|title }} {{ 'aBǅ'.swapcase() }}", "0", "SSa B Abǅ");
    renders(f, "{{ 1e30|filesizeformat }} {{ -1e30|filesizeformat }}", "0",
            "1000000.0 YB -1000000000000000019884624838656 Bytes");
    renders(f, "{{ ('0' * 718 ~ '5')|int }}{{ ('0' * 719 ~ '5')|int }}", "0", "50");
    fails(f, "{{ '\\N{GREEK SMALL LETTER PH}' }}", "0", "line 1: no character is known");
    fails(f, "{{ '\\N{GREEK SMALL LETTER ALPHA BETA}' }}", "0", "no character is known");
    fails(f, "{{ '\\N{TAB\nA LINE FEED}' }}", "0", "no character is known");
    fails(f, "{{ 'http://x'|urlize }}", "0", "urlize");
    fails(f, "{{ '{:.2}'.format(3) }}", "0", "Precision");
    fails(f, "{{ '%c' % 'ab' }}", "0", "requires int or char");
    fails(f, "{{ {'a b': 1}|xmlattr }}", "0", "attribute name");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_white_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_statements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_corners, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exact_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancelled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_growth, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_large_dicts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_colliding_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kept_scopes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_out_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_origin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_public, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_special_tokens, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
