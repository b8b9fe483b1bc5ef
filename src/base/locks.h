/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which locks are taken. A thread holding a lock may only take one further down this
 * list, and never waits (for a descriptor, a child, a guest or a condition of another lock) while
 * holding any.
 *
 *   1. session    the task loop's shared state (session/)
 *   2. cancel     listeners of one cancel (base/cancel.c): of a task's, then of its work's
 *   3. delegations  what a task handed off (session/delegations.c), then a child's own (spawn/)
 *   4. commands   running commands (sandbox/commands.c); an end pokes the registry
 *   5. registry   tasks of the door (door/registry.c)
 *   6. streams    the door's event sequence (door/streams.c)
 *   7. server     answers and wakes for the HTTP server's thread (net/http_server.c)
 *   8. control    what may be changed while a session runs (session/control.c)
 *   9. http       the HTTP client's transfers (net/http_client.c)
 *  10. trace      one line at a time (trace/writer.c)
 *  11. spans waiting to be sent (trace/otel.c), redactor, diagnostics sink, id counter: leaves
 */
#pragma once
