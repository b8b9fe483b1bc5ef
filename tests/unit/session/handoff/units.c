/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room handoff, in one program.
 */

int unit_handoff (void);

int
main (void)
{
    int failed = 0;
    failed += unit_handoff ();
    return failed;
}
