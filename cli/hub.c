/* hub.c: the hub's API (https://huggingface.co/docs/hub/api): one answer lists the files of a
 * repository with their sizes and hashes. */
#define _POSIX_C_SOURCE 200809L

#include "hub.h"

#include "cli.h"
#include "text_out.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_ANSWER = 16 << 20 /* bytes */ };

/* ---- The endpoint ---- */

/* Whether a token may go there: encrypted, or not leaving this machine. */
static bool is_private(const char *url) {
    static const char *const prefixes[] = {"https://", "http://localhost", "http://127.0.0.1",
                                           "http://[::1]"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t size = strlen(prefixes[i]);
        if (strncasecmp(url, prefixes[i], size) == 0 &&
            (i == 0 || url[size] == '\0' || url[size] == ':' || url[size] == '/'))
            return true;
    }
    return false;
}

static bool has_control(const char *text) {
    for (; *text != '\0'; text++)
        if (iscntrl((unsigned char)*text)) return true;
    return false;
}

int cli_hub_open(const char *mirror, cli_hub *hub) {
    const char *const variable = getenv("HF_ENDPOINT"), *const token = getenv("HF_TOKEN");
    const char *endpoint = "https://huggingface.co";
    if (variable != NULL && variable[0] != '\0') endpoint = variable;
    if (mirror != NULL) endpoint = mirror;
    *hub = (cli_hub){0};
    if ((strncasecmp(endpoint, "https://", 8) != 0 && strncasecmp(endpoint, "http://", 7) != 0) ||
        strlen(endpoint) >= sizeof hub->endpoint)
        return cli_error("'%.200s' cannot be a mirror: it must begin with https:// or http://",
                         endpoint);
    const char *const host = strstr(endpoint, "://") + 3;
    if (memchr(host, '@', strcspn(host, "/?#")) != NULL)
        return cli_error("a mirror with a user name is refused: messages would show it");
    snprintf(hub->endpoint, sizeof hub->endpoint, "%s", endpoint);
    for (size_t n = strlen(endpoint); hub->endpoint[n - 1] == '/'; n--) hub->endpoint[n - 1] = '\0';
    if (token == NULL || token[0] == '\0') return CLI_OK;
    if (has_control(token)) return cli_error("HF_TOKEN contains a control character");
    if (is_private(endpoint))
        hub->token = token;
    else
        cli_warn("HF_TOKEN is not sent to %s, which is not encrypted", endpoint);
    return CLI_OK;
}

/* ---- Asking ---- */

typedef struct answer {
    char *text; /* NULL: out of memory, or too long */
    size_t size, capacity;
} answer;

static bool begin(void *user, const cli_http_answer *head) {
    (void)user;
    return head->offset == 0;
}

static bool take(void *user, const void *bytes, size_t size) {
    answer *const a = user;
    if (size > MAX_ANSWER - a->size) return false;
    if (a->size + size > a->capacity) {
        const size_t wanted = 2 * (a->size + size);
        char *const text = realloc(a->text, wanted);
        if (text == NULL) return false;
        a->text = text;
        a->capacity = wanted;
    }
    memcpy(a->text + a->size, bytes, size);
    a->size += size;
    return true;
}

static int fail_asking(const cli_hub *hub, const char *name, const cli_http_end *end) {
    switch (end->outcome) {
    case CLI_HTTP_INTERRUPTED: return CLI_INTERRUPTED;
    case CLI_HTTP_STOPPED:
        return cli_error("%s: the description of %s is too long", hub->endpoint, name);
    default: break;
    }
    if (end->status == 404) return cli_error("%s has no repository %s", hub->endpoint, name);
    if (end->status == 401 || end->status == 403)
        return cli_error("%s has no repository %s, or does not show it to everybody: %s",
                         hub->endpoint, name,
                         hub->token != NULL ? "HF_TOKEN does not give access" : "set HF_TOKEN");
    return cli_error("%s: cannot list the files of %s: %s", hub->endpoint, name, end->reason);
}

/* A string, terminated; false and "": it is none, has a zero byte or does not fit. */
static bool get_text(const wick_json *value, char *text, size_t size) {
    size_t n;
    const char *const from = wick_json_text(value, &n);
    const bool is_text = from != NULL && n < size && memchr(from, '\0', n) == NULL;
    snprintf(text, size, "%s", is_text ? from : "");
    return is_text;
}

