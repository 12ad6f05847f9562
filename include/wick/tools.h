/* wick/tools.h: small helpers for programs built on Wick. */
#ifndef WICK_TOOLS_H
#define WICK_TOOLS_H

#include <wick/file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A .npy file (NumPy format 1.0) of any size, written in pieces: path holds all of it or is not
 * touched. WICK_ERR_DTYPE: NumPy has no such type; WICK_ERR_SHAPE, WICK_ERR_IO. Blocks; native
 * only. */
typedef struct wick_npy_writer wick_npy_writer;
WICK_API wick_status wick_npy_start(const char *path, wick_dtype dtype, wick_shape shape,
                                    wick_npy_writer **writer, wick_error *error);
/* WICK_ERR_ARGUMENT: more than the array has room for. */
WICK_API wick_status wick_npy_write(wick_npy_writer *writer, const void *data, size_t size,
                                    wick_error *error);
/* commit false throws it away. WICK_ERR_STATE when the array is not complete. Frees the writer. */
WICK_API wick_status wick_npy_finish(wick_npy_writer *writer, bool commit, wick_error *error);

/* A tensor from the bytes of a .npy file: format 1 to 3, C or Fortran order, either byte order, the
 * types that wick_dtype has. NULL on failure; the device has the reason: WICK_ERR_FORMAT,
 * WICK_ERR_UNSUPPORTED. */
WICK_API wick_tensor *wick_npy_parse(wick_device *device, const void *bytes, size_t size);
/* The same from a file, also WICK_ERR_NOT_FOUND and WICK_ERR_IO. Blocks; native only. */
WICK_API wick_tensor *wick_npy_load(wick_device *device, const char *path);
/* Writes a tensor as a .npy file, whole or not at all. Blocks; native only. WICK_ERR_DTYPE: NumPy
 * has no such type. */
WICK_API wick_status wick_npy_save(wick_tensor *tensor, const char *path, wick_error *error);

/* The tensors of a file by name, recognised by the file's contents: GGUF (a part stands for the
 * whole); safetensors; .npy, whose only array has the name ""; .npz, stored or deflated; and .pt as
 * torch.save writes them, of tensors in dicts and lists that nest: "state.0.exp_avg" (a tensor by
 * itself has the name ""). What else those hold is passed over, and no code in them is run: a
 * pickle of anything but PyTorch's tensors is refused. Block; native only. */
typedef struct wick_tensor_file wick_tensor_file;
/* WICK_ERR_NOT_FOUND, WICK_ERR_IO, WICK_ERR_FORMAT, WICK_ERR_UNSUPPORTED. */
WICK_API wick_status wick_tensor_file_open(const char *path, wick_tensor_file **file,
                                           wick_error *error);
/* The same from a source, which is taken over, also on failure: WICK_ERR_UNSUPPORTED where it does
 * not answer at once, or, unless it is GGUF, cannot be mapped. wick_source_memory() makes one of
 * bytes. */
WICK_API wick_status wick_tensor_file_open_source(wick_source source, wick_tensor_file **file,
                                                  wick_error *error);
WICK_API void wick_tensor_file_close(wick_tensor_file *file);
/* "GGUF", "safetensors", "npy", "npz", "PyTorch"; "" of NULL. Static storage. */
WICK_API const char *wick_tensor_file_format(const wick_tensor_file *file);
WICK_API size_t wick_tensor_file_count(const wick_tensor_file *file);
/* In the order of the file, valid until it is closed; NULL where index is out of range. */
WICK_API const wick_file_tensor *wick_tensor_file_get(const wick_tensor_file *file, size_t index);
/* A copy on the device, of the type and shape that it has in the file; block types of GGUF serve as
 * weights. name NULL: the only tensor of the file (of .npy files, its name is ""). NULL on failure;
 * the device has the reason: WICK_ERR_NOT_FOUND where the file has no tensor of that name,
 * WICK_ERR_ARGUMENT where the name is NULL and there are several. */
WICK_API wick_tensor *wick_tensor_file_load(wick_tensor_file *file, wick_device *device,
                                            const char *name);
/* The same in one call. */
WICK_API wick_tensor *wick_tensor_load(wick_device *device, const char *path, const char *name);
/* Writes n tensors, of any devices, to a file, whole or not at all: by the ending of its name
 * .safetensors (those with the larger elements first), .npz (not compressed), .npy (one tensor,
 * called ""), .pt or .pth (a dict of tensors for torch.load). WICK_ERR_DTYPE: the format has no
 * such type; WICK_ERR_VALUE: another ending, two tensors have one name, or a name is not UTF-8, is
 * longer than 32 KiB or, in a safetensors file, "__metadata__"; WICK_ERR_IO. Blocks; native only.
 */
WICK_API wick_status wick_tensor_file_save(const char *path, const char *const *names,
                                           wick_tensor *const *tensors, size_t n,
                                           wick_error *error);
/* The same for a safetensors file of any name. */
WICK_API wick_status wick_safetensors_save(const char *path, const char *const *names,
                                           wick_tensor *const *tensors, size_t n,
                                           wick_error *error);

/* Writes bytes as a file, whole or not at all: what was there stays where the disk is full. Links
 * are followed; what is not a regular file (a terminal, a pipe) is written as it is. WICK_ERR_IO.
 * Blocks; native only. */
WICK_API wick_status wick_bytes_save(const char *path, const void *bytes, size_t size,
                                     wick_error *error);

/* Seconds on a monotonic clock; this process's highest resident memory in bytes (0: unknown). */
WICK_API double wick_time(void);
WICK_API uint64_t wick_peak_memory(void);

#ifdef __cplusplus
}
#endif

#endif
