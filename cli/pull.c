/* pull.c: `wick pull`: which files are meant, and one after the other into the store. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "description.h"
#include "fetch.h"
#include "hub.h"
#include "interrupt.h"
#include "pull.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct pull_options {
    const char *source, *sha256, *mirror;
    uint32_t stall_seconds, n_retries;
    bool list, offline;
} pull_options;

static void set_defaults(void *given) {
    pull_options *const o = given;
    o->stall_seconds = 30;
    o->n_retries = 3;
}

static const cli_option options[] = {
    {.argument = "[hf:]OWNER/REPO[:FILE]|URL",
     .help = "a repository of huggingface.co; FILE is the name of a file there or a "
             "part of it such as q8_0, default: the only model, else the q4_k_m one; "
             "or the address of a file",
     .kind = &cli_text,
     .offset = offsetof(pull_options, source),
     .is_required = true},
    {.name = "list",
     .help = "list the models of the repository and fetch nothing",
     .kind = &cli_flag,
     .offset = offsetof(pull_options, list)},
    {.name = "sha256",
     .argument = "DIGEST",
     .help = "keep the file only if it has this hash; a hash from the hub is checked in any case",
     .kind = &cli_text,
     .offset = offsetof(pull_options, sha256)},
    {.name = "mirror",
     .argument = "URL",
     .help = "the hub to use instead of $HF_ENDPOINT or https://huggingface.co",
     .kind = &cli_text,
     .offset = offsetof(pull_options, mirror)},
    {.name = "offline",
     .help = "use no network: succeed only if the model is here already",
     .kind = &cli_flag,
     .offset = offsetof(pull_options, offline)},
    {.name = "stall",
     .argument = "SECONDS",
     .help = "end a connection that brings less than 1 KiB a second for this long",
     .kind = &cli_u32,
     .offset = offsetof(pull_options, stall_seconds),
     .least = 1,
     .most = 3600},
    {.name = "retries",
     .argument = "N",
     .help = "give up after N retries in a row that brought no new byte",
     .kind = &cli_u32,
     .offset = offsetof(pull_options, n_retries),
     .most = 1000},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

/* What is the same for all files of a model. */
typedef struct pull {
    const pull_options *options;
    const char *source; /* hf:OWNER/REPO[:FILE], or an address */
    cli_http *http;
    cli_digest sha256; /* as asked for; "": any */
    cli_path first;    /* where the model will be, its first part */
    bool has_told_licence;
} pull;

/* page: where to read about it; NULL: not known. */
static void tell_licence(pull *p, const char *licence, const char *page) {
    if (cli_common.quiet || p->has_told_licence) return;
    p->has_told_licence = true;
    fputs("licence: ", stderr);
    cli_put_escaped(stderr, licence, strlen(licence));
    if (licence[0] == '\0') fputs("unknown", stderr);
    if (page != NULL) fprintf(stderr, " (%s)", page);
    fputc('\n', stderr);
}

static int finish(pull *p, const char *page) {
    cli_description description;
    cli_describe_model(p->first.text, &description);
    tell_licence(p, description.licence, page);
    return CLI_OK;
}

/* desc lacks what is the same for all files. */
static int fetch_file(pull *p, cli_fetch_desc *desc, uint32_t index, uint32_t count) {
    desc->n_retries = p->options->n_retries;
    desc->is_quiet = cli_common.quiet;
    if (p->sha256.text[0] != '\0') {
        if (desc->sha256.text[0] != '\0' && strcmp(p->sha256.text, desc->sha256.text) != 0)
            return cli_error("%s: the hub lists the sha256 %s, not the one given by --sha256",
                             desc->source, desc->sha256.text);
        desc->sha256 = p->sha256;
    }
    if (index == 1 && !cli_path_join(desc->path, "", &p->first)) return CLI_FAILURE;
    const bool is_here = cli_is_fetched(desc);
    if (!cli_common.quiet) {
        fprintf(stderr, is_here ? "is here: " : "fetching ");
        cli_put_escaped(stderr, desc->source, strlen(desc->source));
        if (desc->size != UINT64_MAX) fprintf(stderr, ", %s", cli_bytes_text(desc->size).text);
        if (count > 1) fprintf(stderr, ", part %" PRIu32 " of %" PRIu32, index, count);
        fputc('\n', stderr);
    }
    if (is_here) return CLI_OK;
    if (access(desc->path, F_OK) == 0 && desc->sha256.text[0] == '\0')
        return cli_error("'%s' is here already, from another source; 'wick rm' removes it",
                         desc->path);
    return cli_fetch(p->http, desc);
}

static int check_single(const pull *p, uint32_t count) {
    if (count == 1 || p->sha256.text[0] == '\0') return CLI_OK;
    return cli_error("--sha256 is for one file, and this model has %" PRIu32, count);
}