/* False: out of memory. Files that could leave the store's folder are none of ours. */
static bool append_file(cli_repository *r, const wick_json *entry, size_t *capacity) {
    char name[1024], hash[80];
    cli_part part;
    if (!get_text(wick_json_get(entry, "rfilename"), name, sizeof name) ||
        !cli_part_parse(name, &part) || !cli_is_safe_name(name))
        return true;
    if (r->n_files == *capacity) {
        *capacity = *capacity > 0 ? 2 * *capacity : 32;
        cli_remote_file *const files = realloc(r->files, *capacity * sizeof *files);
        if (files == NULL) return false;
        r->files = files;
    }
    cli_remote_file *const file = &r->files[r->n_files];
    *file = (cli_remote_file){.name = strdup(name)};
    if (file->name == NULL) return false;
    r->n_files++;
    const wick_json *const lfs = wick_json_get(entry, "lfs");
    if (!wick_json_get_whole(wick_json_get(entry, "size"), &file->size)) file->size = UINT64_MAX;
    if (get_text(wick_json_get(lfs, "sha256"), hash, sizeof hash))
        (void)cli_digest_parse(hash, strlen(hash), &file->sha256);
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cli_remote_file *)a)->name, ((const cli_remote_file *)b)->name);
}

static int read_answer(const wick_json *root, cli_repository *r) {
    size_t capacity = 0;
    const wick_json *const card = wick_json_get(root, "cardData");
    const wick_json *const licence = wick_json_get(card, "license");
    if (!get_text(licence, r->licence, sizeof r->licence)) /* some cards list several */
        (void)get_text(wick_json_first(licence), r->licence, sizeof r->licence);
    char name[sizeof r->licence];
    const wick_json *const other = wick_json_get(card, "license_name");
    if (strcmp(r->licence, "other") == 0 && get_text(other, name, sizeof name))
        memcpy(r->licence, name, sizeof name);
    if (!get_text(wick_json_get(root, "sha"), r->revision, sizeof r->revision) ||
        !cli_is_safe_name(r->revision))
        snprintf(r->revision, sizeof r->revision, "main");
    const wick_json *entry = wick_json_first(wick_json_get(root, "siblings"));
    for (; entry != NULL; entry = wick_json_next(entry))
        if (!append_file(r, entry, &capacity)) return cli_error("out of memory for the files");
    if (r->n_files == 0)
        return cli_error("%s has no GGUF file; look for a GGUF repository of that model", r->name);
    qsort(r->files, r->n_files, sizeof *r->files, by_name);
    return CLI_OK;
}

/* OWNER/REPO, of characters that need no encoding. */
static bool is_repository(const char *name) {
    size_t n_slashes = 0;
    for (const char *at = name; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c >= 0x80 || (!isalnum(c) && strchr("-._/", c) == NULL)) return false;
        n_slashes += c == '/';
    }
    return n_slashes == 1 && cli_is_safe_name(name);
}

int cli_hub_list(const cli_hub *hub, cli_http *http, const char *name, cli_repository *r) {
    *r = (cli_repository){0};
    cli_path url;
    answer a = {0};
    if (!is_repository(name) || strlen(name) >= sizeof r->name)
        return cli_error("'%.200s' is not the name of a repository: it must be OWNER/REPO", name);
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(url.text, sizeof url.text, "%s/api/models/%s?blobs=true", hub->endpoint, name);
    const cli_http_request request = {
        .url = url.text, .token = hub->token, .user = &a, .begin = begin, .take = take};
    const cli_http_end end = cli_http_get(http, &request);
    wick_json_document *document = NULL;
    int code;
    if (end.outcome != CLI_HTTP_DONE)
        code = fail_asking(hub, name, &end);
    else if (wick_json_parse(a.text, a.size, &document, NULL) != WICK_OK)
        code = cli_error("%s: the answer for %s is not JSON", hub->endpoint, name);
    else
        code = read_answer(wick_json_root(document), r);
    wick_json_free(document);
    free(a.text);
    if (code != CLI_OK) cli_repository_free(r);
    return code;
}

void cli_repository_free(cli_repository *r) {
    for (size_t i = 0; i < r->n_files; i++) free(r->files[i].name);
    free(r->files);
    *r = (cli_repository){0};
}

/* ---- Choosing ---- */

static bool is_first_part(const cli_remote_file *file) {
    cli_part part;
    return cli_part_parse(file->name, &part) && part.index == 1;
}

