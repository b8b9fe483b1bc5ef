/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room stage, in one program.
 */

int unit_places (void);

int
main (void)
{
    int failed = 0;
    failed += unit_places ();
    return failed;
}
