/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room plan, in one program.
 */

int unit_plan (void);
int unit_plan_refs (void);
int unit_plan_run (void);

int
main (void)
{
    int failed = 0;
    failed += unit_plan ();
    failed += unit_plan_refs ();
    failed += unit_plan_run ();
    return failed;
}
