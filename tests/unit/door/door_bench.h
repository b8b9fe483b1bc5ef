/* SPDX-License-Identifier: Apache-2.0
 *
 * A door on loopback without a session: its address is dialled over bare sockets, the test stands
 * in the task loop's place. What is returned as char * or json_t * is owned, but for what is read
 * out of an answer.
 */
#pragma once

#include "base/json.h"
#include "door/door.h"
#include "door/tasks/intake.h"

struct bench {
    struct registry_spec spec;
    struct registry *registry;
    struct door *door;
};

#define VERSION "A2A-Version: 1.0\r\n"

struct card_facts facts_of (const struct bench *b);
void bench_begin (struct bench *b);
void bench_end (struct bench *b);
int dial (const struct bench *b);
/* Reads one answer; its head (owned) in *head when not NULL. */
char *read_answer (int fd, char **head);
char *exchange (const struct bench *b, const char *request, char **head);
void post (int fd, const char *headers, const char *body);
json_t *call (const struct bench *b, const char *headers, const char *body);
json_int_t error_code (const json_t *answer);
const char *reason_of (const json_t *answer);
json_t *send_text (const struct bench *b, const char *text);
json_t *task_of (const json_t *answer);
const char *state_of (const json_t *task);
json_t *get_task (const struct bench *b, const char *id);
void finish (struct bench *b, const struct task *task, const char *answer);
