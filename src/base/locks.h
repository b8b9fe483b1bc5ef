/* SPDX-License-Identifier: Apache-2.0
 *
 * The order in which locks are taken. A thread holding a lock may only take one further down this
 * list, and never waits (for a descriptor, a child, a guest or a condition of another lock) while
 * holding any.
 *
 *   1. session    the task loop's shared state (session/)
 *   2. registry   tasks and streams of the door (door/)
 *   3. control    what may be changed while a session runs (session/control.c)
 *   4. http       the HTTP client's transfers (net/http_client.c)
 *   5. trace      one line at a time (trace/writer.c)
 *   6. cancel     listeners of one cancel (base/cancel.c)
 *   7. redactor, diagnostics sink, id counter: leaves
 */
#pragma once
