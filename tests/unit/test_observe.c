/* Observers: several at once, what they are shown, and hooks that add, remove and queue. */
#include "ops_fixture.h"

#include "tensor/plan.h"

enum { MOST_EVENTS = 32 };

/* 'o' an op, 'v' a view; in the order of the calls. */
typedef struct event {
    char kind;
    wk_call call;
    wk_view_made made;
    wk_view_step step;
} event;

typedef struct diary {
    int n;
    event events[MOST_EVENTS];
    const char *name; /* in the list that several write to; may be NULL */
    char *list;
} diary;

static event *add_event(diary *d, char kind) {
    assert_true(d->n < MOST_EVENTS);
    if (d->list) strcat(d->list, d->name);
    event *const e = &d->events[d->n++];
    *e = (event){.kind = kind};
    return e;
}

static void see_op(void *user, const wk_call *call) { add_event(user, 'o')->call = *call; }
static void see_view(void *user, const wk_view_made *made) {
    event *const e = add_event(user, 'v');
    e->made = *made;
    e->step = *made->step;
}

static wk_observer *keep_diary(wick_device *device, diary *d) {
    wk_observer *const observer =
        wk_observer_add(device, &(wk_observer_hooks){.op = see_op, .view = see_view, .user = d});
    assert_non_null(observer);
    return observer;
}

/* The last event is a view of x by this step; gives the step. */
static const wk_view_step *last_step(const diary *d, wick_tensor *x, wick_tensor *y,
                                     wk_view_kind kind) {
    assert_non_null(y);
    const event *const e = &d->events[d->n - 1];
    assert_int_equal(e->kind, 'v');
    assert_ptr_equal(e->made.from, x);
    assert_ptr_equal(e->made.to, y);
    assert_int_equal(e->step.kind, kind);
    return &e->step;
}

static void assert_slice(const wk_view_step *step, int dim, int64_t start, int64_t by) {
    assert_int_equal(step->slice.dim, dim);
    assert_int_equal(step->slice.start, start);
    assert_int_equal(step->slice.step, by);
}

static void test_views_are_shown(void **state) {
    wick_device *const device = device_of(state);
    diary d = {0};
    wk_observer *const observer = keep_diary(device, &d);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 3, 4));
    assert_int_equal(d.n, 1);
    const wk_view_step *step = last_step(&d, x, wick_transpose(x, 0, -1), WK_VIEW_PERMUTE);
    assert_memory_equal(step->dims, ((int[]){2, 1, 0}), 3 * sizeof(int));
    step = last_step(&d, x, wick_permute(x, 3, (int[]){1, -1, 0}), WK_VIEW_PERMUTE);
    assert_memory_equal(step->dims, ((int[]){1, 2, 0}), 3 * sizeof(int));
    last_step(&d, x, wick_reshape(x, WICK_SHAPE(6, -1)), WK_VIEW_RESHAPE);
    last_step(&d, x, wick_flatten(x, 0, 1), WK_VIEW_RESHAPE);
    last_step(&d, x, wick_squeeze(x, 0), WK_VIEW_RESHAPE);
    last_step(&d, x, wick_unsqueeze(x, -1), WK_VIEW_RESHAPE);
    last_step(&d, x, wick_contiguous(x), WK_VIEW_RESHAPE);
    last_step(&d, x, wick_expand(x, WICK_SHAPE(5, 2, 3, 4)), WK_VIEW_EXPAND);
    assert_slice(last_step(&d, x, wick_narrow(x, 1, 1, 2), WK_VIEW_SLICE), 1, 1, 1);
    assert_slice(last_step(&d, x, wick_slice(x, 2, 1, 4, 2), WK_VIEW_SLICE), 2, 1, 2);
    wick_tensor *parts[2];
    assert_int_equal(wick_chunk(x, 2, -1, parts), 2);
    assert_slice(last_step(&d, x, parts[1], WK_VIEW_SLICE), 2, 2, 1);
    assert_slice(&d.events[d.n - 2].step, 2, 0, 1);
    assert_null(wick_narrow(x, 1, 2, 2)); /* what is refused is not shown */
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_INDEX);
    assert_int_equal(d.n, 13);
    wick_scope_end(scope);
    wk_observer_remove(observer);
}

