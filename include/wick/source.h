/* wick/source.h: where a model's bytes come from. */
#ifndef WICK_SOURCE_H
#define WICK_SOURCE_H

#include <wick/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WICK_SIZE_UNKNOWN UINT64_MAX

/* A file, a memory block, Range requests, a pushed stream. The library reads in file order only,
 * one read at a time, and owns the source from the call it is given to: close is called once. Where
 * a device is lost, one that is not sequential is read again from an earlier offset.
 *
 * read_at starts reading size bytes at offset into dst (which stays valid until the read has ended)
 * and poll reports on it: WICK_PENDING, WICK_OK with *got bytes (fewer than asked only at the
 * end), or an error with its sentence. One that can answer at once does so in the first poll. */
typedef struct wick_source wick_source;
struct wick_source {
    void *user;
    uint64_t state;     /* the source's own, like user */
    uint64_t size;      /* bytes, or WICK_SIZE_UNKNOWN */
    bool is_sequential; /* offsets only ever grow without gaps */
    wick_status (*read_at)(wick_source *source, uint64_t offset, size_t size, void *dst,
                           wick_error *error);
    wick_status (*poll)(wick_source *source, size_t *got, wick_error *error);
    /* Optional: a pointer to size bytes at offset that stays valid until close, or NULL. */
    const void *(*map)(wick_source *source, uint64_t offset, uint64_t size);
    /* Optional: the bytes of a mapped range are not needed any more. */
    void (*drop)(wick_source *source, uint64_t offset, uint64_t size);
    void (*close)(wick_source *source);
};

/* A file, mapped where the system can. */
WICK_API wick_status wick_source_file(const char *path, wick_source *source, wick_error *error);
/* The files of a model as one. Several paths: all parts of a split GGUF file, in order. One path:
 * that file, or, where it is called NAME-00002-of-00003.gguf like a part, all parts with such names
 * beside it. The source shows a split file as if it had never been split: one header, then the data
 * of all tensors. WICK_ERR_NOT_FOUND: a part is missing; WICK_ERR_FORMAT: the parts do not belong
 * together, or their order is wrong. */
WICK_API wick_status wick_source_files(const char *const *paths, size_t n, wick_source *source,
                                       wick_error *error);
/* The same of sources, all parts in their order, in steps: they need not answer at once, but cannot
 * be sequential. They are taken over, also on failure. names, what sentences call them, must stay
 * until finish. poll returns WICK_PENDING until finish may be called; finish frees joining whatever
 * its result; calling it early gives up (WICK_ERR_CANCELLED). */
typedef struct wick_source_joining wick_source_joining;
WICK_API wick_status wick_source_join_start(const wick_source *parts, const char *const *names,
                                            size_t n, wick_source_joining **joining,
                                            wick_error *error);
WICK_API wick_status wick_source_join_poll(wick_source_joining *joining);
WICK_API wick_status wick_source_join_finish(wick_source_joining *joining, wick_source *source,
                                             wick_error *error);
/* Memory of the caller, which must stay until close. */
WICK_API wick_source wick_source_memory(const void *data, size_t size);

/* Bytes that the caller pushes as they arrive, in order; size may be WICK_SIZE_UNKNOWN. Reads stay
 * pending until their bytes are there; push copies. WICK_ERR_CANCELLED: the source was closed, the
 * bytes are not needed any more. WICK_ERR_ARGUMENT: more than size. finish says that no more will
 * come and frees push: it must be called once, also after an error. */
typedef struct wick_push_source wick_push_source;
WICK_API wick_status wick_source_push_make(uint64_t size, wick_source *source,
                                           wick_push_source **push);
WICK_API wick_status wick_source_push(wick_push_source *push, const void *data, size_t size);
WICK_API void wick_source_push_finish(wick_push_source *push);

#ifdef __cplusplus
}
#endif

#endif
