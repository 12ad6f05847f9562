/* sys/dynlib.h: libraries loaded while the program runs. */
#ifndef WK_SYS_DYNLIB_H
#define WK_SYS_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wk_dynlib wk_dynlib; /* the system's handle */
typedef void (*wk_dynlib_function)(void);

/* path without a slash: where the system looks. NULL, and reason (of capacity bytes) says why. The
 * library stays loaded for as long as the process lives: it may have threads of its own. */
wk_dynlib *wk_dynlib_open(const char *path, char *reason, size_t capacity);
/* NULL where it has none of that name. */
wk_dynlib_function wk_dynlib_find(wk_dynlib *library, const char *name);
/* Releases the handle, not the library. */
void wk_dynlib_close(wk_dynlib *library);

/* What the name of a library ends with here: ".so". */
const char *wk_dynlib_suffix(void);
/* The folder of the running program, without a slash at its end. False: not known, or longer than
 * capacity. */
bool wk_program_folder(char *folder, size_t capacity);

/* Whether the system shows a driver of a GPU, without loading one; true where it cannot be known.
 */
bool wk_has_gpu(void);

#endif
