/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room loop, in one program.
 */

int unit_loop (void);

int
main (void)
{
    int failed = 0;
    failed += unit_loop ();
    return failed;
}
