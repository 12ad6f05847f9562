/* finetune.c: `wick finetune`: trains a low-rank adapter of a model. */
#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "progress.h"
#include "targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct finetune_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model, *data, *out, *targets;
    uint32_t rank, batch, context, epochs;
    float alpha, dropout, rate, decay, max_norm, held_out;
    int schedule; /* wick_schedule_kind */
    uint64_t warmup, steps, seed, every, eval_every;
    bool rank_stabilized, recompute, resume, force, json;
} finetune_options;

_Static_assert(offsetof(finetune_options, engine) == 0, "offsets of cli_engine_group");

static void set_defaults(void *given) {
    finetune_options *const o = given;
    cli_engine_defaults(&o->engine, WICK_MATH_EXACT);
    o->targets = "all";
    o->rank = 8;
    o->alpha = 16;
    o->rate = 1e-4F;
    o->max_norm = 1;
    o->batch = 8;
    o->context = 256;
    o->epochs = 1;
    o->every = 50;
    o->held_out = 0.05F;
}

static const cli_option options[] = {
    {.argument = "MODEL.gguf",
     .help = "the model; its weights may be quantized, and stay as they are",
     .kind = &cli_model,
     .offset = offsetof(finetune_options, model),
     .is_required = true},
    {.name = "data",
     .argument = "FILE",
     .help = "what to learn: a text, or if the name ends in .jsonl an object on each "
             "line, see below",
     .kind = &cli_in,
     .offset = offsetof(finetune_options, data)},
    {.name = "out",
     .letter = 'o',
     .argument = "ADAPTER.gguf",
     .help = "the adapter to write, for --lora; checkpoints go to ADAPTER.gguf.checkpoint",
     .kind = &cli_out,
     .offset = offsetof(finetune_options, out)},
    {.name = "resume",
     .help = "continue from the checkpoint, with the same numbers as without an "
             "interruption",
     .kind = &cli_flag,
     .offset = offsetof(finetune_options, resume)},
    {.name = "force",
     .help = "replace an existing adapter and checkpoint",
     .kind = &cli_flag,
     .offset = offsetof(finetune_options, force)},
    {.name = "json",
     .help = "print a line of JSON for each step and each measurement",
     .kind = &cli_flag,
     .offset = offsetof(finetune_options, json)},
};

static const cli_option training[] = {
    {.name = "rank",
     .argument = "N",
     .help = "rank of each matrix's change",
     .kind = &cli_u32,
     .offset = offsetof(finetune_options, rank),
     .least = 1,
     .most = 4096},
    {.name = "alpha",
     .argument = "X",
     .help = "changes are scaled by alpha / rank",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, alpha),
     .least = 1e-3,
     .most = 1e6},
    {.name = "rank-stabilized",
     .help = "scale changes by alpha / sqrt(rank) instead, which suits high ranks",
     .kind = &cli_flag,
     .offset = offsetof(finetune_options, rank_stabilized)},
    {.name = "targets",
     .argument = "LIST",
     .help = "the matrices that are adapted, of q,k,v,o (attention), gate,up,down (MLP), in,out "
             "(convolution, scan), or all",
     .kind = &cli_text,
     .offset = offsetof(finetune_options, targets)},
    {.name = "dropout",
     .argument = "SHARE",
     .help = "leave out this share of the factors' inputs in each step, at random",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, dropout),
     .most = 0.99},
    {.name = "rate",
     .argument = "X",
     .help = "learning rate of AdamW; the largest one of the schedule",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, rate),
     .least = 1e-9,
     .most = 10},
    {.name = "schedule",
     .argument = "constant|linear|cosine",
     .help = "how the rate falls to 0 at the last step",
     .kind = &cli_word,
     .offset = offsetof(finetune_options, schedule)},
    {.name = "warmup",
     .argument = "N",
     .help = "steps in which the rate rises first",
     .kind = &cli_u64,
     .offset = offsetof(finetune_options, warmup)},
    {.name = "decay",
     .argument = "X",
     .help = "weight decay of AdamW",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, decay),
     .most = 10},
    {.name = "max-norm",
     .argument = "X",
     .help = "gradients are clipped to this norm",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, max_norm),
     .least = 1e-6,
     .most = 1e9},
    {.name = "steps",
     .argument = "N",
     .help = "steps of the optimizer; 0: those of --epochs",
     .kind = &cli_u64,
     .offset = offsetof(finetune_options, steps)},
    {.name = "epochs",
     .argument = "N",
     .help = "passes over the examples",
     .kind = &cli_u32,
     .offset = offsetof(finetune_options, epochs),
     .least = 1,
     .most = 1000000},
    {.name = "batch",
     .argument = "N",
     .help = "examples of a step; they are computed a few at a time and their "
             "gradients added up, so memory does not grow",
     .kind = &cli_u32,
     .offset = offsetof(finetune_options, batch),
     .least = 1,
     .most = 1 << 20},
    {.name = "context",
     .alias = "ctx",
     .letter = 'c',
     .argument = "N",
     .help = "most tokens of an example: texts are cut into such pieces, conversations are cut off",
     .kind = &cli_u32,
     .offset = offsetof(finetune_options, context),
     .least = 2,
     .most = 1 << 20},
    {.name = "recompute",
     .help = "compute layers a second time for their gradients: less memory for long examples, "
             "about a third more time, the same numbers",
     .kind = &cli_flag,
     .offset = offsetof(finetune_options, recompute)},
    {.name = "held-out",
     .argument = "SHARE",
     .help = "measure this share of the examples, the last ones, instead of learning "
             "them; 0: none",
     .kind = &cli_f32,
     .offset = offsetof(finetune_options, held_out),
     .most = 0.99},
    {.name = "checkpoint-every",
     .argument = "N",
     .help = "steps between checkpoints; 0: only at the end",
     .kind = &cli_u64,
     .offset = offsetof(finetune_options, every)},
    {.name = "eval-every",
     .argument = "N",
     .help = "steps between measurements of the held-out examples; 0: as --checkpoint-every",
     .kind = &cli_u64,
     .offset = offsetof(finetune_options, eval_every)},
    {.name = "seed",
     .letter = 's',
     .argument = "N",
     .help = "of the order of the examples, dropout and the initial factors",
     .kind = &cli_u64,
     .offset = offsetof(finetune_options, seed)},
};
static const cli_group group = {"Input and output", options, sizeof options / sizeof *options};
static const cli_group training_group = {"Training", training, sizeof training / sizeof *training};
static const cli_group *const groups[] = {&group, &training_group, &cli_engine_group, NULL};