/* Results have their final shape when they are shown, whatever shape the kernel sees. */
static void test_ops_are_shown_with_tensors(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3));
    wick_tensor *const row = count_up(device, WICK_SHAPE(3));
    diary d = {0};
    wk_observer *const observer = keep_diary(device, &d);

    wick_tensor *const sum = wick_add(x, row);
    const event *const added = &d.events[0];
    assert_int_equal(added->call.op.code, WK_OP_BINARY);
    assert_ptr_equal(added->call.operand[0], sum);
    assert_ptr_equal(added->call.operand[1], x);
    assert_ptr_equal(added->call.operand[2], row);
    assert_int_equal(added->call.op.view[2].stride[0], 0); /* broadcast by the op */

    wick_tensor *const mean = wick_mean(x, 1, (int[]){0}, true);
    const event *const reduced = &d.events[1];
    assert_ptr_equal(reduced->call.operand[0], mean);
    assert_shape(reduced->call.operand[0], WICK_SHAPE(1, 3));
    assert_int_equal(reduced->call.op.view[0].rank, 1);
    ASSERT_FLOATS(wick_retain(mean), 1.5F, 2.5F, 3.5F);

    wick_tensor *const turned = wick_transpose(x, 0, 1);
    wick_tensor *const flat = wick_reshape(turned, WICK_SHAPE(6)); /* a copy */
    const event *const copied = &d.events[3];
    assert_int_equal(d.n, 4);
    assert_int_equal(copied->call.op.code, WK_OP_COPY);
    assert_ptr_equal(copied->call.operand[0], flat);
    assert_shape(copied->call.operand[0], WICK_SHAPE(6));
    assert_ptr_equal(copied->call.operand[1], turned);
    ASSERT_FLOATS(wick_retain(flat), 0, 3, 1, 4, 2, 5);
    wk_observer_remove(observer);
    wick_scope_end(scope);
}

static void test_any_number_in_any_order(void **state) {
    wick_device *const device = device_of(state);
    char list[64] = "";
    diary a = {.name = "a", .list = list}, b = {.name = "b", .list = list};
    diary c = {.name = "c", .list = list};
    wick_tensor *const x = count_up(device, WICK_SHAPE(2));
    wk_observer *const first = keep_diary(device, &a);
    wk_observer *const second = keep_diary(device, &b);
    wk_observer *const third = keep_diary(device, &c);
    wick_release(wick_neg(x));
    assert_string_equal(list, "abc");
    wk_observer_remove(second);
    wick_release(wick_transpose(x, 0, 0));
    assert_string_equal(list, "abcac");
    wk_observer *const again = keep_diary(device, &b);
    wk_observer_remove(first);
    wick_release(wick_neg(x));
    assert_string_equal(list, "abcaccb");
    wk_observer_remove(again);
    wk_observer_remove(third);
    wk_observer_remove(NULL);
    wick_release(wick_neg(x));
    assert_string_equal(list, "abcaccb");
    wick_release(x);
}

/* Removes victims when it sees an op, and adds one. */
typedef struct meddler {
    wick_device *device;
    wk_observer *victims[3], *added;
    diary *of_added;
    int n;
} meddler;

static void meddle(void *user, const wk_call *call) {
    meddler *const m = user;
    (void)call;
    m->n++;
    for (int i = 0; i < 3; i++) wk_observer_remove(m->victims[i]);
    memset(m->victims, 0, sizeof m->victims);
    if (!m->added) m->added = keep_diary(m->device, m->of_added);
}

static void test_hooks_add_and_remove(void **state) {
    wick_device *const device = device_of(state);
    diary before = {0}, after = {0}, fresh = {0};
    meddler m = {.device = device, .of_added = &fresh};
    wick_tensor *const x = count_up(device, WICK_SHAPE(2));
    m.victims[0] = keep_diary(device, &before);
    m.victims[1] = wk_observer_add(device, &(wk_observer_hooks){.op = meddle, .user = &m});
    m.victims[2] = keep_diary(device, &after);
    wick_release(wick_neg(x));
    assert_int_equal(before.n, 1);
    assert_int_equal(m.n, 1);
    assert_int_equal(after.n, 0); /* removed before its turn */
    assert_int_equal(fresh.n, 0); /* sees what comes next */
    wick_release(wick_neg(x));
    assert_int_equal(before.n + m.n + after.n, 2);
    assert_int_equal(fresh.n, 1);
    wk_observer_remove(m.added);
    wick_release(x);
}

/* Counts what it sees and, at the first op, doubles its operand. */
typedef struct doubler {
    int n;
    wick_tensor *doubled;
} doubler;

static void double_operand(void *user, const wk_call *call) {
    doubler *const d = user;
    if (d->n++ == 0) d->doubled = wick_affine(call->operand[1], 2, 0);
}

