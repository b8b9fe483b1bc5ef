/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be launched: a capsule, where it works, and what overrides its manifest.
 *
 * A request is filled by its setters, which copy what they are given, and may be launched any
 * number of times. A setter never fails; what cannot be honoured is said by mur_request_explain and
 * mur_session_launch. Relative paths are those of the folder this process is in at these.
 */
#pragma once

#include "murmur/error.h"
#include "murmur/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mur_request;
struct mur_session;

/* An empty request (owned: mur_request_free). Never NULL. MT-Safe. */
struct mur_request *mur_request_new (void);
/* NULL is fine. Sessions that were launched from it go on. MT-Safe race:r. */
void mur_request_free (struct mur_request *r);

/* --- which capsule: the last of these three counts --- */

/* A project: the path of its murmur.yaml, or of the folder that holds one; NULL: of this folder.
 * MT-Safe race:r. */
void mur_request_set_manifest (struct mur_request *r, const char *path);
/* The same with the manifest's text from memory, UTF-8. <folder>, which exists, is where its
 * project would be: paths in the text, its lock file and its store are looked for there. MT-Safe
 * race:r. */
void mur_request_set_manifest_text (struct mur_request *r, const char *text, size_t len,
                                    const char *folder);
/* A packed capsule by its full name, "<scope>/<name>", and exact version; NULL: the newest that is
 * installed. MT-Safe race:r. */
void mur_request_set_capsule (struct mur_request *r, const char *name, const char *version);

/* --- what overrides the manifest; NULL takes a setting back --- */

/* Where it works; else `workdir` beside the manifest. MT-Safe race:r. */
void mur_request_set_workdir (struct mur_request *r, const char *path);
/* In place of the manifest's prompt, UTF-8; "": none. MT-Safe race:r. */
void mur_request_set_system_prompt (struct mur_request *r, const char *text);
/* "advisory", "scoped" or "sealed": the least the host must back. MT-Safe race:r. */
void mur_request_set_containment (struct mur_request *r, const char *floor);
/* Goes on with a recorded session ("ses_...", a suffix of it, or "@N"). MT-Safe race:r. */
void mur_request_set_resume (struct mur_request *r, const char *session);
/* Goes on with a conversation ("ctx_..."). MT-Safe race:r. */
void mur_request_set_context (struct mur_request *r, const char *context_id);
/* Seconds from the launch until it is ended; 0: none. MT-Safe race:r. */
void mur_request_set_deadline (struct mur_request *r, uint64_t seconds);
/* `lifecycle.task_acceptance` of the manifest: "none", "single", "queue". MT-Safe race:r. */
void mur_request_set_task_acceptance (struct mur_request *r, const char *word);
/* `lifecycle.after_task`: "exit", "sleep". MT-Safe race:r. */
void mur_request_set_after_task (struct mur_request *r, const char *word);
/* `lifecycle.conversation`: "stateless", "threaded". MT-Safe race:r. */
void mur_request_set_conversation (struct mur_request *r, const char *word);
/* Whether the project's .env files are read; true at first. MT-Safe race:r. */
void mur_request_set_env_file (struct mur_request *r, bool is_read);
/* In place of the manifest's model. MT-Safe race:r. */
void mur_request_set_model (struct mur_request *r, const char *name);
/* Lowers the manifest's ceiling of tokens; 0: as it is. MT-Safe race:r. */
void mur_request_set_max_session_tokens (struct mur_request *r, uint64_t count);
/* How a resumed conversation is taken over: "full" or "compact". MT-Safe race:r. */
void mur_request_set_resume_mode (struct mur_request *r, const char *word);
/* Whether a harness begins a new session of its own for the context; false at first. MT-Safe
 * race:r. */