/* Whether the file is an image projector or an importance matrix, not a model. */
static bool is_aside(const char *name) {
    return cli_find_word(name, "mmproj") != NULL || cli_find_word(name, "imatrix") != NULL;
}

static bool is_candidate(const cli_remote_file *file, const char *type) {
    if (!is_first_part(file)) return false;
    return type != NULL ? cli_has_type(file->name, type) : !is_aside(file->name);
}

/* The only candidate; NULL: there is none, or more than one. */
static const cli_remote_file *only_candidate(const cli_repository *r, const char *type) {
    const cli_remote_file *found = NULL;
    for (size_t i = 0; i < r->n_files; i++) {
        if (!is_candidate(&r->files[i], type)) continue;
        if (found != NULL) return NULL;
        found = &r->files[i];
    }
    return found;
}

const cli_remote_file *cli_find_file(const cli_repository *r, const char *name) {
    for (size_t i = 0; i < r->n_files; i++)
        if (strcmp(r->files[i].name, name) == 0) return &r->files[i];
    return NULL;
}

/* A file's name, with or without its end, of any part. */
static const cli_remote_file *find_named(const cli_repository *r, const char *wanted) {
    for (size_t i = 0; i < r->n_files; i++) {
        cli_part part;
        cli_path first;
        const char *const name = r->files[i].name;
        if (!cli_part_parse(name, &part)) continue;
        const bool is_stem = strlen(wanted) == part.stem && memcmp(wanted, name, part.stem) == 0;
        if (!is_stem && strcmp(wanted, name) != 0) continue;
        cli_part_name(name, &part, 1, &first);
        return cli_find_file(r, first.text);
    }
    return NULL;
}

/* Of all parts; UINT64_MAX: not reported. */
static uint64_t model_size(const cli_repository *r, const cli_remote_file *file) {
    cli_part part = {0};
    uint64_t size = 0;
    (void)cli_part_parse(file->name, &part);
    for (uint32_t i = 1; i <= part.count; i++) {
        cli_path name;
        cli_part_name(file->name, &part, i, &name);
        const cli_remote_file *const one = cli_find_file(r, name.text);
        if (one == NULL || one->size > UINT64_MAX - size) return UINT64_MAX;
        size += one->size;
    }
    return size;
}

void cli_print_files(const cli_repository *r, FILE *out) {
    for (size_t i = 0; i < r->n_files; i++) {
        if (!is_first_part(&r->files[i])) continue;
        const uint64_t size = model_size(r, &r->files[i]);
        fprintf(out, "%10s  hf:%s:", size != UINT64_MAX ? cli_bytes_text(size).text : "", r->name);
        cli_put_escaped(out, r->files[i].name, strlen(r->files[i].name));
        fputc('\n', out);
    }
}

const cli_remote_file *cli_choose_file(const cli_repository *r, const char *wanted) {
    const cli_remote_file *file = wanted != NULL ? find_named(r, wanted) : only_candidate(r, NULL);
    if (file == NULL) file = only_candidate(r, wanted != NULL ? wanted : "q4_k_m");
    if (file != NULL) return file;
    if (wanted != NULL)
        cli_error("'%s' does not name exactly one model of %s; it has:", wanted, r->name);
    else
        cli_error("%s has several models; choose one of:", r->name);
    cli_print_files(r, stderr);
    return NULL;
}

/* ---- Addresses ---- */

/* Percent-encoding of RFC 3986; slashes stay. False: it does not fit. */
static bool append_encoded(cli_path *url, const char *text) {
    size_t used = strlen(url->text);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        const bool is_plain = c < 0x80 && (isalnum(c) || strchr("-._~/", c) != NULL);
        if (used + 4 > sizeof url->text) return false;
        used += (size_t)snprintf(url->text + used, 4, is_plain ? "%c" : "%%%02X", c);
    }
    return true;
}

int cli_file_url(const cli_hub *hub, const cli_repository *r, const char *file, cli_path *url) {
    snprintf(url->text, sizeof url->text, "%s/%s/resolve/", hub->endpoint, r->name);
    if (append_encoded(url, r->revision) && append_encoded(url, "/") && append_encoded(url, file))
        return CLI_OK;
    return cli_error("the address of '%s' is too long", file);
}

int cli_repository_page(const cli_hub *hub, const char *name, cli_path *page) {
    if (!cli_path_join(hub->endpoint, "/", page)) return CLI_FAILURE;
    const size_t used = strlen(page->text);
    snprintf(page->text + used, sizeof page->text - used, "%s", name);
    return CLI_OK;
}
