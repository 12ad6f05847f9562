/* train/schedule.c: the rate of each step. */
#include <wick/train.h>

#include <math.h>

static const double pi = 3.14159265358979323846;

/* The share of rate - least that is left, done: 0 to 1. */
static double left(wick_schedule_kind kind, double done) {
    switch (kind) {
    case WICK_SCHEDULE_CONSTANT: return 1;
    case WICK_SCHEDULE_LINEAR: return 1 - done;
    case WICK_SCHEDULE_COSINE: return (1 + cos(pi * done)) / 2;
    }
    return 1;
}

double wick_schedule_rate(const wick_schedule *schedule, uint64_t step) {
    if (!schedule) return 0;
    const wick_schedule *const s = schedule;
    if (step < s->warmup) return s->rate * (double)(step + 1) / (double)s->warmup;
    const double n = s->steps > s->warmup ? (double)(s->steps - s->warmup) : 1;
    const double done = fmin((double)(step - s->warmup) / n, 1);
    return s->least + (s->rate - s->least) * left(s->kind, done);
}
