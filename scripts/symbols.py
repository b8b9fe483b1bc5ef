# SPDX-License-Identifier: Apache-2.0
#
# Who calls whom, as the objects of a build say it: includes alone cannot see a circle of calls. One run of nm over all
# objects; a source is named by its path below src/.

import re
import subprocess
from collections import defaultdict
from pathlib import Path

# Stand-ins for programs that read a table only: what they define is defined elsewhere, too.
STAND_INS = {"cli/no_commands.c"}


class Calls:
    """defined: name -> source; used: source -> names it takes from elsewhere; twice: names that two sources define."""

    def __init__(self, src, build):
        sources = {str(path.relative_to(src)) for path in src.rglob("*.c")}
        objects = {obj: source for obj in sorted([*build.glob("src/**/*.o"), *build.glob("*.p/*.o")])
                   if (source := source_of(obj, build, sources))}
        self.defined, self.used, self.twice = {}, defaultdict(set), {}
        if not objects:
            return
        listing = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            place, _, rest = line.partition(".o:")
            source = objects.get(Path(place + ".o"))
            kind, name = rest.split()[-2:]
            if source in STAND_INS:
                continue
            if kind == "U":
                self.used[source].add(name)
            elif kind in "TDBRCVW":
                if self.defined.get(name, source) != source and name != "main":
                    self.twice[name] = [self.defined[name], source]
                self.defined[name] = source

    def edges(self):
        """source -> sources whose names it uses."""
        return {source: {self.defined[name] for name in names if name in self.defined} - {source}
                for source, names in self.used.items()}

    def ties(self, source, target):
        return sorted(name for name in self.used[source] if self.defined.get(name) == target)


def source_of(obj, build, sources):
    """The source an object was made from; None for generated ones. meson writes a path with _ for /."""
    name = obj.name[:-2]
    if obj.parent.parent == build:
        name = name.removeprefix("src_")
        folder = "."
    else:
        folder = obj.parent.parent.relative_to(build / "src").as_posix()
    direct = f"{folder}/{name}"
    if direct in sources:
        return direct
    start = "" if folder == "." else folder + "/"
    found = [s for s in sources if s.startswith(start) and s[len(start):].replace("/", "_") == name]
    return found[0] if found else None


def knots(edges):
    """Groups of more than one source, each of which reaches each (Tarjan's components, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges.get(root, ()))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1:
                        found.append(sorted(group))
    return found
