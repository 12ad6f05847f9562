/* convert/hf_pieces.c: see hf_pieces.h.
 *
 * The file is a protocol buffer, ModelProto of sentencepiece_model.proto in google/sentencepiece:
 * field 1, again and again, is a piece (1 text, 2 score, 3 type), field 2 the trainer's settings (3
 * model type: 1 unigram, 2 BPE; 24 treat_whitespace_as_suffix), field 3 the normalizer's (2
 * precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces). */
#include "convert/hf_pieces.h"

#include <inttypes.h>
#include <string.h>

enum { TYPE_NORMAL = 1, MODEL_UNIGRAM = 1, MOST_PIECES = 1 << 24 };

/* How a field is written. */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct field {
    uint64_t number;
    uint64_t value; /* of a varint or fixed field */
    wk_str bytes;
    int wire;
} field;

static bool read_varint(reader *r, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool read_bytes(reader *r, uint64_t size, wk_str *out) {
    if (size > (uint64_t)(r->end - r->at)) return false;
    *out = (wk_str){(const char *)r->at, (size_t)size};
    r->at += size;
    return true;
}

/* False: the remaining bytes do not begin with a field. */
static bool read_field(reader *r, field *out) {
    uint64_t key = 0, size = 0;
    if (!read_varint(r, &key)) return false;
    *out = (field){.number = key >> 3, .wire = (int)(key & 7)};
    switch (out->wire) {
    case WIRE_VARINT: return read_varint(r, &out->value);
    case WIRE_BYTES: return read_varint(r, &size) && read_bytes(r, size, &out->bytes);
    case WIRE_64: size = 8; break;
    case WIRE_32: size = 4; break;
    default: return false;
    }
    if (!read_bytes(r, size, &out->bytes)) return false;
    memcpy(&out->value, out->bytes.text, (size_t)size);
    return true;
}

static reader reader_of(wk_str bytes) {
    const uint8_t *const begin = (const uint8_t *)bytes.text;
    return (reader){begin, begin + bytes.size};
}

static bool parse_piece(wk_str bytes, wk_hf_piece *piece) {
    *piece = (wk_hf_piece){.type = TYPE_NORMAL};
    reader r = reader_of(bytes);
    while (r.at < r.end) {
        field f;
        if (!read_field(&r, &f)) return false;
        if (f.number == 1 && f.wire == WIRE_BYTES) piece->text = f.bytes;
        if (f.number == 2 && f.wire == WIRE_32) memcpy(&piece->score, f.bytes.text, 4);
        if (f.number == 3 && f.wire == WIRE_VARINT) piece->type = (int32_t)(f.value & 127);
    }
    return true;
}

/* The number of a field of settings; otherwise where it is not there. */
static bool parse_setting(wk_str bytes, uint64_t number, uint64_t *out) {
    reader r = reader_of(bytes);
    while (r.at < r.end) {
        field f;
        if (!read_field(&r, &f)) return false;
        if (f.number == number && f.wire == WIRE_VARINT) *out = f.value;
    }
    return true;
}

static bool parse_normalizer(wk_str bytes, wk_hf_pieces *out) {
    reader r = reader_of(bytes);
    while (r.at < r.end) {
        field f;
        if (!read_field(&r, &f)) return false;
        if (f.number == 2 && f.wire == WIRE_BYTES) out->charsmap = f.bytes;
        if (f.number == 3 && f.wire == WIRE_VARINT) out->has_dummy_prefix = f.value != 0;
        if (f.number == 4 && f.wire == WIRE_VARINT) out->removes_extra_spaces = f.value != 0;
    }
    return true;
}

static bool parse_field(const field *f, wk_hf_pieces *out) {
    if (f->wire != WIRE_BYTES) return true;
    uint64_t model = MODEL_UNIGRAM, suffix = 0;
    switch (f->number) {
    case 1: out->n++; return out->items == NULL || parse_piece(f->bytes, &out->items[out->n - 1]);
    case 2:
        if (!parse_setting(f->bytes, 3, &model) || !parse_setting(f->bytes, 24, &suffix))
            return false;
        out->is_unigram = model == MODEL_UNIGRAM;
        out->treats_as_suffix = suffix != 0;
        return true;
    case 3: return parse_normalizer(f->bytes, out);
    default: return true;
    }
}

/* The first pass counts the pieces, the second one stores them. */
wick_status wk_hf_pieces_parse(wk_str bytes, wk_arena *arena, wk_hf_pieces *out, wick_error *err) {
    *out =
        (wk_hf_pieces){.is_unigram = true, .has_dummy_prefix = true, .removes_extra_spaces = true};
    for (int pass = 0; pass < 2; pass++) {
        out->n = 0;
        reader r = reader_of(bytes);
        while (r.at < r.end) {
            const uint64_t at = (uint64_t)(r.at - (const uint8_t *)bytes.text);
            field f;
            if (!read_field(&r, &f) || !parse_field(&f, out) || out->n > MOST_PIECES)
                return wk_fail(err, WICK_ERR_FORMAT,
                               "tokenizer.model, byte %" PRIu64 ": no field of SentencePiece", at);
        }
        if (pass == 1) break;
        if (out->n == 0) return wk_fail(err, WICK_ERR_FORMAT, "tokenizer.model has no pieces");
        out->items = wk_arena_array(arena, out->n, sizeof *out->items);
        if (out->items == NULL) return wk_fail_memory(err, 0, "a vocabulary");
    }
    return WICK_OK;
}
