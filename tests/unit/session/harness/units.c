/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room harness, in one program.
 */

int unit_bridge (void);
int unit_harness_child (void);
int unit_harness_memory (void);

int
main (void)
{
    int failed = 0;
    failed += unit_bridge ();
    failed += unit_harness_child ();
    failed += unit_harness_memory ();
    return failed;
}
