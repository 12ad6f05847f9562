/* examples/embed.c: how much alike texts are to the first of them, by their embeddings.
 *
 *   cc embed.c $(pkg-config --cflags --libs wick) -o embed
 *   ./embed MODEL.gguf "a cat" "a kitten" "a railway timetable" */
#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The vector of a text, n_embd numbers, for the caller to free. poll does a slice of the work: a
 * program with an event loop returns to its events between two of them. */
static wick_status embed(wick_embedder *embedder, const char *text, size_t n_embd, float **vector) {
    size_t n_rows;
    wick_status status = wick_embedder_start(embedder, text, strlen(text));
    if (status == WICK_OK) status = WICK_PENDING;
    while (status == WICK_PENDING) status = wick_embedder_poll(embedder);
    if (status != WICK_OK) return status;
    *vector = malloc(n_embd * sizeof **vector);
    if (*vector == NULL) return WICK_ERR_OUT_OF_MEMORY;
    memcpy(*vector, wick_embedder_result(embedder, &n_rows), n_embd * sizeof **vector);
    return WICK_OK;
}

/* Vectors have the length 1, so that this is the cosine of the angle between them. */
static double dot(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

static wick_status compare(wick_embedder *embedder, size_t n_embd, char **texts, int n) {
    float *first = NULL;
    wick_status status = embed(embedder, texts[0], n_embd, &first);
    for (int i = 1; i < n && status == WICK_OK; i++) {
        float *other = NULL;
        status = embed(embedder, texts[i], n_embd, &other);
        if (status == WICK_OK) printf("%.3f %s\n", dot(first, other, n_embd), texts[i]);
        free(other);
    }
    free(first);
    return status;
}

static wick_status run(wick_device *device, char **arguments, int n, wick_error *error) {
    wick_model *model = NULL;
    wick_embedder *embedder = NULL;
    wick_model_info info = {0};
    wick_status status = wick_model_open(device, arguments[0], NULL, &model, error);
    if (status == WICK_OK) wick_model_get_info(model, &info);
    if (status == WICK_OK) status = wick_embedder_open(model, NULL, &embedder, error);
    if (status == WICK_OK) status = compare(embedder, info.n_embd, arguments + 1, n - 1);
    if (status != WICK_OK && error->status == WICK_OK) wick_embedder_error(embedder, error);
    wick_embedder_close(embedder);
    wick_model_close(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s MODEL.gguf TEXT TEXT...\n", argv[0]);
        return 2;
    }
    wick_error error = {0};
    wick_device *device = NULL;
    wick_status status = wick_device_open(NULL, &device, &error);
    if (status == WICK_OK) status = run(device, argv + 1, argc - 1, &error);
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    return status == WICK_OK ? 0 : 1;
}
