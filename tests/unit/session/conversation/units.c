/* SPDX-License-Identifier: Apache-2.0
 *
 * The units of the room conversation, in one program.
 */

int unit_conversation (void);
int unit_fence (void);
int unit_messages (void);
int unit_redact_json (void);
int unit_request (void);

int
main (void)
{
    int failed = 0;
    failed += unit_conversation ();
    failed += unit_fence ();
    failed += unit_messages ();
    failed += unit_redact_json ();
    failed += unit_request ();
    return failed;
}
