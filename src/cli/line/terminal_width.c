/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

unsigned
terminal_width (void)
{
    struct winsize size = { 0 };
    return ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
