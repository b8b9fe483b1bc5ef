/* SPDX-License-Identifier: Apache-2.0
 *
 * HTML as a person would read it aloud: text with headings, lists, links and tables marked the way
 * Markdown does.
 */
#ifndef HTML_H
#define HTML_H

#include "murmur_sdk.h"

/* Adds the page's text; links are made absolute against `base`. The title, when there is one,
 * stands on top. `html` is UTF-8. */
void html_to_text (const char *html, size_t len, const char *base, struct mur_text *text);

/* Code points of the bytes 0x80 to 0x9f in windows-1252, which pages also mean by &#128; and so on.
 */
uint32_t windows_1252 (unsigned char byte);

/* The absolute form of a reference found at `base`; never NULL. */
char *url_resolve (const char *base, const char *reference);

#endif
