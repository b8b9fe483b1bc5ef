/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room guests, in one program.
 */

int unit_guest_env (void);

int
main (void)
{
    int failed = 0;
    failed += unit_guest_env ();
    return failed;
}
