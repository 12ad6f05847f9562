/* wick/saving.h: sessions as bytes: saved, and loaded to go on where they were, token for token,
 * also on another device. docs/sessions.md describes the format.
 *
 * What is saved: the tokens, the cache, recurrent states, and where the sampler's random numbers
 * are. What a session was opened with is not saved: a loaded session keeps its own description,
 * except for the generator, which goes on as it was unless the session was opened with another
 * seed. */
#ifndef WICK_SAVING_H
#define WICK_SAVING_H

#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes size bytes, which come in order and stay only for the call. A failure ends the saving. */
typedef wick_status (*wick_write_fn)(void *user, const void *bytes, size_t size, wick_error *error);

typedef struct wick_session_saving wick_session_saving;
typedef struct wick_session_loading wick_session_loading;

/* Saves a session in steps that never block; a batch that is being computed is waited for. poll
 * does a slice and returns WICK_PENDING, WICK_OK once everything was written, or a failure; finish
 * gives its sentence and frees saving in any case; calling it early cancels (WICK_ERR_CANCELLED).
 * WICK_ERR_UNSUPPORTED: it has rows of embeddings (wick_session_append_embeddings).
 * WICK_ERR_STATE: the session has failed, has logits to show, or went on meanwhile: steps, tokens
 * and resets must wait. WICK_ERR_DEVICE_LOST: save again. */
WICK_API wick_status wick_session_save_start(wick_session *session, wick_write_fn write, void *user,
                                             wick_session_saving **saving, wick_error *error);
WICK_API wick_status wick_session_save_poll(wick_session_saving *saving);
WICK_API wick_status wick_session_save_finish(wick_session_saving *saving, wick_error *error);

/* Puts what was saved in place of all that the session holds, likewise; start resets the session
 * and takes the source over, also when it fails. After a failure the session is as after a reset.
 * WICK_ERR_FORMAT: not a saved session, or a damaged one; WICK_ERR_UNSUPPORTED: of a version that
 * is not known; WICK_ERR_MISMATCH: of another model or other weights, of sessions with another
 * output (wick_logits_mode) or type of cache, or rotated for another length of context;
 * WICK_ERR_STATE: the context has no room for it; WICK_ERR_VALUE: the session's grammar does not
 * allow what was generated. */
WICK_API wick_status wick_session_load_start(wick_session *session, wick_source source,
                                             wick_session_loading **loading, wick_error *error);
WICK_API wick_status wick_session_load_poll(wick_session_loading *loading);
WICK_API wick_status wick_session_load_finish(wick_session_loading *loading, wick_error *error);

/* The same to a file and from one. path never holds half a session. Block; native only. */
WICK_API wick_status wick_session_save(wick_session *session, const char *path, wick_error *error);
WICK_API wick_status wick_session_load(wick_session *session, const char *path, wick_error *error);

/* What texts have left in the caches of a model, so that texts which begin alike go on from there
 * in another process, too: all blocks of keys and values that are known, and snapshots
 * (docs/sessions.md). One object for both ways, in steps that never block: poll does a slice and
 * returns WICK_PENDING, WICK_OK at the end, or a failure; finish gives its sentence and frees it in
 * any case. Sessions wait meanwhile (WICK_ERR_STATE); a text that has rows of embeddings is left
 * out. */
typedef struct wick_prefixes wick_prefixes;
WICK_API wick_status wick_prefixes_save_start(wick_model *model, wick_write_fn write, void *user,
                                              wick_prefixes **prefixes, wick_error *error);
/* Takes the source over, also when it fails; it has a size and is read at any offset, twice: first
 * for the checksum. As much as the cache and the snapshots' limit have room for. WICK_ERR_FORMAT:
 * not saved prefixes, or damaged ones; WICK_ERR_UNSUPPORTED: of another version, or such a source;
 * WICK_ERR_MISMATCH: of another model, adapter or placing of layers. The model works on after a
 * failure. */
WICK_API wick_status wick_prefixes_load_start(wick_model *model, wick_source source,
                                              wick_prefixes **prefixes, wick_error *error);
WICK_API wick_status wick_prefixes_poll(wick_prefixes *prefixes);
WICK_API wick_status wick_prefixes_finish(wick_prefixes *prefixes, wick_error *error);

/* The same to a folder, which exists, and from it: a file for each model, named by its checksum.
 * Block; native only. load: WICK_ERR_NOT_FOUND: nothing of this model is there. */
WICK_API wick_status wick_model_save_prefixes(wick_model *model, const char *folder,
                                              wick_error *error);
WICK_API wick_status wick_model_load_prefixes(wick_model *model, const char *folder,
                                              wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
