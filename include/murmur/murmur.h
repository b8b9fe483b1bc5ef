/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur as a library: everything of it.
 */
#pragma once

#include "murmur/child.h"
#include "murmur/error.h"
#include "murmur/event.h"
#include "murmur/request.h"
#include "murmur/session.h"
