/* wick/file.h: what is inside a model file, without loading it; and writing such files. */
#ifndef WICK_FILE_H
#define WICK_FILE_H

#include <wick/source.h>
#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_file wick_file;

/* GGUF value types, numbers as in the file. */
typedef enum wick_value_type {
    WICK_VALUE_U8,
    WICK_VALUE_I8,
    WICK_VALUE_U16,
    WICK_VALUE_I16,
    WICK_VALUE_U32,
    WICK_VALUE_I32,
    WICK_VALUE_F32,
    WICK_VALUE_BOOL,
    WICK_VALUE_STRING,
    WICK_VALUE_ARRAY,
    WICK_VALUE_U64,
    WICK_VALUE_I64,
    WICK_VALUE_F64,
} wick_value_type;

/* count elements of one type, wick_string for strings. There are no arrays of arrays: files that
 * have some are refused. */
typedef struct wick_value_array {
    wick_value_type element_type;
    uint64_t count;
    const void *values;
} wick_value_array;

/* One metadata entry. Its texts are terminated, but may hold zero bytes. */
typedef struct wick_value {
    wick_string key;
    wick_value_type type;
    union {
        uint64_t u; /* every unsigned type and bool */
        int64_t i;  /* every signed type */
        double f;
        wick_string string;
        wick_value_array array;
    };
} wick_value;

typedef struct wick_file_tensor {
    wick_string name;
    wick_dtype dtype;
    wick_shape shape; /* row-major: the file's dimensions reversed */
    uint64_t offset;  /* of the data, from the beginning of the file */
    uint64_t size;    /* bytes */
} wick_file_tensor;

/* Reads and checks the header of a GGUF file; the tensors' data is not read. Blocks, like all that
 * follows here; native only. The path of one part of a split file stands for all of them
 * (wick_source_files): offsets, size and header are then those of the whole. What the functions
 * below return lives until wick_file_close; given NULL, they return 0 or NULL. WICK_ERR_NOT_FOUND,
 * WICK_ERR_IO, WICK_ERR_FORMAT (with the byte offset and the reason), WICK_ERR_UNSUPPORTED (a
 * version, byte order or type that is not known). */
WICK_API wick_status wick_file_open(const char *path, wick_file **file, wick_error *error);
/* The same in steps, from any source, of which the header alone is read; the source is taken over,
 * also on failure. poll returns WICK_PENDING until finish may be called; finish frees opening in
 * any case; calling it early gives up (WICK_ERR_CANCELLED). */
typedef struct wick_file_opening wick_file_opening;
WICK_API wick_status wick_file_open_start(wick_source source, wick_file_opening **opening,
                                          wick_error *error);
WICK_API wick_status wick_file_open_poll(wick_file_opening *opening);
WICK_API wick_status wick_file_open_finish(wick_file_opening *opening, wick_file **file,
                                           wick_error *error);
WICK_API void wick_file_close(wick_file *file);

WICK_API uint32_t wick_file_version(const wick_file *file);
WICK_API uint64_t wick_file_size(const wick_file *file);
WICK_API size_t wick_file_value_count(const wick_file *file);
/* In file order, and contiguous in memory: value i + 1 follows value i. NULL where index is out of
 * range or no value has the key. */
WICK_API const wick_value *wick_file_value(const wick_file *file, size_t index);
WICK_API const wick_value *wick_file_find_value(const wick_file *file, const char *key);
WICK_API size_t wick_file_tensor_count(const wick_file *file);
/* The same for tensors. */
WICK_API const wick_file_tensor *wick_file_get_tensor(const wick_file *file, size_t index);
/* Reads size bytes at offset: wick_file_tensor says where each tensor lies. WICK_ERR_IO: the file
 * ends before. WICK_ERR_UNSUPPORTED: it was opened from a source that does not answer at once; what
 * that still writes to data ends with wick_file_close. */
WICK_API wick_status wick_file_read(wick_file *file, uint64_t offset, void *data, size_t size,
                                    wick_error *error);

/* What a new GGUF file will hold. Borrowed until wick_file_write_start returns. */
typedef struct wick_file_desc {
    const wick_value *values; /* split.* keys are left out: the writer knows them */
    size_t n_values;
    const wick_file_tensor *tensors; /* name, dtype and shape; offset and size are found out */
    size_t n_tensors;
    /* Either one: the file is split into parts NAME-00001-of-00003.gguf where path is NAME.gguf.
     * The metadata is in the first. A tensor that is larger than part_bytes has its own part. */
    uint64_t part_bytes; /* most bytes of a part, 0: no limit */
    size_t part_tensors; /* most tensors of a part, 0: no limit */
    bool replace;        /* existing files are replaced; else they are WICK_ERR_STATE */
    /* [n_reads] paths of files that are read meanwhile, NULL for none. Neither these nor the other
     * parts of a model that one of them is a part of are replaced, by whatever name (device and
     * inode): WICK_ERR_ARGUMENT. An adapter's folder stands for its files. */
    const char *const *reads;
    size_t n_reads;
} wick_file_desc;

/* Whether a file could be written to path now: tried before long work, whose result would be lost
 * at its end. WICK_ERR_ARGUMENT: path is one of reads, as in wick_file_desc; WICK_ERR_NOT_FOUND,
 * WICK_ERR_IO: it cannot be written. Writes and replaces nothing. */
WICK_API wick_status wick_file_check_target(const char *path, const char *const *reads,
                                            size_t n_reads, wick_error *error);

/* Writes GGUF version 3: start, then the data of all tensors one after the other in pieces of any
 * size (padding is not part of it), then finish. Everything goes to temporary names first: path
 * never holds half a file. WICK_ERR_VALUE: no reader would accept such a file, with the reason;
 * WICK_ERR_DTYPE: a type that GGUF does not have. */
typedef struct wick_file_writer wick_file_writer;
WICK_API wick_status wick_file_write_start(const char *path, const wick_file_desc *desc,
                                           wick_file_writer **writer, wick_error *error);
/* Files that it writes: the number of parts, 1 where the file is not split. */
WICK_API size_t wick_file_writer_count(const wick_file_writer *writer);
/* WICK_ERR_ARGUMENT: more than the tensors have room for. */
WICK_API wick_status wick_file_write(wick_file_writer *writer, const void *data, size_t size,
                                     wick_error *error);
/* commit false throws it away. WICK_ERR_STATE when a tensor is not complete. Frees the writer in
 * any case. */
WICK_API wick_status wick_file_write_finish(wick_file_writer *writer, bool commit,
                                            wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
