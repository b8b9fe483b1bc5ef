/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room hooks, in one program.
 */

int unit_hook_messages (void);

int
main (void)
{
    int failed = 0;
    failed += unit_hook_messages ();
    return failed;
}
