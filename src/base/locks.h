/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which locks are taken. A thread holding a lock may only take one further down this
 * list, and never waits (for a descriptor, a child, a guest or a condition of another lock) while
 * holding any.
 *
 *   1. loop       who acts as the task loop, where calls of a harness do so too
 * (session/state/loop_lock.h)
 *   2. session    what runs at this moment (session/state/now.h); a session's native processes
 *                 (session/commands/processes_internal.h): neither is taken under the other
 *   3. bridge     connections of a harness's tool bridge (session/harness/bridge.c)
 *   4. cancel     listeners of one cancel (base/cancel.c): of a task's, then of its work's
 *   5. delegations  what a task handed off (session/handoff/delegations.c), then a child's own
 * (spawn/)
 *   6. commands   running commands (sandbox/run/commands.c); an end pokes the registry
 *   7. registry   tasks of the door (door/tasks/registry.c)
 *   8. streams    the door's event sequence (door/tasks/streams.c)
 *      in mur ui, before the server: its sessions (cli/ui/ui_world.c), then a door that is followed
 *      (cli/ui/ui_follow.c), then events (cli/ui/ui_hub.c)
 *   9. server     answers and wakes for the HTTP server's thread (net/server/http_server.c)
 *  10. control    what may be changed while a session runs (session/model/selection.c)
 *  11. http       the HTTP client's transfers (net/http_client.c)
 *  12. trace      one line at a time (trace/lines/writer.c)
 *  13. spans waiting to be sent (trace/lines/otel.c), who asks a driver (session/model/steering.c),
 *      a harness's pid, redactor, diagnostics sink, id counter, what a source answered
 *      (artifact/sources/source_facts.c): leaves
 */
#pragma once
