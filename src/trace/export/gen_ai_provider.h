/* SPDX-License-Identifier: Apache-2.0
 *
 * Who answers: gen_ai.provider.name of an endpoint's host, or of what a driver is for.
 */
#pragma once

/* The convention's name of who answers at <host> (NULL: unknown), else the driver artifact's own
 * name without its "driver-"; NULL when neither says. Static, or borrowed from <artifact>. */
const char *gen_ai_provider_name (const char *artifact, const char *host);
