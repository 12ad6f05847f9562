/* convert/header_file.h: a file of which there is the header alone. */
#ifndef WK_CONVERT_HEADER_FILE_H
#define WK_CONVERT_HEADER_FILE_H

#include "core/status.h"
#include "core/str.h"

#include <wick/file.h>

/* header (copied): of a GGUF file that would have size bytes. */
wick_status wk_file_of_header(wk_str header, uint64_t size, wick_file **out, wick_error *err);

#endif
