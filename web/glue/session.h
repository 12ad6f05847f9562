/* web/glue/session.h: how a session is described in JavaScript. */
#ifndef WICK_WEB_SESSION_H
#define WICK_WEB_SESSION_H

#include "door.h"

typedef struct session_options {
    wick_session_desc desc;
    wick_json_document *document; /* the texts in desc are its */
} session_options;

/* To be freed also on failure. */
wick_status session_options_read(const char *text, session_options *options);
void session_options_free(session_options *options);

/* The status of a call of an embedder; a failure's sentence becomes the door's. */
int take_embedder_error(const wick_embedder *embedder, wick_status status);

#endif
