/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room state, in one program.
 */

int unit_command_line (void);
int unit_deadline (void);
int unit_outcome (void);
int unit_session (void);
int unit_spend (void);

int
main (void)
{
    int failed = 0;
    failed += unit_command_line ();
    failed += unit_deadline ();
    failed += unit_outcome ();
    failed += unit_session ();
    failed += unit_spend ();
    return failed;
}
