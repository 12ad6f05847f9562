/* examples/answer.c: what an answer consists of, as it comes in pieces; without a model.
 *
 *   cc answer.c $(pkg-config --cflags --libs wick) -o answer
 *   ./answer "<think>The sky" "..." "</think>Blue." */
#include <wick/wick.h>

#include <stdio.h>
#include <string.h>

static void show(wick_answer *answer) {
    static const char *const names[] = {"content", "reasoning", "call"};
    for (wick_answer_span span; wick_answer_next(answer, &span);)
        printf("%s: %.*s\n", names[span.kind], (int)span.size, span.text);
}

int main(int argc, char **argv) {
    wick_answer *answer = NULL;
    wick_status status = wick_answer_open(NULL, &answer);
    for (int i = 1; i < argc && status == WICK_OK; i++) {
        status = wick_answer_feed(answer, argv[i], strlen(argv[i]));
        show(answer);
    }
    if (status != WICK_OK) fprintf(stderr, "%s\n", wick_status_text(status));
    wick_answer_finish(answer);
    show(answer);
    wick_answer_close(answer);
    return status == WICK_OK ? 0 : 1;
}
