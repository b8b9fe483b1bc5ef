/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room model, in one program.
 */

int unit_retry (void);
int unit_selection (void);

int
main (void)
{
    int failed = 0;
    failed += unit_retry ();
    failed += unit_selection ();
    return failed;
}