/* ---- Examples ---- */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void note_examples(const wick_examples_info *info, uint32_t context) {
    if (!cli_common.quiet)
        cli_say("%" PRIu64 " example%s of %" PRIu64 " tokens, of which %" PRIu64 " are learned",
                info->n_examples, plural(info->n_examples), info->n_tokens, info->n_learned);
    if (info->n_cut > 0)
        cli_warn("%" PRIu64 " example%s longer than --context %" PRIu32 ": cut off there",
                 info->n_cut, plural(info->n_cut), context);
    if (info->n_left_out > 0)
        cli_warn("%" PRIu64 " example%s left out: no token to learn", info->n_left_out,
                 plural(info->n_left_out));
}

static int make_examples(const finetune_options *o, const cli_input *input, const wick_model *model,
                         wick_examples **examples) {
    wick_error error = {0};
    wick_status status = wick_examples_make(model, o->context, examples, &error);
    if (status == WICK_OK)
        status = ends_with(o->data, ".jsonl")
                     ? wick_examples_add_json_lines(*examples, input->text, input->size, &error)
                     : wick_examples_add_text(*examples, input->text, input->size, &error);
    if (status != WICK_OK) return cli_report_file(&error, o->data, "");
    wick_examples_info info;
    wick_examples_get_info(*examples, &info);
    if (info.n_examples == 0)
        return cli_error("'%s' has no token to learn: a conversation needs an answer of the "
                         "assistant, within --context %" PRIu32 " tokens",
                         o->data, o->context);
    note_examples(&info, o->context);
    return CLI_OK;
}

/* Before the model is loaded, which may take long. */
static int read_data(const finetune_options *o, cli_input *input) {
    const int code = cli_read_file(o->data, input);
    if (code != CLI_OK || strlen(input->text) != input->size || !cli_is_blank(input->text))
        return code;
    cli_input_free(input);
    return cli_error("'%s' is empty; give a text, or conversations in a .jsonl file", o->data);
}

/* ---- Targets ---- */

/* "q,v" as bits; 0: one of the words is unknown. */
static uint32_t parse_targets(const char *text) {
    static const struct {
        const char *word;
        uint32_t bits;
    } known[] = {
        {"all", WICK_TARGET_ALL}, {"q", WICK_TARGET_Q},       {"k", WICK_TARGET_K},
        {"v", WICK_TARGET_V},     {"o", WICK_TARGET_O},       {"gate", WICK_TARGET_GATE},
        {"up", WICK_TARGET_UP},   {"down", WICK_TARGET_DOWN}, {"in", WICK_TARGET_IN},
        {"out", WICK_TARGET_OUT},
    };
    uint32_t targets = 0;
    for (const char *word = text; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        const size_t size = strcspn(word, ",");
        size_t i = 0;
        while (i < sizeof known / sizeof *known &&
               (strlen(known[i].word) != size || strncmp(known[i].word, word, size) != 0))
            i++;
        if (i == sizeof known / sizeof *known) return 0;
        targets |= known[i].bits;
    }
    return targets;
}

