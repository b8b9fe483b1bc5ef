/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room commands, in one program.
 */

int unit_command_writes (void);

int
main (void)
{
    int failed = 0;
    failed += unit_command_writes ();
    return failed;
}