/* ---- From a hub ---- */

/* Bytes still to be fetched of the parts after index, without those whose size is not known. */
static uint64_t bytes_after(const cli_repository *r, const char *file, uint32_t index) {
    cli_part part = {0};
    uint64_t bytes = 0;
    (void)cli_part_parse(file, &part);
    for (uint32_t i = index + 1; i <= part.count; i++) {
        cli_path name, path, key;
        cli_part_name(file, &part, i, &name);
        const cli_remote_file *const one = cli_find_file(r, name.text);
        snprintf(key.text, sizeof key.text, "%s/%.2048s", r->name, name.text);
        if (one == NULL || one->size > UINT64_MAX - bytes ||
            cli_store_path(key.text, &path) != CLI_OK || access(path.text, F_OK) == 0)
            continue;
        bytes += one->size;
    }
    return bytes;
}

static int fetch_part(pull *p, const cli_hub *hub, const cli_repository *r, const char *file,
                      uint32_t index) {
    cli_part part = {0};
    cli_path name, key, path, url, source, page;
    (void)cli_part_parse(file, &part);
    cli_part_name(file, &part, index, &name);
    const cli_remote_file *const remote = cli_find_file(r, name.text);
    if (remote == NULL) return cli_error("%s: the part %s is missing", r->name, name.text);
    snprintf(key.text, sizeof key.text, "%s/%.2048s", r->name, name.text);
    snprintf(source.text, sizeof source.text, "hf:%s:%.1600s", r->name, name.text);
    int code = cli_store_path(key.text, &path);
    if (code == CLI_OK) code = cli_file_url(hub, r, name.text, &url);
    if (code == CLI_OK) code = cli_repository_page(hub, r->name, &page);
    if (code != CLI_OK) return code;
    cli_fetch_desc desc = {.url = url.text,
                           .token = hub->token,
                           .path = path.text,
                           .source = source.text,
                           .licence = r->licence,
                           .page = page.text,
                           .sha256 = remote->sha256,
                           .size = remote->size,
                           .later_bytes = bytes_after(r, file, index)};
    return fetch_file(p, &desc, index, part.count);
}

static int pull_listed(pull *p, const cli_hub *hub, const cli_repository *r, const char *wanted) {
    cli_part part = {0};
    cli_path page;
    const cli_remote_file *const file = cli_choose_file(r, wanted);
    if (file == NULL) return CLI_FAILURE;
    (void)cli_part_parse(file->name, &part);
    int code = check_single(p, part.count);
    if (code == CLI_OK) code = cli_repository_page(hub, r->name, &page);
    if (code == CLI_OK && r->licence[0] != '\0') tell_licence(p, r->licence, page.text);
    for (uint32_t i = 1; code == CLI_OK && i <= part.count; i++)
        code = fetch_part(p, hub, r, file->name, i);
    return code == CLI_OK ? finish(p, page.text) : code;
}

/* given: OWNER/REPO or OWNER/REPO:FILE. */
static int pull_hub(pull *p, const char *given) {
    cli_path name;
    cli_hub hub;
    cli_repository repository;
    int code = cli_hub_open(p->options->mirror, &hub);
    if (code != CLI_OK) return code;
    const size_t size = strcspn(given, ":");
    const char *const wanted = given[size] == ':' ? given + size + 1 : NULL;
    snprintf(name.text, sizeof name.text, "%.*s", (int)(size < 1024 ? size : 1024), given);
    code = cli_hub_list(&hub, p->http, name.text, &repository);
    if (code != CLI_OK) return code;
    if (p->options->list)
        cli_print_files(&repository, stdout);
    else
        code = pull_listed(p, &hub, &repository, wanted);
    cli_repository_free(&repository);
    return code;
}

/* ---- From an address ---- */

/* HOST/PATH/FILE.gguf of an address, without what follows a question mark. */
static int name_of_url(const char *url, cli_path *name) {
    const char *const host = strstr(url, "://") + 3;
    const size_t size = strcspn(host, "?#");
    cli_part part;
    if (size >= sizeof name->text) return cli_error("the address is too long");
    snprintf(name->text, sizeof name->text, "%.*s", (int)size, host);
    if (memchr(host, '@', strcspn(host, "/?#")) != NULL)
        return cli_error("an address with a user name is refused: it would be stored with the "
                         "model");
    if (cli_part_parse(name->text, &part) && strchr(name->text, '/') != NULL) return CLI_OK;
    return cli_error("the address of a GGUF file ends with .gguf, '%.200s' does not", url);
}

