/* backend/cpu/cpu.h: the backend, for the registry. */
#ifndef WK_BACKEND_CPU_CPU_H
#define WK_BACKEND_CPU_CPU_H

#include "backend/backend.h"

extern const wk_backend wk_backend_cpu;

#endif