void mur_request_set_forget_session (struct mur_request *r, bool is_forgotten);
/* The address its door listens at; "127.0.0.1" without it. MT-Safe race:r. */
void mur_request_set_bind (struct mur_request *r, const char *address);
/* Its port; 0: the manifest's, else a free one. MT-Safe race:r. */
void mur_request_set_port (struct mur_request *r, uint16_t port);
/* The address its agent card names: where others reach the door through a proxy. MT-Safe race:r. */
void mur_request_set_public_url (struct mur_request *r, const char *url);
/* The operator's stance for hosts without namespaces (`mur run --unconfined`); false at first.
 * MT-Safe race:r. */
void mur_request_set_unconfined (struct mur_request *r, bool is_unconfined);

/* The case of an evaluation it runs for, as hooks that score read it (MURMUR_CASE_ID).
 * MT-Safe race:r. */
void mur_request_set_case_id (struct mur_request *r, const char *id);
/* The data set of that case (MURMUR_DATASET_ID); else the manifest's `observability.eval` names it.
 * MT-Safe race:r. */
void mur_request_set_dataset_id (struct mur_request *r, const char *id);
/* Whether it takes the place in a formation that this process was started for, which its
 * environment tells (MURMUR_FORMATION_ID, _CHANNEL, _LIFELINE); false at first. One session of this
 * process may: it reads the channel alone. E-RUN-044, E-RUN-046 at the launch where there is no
 * such place. MT-Safe race:r. */
void mur_request_set_formation_member (struct mur_request *r, bool is_member);

/* --- what it is launched with --- */

/* The first task, UTF-8: begun as soon as the session is ready. Of a script it is the input. NULL:
 * none. MT-Safe race:r. */
void mur_request_set_task (struct mur_request *r, const char *text, size_t len);

/* A variable of the launched process, over those of this one, which are read at the launch. <value>
 * NULL: without it. MT-Safe race:r. */
void mur_request_set_variable (struct mur_request *r, const char *name, const char *value);
/* Called with the name of a credential the capsule's gateway needs, before the environment and the
 * configuration are looked at, and again after a provider refused it. Returns the value, which is
 * freed with free(3) after it was wiped, or NULL for "not mine". Called on a thread of the
 * session's, one call at a time, and until mur_session_free returns; its own mur_session_end and
 * mur_session_free do not wait: the rest happens once it has returned. The value, of up to 64 KiB,
 * reaches no environment, argument or file. */
typedef char *mur_credential_fn (void *ctx, const char *name);
/* Who is asked for keys; NULL: nobody. <ctx> is what the callback is given. MT-Safe race:r. */
void mur_request_set_credentials (struct mur_request *r, mur_credential_fn *fn, void *ctx);
/* A folder of keys, each a file named like its credential; before the environment. MT-Safe race:r.
 */
void mur_request_set_secrets_dir (struct mur_request *r, const char *path);
/* Where records go while it runs: "file:///folder" or "https://host/path". MT-Safe race:r. */
void mur_request_set_records_store (struct mur_request *r, const char *url);
/* Called with every event instead of mur_session_next, in order, one call at a time, on a thread of
 * the session's own: perhaps before mur_session_launch has returned, and never once
 * mur_session_free has. <e> is the caller's until it returns. It may call every function of the
 * session, mur_session_free, too: then it is the last call. */
typedef void mur_event_fn (void *ctx, struct mur_session *s, const struct mur_event *e);
/* Who takes the events; NULL: mur_session_next. MT-Safe race:r. */
void mur_request_set_events (struct mur_request *r, mur_event_fn *fn, void *ctx);
/* The program that runs the session; else $MURMUR_MUR_BINARY, else the `mur` this library was
 * installed with. MT-Safe race:r. */
void mur_request_set_program (struct mur_request *r, const char *path);

/* What the capsule could do on this host: the object of `mur run --explain-scope --json`, as text
 * that is freed with free(3). Launches nothing. NULL with the error the launch would give.
 * MT-Safe env race:r. */
char *mur_request_explain (const struct mur_request *r, struct mur_error **err);

#ifdef __cplusplus
}
#endif
