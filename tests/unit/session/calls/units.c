/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room calls, in one program.
 */

int unit_command_read (void);
int unit_dispatch (void);
int unit_gate (void);

int
main (void)
{
    int failed = 0;
    failed += unit_command_read ();
    failed += unit_dispatch ();
    failed += unit_gate ();
    return failed;
}
