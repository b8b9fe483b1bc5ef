/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room toolbox, in one program.
 */

int unit_toolbox (void);

int
main (void)
{
    int failed = 0;
    failed += unit_toolbox ();
    return failed;
}
