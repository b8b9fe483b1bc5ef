/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room task, in one program.
 */

int unit_attempt_end (void);
int unit_restart (void);

int
main (void)
{
    int failed = 0;
    failed += unit_attempt_end ();
    failed += unit_restart ();
    return failed;
}