/* What a hook queues is computed before the op that it was shown. */
static void test_hooks_queue(void **state) {
    wick_device *const device = device_of(state);
    doubler d = {0};
    wick_tensor *const y = count_up(device, WICK_SHAPE(3));
    wick_tensor *const seven = wick_full(device, WICK_F32, WICK_SCALAR, 7);
    wk_observer *const observer =
        wk_observer_add(device, &(wk_observer_hooks){.op = double_operand, .user = &d});
    assert_ptr_equal(wick_copy(y, seven), y);
    assert_int_equal(d.n, 2);
    ASSERT_FLOATS(d.doubled, 14);
    wk_observer_remove(observer);
    wick_release(seven);
    wick_release(y);
}

static void count_look(void *user, const wk_op *op) {
    assert_int_equal(op->code, WK_OP_UNARY);
    ++*(int *)user;
}

/* Removing an observer takes its own looks away, and no other's. */
static void test_looks_end_with_their_observer(void **state) {
    wick_device *const device = device_of(state);
    int n_first = 0, n_second = 0;
    seen s = {0};
    wk_observer *const third = begin_observing(device, &s);
    wk_observer *const first = wk_observer_add(device, &(wk_observer_hooks){.user = &n_first});
    wk_observer *const second = wk_observer_add(device, &(wk_observer_hooks){.user = &n_second});
    wick_tensor *const x = count_up(device, WICK_SHAPE(3));
    wick_tensor *const y = wick_neg(x);
    assert_int_equal(wk_observer_look(first, &s.last, count_look), WICK_OK);
    assert_int_equal(wk_observer_look(second, &s.last, count_look), WICK_OK);
    wk_observer_remove(first);
    ASSERT_FLOATS(y, 0, -1, -2);
    assert_int_equal(n_first, 0);
    assert_int_equal(n_second, 1);
    wk_observer_remove(second);
    wk_observer_remove(third);
    wick_release(x);
}

/* x + x as a plan; runs are shown op by op while somebody looks, without tensors. */
static void test_plans_are_shown(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2));
    wk_plan_pool *pool;
    wk_plan *plan;
    diary d = {0};
    wk_observer *observer = keep_diary(device, &d);
    assert_int_equal(wk_plan_pool_make(device, &pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, pool), WICK_OK);
    wick_tensor *const y = wick_add(x, x);
    assert_int_equal(d.n, 1);
    assert_true(d.events[0].call.op.view[0].buf->place != 0);
    assert_int_equal(wk_plan_end(device, (wick_tensor *[]){y}, 1, &plan), WICK_OK);
    assert_int_equal(wk_plan_run(plan), WICK_OK);
    assert_int_equal(d.n, 2);
    assert_null(d.events[1].call.operand[0]);
    assert_true(d.events[1].call.op.view[0].buf->place == 0);
    wk_observer_remove(observer);
    assert_int_equal(wk_plan_run(plan), WICK_OK);
    assert_int_equal(d.n, 2);
    ASSERT_FLOATS(y, 0, 2);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(x);
}

static void see_write(void *user, const wick_tensor *x) { *(const wick_tensor **)user = x; }

/* After the buffer has another version; what is refused is not shown. */
static void test_writes_are_shown(void **state) {
    fixture *const f = *state;
    static const float numbers[2] = {1, 2};
    const wick_tensor *written = NULL;
    wk_observer *const observer =
        wk_observer_add(f->device, &(wk_observer_hooks){.write = see_write, .user = &written});
    wick_tensor *const x = wick_zeros(f->device, WICK_F32, WICK_SHAPE(2));
    const uint32_t version = x->view.buf->version;
    assert_int_equal(wick_write(x, numbers, 4), WICK_ERR_ARGUMENT);
    assert_null(written);
    assert_int_equal(wick_device_error(f->device, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_write(x, numbers, sizeof numbers), WICK_OK);
    assert_ptr_equal(written, x);
    assert_int_equal(x->view.buf->version, version + 1);
    wk_observer_remove(observer);
    wick_release(x);
}

/* Those that are left are freed with the device (the fixture counts), and there may be no memory.
 */
static void test_ends_with_the_device(void **state) {
    fixture *const f = *state;
    diary d = {0};
    (void)keep_diary(f->device, &d);
    (void)keep_diary(f->device, &d);
    f->allowed = 0;
    assert_null(wk_observer_add(f->device, &(wk_observer_hooks){.op = see_op, .user = &d}));
    f->allowed = UINT64_MAX;
    assert_int_equal(wick_device_error(f->device, NULL), WICK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_views_are_shown),
        TEST(test_ops_are_shown_with_tensors),
        TEST(test_any_number_in_any_order),
        TEST(test_hooks_add_and_remove),
        TEST(test_hooks_queue),
        TEST(test_looks_end_with_their_observer),
        TEST(test_plans_are_shown),
        TEST(test_writes_are_shown),
        TEST(test_ends_with_the_device),
    };
    return cmocka_run_group_tests_name("observe", tests, NULL, NULL);
}
