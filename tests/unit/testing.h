/* SPDX-License-Identifier: Apache-2.0
 *
 * What every unit test includes: cmocka in the order it needs, and a few asserts that read well.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"

/* The call failed with exactly this code; the error is freed. */
#define assert_fails(call, expected)                                                               \
    do {                                                                                           \
        struct mur_error *err = NULL;                                                              \
        assert_false (call);                                                                       \
        assert_non_null (err);                                                                     \
        assert_string_equal (diag_code_name (err->code), diag_code_name (expected));               \
        mur_error_free (err);                                                                      \
    } while (0)

/* The call succeeded; otherwise its message is the failure. */
#define assert_succeeds(call)                                                                      \
    do {                                                                                           \
        struct mur_error *err = NULL;                                                              \
        if (! (call))                                                                              \
            fail_msg ("%s: %s", #call, err ? err->message : "failed without an error");            \
        assert_null (err);                                                                         \
    } while (0)
