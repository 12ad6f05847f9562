/* format/gguf_state.h: what the files of the GGUF parser share; private to them.
 *
 * The parser is a state machine over tokens. A token is a run of bytes that is looked at as a
 * whole: a count, a string, the elements of an array. Each state is a function that gets its token,
 * checks it and names the next one (wk_gguf_expect). A token that lies within one chunk is read in
 * place, one that is split is collected in `partial`. So chunks of any size work alike, and nothing
 * is read twice. */
#ifndef WK_FORMAT_GGUF_STATE_H
#define WK_FORMAT_GGUF_STATE_H

#include "core/arena.h"
#include "core/load.h"
#include "core/status.h"
#include "core/str.h"
#include "format/gguf.h"

/* Limits: of the specification, except that names may have 255 bytes instead of 64, as some writers
 * exceed that, and that the header is bounded, to keep a lying stream from growing without end. */
enum {
    WK_GGUF_MAX_KEY = 65535,
    WK_GGUF_MAX_NAME = 255,
    WK_GGUF_MAX_RANK = 4,
    WK_GGUF_MAX_HEADER = 1 << 30, /* bytes up to the end of the last tensor's description */
};

typedef struct wk_gguf_parser wk_gguf_parser;

/* Handles the token that was expected. */
typedef wick_status (*wk_gguf_state)(wk_gguf_parser *parser, const uint8_t *token);

/* Items added one by one, never more than were announced. */
typedef struct wk_gguf_list {
    void *items;
    size_t count, capacity;
} wk_gguf_list;

struct wk_gguf_parser {
    wk_heap *heap;
    wk_arena arena; /* texts and arrays of scalars */
    char *text;     /* the free end of the newest text block */
    size_t text_left, text_block;

    uint64_t file_size; /* or WICK_SIZE_UNKNOWN */
    uint64_t limit;     /* bytes that the header can have at most: the file or WK_GGUF_MAX_HEADER */
    uint64_t at, end;   /* place of the current token in the file */

    wk_gguf_state state;    /* gets the next token; NULL: the header is complete */
    bool is_entry_complete; /* the machine is to look what comes next */
    size_t need;            /* its bytes */
    const char *what;       /* its name */
    wk_strbuf partial;      /* its beginning, from earlier chunks */

    unsigned width; /* bytes of a count or length: 4 in version 1, 8 since */
    uint64_t n_values, n_tensors, n_strings; /* announced */
    wk_gguf_list values, tensors, strings;   /* strings: of the array that is being read */
    wick_value value;                        /* being read */
    wick_file_tensor tensor;                 /* being read */

    wk_gguf gguf;
    wick_error error; /* the first failure, repeated by every later call */
};

/* Fails with "byte <at>: " and the reason; returns status. */
wick_status wk_gguf_refuse(wk_gguf_parser *parser, wick_status status, uint64_t at,
                           const char *format, ...) WK_PRINTF(4, 5);
wick_status wk_gguf_no_memory(wk_gguf_parser *parser, uint64_t size);

/* A name from the file as it can stand in a sentence. */
wk_shown wk_gguf_show(wick_string name);

/* The next token: need bytes for state; what names it ("a key"). WICK_ERR_FORMAT when the file is
 * too short for it. */
wick_status wk_gguf_expect(wk_gguf_parser *parser, wk_gguf_state state, size_t need,
                           const char *what);
/* The same for a text whose length is the current token, at most max bytes. */
wick_status wk_gguf_expect_text(wk_gguf_parser *parser, wk_gguf_state state, const uint8_t *token,
                                uint64_t max, const char *what);
/* WICK_ERR_FORMAT unless count units of at least least bytes each fit into what is left. at: where
 * the count is. */
wick_status wk_gguf_check_count(wk_gguf_parser *parser, uint64_t at, uint64_t count, size_t least,
                                const char *units);

/* Copies the current token, a text, with a terminating zero byte. */
wick_status wk_gguf_add_text(wk_gguf_parser *parser, const uint8_t *token, wick_string *out);
/* Room for one more item; NULL when memory is short, which the parser's error then tells. */
void *wk_gguf_list_add(wk_gguf_parser *parser, wk_gguf_list *list, uint64_t announced,
                       size_t item_size);
/* Adds a key or name to its index, with the number of its item. */
wick_status wk_gguf_index(wk_gguf_parser *parser, wk_map *index, wick_string name, size_t number);

/* The states that begin an entry: gguf_value.c, gguf_tensor.c. The last state of an entry sets
 * is_entry_complete. */
wick_status wk_gguf_read_key_length(wk_gguf_parser *parser, const uint8_t *token);
wick_status wk_gguf_read_name_length(wk_gguf_parser *parser, const uint8_t *token);
/* After the last tensor: places the data section, makes offsets absolute, checks where data lies.
 */
wick_status wk_gguf_place_tensors(wk_gguf_parser *parser);
/* Frees the strings of array values. */
void wk_gguf_free_strings(wk_gguf_parser *parser);

/* A count, length or extent: its width depends on the version. */
static inline uint64_t wk_gguf_count(const wk_gguf_parser *parser, const uint8_t *bytes) {
    return parser->width == 4 ? wk_load_u32(bytes) : wk_load_u64(bytes);
}

#endif
