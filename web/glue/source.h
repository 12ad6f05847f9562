/* web/glue/source.h: a source whose bytes JavaScript puts in place. */
#ifndef WICK_WEB_SOURCE_H
#define WICK_WEB_SOURCE_H

#include "door.h"

typedef struct door_source door_source;

/* What the door source_make or join_finish gave, for a call that takes it over; frees its holder.
 */
wick_source door_source_take(wick_source *source);

#endif
