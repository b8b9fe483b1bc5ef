# SPDX-License-Identifier: Apache-2.0
#
# What integration tests share: the lab (own home, own projects, the real mur), the scripted model server, components built
# by others, the other build to compare with, counters of what is left behind.