static int fetch_url(pull *p, const char *name, const cli_part *part, uint32_t index) {
    cli_path own_name, path, url;
    const char *const given = p->source;
    cli_part_name(name, part, index, &own_name);
    const int code = cli_store_path(own_name.text, &path);
    if (code != CLI_OK) return code;
    const size_t scheme = (size_t)(strstr(given, "://") + 3 - given);
    const int length = snprintf(url.text, sizeof url.text, "%.*s%s%s", (int)scheme, given,
                                own_name.text, given + scheme + strlen(name));
    if (length < 0 || length >= 2000) return cli_error("the address is too long");
    cli_fetch_desc desc = {
        .url = url.text, .path = path.text, .source = url.text, .licence = "", .size = UINT64_MAX};
    return fetch_file(p, &desc, index, part->count);
}

static int pull_url(pull *p) {
    cli_path name;
    cli_part part = {0};
    if (p->options->list) return cli_usage_error(&cli_pull, "--list is for hf:OWNER/REPO");
    int code = name_of_url(p->source, &name);
    if (code != CLI_OK) return code;
    (void)cli_part_parse(name.text, &part);
    code = check_single(p, part.count);
    for (uint32_t i = 1; code == CLI_OK && i <= part.count; i++)
        code = fetch_url(p, name.text, &part, i);
    return code == CLI_OK ? finish(p, NULL) : code;
}

/* ---- The command ---- */

static int find_here(pull *p) {
    const int code = cli_find_model(p->source, true, &p->first);
    if (code != CLI_OK) return code;
    if (access(p->first.text, F_OK) == 0) return finish(p, NULL);
    return cli_error(
        "%s is not here, and --offline uses no network; 'wick models' lists the models", p->source);
}

/* OWNER/REPO[:FILE] is of the hub: one slash, before any colon. */
static bool is_repository(const char *source) {
    const char *const slash = strchr(source, '/');
    const size_t size = strcspn(source, ":");
    return slash != NULL && slash != source && (size_t)(slash + 1 - source) < size &&
           memchr(slash + 1, '/', size - (size_t)(slash + 1 - source)) == NULL;
}

/* What source means, as hf:... or an address. Returns an exit code. */
static int read_source(const pull_options *o, cli_path *source) {
    if (cli_hub_from_url(o->mirror, o->source, source)) return CLI_OK;
    if (cli_is_remote(o->source))
        return cli_path_join(o->source, "", source) ? CLI_OK : CLI_FAILURE;
    if (is_repository(o->source))
        return cli_path_join("hf:", o->source, source) ? CLI_OK : CLI_FAILURE;
    return cli_usage_error(&cli_pull,
                           "'%s' is neither OWNER/REPO nor begins with hf:, https:// or "
                           "http://",
                           o->source);
}

static int fetch_all(pull *p) {
    if (!cli_http_is_here()) return CLI_FAILURE;
    p->http = cli_http_open(p->options->stall_seconds);
    if (p->http == NULL) return cli_error("out of memory for connections");
    cli_watch_interrupt();
    const bool is_hub = strncasecmp(p->source, "hf:", 3) == 0;
    const int code = is_hub ? pull_hub(p, p->source + 3) : pull_url(p);
    cli_http_close(p->http);
    return code;
}

int cli_pull_model(const char *source, cli_path *path) {
    pull_options o = {.source = source};
    cli_path full;
    set_defaults(&o);
    pull p = {.options = &o, .source = full.text};
    int code = read_source(&o, &full);
    if (code == CLI_OK) code = fetch_all(&p);
    if (code == CLI_OK) *path = p.first;
    return code;
}

static int run(void *given) {
    const pull_options *const o = given;
    cli_path source;
    pull p = {.options = o, .source = source.text};
    int code = read_source(o, &source);
    if (code != CLI_OK) return code;
    if (o->sha256 != NULL && !cli_digest_parse(o->sha256, strlen(o->sha256), &p.sha256))
        return cli_usage_error(&cli_pull, "--sha256: '%s' is not 64 hexadecimal digits", o->sha256);
    cli_keep_closed_pipe();
    code = o->offline ? find_here(&p) : fetch_all(&p);
    if (code == CLI_OK && !o->list) puts(p.first.text);
    return code;
}

const cli_command cli_pull = {
    .name = "pull",
    .summary = "fetch a model from huggingface.co or another address",
    .details = "Prints the path of the file. 'wick run' and 'wick chat' fetch a model named\n"
               "hf:OWNER/REPO by themselves. The same command continues an interrupted fetch.\n"
               "HF_TOKEN is sent to the hub if it is set. Models are kept in models/ of\n"
               "$WICK_HOME, $XDG_CACHE_HOME/wick or ~/.cache/wick.\n\n"
               "  wick pull HuggingFaceTB/SmolLM2-360M-Instruct-GGUF\n"
               "  wick run SmolLM2-360M-Instruct-GGUF \"Why is the sky blue?\"\n",
    .groups = groups,
    .options_size = sizeof(pull_options),
    .defaults = set_defaults,
    .run = run,
};
