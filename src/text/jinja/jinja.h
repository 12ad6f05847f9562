/* text/jinja/jinja.h: templates in the language of Jinja 2, as models carry them for chats.
 *
 * The environment is that of transformers: a sandbox with trim_blocks and lstrip_blocks, break and
 * continue, the generation block, raise_exception, strftime_now, and tojson as json.dumps. There is
 * no loader: include, import and extends are failures when they are reached. */
#ifndef WK_TEXT_JINJA_JINJA_H
#define WK_TEXT_JINJA_JINJA_H

#include "core/arena.h"
#include "core/json.h"
#include "core/status.h"
#include "core/str.h"

typedef struct wk_jinja_template wk_jinja_template;

/* A calendar time, as strftime_now shows it. */
typedef struct wk_jinja_time {
    int year, month, day, hour, minute, second; /* month and day from 1 */
} wk_jinja_time;

/* A variable of the template. Names may repeat: the last one counts. */
typedef struct wk_jinja_variable {
    wk_str name;
    const wk_json *value;
    bool is_trusted; /* its texts count as the template's own: bos_token */
} wk_jinja_variable;

typedef struct wk_jinja_desc {
    const wk_jinja_variable *variables;
    size_t n_variables;
    wk_jinja_time now;
    /* Most steps (an operation, or 16 bytes looked at); most levels of nested evaluation; most
     * bytes of values and text together. 0: the defaults, which no honest template comes near. */
    uint64_t max_steps;
    uint32_t max_depth;
    uint64_t max_bytes;
    /* Asked every few thousand steps; true: the rendering ends with WICK_ERR_CANCELLED. */
    bool (*stops)(void *stop_context);
    void *stop_context;
} wk_jinja_desc;

typedef struct wk_jinja_result {
    wk_str text;
    const uint8_t *origin; /* [text.size] 1: the byte came from the data; NULL: none did */
    uint64_t n_steps;      /* also of a rendering that failed */
} wk_jinja_result;

/* The text is copied. WICK_ERR_FORMAT with the line: no template. The template lives in the arena.
 */
wick_status wk_jinja_parse(wk_arena *arena, wk_str text, wk_jinja_template **out, wick_error *err);
/* The result and all it is made of lie in the arena. WICK_ERR_VALUE: the template failed or reached
 * a limit; the sentence names the line, unless it is what the template gave raise_exception. */
wick_status wk_jinja_render(wk_arena *arena, const wk_jinja_template *compiled,
                            const wk_jinja_desc *desc, wk_jinja_result *result, wick_error *err);

#endif
