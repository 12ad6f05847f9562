/* wick/file.h: what is inside a model file, without loading it. */
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

typedef struct wick_string {
    const char *text; /* terminated, but may hold zero bytes */
    size_t size;
} wick_string;

/* One metadata entry. For an array, element_type and count describe it and values points to count
 * elements of that type (wick_string for strings); arrays of arrays are refused when parsing. */
typedef struct wick_value {
    wick_string key;
    wick_value_type type;
    union {
        uint64_t u; /* every unsigned type and bool */
        int64_t i;  /* every signed type */
        double f;
        wick_string string;
        struct {
            wick_value_type element_type;
            uint64_t count;
            const void *values;
        } array;
    };
} wick_value;

typedef struct wick_file_tensor {
    wick_string name;
    wick_dtype dtype;
    wick_shape shape; /* row-major: the file's dimensions reversed */
    uint64_t offset;  /* of the data, from the beginning of the file */
    uint64_t size;    /* bytes */
} wick_file_tensor;

/* Reads and checks the header of a GGUF file; the tensors' data is not read. What the functions
 * below return lives until wick_file_close. WICK_ERR_NOT_FOUND, WICK_ERR_IO, WICK_ERR_FORMAT (with
 * the byte offset and the reason), WICK_ERR_UNSUPPORTED (a version, byte order or type that is not
 * known). */
WICK_API wick_status wick_file_open(const char *path, wick_file **file, wick_error *error);
WICK_API void wick_file_close(wick_file *file);

WICK_API uint32_t wick_file_version(const wick_file *file);
WICK_API uint64_t wick_file_size(const wick_file *file);
WICK_API size_t wick_file_value_count(const wick_file *file);
/* In file order; NULL when index is out of range, or no value has this key. */
WICK_API const wick_value *wick_file_value(const wick_file *file, size_t index);
WICK_API const wick_value *wick_file_find_value(const wick_file *file, const char *key);
WICK_API size_t wick_file_tensor_count(const wick_file *file);
/* In file order; NULL when index is out of range. */
WICK_API const wick_file_tensor *wick_file_get_tensor(const wick_file *file, size_t index);

#ifdef __cplusplus
}
#endif

#endif