/* ---- Training ---- */

typedef struct job {
    wick_finetune *finetune;
    wick_finetune_event event; /* of the last poll */
    double loss;               /* of the last step */
    double sum;                /* of the losses since the last line */
    uint64_t n_summed;
    bool has_trained; /* a step */
    bool is_json;
} job;

static wick_status poll(void *given, wick_progress *progress, wick_error *error) {
    job *const j = given;
    const wick_status status = wick_finetune_poll(j->finetune, &j->event, error);
    *progress = (wick_progress){.done = j->event.step, .total = j->event.steps};
    return status;
}

/* A line each, flushed: programs that read along get whole ones. */
static void print_json(const wick_finetune_event *event) {
    const bool is_step = event->kind == WICK_FINETUNE_STEP;
    const char *const prefix = is_step ? "" : "held_out_";
    printf("{\"step\": %" PRIu64
           ", \"%sloss\": %.17g, \"%sperplexity\": %.17g, \"tokens\": %" PRIu64,
           event->step, prefix, event->loss, prefix, event->perplexity, event->n_tokens);
    if (is_step) printf(", \"rate\": %.17g", event->rate);
    printf("}\n");
    fflush(stdout);
}

static void print_line(job *j) {
    const wick_finetune_event *const event = &j->event;
    printf("step %" PRIu64 " of %" PRIu64, event->step, event->steps);
    if (j->n_summed > 0) printf("  loss %.4f", j->sum / (double)j->n_summed);
    if (event->kind == WICK_FINETUNE_HELD_OUT)
        printf("  held-out loss %.4f, perplexity %.4f", event->loss, event->perplexity);
    printf("\n");
    fflush(stdout);
    j->sum = 0;
    j->n_summed = 0;
}

static void look(void *given, const wick_progress *progress, cli_progress *line) {
    job *const j = given;
    const wick_finetune_event *const event = &j->event;
    (void)progress;
    if (event->kind == WICK_FINETUNE_RESTORED) {
        cli_progress_hide();
        cli_warn("the device was lost; the training goes on after step %" PRIu64, event->step);
    }
    if (event->kind == WICK_FINETUNE_STEP) {
        j->has_trained = true;
        j->loss = event->loss;
        j->sum += event->loss;
        j->n_summed++;
        snprintf(line->note, sizeof line->note, "loss %.4f", event->loss);
    }
    const bool is_number =
        event->kind == WICK_FINETUNE_STEP || event->kind == WICK_FINETUNE_HELD_OUT;
    const bool is_line = j->is_json
                             ? is_number
                             : event->kind == WICK_FINETUNE_HELD_OUT ||
                                   (event->kind == WICK_FINETUNE_CHECKPOINT && j->n_summed > 0);
    if (!is_line) return;
    cli_progress_hide();
    if (j->is_json)
        print_json(event);
    else
        print_line(j);
}

/* After a signal: what was learned so far goes to the checkpoint. */
static int stop(const job *j) {
    wick_error error = {0};
    if (!j->has_trained) return CLI_INTERRUPTED; /* an older checkpoint stays */
    if (wick_finetune_checkpoint(j->finetune, &error) != WICK_OK) return cli_report(&error, NULL);
    cli_say("stopped after step %" PRIu64 " of %" PRIu64 "; --resume goes on from there",
            j->event.step, j->event.steps);
    return CLI_INTERRUPTED;
}

static int train(const finetune_options *o, const cli_engine *engine, wick_finetune *finetune) {
    job j = {.finetune = finetune, .is_json = o->json};
    wick_error error = {0};
    const cli_job work = {.what = "training",
                          .unit = "steps",
                          .poll = poll,
                          .after = look,
                          .job = &j,
                          .device = engine->device};
    const wick_status status = cli_poll_all(&work, &error);
    if (status < 0) return cli_report(&error, cli_step_hint(status));
    if (status != WICK_OK) return stop(&j);
    if (!j.has_trained && !cli_common.quiet)
        cli_say("nothing is left to train: the checkpoint has %" PRIu64 " steps, of %" PRIu64,
                j.event.step, j.event.steps);
    if (wick_finetune_save(finetune, o->out, &error) != WICK_OK)
        return cli_report(
            &error, "the checkpoint has all steps: --resume writes the adapter once there is room");
    return CLI_OK;
}

