/* examples/voice_activity.c: when does somebody speak? Silero VAD 6.2 on a recording.
 *
 *   cc voice_activity.c $(pkg-config --cflags --libs wick) -o voice_activity
 *   ./voice_activity silero_vad_16k.safetensors recording.wav    (16 kHz, mono, 16 bits)
 *
 * Prints the probability of speech for each 32 ms, then the stretches of speech. */
#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 16000, BLOCK = 512, CONTEXT = 64 };

#define W(name) wick_tensor_load(wick_tensor_device(samples), weights, name)
/* samples i16 [n]: the probability of speech in each block, [blocks]. The network sees a block
 * after the last 64 samples of the one before. All blocks are one batch; only the LSTM, which
 * remembers what came before, takes them as a sequence. */
static wick_tensor *listen(const char *weights, wick_tensor *samples) {
    const int64_t before = CONTEXT, after = BLOCK - 1 - (wick_tensor_size(samples) - 1) % BLOCK;
    wick_tensor *x = wick_affine(wick_cast(samples, WICK_F32), 1.0 / 32768, 0);
    x = wick_pad(x, &before, &after, WICK_PAD_CONSTANT, 0);
    x = wick_unfold(x, 0, CONTEXT + BLOCK, BLOCK); /* [blocks, 576], a view */
    const int64_t none[2] = {0, 0}, end[2] = {0, CONTEXT};
    x = wick_unsqueeze(wick_pad(x, none, end, WICK_PAD_REFLECT, 0), 1);
    /* A Fourier transform written as a convolution: 129 real rows, 129 imaginary ones. */
    x = wick_conv1d(x, W("stft_conv.weight"), NULL, &(wick_conv_desc){.stride = {128}});
    x = wick_hypot(wick_narrow(x, 1, 0, 129), wick_narrow(x, 1, 129, 129));
    const wick_conv_desc same = {.padding = {1}}, half = {.padding = {1}, .stride = {2}};
    x = wick_relu(wick_conv1d(x, W("conv1.weight"), W("conv1.bias"), &same));
    x = wick_relu(wick_conv1d(x, W("conv2.weight"), W("conv2.bias"), &half));
    x = wick_relu(wick_conv1d(x, W("conv3.weight"), W("conv3.bias"), &half));
    x = wick_relu(wick_conv1d(x, W("conv4.weight"), W("conv4.bias"), &same)); /* [blocks, 128, 1] */
    const wick_rnn_weights lstm = {.w_ih = W("lstm_cell.weight_ih"),
                                   .w_hh = W("lstm_cell.weight_hh"),
                                   .b_ih = W("lstm_cell.bias_ih"),
                                   .b_hh = W("lstm_cell.bias_hh")};
    x = wick_lstm(wick_unsqueeze(wick_squeeze(x, 2), 0), &lstm, NULL, NULL, NULL, NULL);
    return wick_sigmoid(wick_conv1d(wick_transpose(wick_relu(x), 1, 2), W("final_conv.weight"),
                                    W("final_conv.bias"), NULL));
}

/* A stretch of speech begins at a probability of 0.5 and lasts until it falls below 0.35. */
static void print(const float *probability, size_t n) {
    const double seconds = (double)BLOCK / RATE;
    for (size_t i = 0; i < n; i++)
        printf("%7.3f s  %.6f\n", (double)i * seconds, (double)probability[i]);
    for (size_t i = 0, was_speech = 0; i <= n; i++) {
        const bool is_speech = i < n && probability[i] >= (was_speech ? 0.35F : 0.5F);
        if (is_speech && !was_speech) printf("speech from %.2f s", (double)i * seconds);
        if (was_speech && !is_speech) printf(" to %.2f s\n", (double)i * seconds);
        was_speech = is_speech;
    }
}

static wick_status run(wick_device *device, const char *weights, const void *sound, size_t size) {
    const wick_scope scope = wick_scope_begin(device); /* frees the tensors at its end */
    wick_tensor *const samples =
        wick_tensor_from_data(device, WICK_I16, WICK_SHAPE((int64_t)(size / 2)), sound, size);
    wick_tensor *const y = listen(weights, samples);
    float *const probability = malloc(wick_tensor_bytes(y) + 1);
    const wick_status status = wick_read(y, probability, wick_tensor_bytes(y));
    if (status == WICK_OK) print(probability, (size_t)wick_tensor_size(y));
    free(probability);
    wick_scope_end(scope);
    return status;
}

/* The samples of a WAV file of PCM, mono, 16 kHz, 16 bits, which the caller frees, or NULL. */
static void *read_wav(FILE *file, size_t *size) {
    static const char wanted[16] = "\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10";
    char head[12], format[16] = {0};
    if (fread(head, 1, 12, file) != 12 || memcmp(head + 8, "WAVE", 4) != 0) return NULL;
    while (fread(head, 1, 8, file) == 8) { /* a chunk: four letters and its size */
        size_t left = 0;
        memcpy(&left, head + 4, 4);
        if (memcmp(head, "data", 4) == 0) {
            void *const samples = memcmp(format, wanted, 16) == 0 ? malloc(left) : NULL;
            if (samples != NULL) *size = fread(samples, 1, left, file) / 2 * 2;
            return samples;
        }
        if (memcmp(head, "fmt ", 4) == 0 && left >= 16) left -= fread(format, 1, 16, file);
        if (fseek(file, (long)(left + left % 2), SEEK_CUR) != 0) break;
    }
    return NULL;
}

int main(int argc, char **argv) {
    FILE *const file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    size_t size = 0;
    void *const sound = file != NULL ? read_wav(file, &size) : NULL;
    wick_error error = {.message = "usage: voice_activity WEIGHTS.safetensors 16KHZ_MONO.wav"};
    wick_device *device = NULL;
    wick_status status = size > 0 ? wick_device_open(NULL, &device, &error) : WICK_ERR_ARGUMENT;
    if (status == WICK_OK && run(device, argv[1], sound, size) != WICK_OK)
        status = wick_device_error(device, &error); /* what went wrong first */
    if (status != WICK_OK) fprintf(stderr, "%s\n", error.message);
    wick_device_close(device);
    free(sound);
    if (file != NULL) fclose(file);
    return status == WICK_OK ? 0 : 1;
}
