/* wick/convert.h: other forms of a model file. Native only. */
#ifndef WICK_CONVERT_H
#define WICK_CONVERT_H

#include <wick/file.h>
#include <wick/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Quantizing: a GGUF file with smaller types ---- */

/* The mixes of types that a file can be quantized to, by the names people know: "Q4_K_M". NULL when
 * index is out of range. Static storage. */
WICK_API const char *wick_quantize_type(size_t index);

/* An adapter (wick/lora.h: GGUF or PEFT's) that becomes part of the weights: W + scale alpha / rank
 * B A. */
typedef struct wick_merge {
    const char *path;
    float scale; /* 1: as it was trained */
} wick_merge;

typedef struct wick_quantize_desc {
    const char *type;    /* one of wick_quantize_type, in upper or lower case */
    const char *imatrix; /* a file by wick_imatrix_start; NULL: all channels matter the same */
    const wick_merge *adapters; /* [n_adapters], borrowed until start returns */
    size_t n_adapters;
    uint32_t n_threads; /* 0: one for each processor */
    bool replace;       /* an existing file is replaced; else it is WICK_ERR_STATE */
} wick_quantize_desc;

/* What becomes of a tensor. */
typedef struct wick_quantize_tensor {
    const wick_file_tensor *tensor; /* as it was */
    wick_dtype dtype;               /* as it will be: vectors and small matrices stay as they are */
    bool is_fallback; /* its rows do not divide into blocks of the type that it should have */
    bool has_importance;
    bool is_merged; /* an adapter changes it: it is encoded again even where its type stays */
    uint64_t size;  /* bytes it will have */
} wick_quantize_tensor;

typedef struct wick_quantizing wick_quantizing;

/* Reads the header of the file in, or of the file in parts that it belongs to, decides the type of
 * every tensor, and begins to write out under a temporary name beside it. Metadata is carried over.
 * WICK_ERR_VALUE: the type is not known, WICK_ERR_ARGUMENT: out is in, a part of it or the imatrix,
 * WICK_ERR_FORMAT: the importance matrix does not fit the model; WICK_ERR_UNSUPPORTED: a tensor
 * that an adapter changes keeps a type that cannot be encoded; else like wick_lora_open,
 * wick_file_open and wick_file_write_start. */
WICK_API wick_status wick_quantize_start(const char *in, const char *out,
                                         const wick_quantize_desc *desc,
                                         wick_quantizing **quantizing, wick_error *error);
/* [*n], all tensors in file order; valid until finish. */
WICK_API const wick_quantize_tensor *wick_quantize_plan(const wick_quantizing *quantizing,
                                                        size_t *n);
/* A slice of the work: WICK_PENDING until all is done. progress may be NULL; it counts bytes of the
 * tensors of in. Memory stays the same however large the model is. WICK_ERR_VALUE names the tensor
 * and the element that is not finite, or too large for its type. */
WICK_API wick_status wick_quantize_poll(wick_quantizing *quantizing, wick_progress *progress,
                                        wick_error *error);
/* commit false throws the new file away; true before poll has returned WICK_OK is WICK_ERR_STATE,
 * and throws it away, too. Frees quantizing in any case. */
WICK_API wick_status wick_quantize_finish(wick_quantizing *quantizing, bool commit,
                                          wick_error *error);

/* ---- Importance matrices: what quantizing should keep ---- */

typedef struct wick_imatrix_desc {
    const char *path;      /* the GGUF file to write, as llama.cpp's llama-imatrix does */
    const char *dataset;   /* a name for the text, noted in the file; NULL: none */
    uint32_t chunk_length; /* tokens, a power of two; 0: 512, or the model's context */
    bool replace;          /* an existing file is replaced; else it is WICK_ERR_STATE */
} wick_imatrix_desc;

typedef struct wick_imatrix wick_imatrix;

/* Reads ids (copied) in chunks of chunk_length tokens, each from an empty context and, where ids
 * begin with the model's begin token, with it in place of its first one; what is left at the end is
 * not read. Meanwhile the squares of what goes into every matrix of the layers are summed up,
 * channel by channel. The model must be on the CPU, which nothing else may use until finish
 * (WICK_ERR_UNSUPPORTED: it is not; WICK_ERR_VALUE: chunk_length, or there is not one chunk;
 * WICK_ERR_STATE, WICK_ERR_NOT_FOUND, WICK_ERR_IO: path could not be written at the end). */
WICK_API wick_status wick_imatrix_start(wick_model *model, const uint32_t *ids, size_t n,
                                        const wick_imatrix_desc *desc, wick_imatrix **imatrix,
                                        wick_error *error);
/* A slice of the work: WICK_PENDING until all is read. progress, in tokens, may be NULL. */
WICK_API wick_status wick_imatrix_poll(wick_imatrix *imatrix, wick_progress *progress,
                                       wick_error *error);
/* Writes the file if commit, also of the chunks so far; WICK_ERR_STATE: not one has been read.
 * Frees imatrix in any case. */
WICK_API wick_status wick_imatrix_finish(wick_imatrix *imatrix, bool commit, wick_error *error);

/* ---- Converting: a folder as Hugging Face has them to a GGUF file ---- */

typedef struct wick_convert_desc {
    const char *type; /* of matrices: "F32", "F16", "BF16"; NULL: as they are stored */
    bool replace;     /* an existing file is replaced; else it is WICK_ERR_STATE */
} wick_convert_desc;

typedef struct wick_converting wick_converting;

/* Reads config.json, tokenizer.model or tokenizer.json, and the headers of model.safetensors, or of
 * the files that model.safetensors.index.json names, all in folder, and begins to write out under a
 * temporary name beside it, once it is sure that what comes of them is a model that opens.
 * WICK_ERR_UNSUPPORTED: the model's type, its tokenizer or something in its config is not known, by
 * name; WICK_ERR_FORMAT, WICK_ERR_NOT_FOUND: a file or a tensor is damaged or missing;
 * WICK_ERR_ARGUMENT: out is a file that is read; else like wick_file_write_start. desc may be
 * NULL. */
WICK_API wick_status wick_convert_start(const char *folder, const char *out,
                                        const wick_convert_desc *desc, wick_converting **converting,
                                        wick_error *error);
/* The file that would come of folder, without writing it: its metadata and the types, shapes and
 * places of its tensors; reading bytes of it is WICK_ERR_UNSUPPORTED. Refused is what
 * wick_convert_start refuses. */
WICK_API wick_status wick_convert_preview(const char *folder, const wick_convert_desc *desc,
                                          wick_file **file, wick_error *error);
/* One tensor: WICK_PENDING until all are done. progress, in bytes, may be NULL. */
WICK_API wick_status wick_convert_poll(wick_converting *converting, wick_progress *progress,
                                       wick_error *error);
/* As wick_quantize_finish. */
WICK_API wick_status wick_convert_finish(wick_converting *converting, bool commit,
                                         wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