static const char *start_hint(wick_status status) {
    switch (status) {
    case WICK_ERR_NOT_FOUND: return "leave out --resume to begin";
    case WICK_ERR_MISMATCH:
        return "give the options and the data that it was begun with, or --force instead of "
               "--resume to begin again";
    case WICK_ERR_VALUE: return "give more data, or a smaller --held-out";
    case WICK_ERR_UNSUPPORTED: return "";
    default: return NULL;
    }
}

static int compute(const finetune_options *o, const cli_engine *engine, const char *checkpoint,
                   const wick_examples *examples) {
    const wick_finetune_desc desc = {.rank = o->rank,
                                     .alpha = o->alpha,
                                     .rank_stabilized = o->rank_stabilized,
                                     .targets = parse_targets(o->targets),
                                     .dropout = (double)o->dropout,
                                     .rate = (double)o->rate,
                                     .schedule = (wick_schedule_kind)o->schedule,
                                     .warmup = o->warmup,
                                     .decay = (double)o->decay,
                                     .max_norm = (double)o->max_norm,
                                     .steps = o->steps,
                                     .epochs = o->epochs,
                                     .batch = o->batch,
                                     .recompute = o->recompute,
                                     .held_out = (double)o->held_out,
                                     .eval_every = o->eval_every,
                                     .seed = o->seed,
                                     .checkpoint = checkpoint,
                                     .every = o->every,
                                     .resume = o->resume};
    wick_finetune *finetune = NULL;
    wick_error error = {0};
    if (wick_finetune_start(engine->model, examples, &desc, &finetune, &error) != WICK_OK)
        return cli_report(&error, start_hint(error.status));
    const int code = train(o, engine, finetune);
    wick_finetune_finish(finetune);
    return code;
}

static bool exists(const char *path) {
    FILE *const file = fopen(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

/* Work of hours is not replaced unasked; and a place that cannot be written to is found before it.
 */
static int check_files(const finetune_options *o, const char *checkpoint) {
    const int code = cli_check_target(checkpoint, "out");
    if (code != CLI_OK || o->force || o->resume) return code;
    if (exists(checkpoint))
        return cli_error("'%s' is there already: --resume goes on from it, --force begins again",
                         checkpoint);
    if (exists(o->out)) return cli_error("'%s' is there already: --force replaces it", o->out);
    return CLI_OK;
}

static int run(void *given) {
    const finetune_options *const o = given;
    if (o->data == NULL) return cli_usage_error(&cli_finetune, "--data is missing");
    if (o->out == NULL) return cli_usage_error(&cli_finetune, "--out is missing");
    char checkpoint[4096];
    const int length = snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", o->out);
    if (length < 0 || (size_t)length >= sizeof checkpoint)
        return cli_usage_error(&cli_finetune, "--out is too long");
    if (parse_targets(o->targets) == 0)
        return cli_usage_error(
            &cli_finetune,
            "--targets takes q, k, v, o, gate, up, down, in, out or all, with commas");
    cli_input input = {0};
    int code = check_files(o, checkpoint);
    if (code == CLI_OK) code = read_data(o, &input);
    if (code != CLI_OK) return code;
    cli_keep_closed_pipe();
    cli_engine engine = {0};
    wick_examples *examples = NULL;
    code = cli_engine_open(&engine, &o->engine, NULL, o->model);
    if (code == CLI_OK) cli_warn_context(engine.model, o->context);
    if (code == CLI_OK) code = make_examples(o, &input, engine.model, &examples);
    cli_input_free(&input);
    if (code == CLI_OK) code = compute(o, &engine, checkpoint, examples);
    if (code == CLI_OK && o->engine.profile) cli_print_profile(engine.model);
    wick_examples_free(examples);
    cli_engine_close(&engine);
    return code;
}

const cli_command cli_finetune = {
    .name = "finetune",
    .summary = "train a low-rank adapter (LoRA) of a model with texts or conversations",
    .details =
        "  wick finetune MODEL.gguf --data TEXT.txt -o ADAPTER.gguf --steps 200\n"
        "  wick run MODEL.gguf --lora ADAPTER.gguf\n\n"
        "A line of a .jsonl file is {\"messages\": [..]}, a conversation as the model's\n"
        "template has it, of which the assistant's answers are learned; or {\"prompt\": ..,\n"
        "\"completion\": ..}, of which the completion is learned; or {\"text\": ..}.\n"
        "Ctrl-C writes a checkpoint and ends; --resume goes on from there.\n"
        "docs/training.md has more.\n",
    .groups = groups,
    .options_size = sizeof(finetune_options),
    .defaults = set_defaults,
    .run = run,
};
