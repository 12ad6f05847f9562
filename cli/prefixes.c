/* prefixes.c: see prefixes.h. */
#include "prefixes.h"

#include "cache_folder.h"
#include "cli.h"

#include <errno.h>
#include <string.h>

void cli_load_prefixes(wick_model *model, const char *folder) {
    wick_error error = {0};
    if (folder == NULL) return;
    const wick_status status = wick_model_load_prefixes(model, folder, &error);
    if (status != WICK_OK && status != WICK_ERR_NOT_FOUND)
        cli_warn("the texts in '%s' are not used: %s", folder, error.message);
}

void cli_save_prefixes(wick_model *model, const char *folder) {
    wick_error error = {0};
    if (folder == NULL || model == NULL) return;
    if (!cli_make_folders(folder))
        cli_warn("the texts are not kept in '%s': cannot make the folder: %s", folder,
                 strerror(errno));
    else if (wick_model_save_prefixes(model, folder, &error) != WICK_OK)
        cli_warn("the texts are not kept in '%s': %s", folder, error.message);
}
