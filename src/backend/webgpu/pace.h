/* backend/webgpu/pace.h: how long the open recording will take. */
#ifndef WK_BACKEND_WEBGPU_PACE_H
#define WK_BACKEND_WEBGPU_PACE_H

#include "backend/backend.h"

/* Submits that were not seen to have run. */
typedef struct wk_pace_submit {
    wk_ticket ticket;
    double estimate;
    uint64_t begun; /* wk_clock_ns */
} wk_pace_submit;

enum { WK_PACE_WAITING = 64 };
typedef struct wk_pace {
    double factor;   /* nanoseconds that this device takes for one estimated */
    double budget;   /* of a submit, nanoseconds */
    double recorded; /* estimate of the open recording */
    wk_pace_submit waiting[WK_PACE_WAITING];
    uint32_t first, n_waiting;
    uint64_t last_done;  /* when a submit was last seen to have run */
    uint64_t idle_since; /* when this recording began, nothing being left to run as far as polls
                          * saw; 0: the device was busy, or nothing is recorded */
    uint64_t waited;     /* nanoseconds from there to the submit, of all recordings */
    uint64_t longest;    /* nanoseconds of a submit, at most: a late poll sees several as one */
} wk_pace;

void wk_pace_open(wk_backend_device *dev, uint32_t submit_us);
/* Nanoseconds that an op takes on the nominal device, roughly. */
double wk_pace_estimate(const wk_op *op, const wk_cost *cost);
/* How many parts it must be cut into, for none to be longer than a submit may be. */
int64_t wk_pace_parts(const wk_backend_device *dev, double estimate);
/* Whether the open recording is to be submitted before an op that takes this is added to it. */
bool wk_pace_is_full(const wk_backend_device *dev, double estimate);
/* It was added. */
void wk_pace_add(wk_backend_device *dev, double estimate);
/* A command for it is being made. */
void wk_pace_work(wk_backend_device *dev);
/* It was submitted, as dev->n_submitted. */
void wk_pace_submitted(wk_backend_device *dev);
/* dev->n_done may have changed. */
void wk_pace_look(wk_backend_device *dev);

#endif
