/* kernel_cache.c: see kernel_cache.h. An entry is a file named after the hash of its key: a header,
 * the key, the value. It is written under another name and renamed, so it is there whole or not at
 * all; one that is damaged all the same is found by its hash. */
#define _POSIX_C_SOURCE 200809L

#include "kernel_cache.h"

#include "cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct entry_header {
    char magic[8];
    uint64_t key_size, value_size;
    uint64_t hash; /* of key and value */
} entry_header;

static const char magic[8] = {'w', 'i', 'c', 'k', 'k', 'e', 'r', '1'};

typedef struct entry_path {
    char text[1024 + 32];
} entry_path;

/* FNV-1a (Fowler, Noll, Vo), going on from hash. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *const at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_entry(const void *key, size_t key_size, const void *value, size_t size) {
    const uint64_t of_key = hash_bytes(UINT64_C(0xcbf29ce484222325), key, key_size);
    return hash_bytes(of_key, value, size);
}

static entry_path path_of(const cli_kernel_cache *cache, const void *key, size_t size) {
    entry_path path;
    snprintf(path.text, sizeof path.text, "%s/%016" PRIx64, cache->folder,
             hash_entry(key, size, NULL, 0));
    return path;
}

/* --- Loading --- */

/* Whether the file is the entry of this key; it is read up to the value then. */
static bool read_header(FILE *file, const void *key, size_t key_size, entry_header *header) {
    struct stat info;
    if (fread(header, sizeof *header, 1, file) != 1 || fstat(fileno(file), &info) != 0 ||
        memcmp(header->magic, magic, sizeof magic) != 0 || header->key_size != key_size)
        return false;
    const uint64_t rest = (uint64_t)info.st_size - sizeof *header;
    if (key_size > rest || header->value_size != rest - key_size) return false;
    const unsigned char *const wanted = key;
    for (size_t i = 0; i < key_size; i++)
        if (getc(file) != wanted[i]) return false;
    return true;
}

static size_t load(void *user, const void *key, size_t key_size, void *value, size_t capacity) {
    const entry_path path = path_of(user, key, key_size);
    FILE *const file = fopen(path.text, "rb");
    if (file == NULL) return 0;
    entry_header header;
    size_t size = read_header(file, key, key_size, &header) ? (size_t)header.value_size : 0;
    if (size > 0 && size <= capacity) {
        if (fread(value, 1, size, file) != size ||
            header.hash != hash_entry(key, key_size, value, size))
            size = 0;
        (void)futimens(fileno(file), NULL); /* it was of use */
    }
    fclose(file);
    return size;
}

/* --- Storing --- */

static bool write_entry(FILE *file, const entry_header *header, const void *key,
                        const void *value) {
    const bool is_written =
        fwrite(header, sizeof *header, 1, file) == 1 &&
        fwrite(key, 1, (size_t)header->key_size, file) == header->key_size &&
        fwrite(value, 1, (size_t)header->value_size, file) == header->value_size;
    return fclose(file) == 0 && is_written;
}

/* Takes the bytes from what may be stored; false: there is not so much left. */
static bool take_room(cli_kernel_cache *cache, uint64_t bytes) {
    uint_least64_t room = cache->room;
    do {
        if (room < bytes) return false;
    } while (!atomic_compare_exchange_weak(&cache->room, &room, room - bytes));
    return true;
}

static void store(void *user, const void *key, size_t key_size, const void *value, size_t size) {
    cli_kernel_cache *const cache = user;
    entry_header header = {
        .key_size = key_size, .value_size = size, .hash = hash_entry(key, key_size, value, size)};
    memcpy(header.magic, magic, sizeof magic);
    if (!take_room(cache, sizeof header + key_size + size)) return;
    entry_path temporary;
    snprintf(temporary.text, sizeof temporary.text, "%s/new-XXXXXX", cache->folder);
    int descriptor = mkstemp(temporary.text);
    if (descriptor < 0) {
        (void)cli_make_folders(cache->folder); /* without it there is no entry */
        snprintf(temporary.text, sizeof temporary.text, "%s/new-XXXXXX", cache->folder);
        descriptor = mkstemp(temporary.text);
    }
    FILE *const file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (file == NULL) {
        if (descriptor < 0) return;
        close(descriptor);
        (void)unlink(temporary.text);
        return;
    }
    const entry_path path = path_of(cache, key, key_size);
    if (!write_entry(file, &header, key, value) || rename(temporary.text, path.text) != 0)
        (void)unlink(temporary.text);
}

/* --- The folder --- */

typedef struct entry_file {
    char name[24];
    int64_t used; /* nanoseconds */
    uint64_t size;
} entry_file;

static int by_use(const void *a, const void *b) {
    const int64_t x = ((const entry_file *)a)->used, y = ((const entry_file *)b)->used;
    return (x > y) - (x < y);
}

/* False: it is none of ours. */
static bool describe_file(int folder, const char *name, entry_file *file) {
    struct stat info;
    const size_t length = strlen(name);
    if (length >= sizeof file->name || fstatat(folder, name, &info, 0) != 0 ||
        !S_ISREG(info.st_mode))
        return false;
    memcpy(file->name, name, length + 1);
    file->used = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    file->size = (uint64_t)info.st_size;
    return true;
}

/* Also what writers that were ended have left. Returns how many files there are. */
static size_t list_files(DIR *folder, entry_file **files) {
    size_t n = 0, capacity = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (n == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            entry_file *const larger = realloc(*files, capacity * sizeof *larger);
            if (larger == NULL) return n;
            *files = larger;
        }
        if (describe_file(dirfd(folder), entry->d_name, &(*files)[n])) n++;
    }
    return n;
}

static void trim(const cli_kernel_cache *cache) {
    DIR *const folder = opendir(cache->folder);
    if (folder == NULL) return;
    entry_file *files = NULL;
    const size_t n = list_files(folder, &files);
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) total += files[i].size;
    if (n > 0) qsort(files, n, sizeof *files, by_use);
    for (size_t i = 0; i < n && total > cache->limit; i++) {
        if (unlinkat(dirfd(folder), files[i].name, 0) == 0) total -= files[i].size;
    }
    free(files);
    closedir(folder);
}

void cli_kernel_cache_open(cli_kernel_cache *cache, uint64_t limit) {
    (void)cli_cache_path("kernels", cache->folder, sizeof cache->folder); /* "": nowhere */
    cache->room = cache->limit = limit;
}

wick_kernel_cache cli_kernel_cache_functions(cli_kernel_cache *cache) {
    if (cache->folder[0] == '\0') return (wick_kernel_cache){0};
    return (wick_kernel_cache){.load = load, .store = store, .user = cache};
}

void cli_kernel_cache_close(cli_kernel_cache *cache) {
    if (cache->room < cache->limit) trim(cache); /* something was stored */
}
