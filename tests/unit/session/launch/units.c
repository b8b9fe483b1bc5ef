/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room launch, in one program.
 */

int unit_launch_files (void);
int unit_termination (void);

int
main (void)
{
    int failed = 0;
    failed += unit_launch_files ();
    failed += unit_termination ();
    return failed;
}
