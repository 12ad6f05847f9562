/* description.c: see description.h. A model is opened for it, header alone: what it says cannot
 * differ from what it is. */
#include "description.h"

#include "file_info.h"
#include "store.h"

#include <stdio.h>

static void describe_type(const wick_file *file, cli_description *description) {
    cli_file_info info = {.file = file};
    int largest = -1;
    cli_count_tensors(&info);
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const uint64_t n_bytes = info.types[i].n_bytes;
        if (n_bytes > 0 && (largest < 0 || n_bytes > info.types[largest].n_bytes)) largest = i;
    }
    if (largest >= 0)
        snprintf(description->type, sizeof description->type, "%s",
                 wick_dtype_name((wick_dtype)largest));
}

void cli_describe_model(const char *path, cli_description *description) {
    *description = (cli_description){.type = ""};
    cli_note note;
    wick_file *file = NULL;
    cli_note_read(path, &note);
    snprintf(description->licence, sizeof description->licence, "%s", note.licence);
    if (wick_file_open(path, &file, NULL) != WICK_OK) return;
    describe_type(file, description);
    const wick_value *const value = wick_file_find_value(file, "general.license");
    const bool is_told = value != NULL && value->type == WICK_VALUE_STRING;
    if (description->licence[0] == '\0' && is_told)
        snprintf(description->licence, sizeof description->licence, "%s", value->string.text);
    wick_file_close(file);
}
