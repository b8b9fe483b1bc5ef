/* SPDX-License-Identifier: Apache-2.0
 *
 * What the walls refused while a call ran: each thing once, with how often, kept until it is
 * recorded.
 *
 * Threads: noted from the egress thread and those of guests; its own lock, a leaf. Bounded: what
 * comes above the most is counted with the last.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define REFUSED_MOST 32 /* between two records */

struct session;

void refused_new (struct session *s);
void refused_free (struct session *s);
/* A connection that was not made, or a name that was not answered for (port 0). */
void refused_note_host (void *session, const char *host, int port);
/* One line of what a command was refused, as the model reads it: "what (rule)". */
void refused_note_line (struct session *s, const char *line);
/* Appends a line for each host that was noted since the last record, as the model reads it. */
void refused_host_lines (struct session *s, struct strv *out);
/* True the first time a line is asked about in a session; always beyond what is remembered. */
bool refused_is_news (struct session *s, const char *line);
/* Writes network_refused and command_refused for what was noted; <by> is the tool or command. */
void refused_record (struct session *s, const char *task_id, uint64_t turn, const char *by);
