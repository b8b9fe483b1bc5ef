# SPDX-License-Identifier: Apache-2.0
#
# A program on a terminal as its screen shows it: every escape sequence obeyed, not taken out.

import pyte

from .lab import SLOWER
from .polling import eventually
from .terminal import Terminal


class Screen(Terminal):
    """`columns` and `rows` are those of the screen, too; what scrolled off is kept in `history`."""

    def __init__(self, lab, *arguments, columns=80, rows=24, **how):
        self.columns, self.rows = columns, rows
        super().__init__(lab, *arguments, columns=columns, rows=rows, **how)

    def resize(self, columns, rows=24):
        self.columns, self.rows = columns, rows
        super().resize(columns, rows)

    @property
    def screen(self):
        """All that was written, on a screen of the present size."""
        screen = pyte.HistoryScreen(self.columns, self.rows, history=5000)
        pyte.ByteStream(screen).feed(self._shown)
        return screen

    @property
    def lines(self):
        """What scrolled off, then what is shown; blanks at the ends taken off."""
        screen = self.screen
        above = ["".join(row[i].data for i in range(screen.columns)).rstrip() for row in screen.history.top]
        return above + [line.rstrip() for line in screen.display]

    @property
    def shown(self):
        return "\n".join(self.lines)

    def wait_shown(self, text, within_s=30):
        return eventually(lambda: text in self.shown, within_s * SLOWER, lambda: f"{text!r} on the screen:\n{self.shown}")
