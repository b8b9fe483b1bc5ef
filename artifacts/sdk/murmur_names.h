/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of a tool's inputs in an alphabet that every provider takes: letters, digits, `_`, `.` and
 * `-`, at most 64 of them. Anthropic's refuses the whole request for one other ("$filter",
 * "page[size]"). And names of tools as a model writes them ("functions.files", "Files"): what goes
 * back to a provider holds letters, digits, `_` and `-` alone, or it refuses the conversation.
 */
#ifndef MURMUR_NAMES_H
#define MURMUR_NAMES_H

#include "murmur_sdk.h"

/* Adds the name as the provider takes it: as it is, or its letters with a check of the whole behind
 * them, so that two names stay two. */
void mur_narrow_name (const char *name, struct mur_text *to);
/* True of a name that the provider takes as it is. */
bool mur_is_narrow (const char *name);
/* Adds an input object with its members' names narrowed. */
void mur_narrow_input (const struct mur_json *json, mur_node input, struct mur_text *to);
/* Gives the input of a call the names that the tool's schema in the runtime's request has for them;
 * what is no object or holds no narrowed name stays as it is. */
void mur_widen_input (const struct mur_json *request, const char *tool, struct mur_text *input);

/* The tool of the runtime's request that is meant by a name it does not have: the same but for what
 * stands before it (`functions.`, a scope), its case, and `_` for `-`. Owned; NULL when the name is
 * one of the request's, or means none or several of them. */
char *mur_meant_tool (const struct mur_json *request, const char *name);
/* Adds the member `name` of a call that goes back to the provider, in the alphabet it takes. */
void mur_text_tool_name (struct mur_text *to, const struct mur_json *json, mur_node name);

#endif
